/* Tests models through the C interface: their ports, bindings with dynamic batch sizes and from
   many threads, application as expressions, lifetimes, and damaged files. Operators are tested in
   tests/models/onnx. */
#include "../models/onnx/writer.h"
#include "support/tensor_check.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

enum { MOST_ROWS = 64 };

static bytes file; /* layer_model's */

static int make_file(void **state) {
  (void)state;
  layer_model(&file);
  return 0;
}

static tn_model *loaded(tn_context *c) {
  tn_model *m;
  check_ok(c, tn_model_load_bytes(c, file.at, file.n, NULL, &m));
  return m;
}

/** Loads a model that the first binding compiles for all sizes. */
static tn_model *loaded_once(tn_context *c, const bytes *from) {
  tn_model *m;
  tn_model_desc d = TN_MODEL_DESC_INIT;
  d.variants = TN_VARIANTS_ONE;
  check_ok(c, tn_model_load_bytes(c, from->at, from->n, &d, &m));
  return m;
}

static tn_binding *bound(tn_context *c, tn_model *m) {
  tn_binding *b;
  check_ok(c, tn_model_bind(m, &b));
  return b;
}

static float element(size_t i) { return (float)((int)(i * 7 % 13) - 6); }

/** Runs a binding with this many rows; returns what is wrong, NULL if nothing. */
static const char *run_rows(tn_binding *b, size_t rows) {
  float x[MOST_ROWS][LAYER_IN], y[MOST_ROWS][LAYER_OUT], highest[MOST_ROWS];
  for (size_t i = 0; i < MOST_ROWS * LAYER_IN; i++)
    x[i / LAYER_IN][i % LAYER_IN] = element(i + rows);
  tn_binding_input(b, "x", tn_shape((tn_dim)rows, LAYER_IN), TN_F32, x, rows * sizeof *x);
  if (tn_binding_run(b) != TN_OK) return tn_binding_message(b);
  if (tn_binding_read(b, "y", TN_F32, y, rows * sizeof *y) != TN_OK) return tn_binding_message(b);
  tn_type t = tn_binding_type(b, "highest");
  if (t.shape.rank != 1 || t.shape.size[0] != (tn_dim)rows) return "highest has another shape";
  tn_binding_read(b, "highest", TN_F32, highest, rows * sizeof *highest);
  for (size_t i = 0; i < rows; i++) {
    float most = y[i][0];
    for (size_t k = 0; k < LAYER_OUT; k++) {
      if (y[i][k] != layer_expected(x[i], k)) return "y is wrong";
      most = y[i][k] > most ? y[i][k] : most;
    }
    if (highest[i] != most) return "highest is wrong";
  }
  return NULL;
}

static void check_rows(tn_binding *b, size_t rows) {
  const char *wrong = run_rows(b, rows);
  if (wrong) fail_msg("%zu rows: %s", rows, wrong);
}

/* Ports. */

static void ports_are_described(void **state) {
  tn_model *m = loaded(*state);
  tn_port p = TN_PORT_INIT;
  assert_int_equal(tn_model_port(m, TN_PORT_INPUT, 0, &p), TN_OK);
  assert_string_equal(p.name, "x");
  assert_int_equal(p.type.dtype, TN_F32);
  assert_int_equal(p.type.shape.rank, 2);
  assert_int_equal(p.type.shape.size[0], -1);
  assert_int_equal(p.type.shape.size[1], LAYER_IN);
  assert_string_equal(p.sizes[0], "batch");
  assert_string_equal(p.sizes[1], "4");
  assert_true(p.min[0] == 0 && p.max[0] == TN_MODEL_SIZE_MAX);
  assert_true(p.min[1] == LAYER_IN && p.max[1] == LAYER_IN);
  assert_true(p.variable[0] == 0 && p.variable[1] == -1);
  assert_int_equal(tn_model_port(m, TN_PORT_OUTPUT, 1, &p), TN_OK);
  assert_string_equal(p.name, "highest");
  assert_int_equal(p.variable[0], 0); /* the number of rows of x */
  assert_int_equal(p.type.shape.rank, 1);
  assert_null(p.sizes[1]);
  assert_int_equal(tn_model_port(m, TN_PORT_OUTPUT, 2, &p), TN_ERR_ARGUMENT);
  assert_string_equal(p.name, "highest");
  assert_int_equal(tn_model_port(m, TN_PORT_INPUT, 1, &p),
                   TN_ERR_ARGUMENT); /* weights are no ports */
  assert_int_equal(tn_model_port(m, (tn_port_kind)7, 0, &p), TN_ERR_ARGUMENT);
  assert_int_equal(tn_model_port(NULL, TN_PORT_INPUT, 0, &p), TN_ERR_ARGUMENT);
  tn_port small = {.size = 8};
  assert_int_equal(tn_model_port(m, TN_PORT_INPUT, 0, &small), TN_ERR_ARGUMENT);
  assert_string_equal(tn_message(*state), "");
}

static void sizes_are_shown_as_the_file_names_them(void **state) {
  static const char *const sizes[] = {"core_id", NULL};
  bytes graph = {.n = 0}, model = {.n = 0};
  put_port(&graph, 11, "x", ONNX_TYPE_F32, sizes);
  put_port(&graph, 12, "y", ONNX_TYPE_F32, sizes);
  put_node(&graph, "Add", (const char *[]){"x", "x", NULL}, "y", NULL, 0);
  put_model(&model, "m", &graph, 18);
  tn_model *m;
  tn_port p = TN_PORT_INIT;
  check_ok(*state, tn_model_load_bytes(*state, model.at, model.n, NULL, &m));
  assert_int_equal(tn_model_port(m, TN_PORT_OUTPUT, 0, &p), TN_OK);
  assert_string_equal(p.sizes[0], "core_id");
  tn_binding *b = bound(*state, m);
  float x[] = {1, -2}, y[2];
  tn_binding_input(b, "x", tn_shape(2), TN_F32, x, sizeof x);
  assert_int_equal(tn_binding_run(b), TN_OK);
  assert_int_equal(tn_binding_read(b, "y", TN_F32, y, sizeof y), TN_OK);
  assert_true(y[0] == 2 && y[1] == -4);
}

/* Bindings. */

static void contractions_are_counted(void **state) {
  tn_context *c = *state;
  tn_model *m = loaded(c);
  tn_contractions found = TN_CONTRACTIONS_INIT;
  for (int rows = 1; rows < 20; rows += 6) {
    check_ok(c, tn_model_contractions(m, &tn_shape(rows, LAYER_IN), 1, &found));
    assert_true(found.operations == 2.0 * rows * LAYER_IN * LAYER_OUT && found.is_float);
  }
  const tn_shape wrong[] = {tn_shape(3), tn_shape(3, LAYER_IN + 1), tn_shape(-1, LAYER_IN)};
  for (size_t i = 0; i < 3; i++)
    assert_int_equal(tn_model_contractions(m, &wrong[i], 1, &found), TN_ERR_SHAPE);
  check_text(tn_message(c), "input 'x': axis 0 has size -1, not batch");
  assert_int_equal(tn_model_contractions(m, wrong, 2, &found), TN_ERR_ARGUMENT);
  assert_int_equal(tn_model_contractions(m, NULL, 1, &found), TN_ERR_ARGUMENT);
  assert_int_equal(tn_model_contractions(NULL, wrong, 1, &found), TN_ERR_ARGUMENT);
  assert_true(found.operations > 0); /* unchanged */
  check_rows(bound(c, m), 3);        /* the model is unchanged */
  assert_null(tn_model_data_file(m, 0));
  assert_null(tn_model_data_file(NULL, 0));
}

static void batches_come_in_any_order(void **state) {
  tn_binding *b = bound(*state, loaded(*state));
  uint32_t random = 12345;
  for (int i = 0; i < 100; i++) {
    check_rows(b, random >> 16 & (MOST_ROWS - 1));
    random = random * 1664525 + 1013904223;
  }
  check_rows(b, 0);
  check_rows(b, 1);
  check_rows(b, MOST_ROWS);
}

static void host_types_are_converted(void **state) {
  tn_binding *b = bound(*state, loaded(*state));
  const int32_t x[LAYER_IN] = {1, -2, 3, 4};
  const float same[LAYER_IN] = {1, -2, 3, 4};
  double y[LAYER_OUT];
  tn_binding_input(b, "x", tn_shape(1, LAYER_IN), TN_I32, x, sizeof x);
  assert_int_equal(tn_binding_run(b), TN_OK);
  assert_int_equal(tn_binding_read(b, "y", TN_F64, y, sizeof y), TN_OK);
  for (size_t k = 0; k < LAYER_OUT; k++) assert_true(y[k] == (double)layer_expected(same, k));
}

typedef struct wrong_input {
  const char *name;
  tn_shape shape;
  size_t bytes;
  tn_status status;
  const char *words; /* expected in the message */
} wrong_input;

static void wrong_inputs_are_refused(void **state) {
  static const float x[MOST_ROWS];
  const wrong_input all[] = {
      {"pixels", tn_shape(2, 4), 32, TN_ERR_ARGUMENT, "pixels"},
      {"x", tn_shape(2, 5), 40, TN_ERR_SHAPE, "x"},
      {"x", tn_shape(8), 32, TN_ERR_SHAPE, "rank 1, not 2: its shape is 8, not batchx4"},
      {"x", tn_shape(-1, 4), 32, TN_ERR_SHAPE, "x"},
      {"x", tn_shape(2, 4), 31, TN_ERR_ARGUMENT, "31"},
      {"y", tn_shape(2, 3), 24, TN_ERR_ARGUMENT, "y"},
  };
  tn_model *m = loaded(*state);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    tn_binding *b = bound(*state, m);
    tn_binding_input(b, all[i].name, all[i].shape, TN_F32, x, all[i].bytes);
    tn_status s = tn_binding_run(b);
    if (s != all[i].status) fail_msg("%zu: status %d: %s", i, (int)s, tn_binding_message(b));
    check_text(tn_binding_message(b), all[i].words);
    check_text(tn_binding_message(b), "the model: ");
    check_rows(b, 3); /* the failure was returned once */
    tn_binding_free(b);
  }
}

static void missing_inputs_are_named(void **state) {
  tn_binding *b = bound(*state, loaded(*state));
  float y[3] = {7, 7, 7};
  assert_int_equal(tn_binding_run(b), TN_ERR_ARGUMENT);
  check_text(tn_binding_message(b), "x");
  assert_int_equal(tn_binding_read(b, "y", TN_F32, y, sizeof y), TN_ERR_ARGUMENT);
  assert_true(y[0] == 7);
  assert_int_equal(tn_binding_type(b, "y").dtype, TN_UNDEFINED);
}

static void check_title(tn_context *c, tn_model *m, const char *title) {
  char words[80];
  snprintf(words, sizeof words, "%s: inputs without a value: x", title);
  tn_binding *b = bound(c, m);
  assert_int_equal(tn_binding_run(b), TN_ERR_ARGUMENT);
  assert_string_equal(tn_binding_message(b), words);
}

/** Bindings name the model as the failures to load it do; "" is the graph's name. */
static void messages_name_the_model(void **state) {
  tn_context *c = *state;
  char path[] = "/tmp/tenon-model-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0 && write(fd, file.at, file.n) == (ssize_t)file.n);
  static const char *const names[] = {NULL, "net", ""};
  for (size_t i = 0; i < 3; i++) {
    tn_model_desc d = TN_MODEL_DESC_INIT;
    tn_model *m;
    d.name = names[i];
    check_ok(c, tn_model_load(c, path, &d, &m));
    check_title(c, m, i == 0 ? path : i == 1 ? "net" : "layer");
  }
  assert_int_equal(close(fd) | unlink(path), 0);
  check_title(c, loaded(c), "the model");
}

/* Threads. */

typedef struct caller {
  tn_model *model;
  size_t seed;
  const char *wrong;
  tn_status status;
} caller;

static void *run_many(void *arg) {
  caller *k = arg;
  tn_binding *b;
  k->status = tn_model_bind(k->model, &b); /* concurrently: one thread compiles */
  for (size_t i = 0; i < 60 && k->status == TN_OK && !k->wrong; i++)
    k->wrong = run_rows(b, (k->seed + i * 5) % MOST_ROWS);
  if (!k->wrong) tn_binding_free(b);
  return NULL;
}

static void bindings_run_from_many_threads(void **state) {
  enum { CALLERS = 4 };
  pthread_t threads[CALLERS];
  caller callers[CALLERS];
  tn_model *m = loaded(*state);
  for (size_t i = 0; i < CALLERS; i++) {
    callers[i] = (caller){.model = m, .seed = i * 11};
    assert_int_equal(pthread_create(&threads[i], NULL, run_many, &callers[i]), 0);
  }
  for (size_t i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
  for (size_t i = 0; i < CALLERS; i++) {
    if (callers[i].status != TN_OK) fail_msg("bind: %d", (int)callers[i].status);
    if (callers[i].wrong) fail_msg("thread %zu: %s", i, callers[i].wrong);
  }
}

/* Concurrency with the context. */

/** State of a progress callback that waits for another thread. */
typedef struct waiting {
  tn_model *model;
  tn_binding *binding;
  tn_status status;
  atomic_int stage; /* 0: inactive; 1: the callback is to wait; 2: it waits; 3: it goes on */
} waiting;

static bool wait_at_first(void *user, const char *what, uint64_t done, uint64_t total) {
  (void)what, (void)done, (void)total;
  waiting *w = user;
  int expected = 1;
  if (!atomic_compare_exchange_strong(&w->stage, &expected, 2)) return true;
  while (atomic_load(&w->stage) != 3) sched_yield();
  return true;
}

static void *bind_one(void *arg) {
  waiting *w = arg;
  w->status = tn_model_bind(w->model, &w->binding);
  return NULL;
}

/** While one thread compiles a model, the context is usable and another model can be freed. */
static void models_compile_beside_the_context(void **state) {
  (void)state;
  waiting w = {.status = TN_ERR_INTERNAL};
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.progress = (tn_progress){wait_at_first, &w, NULL};
  tn_context *c = tn_open(&d);
  tn_model *other = loaded(c);
  w.model = loaded_once(c, &file);
  tn_tensor *x = tn_full(c, tn_shape(2, LAYER_IN), TN_F32, 1), *out[2];
  atomic_store(&w.stage, 1);
  pthread_t t;
  assert_int_equal(pthread_create(&t, NULL, bind_one, &w), 0);
  while (atomic_load(&w.stage) != 2) sched_yield();
  for (int i = 0; i < 100; i++) assert_non_null(tn_add(x, x));
  tn_model_apply(w.model, &x, 1, out, 2);
  assert_int_equal(tn_type_of(out[0]).dtype, TN_F32);
  tn_model_free(other);
  loaded(c);
  atomic_store(&w.stage, 3);
  pthread_join(t, NULL);
  check_ok(c, w.status);
  check_rows(w.binding, 3);
  float y[2][LAYER_OUT];
  const float ones[LAYER_IN] = {1, 1, 1, 1};
  check_ok(c, tn_read(out[0], TN_F32, y, sizeof y));
  for (size_t k = 0; k < LAYER_OUT; k++) assert_true(y[1][k] == layer_expected(ones, k));
  assert_int_equal(tn_close(c), TN_OK);
}

/** tn_close refuses while a thread compiles. */
static void contexts_stay_open_while_a_model_compiles(void **state) {
  (void)state;
  waiting w = {.status = TN_ERR_INTERNAL};
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.progress = (tn_progress){wait_at_first, &w, NULL};
  tn_context *c = tn_open(&d);
  w.model = loaded_once(c, &file);
  atomic_store(&w.stage, 1);
  pthread_t t;
  assert_int_equal(pthread_create(&t, NULL, bind_one, &w), 0);
  while (atomic_load(&w.stage) != 2) sched_yield();
  tn_status closed = tn_close(c);
  atomic_store(&w.stage, 3);
  pthread_join(t, NULL);
  assert_int_equal(closed, TN_ERR_BUSY);
  check_ok(c, w.status);
  check_rows(w.binding, 3);
  assert_int_equal(tn_close(c), TN_OK);
}

enum { CHAIN = 300 };

/** Writes a model of y[n, 8] = x + … + x, CHAIN nodes. */
static void chain_model(bytes *to) {
  bytes graph = {.n = 0};
  char from[8] = "x", next[8];
  put_port(&graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"n", "8", NULL});
  put_port(&graph, 12, "y", ONNX_TYPE_F32, (const char *[]){"n", "8", NULL});
  for (int i = 0; i < CHAIN; i++) {
    snprintf(next, sizeof next, i + 1 < CHAIN ? "v%d" : "y", i);
    put_node(&graph, i % 2 ? "Add" : "Sub", (const char *[]){from, "x", NULL}, next, NULL, 0);
    memcpy(from, next, sizeof from);
  }
  to->n = 0;
  put_model(to, "chain", &graph, 18);
}

/** A model that two threads use first at the same time. */
typedef struct meeting {
  tn_model *model;
  pthread_barrier_t begin;
  tn_status status;
  atomic_bool is_done;
} meeting;

static void *bind_at_once(void *arg) {
  meeting *w = arg;
  tn_binding *b;
  pthread_barrier_wait(&w->begin);
  w->status = tn_model_bind(w->model, &b);
  atomic_store(&w->is_done, true);
  return NULL;
}

static void models_are_applied_while_they_compile(void **state) {
  (void)state;
  enum { MODELS = 40 };
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.device = "NULL";
  tn_context *c = tn_open(&d);
  static bytes chain;
  chain_model(&chain);
  for (int i = 0; i < MODELS; i++) {
    meeting w = {.status = TN_ERR_INTERNAL};
    pthread_t t;
    w.model = loaded_once(c, &chain);
    pthread_barrier_init(&w.begin, NULL, 2);
    assert_int_equal(pthread_create(&t, NULL, bind_at_once, &w), 0);
    tn_scope_begin(c);
    tn_tensor *x = tn_full(c, tn_shape(2, 8), TN_F32, 1), *y;
    pthread_barrier_wait(&w.begin);
    do {
      tn_model_apply(w.model, &x, 1, &y, 1);
      assert_int_equal(tn_type_of(y).dtype, TN_F32);
    } while (!atomic_load(&w.is_done));
    pthread_join(t, NULL);
    check_ok(c, w.status);
    tn_scope_end(c);
    tn_model_free(w.model);
    pthread_barrier_destroy(&w.begin);
  }
  assert_int_equal(tn_close(c), TN_OK);
}

static void models_are_applied_at_sizes_that_vary(void **state) {
  tn_context *c = *state;
  tn_model *m = loaded(c);
  tn_dim n = tn_dim_var(c, "rows", 1, 8);
  tn_tensor *x = tn_input(c, "x", tn_shape(n, LAYER_IN), TN_F32), *out[2];
  tn_model_apply(m, &x, 1, out, 2);
  assert_true(tn_type_of(out[1]).shape.size[0] == n);
  tn_tensor *twice = tn_input(c, "y", tn_shape(tn_dim_mul(c, n, 2), LAYER_IN), TN_F32), *other[2];
  tn_model_apply(m, &twice, 1, other, 2);
  tn_tensor *both = tn_concat((tn_tensor *[]){out[0], other[0]}, 2, 0);
  tn_plan *plan;
  tn_binding *b;
  check_ok(c, tn_plan_compile(c, &both, 1, NULL, &plan));
  check_ok(c, tn_plan_bind(plan, &b));
  const float row[2][LAYER_IN] = {{1, 2, 3, 4}, {0, -1, 5, 2}};
  float y[3][LAYER_OUT];
  tn_binding_input(b, "x", tn_shape(1, LAYER_IN), TN_F32, row[0], sizeof row[0]);
  tn_binding_input(b, "y", tn_shape(2, LAYER_IN), TN_F32, row, sizeof row);
  check_ok(c, tn_binding_run(b));
  check_ok(c, tn_binding_read(b, "0", TN_F32, y, sizeof y));
  for (size_t k = 0; k < LAYER_OUT; k++) {
    assert_true(y[0][k] == layer_expected(row[0], k) && y[1][k] == y[0][k]);
    assert_true(y[2][k] == layer_expected(row[1], k));
  }
}

/** A model loaded with `copy` does not need its files. */
static void copied_files_may_be_cut(void **state) {
  tn_context *c = *state;
  char path[] = "/tmp/tenon-model-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0 && write(fd, file.at, file.n) == (ssize_t)file.n);
  tn_model_desc d = TN_MODEL_DESC_INIT;
  d.copy = true;
  tn_model *m;
  check_ok(c, tn_model_load(c, path, &d, &m));
  assert_int_equal(ftruncate(fd, 0), 0);
  assert_int_equal(close(fd) | unlink(path), 0);
  check_rows(bound(c, m), 5);
  tn_tensor *x = tn_full(c, tn_shape(1, LAYER_IN), TN_F32, 1), *out[2];
  const float ones[LAYER_IN] = {1, 1, 1, 1};
  float y[LAYER_OUT];
  tn_model_apply(m, &x, 1, out, 2);
  check_ok(c, tn_read(out[0], TN_F32, y, sizeof y));
  for (size_t k = 0; k < LAYER_OUT; k++) assert_true(y[k] == layer_expected(ones, k));
}

/* Memory and lifetime. */

/** Sizes that are known exactly at each run: the model says why, and cannot be applied. */
static void sizes_may_be_known_exactly(void **state) {
  tn_context *c = *state;
  static bytes halves;
  halves_model(&halves);
  tn_model *m;
  check_ok(c, tn_model_load_bytes(c, halves.at, halves.n, NULL, &m));
  check_text(tn_model_exact_sizes(m), "Reshape node 'y': shape n has n elements");
  assert_null(tn_model_exact_sizes(NULL));
  tn_port p = TN_PORT_INIT;
  assert_int_equal(tn_model_port(m, TN_PORT_INPUT, 0, &p), TN_OK);
  assert_true(p.min[0] == 0 && p.max[0] == TN_MODEL_SIZE_MAX && !p.is_deciding);
  assert_int_equal(tn_model_port(m, TN_PORT_OUTPUT, 0, &p), TN_OK);
  assert_string_equal(p.sizes[0], "half");
  assert_true(p.type.shape.rank == 2 && p.type.shape.size[1] == 2);
  tn_contractions k = TN_CONTRACTIONS_INIT;
  assert_int_equal(tn_model_contractions(m, (tn_shape[]){tn_shape(4)}, 1, &k), TN_ERR_UNSUPPORTED);
  check_text(tn_message(c), "the sizes of inputs decide");
  tn_tensor *x = tn_full(c, tn_shape(4), TN_F32, 1), *y;
  tn_model_apply(m, &x, 1, &y, 1);
  assert_int_equal(tn_realize(c, &y, 1), TN_ERR_UNSUPPORTED);
  check_text(tn_message(c), "unless the sizes of its inputs are fixed");
  tn_model_free(m);
  tn_model_size size = TN_MODEL_SIZE_INIT;
  size.name = "n";
  size.min = size.max = 4;
  tn_model_desc fixed = TN_MODEL_DESC_INIT;
  fixed.sizes = &size;
  fixed.n_sizes = 1;
  check_ok(c, tn_model_load_bytes(c, halves.at, halves.n, &fixed, &m));
  assert_null(tn_model_exact_sizes(m));
  tn_model_apply(m, &x, 1, &y, 1);
  check_ok(c, tn_realize(c, &y, 1));
  tn_model_free(m);
}

static void memory_is_flat(void **state) {
  enum { RUNS = 2000 };
  tn_binding *b = bound(*state, loaded(*state));
  long early = 0;
  for (size_t i = 0; i < RUNS; i++) {
    check_rows(b, 1 + i % MOST_ROWS);
    if (i == RUNS / 10) early = resident_kib();
  }
  if (!IS_SANITIZED && resident_kib() > early + 1024)
    fail_msg("%ld KiB after %d runs, %ld after all", early, RUNS / 10, resident_kib());
}

static void bindings_outlive_models(void **state) {
  tn_model *m = loaded(*state);
  tn_binding *one = bound(*state, m), *two = bound(*state, m);
  check_rows(one, 2);
  tn_model_free(m);
  check_rows(one, 5);
  check_rows(two, 3);
  tn_binding_free(one);
  check_rows(two, 4);
  tn_model_free(NULL);
}

static void applied_models_are_expressions(void **state) {
  tn_context *c = *state;
  tn_model *m = loaded(c);
  const float x[2][LAYER_IN] = {{1, 2, 3, 4}, {0, -1, 5, 2}};
  float y[2][LAYER_OUT];
  tn_tensor *in = tn_from_host(c, tn_shape(2, LAYER_IN), TN_F32, x, sizeof x), *out[2];
  tn_model_apply(m, &in, 1, out, 2);
  tn_tensor *doubled = tn_mul(out[0], tn_num(c, 2));
  tn_model_free(m);
  check_ok(c, tn_read(doubled, TN_F32, y, sizeof y));
  for (size_t i = 0; i < 2; i++)
    for (size_t k = 0; k < LAYER_OUT; k++) assert_true(y[i][k] == 2 * layer_expected(x[i], k));
  assert_int_equal(tn_type_of(out[1]).shape.rank, 1);
  assert_int_equal(tn_type_of(out[1]).shape.size[0], 2);
}

static void check_apply_fails(tn_context *c, tn_model *m, tn_tensor *in, size_t n, size_t n_out,
                              tn_status status, const char *words) {
  tn_tensor *two[] = {in, in}, *out[2] = {NULL, NULL};
  float none;
  tn_model_apply(m, two, n, out, n_out);
  for (size_t i = 0; i < n_out; i++) {
    assert_non_null(out[i]);
    assert_int_equal(tn_read(out[i], TN_F32, &none, sizeof none), status);
    check_text(tn_message(c), words);
  }
}

static void models_are_applied_to_what_fits(void **state) {
  tn_context *c = *state;
  tn_model *m = loaded(c);
  tn_tensor *good = tn_full(c, tn_shape(2, 4), TN_F32, 1);
  check_apply_fails(c, m, good, 2, 2, TN_ERR_ARGUMENT, "1 inputs");
  check_apply_fails(c, m, good, 1, 1, TN_ERR_ARGUMENT, "2 outputs");
  check_apply_fails(c, m, tn_full(c, tn_shape(2, 4), TN_F64, 1), 1, 2, TN_ERR_DTYPE,
                    "input 'x' is f64, not f32");
  check_apply_fails(c, m, tn_full(c, tn_shape(2, 5), TN_F32, 1), 1, 2, TN_ERR_SHAPE,
                    "input 'x': axis 1 has size 5, not 4");
  check_apply_fails(c, m, tn_full(c, tn_shape(4), TN_F32, 1), 1, 2, TN_ERR_SHAPE,
                    "input 'x' has rank 1, not 2: its shape is 4, not batchx4");
  tn_tensor *out[2];
  check_apply_fails(c, m, NULL, 1, 2, TN_ERR_ARGUMENT, "model(NULL): operand 1 is NULL");
  tn_model_apply(NULL, &good, 1, out, 2);
  assert_null(out[1]);
}

static void contexts_close_with_all_open(void **state) {
  (void)state;
  counting memory = {.fail_at = 0};
  tn_context *c = open_counting(&memory, NULL);
  tn_model *one = loaded(c), *two = loaded(c);
  check_rows(bound(c, one), 3);
  bound(c, one); /* not run */
  tn_binding *given = bound(c, two);
  static const float x[LAYER_IN];
  tn_binding_input(given, "x", tn_shape(1, LAYER_IN), TN_F32, x, sizeof x);
  tn_tensor *in = tn_full(c, tn_shape(2, 4), TN_F32, 1), *out[2];
  tn_scope_begin(c);
  tn_model_apply(two, &in, 1, out, 2);
  tn_own(out[0]);
  loaded(c); /* not bound */
  tn_model_free(one);
  assert_int_equal(tn_close(c), TN_OK);
  assert_int_equal(memory.out, 0);
  assert_int_equal(memory.destroyed, 1);
}

/* Cancelling. */

static bool go_on(void *user, const char *what, uint64_t done, uint64_t total) {
  (void)what, (void)done, (void)total;
  int *left = user;
  return *left < 0 || (*left)-- > 0;
}

static void compiling_is_cancelled(void **state) {
  (void)state;
  int left = 0;
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.progress = (tn_progress){go_on, &left, NULL};
  tn_context *c = tn_open(&d);
  tn_model *m = loaded_once(c, &file);
  tn_binding *b;
  for (int k = 0; k < 3; k++) {
    left = k;
    assert_int_equal(tn_model_bind(m, &b), TN_ERR_CANCELLED);
    assert_null(b);
    check_text(tn_message(c), "cancelled");
  }
  left = -1;
  check_rows(bound(c, m), 2);
  assert_int_equal(tn_close(c), TN_OK);
}

/* Files. */

static void arguments_are_checked(void **state) {
  tn_context *c = *state;
  tn_model *m = (tn_model *)c;
  tn_binding *b = (tn_binding *)c;
  assert_int_equal(tn_model_load(c, NULL, NULL, &m), TN_ERR_ARGUMENT);
  assert_null(m);
  assert_int_equal(tn_model_load_bytes(c, NULL, 0, NULL, &m), TN_ERR_ARGUMENT);
  assert_int_equal(tn_model_load_bytes(c, file.at, file.n, NULL, NULL), TN_ERR_ARGUMENT);
  assert_int_equal(tn_model_load_bytes(NULL, file.at, file.n, NULL, &m), TN_ERR_ARGUMENT);
  assert_int_equal(tn_model_bind(NULL, &b), TN_ERR_ARGUMENT);
  assert_null(b);
  check_text(tn_message(c), "the output pointer for the model is NULL");
  assert_int_equal(tn_model_bind(loaded(c), NULL), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "model_bind: the output pointer for the binding is NULL");
  struct {
    tn_model_desc known;
    int64_t later;
  } newer = {TN_MODEL_DESC_INIT, 0};
  newer.known.size = sizeof newer;
  check_ok(c, tn_model_load_bytes(c, file.at, file.n, &newer.known, &m));
  newer.later = 1;
  assert_int_equal(tn_model_load_bytes(c, file.at, file.n, &newer.known, &m), TN_ERR_ARGUMENT);
  assert_null(m);
  newer.known.size = 4;
  assert_int_equal(tn_model_load_bytes(c, file.at, file.n, &newer.known, &m), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "tn_model_desc");
}

static void unreadable_files_are_named(void **state) {
  tn_context *c = *state;
  tn_model *m;
  assert_int_equal(tn_model_load(c, "no/such.onnx", NULL, &m), TN_ERR_IO);
  check_text(tn_message(c), "no/such.onnx");
  assert_int_equal(tn_model_load(c, "/", NULL, &m), TN_ERR_IO);
  assert_int_equal(tn_model_load_bytes(c, "", 0, NULL, &m), TN_ERR_FORMAT);
  check_text(tn_message(c), "empty");
  assert_null(m);
}

/** Loads from a copy of the file's exact size, so that sanitizers see overruns. */
static tn_status load_copy(tn_context *c, const unsigned char *from, size_t n) {
  tn_model *m;
  unsigned char *copy = malloc(n + !n);
  memcpy(copy, from, n);
  tn_status s = tn_model_load_bytes(c, copy, n, NULL, &m);
  free(copy);
  assert_true((s == TN_OK) == (m != NULL));
  tn_model_free(m);
  return s;
}

static void cut_files_are_refused(void **state) {
  (void)state;
  counting memory = {.fail_at = 0};
  tn_context *c = open_counting(&memory, "NULL");
  for (size_t n = 0; n < file.n; n++) {
    tn_status s = load_copy(c, file.at, n);
    if (s != TN_ERR_FORMAT) fail_msg("%zu bytes: status %d: %s", n, (int)s, tn_message(c));
  }
  check_ok(c, load_copy(c, file.at, file.n));
  assert_int_equal(tn_close(c), TN_OK);
  assert_int_equal(memory.out, 0);
}

static void changed_files_do_no_harm(void **state) {
  (void)state;
  static const unsigned char change[] = {0x01, 0x10, 0x80, 0xff, 0x7f};
  counting memory = {.fail_at = 0};
  tn_context *c = open_counting(&memory, "NULL");
  size_t refused = 0;
  for (size_t i = 0; i < file.n; i++)
    for (size_t k = 0; k < sizeof change; k++) {
      bytes changed = file;
      changed.at[i] ^= change[k];
      tn_status s = load_copy(c, changed.at, changed.n);
      bool told = s == TN_OK || s == TN_ERR_FORMAT || s == TN_ERR_UNSUPPORTED ||
                  s == TN_ERR_SHAPE || s == TN_ERR_DTYPE || s == TN_ERR_IO;
      if (!told) fail_msg("byte %zu ^ %d: status %d: %s", i, change[k], (int)s, tn_message(c));
      refused += s != TN_OK;
    }
  assert_true(refused > file.n);
  assert_int_equal(tn_close(c), TN_OK);
  assert_int_equal(memory.out, 0);
}

/* Parts of models, and interpreted ones. */

static const float four_by_two[2][LAYER_IN] = {{1, 2, -3, 4}, {0, -1, 5, 2}};

static tn_binding *bound_with(tn_context *c, const tn_model_desc *d) {
  tn_model *m;
  check_ok(c, tn_model_load_bytes(c, file.at, file.n, d, &m));
  return bound(c, m);
}

static void models_are_interpreted(void **state) {
  tn_model_desc d = TN_MODEL_DESC_INIT;
  tn_kernel_cache_info before = TN_KERNEL_CACHE_INFO_INIT, after = TN_KERNEL_CACHE_INFO_INIT;
  tn_memory memory = TN_MEMORY_INIT;
  check_ok(*state, tn_kernel_cache_get(*state, &before));
  d.interpreted = true;
  for (int tunable = 0; tunable < 2; tunable++) {
    d.tunable = tunable;
    d.variants = tunable ? TN_VARIANTS_ONE : TN_VARIANTS_AUTO;
    tn_binding *b = bound_with(*state, &d);
    for (size_t rows = 1; rows < 4; rows++) check_rows(b, rows);
    check_rows(b, 0);
    assert_int_equal(tn_binding_variant(b), -1);
    check_bound(b, tn_binding_prepare(b));
    assert_int_equal(tn_binding_memory(b, &memory), TN_ERR_UNSUPPORTED);
    assert_true(tn_tune(b, NULL, NULL) != TN_OK);
    assert_int_equal(
        tn_binding_input(b, "x", tn_shape(1, 3), TN_F32, four_by_two, 3 * sizeof(float)),
        TN_ERR_SHAPE);
  }
  check_ok(*state, tn_kernel_cache_get(*state, &after));
  assert_int_equal(after.compiled, before.compiled);
}

/** Inputs are converted, outputs written to the caller's memory, and carried over. */
static void interpreted_runs_are_like_others(void **state) {
  bytes from = {.n = 0}, graph = {.n = 0};
  put_node(&graph, "Add", (const char *[]){"x", "x", NULL}, "y", NULL, 0);
  put_port(&graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"n", NULL});
  put_port(&graph, 12, "y", ONNX_TYPE_F32, (const char *[]){"n", NULL});
  put_model(&from, "twice", &graph, 13);
  tn_model_desc d = TN_MODEL_DESC_INIT;
  tn_model *m;
  int64_t x[] = {1, -2, 3}, y[3];
  d.interpreted = true;
  check_ok(*state, tn_model_load_bytes(*state, from.at, from.n, &d, &m));
  tn_binding *b = bound(*state, m);
  check_bound(b, tn_binding_input(b, "x", tn_shape(3), TN_I64, x, sizeof x));
  check_bound(b, tn_binding_output(b, "y", TN_I64, y, sizeof y));
  check_bound(b, tn_binding_carry(b, "y", "x"));
  for (int64_t factor = 2; factor < 16; factor *= 2) {
    check_bound(b, tn_binding_run(b));
    for (size_t i = 0; i < 3; i++) assert_int_equal(y[i], factor * x[i]);
  }
}

static void models_with_deciding_inputs_are_interpreted(void **state) {
  bytes from = {.n = 0};
  reshape_model(&from);
  tn_model_desc d = TN_MODEL_DESC_INIT;
  tn_model *m;
  d.interpreted = true;
  check_ok(*state, tn_model_load_bytes(*state, from.at, from.n, &d, &m));
  tn_binding *b = bound(*state, m);
  check_bound(b, tn_binding_input(b, "x", tn_shape(2, 4), TN_F32, four_by_two, sizeof four_by_two));
  for (int64_t rows = 1; rows <= 8; rows *= 2) {
    const int64_t shape[] = {rows, -1};
    check_bound(b, tn_binding_input(b, "shape", tn_shape(2), TN_I64, shape, sizeof shape));
    check_bound(b, tn_binding_run(b));
    check_output_floats(b, "y", FLOATS(1, 2, 3, 4, 0, 1, 5, 2));
    assert_int_equal(tn_binding_type(b, "y").shape.size[0], rows);
  }
}

/** A value within the graph is an output; what it does not need is not even looked at. */
static void values_of_nodes_are_outputs(void **state) {
  static const char *const names[] = {"to", "product", "weight", "x"};
  for (int interpreted = 0; interpreted < 2; interpreted++) {
    tn_model_desc d = TN_MODEL_DESC_INIT;
    tn_port p = TN_PORT_INIT;
    tn_model *m;
    int64_t to[2];
    d.outputs = names;
    d.n_outputs = 4;
    d.interpreted = interpreted;
    check_ok(*state, tn_model_load_bytes(*state, file.at, file.n, &d, &m));
    for (size_t i = 0; i < 4; i++) {
      assert_int_equal(tn_model_port(m, TN_PORT_OUTPUT, i, &p), TN_OK);
      assert_string_equal(p.name, names[i]);
    }
    assert_int_equal(tn_model_port(m, TN_PORT_OUTPUT, 4, &p), TN_ERR_ARGUMENT);
    tn_binding *b = bound(*state, m);
    check_bound(b,
                tn_binding_input(b, "x", tn_shape(2, 4), TN_F32, four_by_two, sizeof four_by_two));
    check_bound(b, tn_binding_run(b));
    check_bound(b, tn_binding_read(b, "to", TN_I64, to, sizeof to));
    assert_true(to[0] == 2 && to[1] == -1);
    float product[6];
    for (size_t i = 0; i < 6; i++)
      product[i] = layer_expected(four_by_two[i / 3], i % 3) - (float)(i % 3);
    check_output_floats(b, "product", 6, product);
    check_output_floats(b, "x", 8, *four_by_two);
  }
}

/** The part between values: the inputs have the types that the caller gives. */
static void values_of_nodes_are_inputs(void **state) {
  tn_model_desc d = TN_MODEL_DESC_INIT;
  tn_model_value inputs[] = {{"sum", {TN_F32, tn_shape(-1, 3)}}, {"to", {TN_I64, tn_shape(2)}}};
  tn_port p = TN_PORT_INIT;
  tn_model *m;
  const int64_t to[] = {3, -1};
  d.inputs = inputs;
  d.n_inputs = 2;
  check_ok(*state, tn_model_load_bytes(*state, file.at, file.n, &d, &m));
  assert_int_equal(tn_model_port(m, TN_PORT_INPUT, 1, &p), TN_OK);
  assert_string_equal(p.name, "to");
  assert_true(p.is_deciding);
  assert_int_equal(tn_model_port(m, TN_PORT_INPUT, 2, &p), TN_ERR_ARGUMENT); /* not x */
  tn_binding *b = bound(*state, m);
  check_bound(b, tn_binding_input(b, "sum", tn_shape(2, 3), TN_F32, four_by_two, 24));
  check_bound(b, tn_binding_input(b, "to", tn_shape(2), TN_I64, to, sizeof to));
  check_bound(b, tn_binding_run(b));
  check_output_floats(b, "highest", FLOATS(2, 4, 0));
  static const char *const rows[] = {"rows"};
  d.outputs = rows;
  d.n_outputs = 1;
  inputs[0] = (tn_model_value){"product", {TN_F32, tn_shape(5, 3)}};
  check_ok(*state, tn_model_load_bytes(*state, file.at, file.n, &d, &m));
  assert_int_equal(tn_model_port(m, TN_PORT_INPUT, 2, &p), TN_OK); /* x has the rows */
  assert_string_equal(p.name, "x");
}

static void parts_that_are_none_are_refused(void **state) {
  const char *unknown[] = {"nothing"}, *twice[] = {"y", "y"}, *y[] = {"y"}, *absent[] = {NULL};
  const tn_model_value constant = {"weight", {TN_F32, tn_shape(4, 3)}},
                       other = {"nothing", {TN_F32, tn_shape(4, 3)}},
                       unnamed = {NULL, {TN_F32, tn_shape(4, 3)}},
                       rank = {"sum", {TN_F32, {-1, {0}}}},
                       small = {"product", {TN_F32, tn_shape(5)}};
  const struct {
    const char **outputs;
    size_t n_outputs;
    const tn_model_value *inputs;
    tn_status status;
    const char *says;
  } cases[] = {
      {unknown, 1, NULL, TN_ERR_ARGUMENT, "the graph has no value 'nothing' to be an output"},
      {absent, 1, NULL, TN_ERR_ARGUMENT, "(NULL)"},
      {NULL, 1, NULL, TN_ERR_ARGUMENT, "the list of outputs is NULL"},
      {twice, 2, NULL, TN_ERR_FORMAT, "both named 'y'"},
      {y, 1, &constant, TN_ERR_ARGUMENT, "'weight' is a constant, which cannot be an input"},
      {y, 1, &other, TN_ERR_ARGUMENT, "the graph has no value 'nothing' to be an input"},
      {y, 1, &unnamed, TN_ERR_ARGUMENT, "the name of an input is NULL"},
      {y, 1, &rank, TN_ERR_ARGUMENT, "input 'sum' has rank -1"},
      {y, 1, &small, TN_ERR_SHAPE, "Add node 'sum': shapes 5 and 3 do not broadcast"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tn_model_desc d = TN_MODEL_DESC_INIT;
    tn_model *m;
    d.outputs = cases[i].outputs;
    d.n_outputs = cases[i].n_outputs;
    d.inputs = cases[i].inputs;
    d.n_inputs = cases[i].inputs != NULL;
    tn_status s = tn_model_load_bytes(*state, file.at, file.n, &d, &m);
    if (s != cases[i].status) fail_msg("case %zu: %d, %s", i, (int)s, tn_message(*state));
    check_text(tn_message(*state), cases[i].says);
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_context, close_context)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(ports_are_described),
      TEST(sizes_are_shown_as_the_file_names_them),
      TEST(contractions_are_counted),
      TEST(batches_come_in_any_order),
      TEST(host_types_are_converted),
      TEST(wrong_inputs_are_refused),
      TEST(missing_inputs_are_named),
      TEST(messages_name_the_model),
      TEST(bindings_run_from_many_threads),
      cmocka_unit_test(models_compile_beside_the_context),
      cmocka_unit_test(models_are_applied_while_they_compile),
      cmocka_unit_test(contexts_stay_open_while_a_model_compiles),
      TEST(models_are_applied_at_sizes_that_vary),
      TEST(copied_files_may_be_cut),
      TEST(sizes_may_be_known_exactly),
      TEST(memory_is_flat),
      TEST(bindings_outlive_models),
      TEST(applied_models_are_expressions),
      TEST(models_are_applied_to_what_fits),
      cmocka_unit_test(contexts_close_with_all_open),
      cmocka_unit_test(compiling_is_cancelled),
      TEST(arguments_are_checked),
      TEST(unreadable_files_are_named),
      TEST(models_are_interpreted),
      TEST(interpreted_runs_are_like_others),
      TEST(models_with_deciding_inputs_are_interpreted),
      TEST(values_of_nodes_are_outputs),
      TEST(values_of_nodes_are_inputs),
      TEST(parts_that_are_none_are_refused),
      cmocka_unit_test(cut_files_are_refused),
      cmocka_unit_test(changed_files_do_no_harm),
  };
  return cmocka_run_group_tests_name("model", tests, make_file, NULL);
}
