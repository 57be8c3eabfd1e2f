/* Tests what loops cost that the host runs step by step: the variants of the body that a growing
   state needs and the memory that stays, also of bodies that are for each size or rank of a state,
   and that cancelling and each allocation that fails leave
   the model and its binding usable. Results are compared in tests/models/onnx/test_host_loops.py.
 */
#include "../models/onnx/writer.h"
#include "support/counting_mem.h"
#include "support/tensor_check.h"

#include <unistd.h>

/** Bodies of the loop: one for all sizes of its state, one for each, and one for each rank; and one
    with entries that nothing reads. */
typedef enum body_kind {
  BODY_OPEN,
  BODY_OF_SIZES,
  BODY_OF_RANKS,
  BODY_OF_ROWS,
  BODY_KINDS
} body_kind;

enum { ROW = 1024 }; /* elements of such an entry */

/** A loaded model with the context, the allocator and the callbacks that a test counts by. */
typedef struct scene {
  counting_mem mem;
  body_kind kind;
  size_t variants; /* of bodies of loops, so far */
  uint64_t most;   /* steps before the progress cancels; 0: it does not */
  tn_context *c;
  tn_model *model;
  tn_binding *b;
  float x[2];
} scene;

/** p = 1 by way of halves of s, which are of equal size in a step, but not in all. */
static void put_halves(bytes *body) {
  bytes split = {.n = 0};
  put_text(&split, 2, "a");
  put_attribute(&split, "num_outputs", 2);
  put_node_with(body, "Split", (const char *const[]){"s", NULL}, "b", &split);
  put_node(body, "Sub", (const char *const[]){"a", "b", NULL}, "d", NULL, 0);
  put_node(body, "ReduceSum", (const char *const[]){"d", NULL}, "e", "keepdims", 1);
  put_node(body, "Min", (const char *const[]){"e", "one", NULL}, "f", NULL, 0);
  put_node(body, "Max", (const char *const[]){"f", "one", NULL}, "p", NULL, 0);
}

static void put_steps(bytes *body, body_kind kind) {
  put_node(body, "Identity", (const char *const[]){"on", NULL}, "goes", NULL, 0);
  if (kind == BODY_OF_SIZES) put_halves(body);
  if (kind == BODY_OF_RANKS)
    put_node(body, "Reshape", (const char *const[]){"s", "flat", NULL}, "r", NULL, 0);
  const char *const of_sizes[] = {"s", "p", "p", NULL}, *const of_ranks[] = {"r", "one", NULL},
                    *const open[] = {"s", "one", NULL},
                    *const * inputs[BODY_KINDS] = {open, of_sizes, of_ranks, open};
  put_node(body, "Concat", inputs[kind], "t", "axis", 0);
  if (kind == BODY_OF_ROWS)
    put_node(body, "Neg", (const char *const[]){"wide", NULL}, "e", NULL, 0);
}

/** Adds the loop; `more`: a second output, or NULL. */
static void put_loop(bytes *graph, const bytes *attributes, const char *more) {
  static bytes n;
  n = *attributes;
  put_text(&n, 1, "k");
  put_text(&n, 1, "");
  put_text(&n, 1, "x");
  put_text(&n, 2, "y");
  if (more) put_text(&n, 2, more);
  put_text(&n, 3, "y");
  put_text(&n, 4, "Loop");
  put_message(graph, 1, &n);
}

/** y = x with a 1 appended in each of k steps, or two where a step halves the state. */
static void growing_model(bytes *file, body_kind kind) {
  static const char *const none[] = {NULL}, *const n[] = {"n", NULL}, *const m[] = {"m", NULL},
                           *const row[] = {"1", "n", NULL};
  static const float wide[ROW];
  static bytes graph, body, loop;
  graph = body = loop = (bytes){.n = 0};
  put_steps(&body, kind);
  put_text(&body, 2, "body");
  put_port(&body, 11, "i", ONNX_TYPE_I64, none);
  put_port(&body, 11, "on", ONNX_TYPE_BOOL, none);
  put_port(&body, 11, "s", ONNX_TYPE_F32, n);
  put_port(&body, 12, "goes", ONNX_TYPE_BOOL, none);
  put_port(&body, 12, "t", ONNX_TYPE_F32, m);
  if (kind == BODY_OF_ROWS) put_port(&body, 12, "e", ONNX_TYPE_F32, n);
  bytes attribute = {.n = 0};
  put_text(&attribute, 1, "body");
  put_message(&attribute, 6, &body);
  put_int(&attribute, 20, 5);
  put_message(&loop, 5, &attribute);
  put_weight(&graph, "one", ONNX_TYPE_F32, 1, (int64_t[]){1}, (float[]){1}, 4);
  put_weight(&graph, "flat", ONNX_TYPE_I64, 1, (int64_t[]){1}, (int64_t[]){-1}, 8);
  put_port(&graph, 11, "x", ONNX_TYPE_F32, kind == BODY_OF_RANKS ? row : n);
  put_port(&graph, 11, "k", ONNX_TYPE_I64, none);
  put_port(&graph, 12, "y", ONNX_TYPE_F32, m);
  if (kind == BODY_OF_ROWS)
    put_weight(&graph, "wide", ONNX_TYPE_F32, 1, (int64_t[]){ROW}, wide, sizeof wide);
  put_loop(&graph, &loop, kind == BODY_OF_ROWS ? "rows" : NULL);
  put_model(file, "growth", &graph, 18);
}

static void count_variants(void *user, tn_log_level level, const char *text) {
  scene *s = user;
  (void)level;
  s->variants += !strncmp(text, "plan body of a loop: variant", 28);
}

static bool follow(void *user, const char *what, uint64_t done, uint64_t total) {
  const scene *s = user;
  (void)total;
  return strcmp(what, "steps") != 0 || !s->most || done < s->most;
}

static tn_status load(scene *s, bool interpreted) {
  static bytes file;
  tn_model_desc desc = TN_MODEL_DESC_INIT;
  desc.interpreted = interpreted;
  file.n = 0;
  growing_model(&file, s->kind);
  tn_status status = tn_model_load_bytes(s->c, file.at, file.n, &desc, &s->model);
  if (status == TN_OK) status = tn_model_bind(s->model, &s->b);
  return status;
}

static void open_scene(scene *s, body_kind kind) {
  tn_open_desc d = TN_OPEN_DESC_INIT;
  *s = (scene){.kind = kind, .x = {2, 3}};
  d.threads = 1;
  d.logger = (tn_logger){count_variants, s, NULL};
  d.progress = (tn_progress){follow, s, NULL};
  d.allocator = (tn_allocator){counting_mem_alloc, counting_mem_release, &s->mem, NULL};
  s->c = tn_open(&d);
  assert_non_null(s->c);
}

static void close_scene(scene *s) {
  tn_close(s->c);
  assert_int_equal(atomic_load(&s->mem.bytes), 0);
}

static tn_status run(scene *s, const int64_t *k) {
  const tn_shape vector = {1, {2}}, row = {2, {1, 2}}, scalar = {0, {0}},
                 shape = s->kind == BODY_OF_RANKS ? row : vector;
  tn_status status = tn_binding_input(s->b, "x", shape, TN_F32, s->x, sizeof s->x);
  if (status == TN_OK) status = tn_binding_input(s->b, "k", scalar, TN_I64, k, sizeof *k);
  return status == TN_OK ? tn_binding_run(s->b) : status;
}

/** Runs k steps, which must succeed, and checks the result. */
static void run_steps(scene *s, int64_t k) {
  static float y[1024];
  int64_t size = 2 + k * (s->kind == BODY_OF_SIZES ? 2 : 1);
  if (run(s, &k) != TN_OK) fail_msg("%s", tn_binding_message(s->b));
  const tn_type t = tn_binding_type(s->b, "y");
  assert_int_equal(t.shape.rank, 1);
  assert_int_equal(t.shape.size[0], size);
  assert_int_equal(tn_binding_read(s->b, "y", TN_F32, y, (size_t)size * sizeof *y), TN_OK);
  for (int64_t i = 0; i < size; i++)
    if (y[i] != (i < 2 ? s->x[i] : 1)) fail_msg("element %lld is %g", (long long)i, y[i]);
}

/** Runs k steps, then twice as many, which leave no more than 1 MiB more. Returns the variants of
    bodies. */
static size_t check_growth(body_kind kind, bool interpreted, int64_t k) {
  scene s;
  open_scene(&s, kind);
  assert_int_equal(load(&s, interpreted), TN_OK);
  run_steps(&s, k);
  size_t before = atomic_load(&s.mem.bytes);
  run_steps(&s, 2 * k);
  size_t after = atomic_load(&s.mem.bytes);
  assert_true(after < before + (1 << 20));
  close_scene(&s);
  return s.variants;
}

static void test_growth(void **state) {
  (void)state;
  size_t variants = check_growth(BODY_OPEN, false, 100);
  assert_true(variants >= 1 && variants <= 3);
}

/** A plan for the rank of the first step, and one for that of all others. */
static void test_growth_of_ranks(void **state) {
  (void)state;
  size_t variants = check_growth(BODY_OF_RANKS, false, 100);
  assert_true(variants >= 2 && variants <= 5);
}

/** A plan for each size, of which few are kept. */
static void test_growth_of_sizes(void **state) {
  (void)state;
  check_growth(BODY_OF_SIZES, true, 100);
  assert_int_equal(check_growth(BODY_OF_SIZES, false, 10), 10 + 20);
}

/** Of outputs that nothing reads nothing stays, whatever number of bindings ran. */
static void test_unread_outputs(void **state) {
  enum { BINDINGS = 50, STEPS = 8 };
  tn_binding *own, *more[BINDINGS];
  scene s;
  (void)state;
  open_scene(&s, BODY_OF_ROWS);
  assert_int_equal(load(&s, false), TN_OK);
  run_steps(&s, STEPS);
  size_t before = atomic_load(&s.mem.bytes);
  own = s.b;
  for (size_t i = 0; i < BINDINGS; i++) {
    assert_int_equal(tn_model_bind(s.model, &s.b), TN_OK);
    run_steps(&s, STEPS);
    more[i] = s.b;
  }
  for (size_t i = 0; i < BINDINGS; i++) tn_binding_free(more[i]);
  s.b = own;
  size_t after = atomic_load(&s.mem.bytes);
  assert_true(after < before + STEPS * ROW * sizeof(float) * BINDINGS / 4);
  close_scene(&s);
}

static void test_cancelling(void **state) {
  scene s;
  (void)state;
  open_scene(&s, BODY_OPEN);
  assert_int_equal(load(&s, false), TN_OK);
  s.most = 5;
  assert_int_equal(run(&s, &(int64_t){9}), TN_ERR_CANCELLED);
  assert_non_null(strstr(tn_binding_message(s.b), "after 5 steps"));
  s.most = 0;
  run_steps(&s, 9);
  close_scene(&s);
}

/** Loads, binds and interprets with one failing allocation; true: none of them failed. */
static bool survives(body_kind kind, size_t fail_at) {
  scene s;
  open_scene(&s, kind);
  s.mem.fail_at = atomic_load(&s.mem.calls) + fail_at;
  tn_status status = load(&s, true);
  if (status == TN_OK) status = run(&s, &(int64_t){3});
  bool reached = atomic_load(&s.mem.calls) >= s.mem.fail_at;
  if (status != TN_OK && status != TN_ERR_MEMORY) fail_msg("status %d", (int)status);
  assert_true(reached || status == TN_OK);
  s.mem.fail_at = 0;
  if (!s.b) assert_int_equal(load(&s, true), TN_OK);
  run_steps(&s, 3);
  close_scene(&s);
  return !reached;
}

static void test_failing_allocations(void **state) {
  (void)state;
  for (body_kind kind = BODY_OPEN; kind < BODY_KINDS; kind++) {
    size_t n = 0;
    for (size_t at = 1; !survives(kind, at); at += 1 + at / 16) n++;
    assert_true(n > 40);
  }
}

/** A run of compiled steps, each allocation of which fails in turn. */
static void check_failing_runs(body_kind kind) {
  scene s;
  open_scene(&s, kind);
  assert_int_equal(load(&s, false), TN_OK);
  run_steps(&s, 4);
  for (size_t at = 1;; at++) {
    s.mem.fail_at = atomic_load(&s.mem.calls) + at;
    tn_status status = run(&s, &(int64_t){4});
    bool reached = atomic_load(&s.mem.calls) >= s.mem.fail_at;
    s.mem.fail_at = 0;
    assert_true(status == TN_OK || (status == TN_ERR_MEMORY && reached));
    run_steps(&s, 4);
    if (!reached) break;
  }
  close_scene(&s);
}

static void test_failing_runs(void **state) {
  (void)state;
  check_failing_runs(BODY_OPEN);
  check_failing_runs(BODY_OF_RANKS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_growth),          cmocka_unit_test(test_growth_of_ranks),
      cmocka_unit_test(test_growth_of_sizes), cmocka_unit_test(test_unread_outputs),
      cmocka_unit_test(test_cancelling),      cmocka_unit_test(test_failing_allocations),
      cmocka_unit_test(test_failing_runs)};
  alarm(200);
  return cmocka_run_group_tests_name("host loops", tests, NULL, NULL);
}
