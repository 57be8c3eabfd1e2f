/* Tests prepacking, the precomputation of what depends on a model's weights alone at the first
   binding: it happens once, in little more memory than runs need, from embedded, external and
   shared weights, and is skipped when memory is short. */
#include "../models/onnx/writer.h"
#include "base/arena.h"
#include "support/temporary.h"
#include "support/tensor_check.h"
#include "tensor/plan/binding.h"
#include "tensor/plan/variant_table.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tenon/profile.h>
#include <unistd.h>

/** The first binding compiles all. */
static const tn_model_desc at_once = {.size = sizeof at_once, .variants = TN_VARIANTS_ONE};

typedef struct fixture {
  diag diag;
  arena arena;
  const char *folder, *model;
  int remarks;
} fixture;

static void prepare(void *arg) {
  fixture *f = arg;
  f->folder = temporary_folder(&f->arena);
  f->model = arena_printf(&f->arena, "%s/model.onnx", f->folder);
}

static int set_up(void **state) {
  fixture *f = *state = calloc(1, sizeof *f);
  return temporary_set_up(&f->arena, &f->diag, prepare, f);
}

static int tear_down(void **state) {
  fixture *f = *state;
  return temporary_tear_down(&f->arena, f->folder, f);
}

static void save(const char *path, const void *data, size_t bytes) {
  assert_true(temporary_write(path, 0600, data, bytes));
}

static void take_remark(void *user, tn_log_level level, const char *text) {
  fixture *f = user;
  f->remarks += level == TN_LOG_WARNING && strstr(text, "too little memory to prepare") != NULL;
}

static tn_open_desc desc_of(fixture *f) {
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.threads = 2;
  d.cache_dir = arena_printf(&f->arena, "%s/cache", f->folder);
  d.logger = (tn_logger){take_remark, f, NULL};
  f->remarks = 0;
  return d;
}

/* A layer with a permuted weight, a folded exp(scale), and the scale as it is: y[n] = x[n + 1] ·
   exp(scale[n]) + scale[n]. */

static void put_layer(bytes *graph) {
  float turn[8][8] = {{0}}, scale[8];
  for (int i = 0; i < 8; i++) turn[i][(i + 1) % 8] = 1, scale[i] = (float)(i % 3);
  put_weight(graph, "turn", ONNX_TYPE_F32, 2, (int64_t[]){8, 8}, turn, sizeof turn);
  put_weight(graph, "scale", ONNX_TYPE_F32, 1, (int64_t[]){8}, scale, sizeof scale);
  put_port(graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"batch", "8", NULL});
  put_port(graph, 12, "y", ONNX_TYPE_F32, (const char *[]){"batch", "8", NULL});
  put_node(graph, "Gemm", (const char *[]){"x", "turn", NULL}, "turned", "transB", 1);
  put_node(graph, "Exp", (const char *[]){"scale", NULL}, "factor", NULL, 0);
  put_node(graph, "Mul", (const char *[]){"turned", "factor", NULL}, "scaled", NULL, 0);
  put_node(graph, "Add", (const char *[]){"scaled", "scale", NULL}, "y", NULL, 0);
}

static void layer_file(bytes *to) {
  bytes graph = {.n = 0};
  put_layer(&graph);
  to->n = 0;
  put_model(to, "layer", &graph, 18);
}

static tn_status run_layer(tn_binding *b) {
  static const float factor[] = {1, 2.7182818f, 7.3890561f};
  float x[2][8], y[2][8];
  for (size_t i = 0; i < 16; i++) x[i / 8][i % 8] = (float)i + 1;
  tn_binding_input(b, "x", tn_shape(2, 8), TN_F32, x, sizeof x);
  tn_status s = tn_binding_run(b);
  if (s == TN_OK) s = tn_binding_read(b, "y", TN_F32, y, sizeof y);
  for (size_t i = 0; i < 16 && s == TN_OK; i++) {
    size_t k = i % 8;
    float wanted = x[i / 8][(k + 1) % 8] * factor[k % 3] + (float)(k % 3);
    assert_float_equal(y[i / 8][k], wanted, wanted * 1e-5f);
  }
  return s;
}

static void check_layer(tn_context *c, tn_model *m) {
  tn_binding *b;
  for (int again = 0; again < 2; again++) {
    check_ok(c, tn_model_bind(m, &b));
    assert_int_equal(run_layer(b), TN_OK);
    assert_int_equal(run_layer(b), TN_OK);
    tn_binding_free(b);
  }
}

typedef struct pouring {
  const char *path;
  const bytes *from;
} pouring;

static void *pour(void *arg) {
  const pouring *p = arg;
  save(p->path, p->from->at, p->from->n);
  return NULL;
}

/** Only pages of mapped files are dropped: bytes from pipes and from memory have no other copy. */
static void weights_come_from_anywhere(void **state) {
  fixture *f = *state;
  static bytes file;
  layer_file(&file);
  save(f->model, file.at, file.n);
  const char *pipe = arena_printf(&f->arena, "%s/pipe", f->folder);
  assert_int_equal(mkfifo(pipe, 0600), 0);
  tn_open_desc d = desc_of(f);
  tn_context *c = tn_open(&d);
  tn_model_desc copied = TN_MODEL_DESC_INIT;
  copied.copy = true;
  tn_model *m;
  check_ok(c, tn_model_load(c, f->model, NULL, &m));
  check_layer(c, m);
  check_ok(c, tn_model_load(c, f->model, &copied, &m));
  check_layer(c, m);
  check_ok(c, tn_model_load_bytes(c, file.at, file.n, NULL, &m));
  check_layer(c, m);
  pthread_t t;
  pouring p = {pipe, &file};
  assert_int_equal(pthread_create(&t, NULL, pour, &p), 0);
  check_ok(c, tn_model_load(c, pipe, NULL, &m));
  pthread_join(t, NULL);
  check_layer(c, m);
  assert_int_equal(f->remarks, 0);
  check_ok(c, tn_close(c));
}

/* Progress. */

typedef struct told {
  uint64_t calls, ends, done, total;
} told;

static bool take_progress(void *user, const char *what, uint64_t done, uint64_t total) {
  told *t = user;
  if (!strcmp(what, "schedules")) return true;
  assert_string_equal(what, "kernels");
  assert_true(done >= t->done && total >= t->total && done <= total);
  *t = (told){t->calls + 1, t->ends + (done == total), done, total};
  return true;
}

/** Progress is the same for compiled and for cached kernels. */
static void progress_is_told_once(void **state) {
  fixture *f = *state;
  static bytes file;
  uint64_t total = 0;
  layer_file(&file);
  for (int again = 0; again < 2; again++) {
    told t = {0};
    tn_open_desc d = desc_of(f);
    d.progress = (tn_progress){take_progress, &t, NULL};
    tn_context *c = tn_open(&d);
    tn_model *m;
    tn_binding *b;
    check_ok(c, tn_model_load_bytes(c, file.at, file.n, &at_once, &m));
    check_ok(c, tn_model_bind(m, &b));
    assert_int_equal(t.ends, 1);
    assert_int_equal(t.done, t.total);
    assert_true(t.total > 1 && (!total || t.total == total));
    total = t.total;
    check_ok(c, tn_close(c));
  }
}

/* Short memory. */

typedef struct limited {
  counting counting;
  size_t most; /* largest allocation; 0: no limit */
} limited;

static void *limited_alloc(void *user, size_t bytes, size_t align) {
  limited *l = user;
  if (l->most && bytes > l->most) return NULL;
  return counting_alloc(&l->counting, bytes, align);
}

static void limited_release(void *user, void *at, size_t bytes) {
  counting_release(&((limited *)user)->counting, at, bytes);
}

static tn_context *open_limited(fixture *f, limited *l) {
  tn_open_desc d = desc_of(f);
  d.allocator = (tn_allocator){limited_alloc, limited_release, l, NULL};
  return tn_open(&d);
}

/** A binding succeeds, with all weights prepared or none, or fails with TN_ERR_MEMORY. */
static void memory_may_run_out_anywhere(void **state) {
  fixture *f = *state;
  static bytes file;
  int without = 0;
  layer_file(&file);
  for (size_t at = 0;; at++) {
    limited l = {.most = 0};
    tn_context *c = open_limited(f, &l);
    tn_model *m;
    tn_binding *b;
    check_ok(c, tn_model_load_bytes(c, file.at, file.n, &at_once, &m));
    atomic_store(&l.counting.calls, 0);
    l.counting.fail_at = at;
    tn_status s = tn_model_bind(m, &b);
    bool is_over = at && atomic_load(&l.counting.calls) < at;
    l.counting.fail_at = 0;
    if (s != TN_OK) assert_int_equal(s, TN_ERR_MEMORY);
    if (s != TN_OK) check_text(tn_message(c), "memory");
    if (s == TN_OK) assert_int_equal(run_layer(b), TN_OK);
    without += s == TN_OK && f->remarks;
    check_ok(c, tn_close(c));
    assert_int_equal(atomic_load(&l.counting.out), 0);
    if (is_over) break;
  }
  assert_true(without > 10);
}

/* Variants. */

/** Counts the constants of a plan, and checks how many variants have each. */
static size_t count_constants(const tn_binding *b, size_t variants) {
  size_t n = 0;
  for (const shared_constant *k = b->plan->constants->first; k; k = k->next, n++)
    assert_int_equal(k->count, variants);
  return n;
}

static void run_rows(tn_binding *b, size_t rows) {
  static const float x[16][8];
  tn_binding_input(b, "x", tn_shape((tn_dim)rows, 8), TN_F32, x, rows * sizeof *x);
  check_bound(b, tn_binding_run(b));
}

/** Runs two bindings of a model, which is freed meanwhile, with `rows` and with 6 rows: the second
    size takes the constants of the first. Returns their number. */
static size_t run_two_sizes(tn_model *m, tn_binding *b, tn_binding *other, size_t rows) {
  run_rows(b, rows);
  size_t n = count_constants(b, 1);
  assert_true(n > 0);
  const tn_buffer *memory = b->plan->constants->first->memory;
  tn_model_free(m);
  run_rows(b, 6);
  run_rows(other, rows);
  assert_int_equal(count_constants(b, 2), n);
  assert_true(b->plan->constants->first->memory == memory);
  return n;
}

/** A prepared weight exists once for all variants, and is freed with the last of them. */
static void variants_share_weights(void **state) {
  fixture *f = *state;
  static bytes file;
  layer_file(&file);
  tn_open_desc d = desc_of(f);
  tn_context *c = tn_open(&d);
  tn_model *m;
  tn_binding *b, *other;
  tn_model_desc exact = TN_MODEL_DESC_INIT;
  exact.variants = TN_VARIANTS_EXACT;
  check_ok(c, tn_model_load_bytes(c, file.at, file.n, &exact, &m));
  check_ok(c, tn_model_bind(m, &b));
  check_ok(c, tn_model_bind(m, &other));
  size_t n = run_two_sizes(m, b, other, 5);
  for (size_t rows = 7; rows < 7 + MOST_EXACT_VARIANTS; rows++) run_rows(b, rows);
  tn_binding_free(other); /* nobody has the first two any more */
  assert_int_equal(count_constants(b, MOST_EXACT_VARIANTS), n);
  check_ok(c, tn_close(c));
}

/** The layer of rows that are cut into pairs: their number is known exactly at each run. */
static void pairs_file(bytes *to) {
  bytes graph = {.n = 0};
  put_layer(&graph);
  put_weight(&graph, "zero", ONNX_TYPE_I64, 1, (int64_t[]){1}, (int64_t[]){0}, 8);
  put_weight(&graph, "one", ONNX_TYPE_I64, 1, (int64_t[]){1}, (int64_t[]){1}, 8);
  put_weight(&graph, "two", ONNX_TYPE_I64, 1, (int64_t[]){1}, (int64_t[]){2}, 8);
  put_weight(&graph, "eight", ONNX_TYPE_I64, 1, (int64_t[]){1}, (int64_t[]){8}, 8);
  put_node(&graph, "Shape", (const char *[]){"x", NULL}, "shape", NULL, 0);
  put_node(&graph, "Slice", (const char *[]){"shape", "zero", "one", NULL}, "rows", NULL, 0);
  put_node(&graph, "Div", (const char *[]){"rows", "two", NULL}, "half", NULL, 0);
  put_node(&graph, "Concat", (const char *[]){"half", "two", "eight", NULL}, "to", "axis", 0);
  put_node(&graph, "Reshape", (const char *[]){"y", "to", NULL}, "pairs", NULL, 0);
  put_port(&graph, 12, "pairs", ONNX_TYPE_F32, (const char *[]){"half", "2", "8", NULL});
  to->n = 0;
  put_model(to, "pairs", &graph, 18);
}

/** A prepared weight exists once for all plans of a late plan, which outlive the model. */
static void late_plans_share_weights(void **state) {
  fixture *f = *state;
  static bytes file;
  pairs_file(&file);
  tn_open_desc d = desc_of(f);
  tn_context *c = tn_open(&d);
  tn_model *m;
  tn_binding *b, *other;
  check_ok(c, tn_model_load_bytes(c, file.at, file.n, NULL, &m));
  assert_non_null(tn_model_exact_sizes(m));
  check_ok(c, tn_model_bind(m, &b));
  check_ok(c, tn_model_bind(m, &other));
  size_t n = run_two_sizes(m, b, other, 4);
  assert_int_equal(run_layer(b), TN_OK);
  for (size_t rows = 2; rows <= 16; rows += 2) run_rows(b, rows);
  run_rows(other, 2);
  assert_int_equal(count_constants(b, MOST_EXACT_VARIANTS), n);
  tn_binding_free(b);
  tn_binding_free(other);
  check_ok(c, tn_close(c));
}

/* Large weights in external data: each layer reads its input shifted by one. */

enum { LAYERS = 36, WIDE = 768, LAYER_BYTES = WIDE * WIDE * 4 };

static void put_entry(bytes *tensor, const char *key, const char *value) {
  bytes entry = {.n = 0};
  put_text(&entry, 1, key);
  put_text(&entry, 2, value);
  put_message(tensor, 13, &entry);
}

static void put_external(fixture *f, bytes *graph, const char *name, size_t offset) {
  bytes t = {.n = 0};
  put_int(&t, 1, WIDE);
  put_int(&t, 1, WIDE);
  put_int(&t, 2, ONNX_TYPE_F32);
  put_text(&t, 8, name);
  put_entry(&t, "location", "weights");
  put_entry(&t, "offset", arena_printf(&f->arena, "%zu", offset));
  put_entry(&t, "length", arena_printf(&f->arena, "%d", LAYER_BYTES));
  put_int(&t, 14, 1);
  put_message(graph, 5, &t);
}

static void write_weights(fixture *f) {
  float *row = calloc(WIDE, sizeof *row);
  int fd = open(arena_printf(&f->arena, "%s/weights", f->folder), O_WRONLY | O_CREAT, 0600);
  assert_true(fd >= 0);
  for (int i = 0; i < LAYERS * WIDE; i++) {
    int at = (i % WIDE + 1) % WIDE;
    row[at] = 1;
    assert_int_equal(write(fd, row, WIDE * sizeof *row), WIDE * sizeof *row);
    row[at] = 0;
  }
  close(fd);
  free(row);
}

/** Writes the model; `tied`: all layers share the first one's weight. */
static void write_wide(fixture *f, bool tied) {
  static bytes graph, file;
  const char *from = "x";
  graph.n = file.n = 0;
  put_port(&graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"1", "768", NULL});
  put_port(&graph, 12, "y", ONNX_TYPE_F32, (const char *[]){"1", "768", NULL});
  for (int i = 0; i < LAYERS; i++) {
    const char *weight = arena_printf(&f->arena, "w%d", i);
    const char *to = i + 1 < LAYERS ? arena_printf(&f->arena, "y%d", i) : "y";
    put_external(f, &graph, weight, tied ? 0 : (size_t)i * LAYER_BYTES);
    put_node(&graph, "Gemm", (const char *[]){from, weight, NULL}, to, "transB", 1);
    from = to;
  }
  put_model(&file, "wide", &graph, 18);
  save(f->model, file.at, file.n);
}

static bool run_wide(tn_binding *b) {
  static float x[WIDE], y[WIDE];
  bool same = true;
  for (int i = 0; i < WIDE; i++) x[i] = (float)i;
  tn_binding_input(b, "x", tn_shape(1, WIDE), TN_F32, x, sizeof x);
  if (tn_binding_run(b) != TN_OK) return false;
  if (tn_binding_read(b, "y", TN_F32, y, sizeof y) != TN_OK) return false;
  for (int i = 0; i < WIDE; i++) same = same && y[i] == x[(i + LAYERS) % WIDE];
  return same;
}

/** Returns the process's peak memory in KiB. */
static long highest_kib(void) {
  FILE *f = fopen("/proc/self/status", "r");
  char line[256];
  long kib = 0;
  while (f && fgets(line, sizeof line, f)) sscanf(line, "VmHWM: %ld", &kib);
  if (f) fclose(f);
  return kib;
}

/** Loads the model in a child process, runs it once and returns the child's peak memory in KiB, 0
    on failure; *runs is the memory of its runs. */
static long load_wide(const fixture *f, const tn_open_desc *d, long *runs) {
  tn_context *c = tn_open(d);
  tn_model *m;
  tn_binding *b;
  tn_memory memory = TN_MEMORY_INIT;
  long before = highest_kib();
  if (tn_model_load(c, f->model, NULL, &m) || tn_model_bind(m, &b) || !run_wide(b)) return 0;
  long after = highest_kib();
  if (tn_binding_memory(b, &memory)) return 0;
  *runs = (long)((memory.values + memory.scratch) >> 10);
  return after - before;
}

static long in_another_process(fixture *f, long *runs) {
  tn_open_desc d = desc_of(f);
  long told[2] = {0};
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  if (!child) {
    told[0] = load_wide(f, &d, &told[1]);
    _exit(write(ends[1], told, sizeof told) != sizeof told);
  }
  close(ends[1]);
  assert_int_equal(read(ends[0], told, sizeof told), sizeof told);
  close(ends[0]);
  assert_int_equal(waitpid(child, NULL, 0), child);
  *runs = told[1];
  return told[0];
}

/** Loading needs little more than one copy of the weights, in the form that runs use. */
static void loading_takes_little_more_than_runs(void **state) {
  fixture *f = *state;
  if (IS_SANITIZED) {
    print_message("skipped: sanitizers take memory of their own\n");
    skip();
  }
  write_weights(f);
  write_wide(f, false);
  long in_flight = 2 * (LAYER_BYTES >> 10); /* a weight's pages are dropped once it is packed */
  for (int again = 0; again < 2; again++) {
    long runs, took = in_another_process(f, &runs);
    assert_true(took > 0);
    assert_true(runs < LAYERS * (LAYER_BYTES >> 10) + 100);
    if (took > runs + runs / 10 + in_flight)
      fail_msg("loading took %ld KiB, where runs need %ld", took, runs);
  }
}

/** Tied weights, which share a part of the file, are prepared once. */
static void tied_weights_are_one(void **state) {
  fixture *f = *state;
  write_weights(f);
  write_wide(f, true);
  tn_open_desc d = desc_of(f);
  tn_context *c = tn_open(&d);
  tn_model *m;
  tn_binding *b;
  tn_memory memory = TN_MEMORY_INIT;
  check_ok(c, tn_model_load(c, f->model, NULL, &m));
  check_ok(c, tn_model_bind(m, &b));
  assert_true(run_wide(b));
  assert_int_equal(tn_binding_memory(b, &memory), TN_OK);
  assert_int_equal(memory.values, LAYER_BYTES);
  check_ok(c, tn_close(c));
}

/** Weights that do not fit into memory twice are not prepared. */
static void without_memory_for_them_weights_are_not_prepared(void **state) {
  fixture *f = *state;
  write_weights(f);
  write_wide(f, false);
  limited l = {.most = (size_t)LAYERS * LAYER_BYTES / 2};
  tn_context *c = open_limited(f, &l);
  tn_model *m;
  tn_binding *b;
  check_ok(c, tn_model_load(c, f->model, NULL, &m));
  check_ok(c, tn_model_bind(m, &b));
  assert_int_equal(f->remarks, 1);
  assert_true(run_wide(b));
  check_ok(c, tn_close(c));
  assert_int_equal(atomic_load(&l.counting.out), 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
  setenv("TENON_LLVM", "off", 1); /* its memory is not that of loading */
  const struct CMUnitTest tests[] = {
      WITH(weights_come_from_anywhere),  WITH(progress_is_told_once),
      WITH(memory_may_run_out_anywhere), WITH(variants_share_weights),
      WITH(late_plans_share_weights),    WITH(loading_takes_little_more_than_runs),
      WITH(tied_weights_are_one),        WITH(without_memory_for_them_weights_are_not_prepared),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
