/* Tests what loops cost that the host runs step by step: the variants of the body that a growing
   state needs and the memory that stays, and that cancelling and each allocation that fails leave
   the model and its binding usable. Results are compared in tests/models/onnx/test_host_loops.py.
 */
#include "../models/onnx/writer.h"
#include "support/counting_mem.h"
#include "support/tensor_check.h"

#include <unistd.h>

/** A loaded model with the context, the allocator and the callbacks that a test counts by. */
typedef struct scene {
  counting_mem mem;
  size_t variants; /* of bodies of loops, so far */
  uint64_t most;   /* steps before the progress cancels; 0: it does not */
  tn_context *c;
  tn_model *model;
  tn_binding *b;
  float x[2];
} scene;

/** y = x with a 1 appended in each of k steps. */
static void growing_model(bytes *file) {
  static const char *const none[] = {NULL}, *const n[] = {"n", NULL}, *const m[] = {"m", NULL};
  static bytes graph, body, loop;
  graph = body = loop = (bytes){.n = 0};
  put_node(&body, "Identity", (const char *const[]){"on", NULL}, "goes", NULL, 0);
  put_node(&body, "Concat", (const char *const[]){"s", "one", NULL}, "t", "axis", 0);
  put_text(&body, 2, "body");
  put_port(&body, 11, "i", ONNX_TYPE_I64, none);
  put_port(&body, 11, "on", ONNX_TYPE_BOOL, none);
  put_port(&body, 11, "s", ONNX_TYPE_F32, n);
  put_port(&body, 12, "goes", ONNX_TYPE_BOOL, none);
  put_port(&body, 12, "t", ONNX_TYPE_F32, m);
  bytes attribute = {.n = 0};
  put_text(&attribute, 1, "body");
  put_message(&attribute, 6, &body);
  put_int(&attribute, 20, 5);
  put_message(&loop, 5, &attribute);
  put_weight(&graph, "one", ONNX_TYPE_F32, 1, (int64_t[]){1}, (float[]){1}, 4);
  put_port(&graph, 11, "x", ONNX_TYPE_F32, n);
  put_port(&graph, 11, "k", ONNX_TYPE_I64, none);
  put_port(&graph, 12, "y", ONNX_TYPE_F32, m);
  put_node_with(&graph, "Loop", (const char *const[]){"k", "", "x", NULL}, "y", &loop);
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
  growing_model(&file);
  tn_status status = tn_model_load_bytes(s->c, file.at, file.n, &desc, &s->model);
  if (status == TN_OK) status = tn_model_bind(s->model, &s->b);
  return status;
}

static void open_scene(scene *s) {
  tn_open_desc d = TN_OPEN_DESC_INIT;
  *s = (scene){.x = {2, 3}};
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
  const tn_shape shape = {1, {2}}, scalar = {0, {0}};
  tn_status status = tn_binding_input(s->b, "x", shape, TN_F32, s->x, sizeof s->x);
  if (status == TN_OK) status = tn_binding_input(s->b, "k", scalar, TN_I64, k, sizeof *k);
  return status == TN_OK ? tn_binding_run(s->b) : status;
}

/** Runs k steps, which must succeed, and checks the result. */
static void run_steps(scene *s, int64_t k) {
  static float y[1024];
  if (run(s, &k) != TN_OK) fail_msg("%s", tn_binding_message(s->b));
  const tn_type t = tn_binding_type(s->b, "y");
  assert_int_equal(t.shape.rank, 1);
  assert_int_equal(t.shape.size[0], k + 2);
  assert_int_equal(tn_binding_read(s->b, "y", TN_F32, y, (size_t)(k + 2) * sizeof *y), TN_OK);
  for (int64_t i = 0; i < k + 2; i++)
    if (y[i] != (i < 2 ? s->x[i] : 1)) fail_msg("element %lld is %g", (long long)i, y[i]);
}

static void test_growth(void **state) {
  scene s;
  (void)state;
  open_scene(&s);
  assert_int_equal(load(&s, false), TN_OK);
  run_steps(&s, 100);
  size_t before = atomic_load(&s.mem.bytes);
  run_steps(&s, 200);
  size_t after = atomic_load(&s.mem.bytes);
  assert_true(s.variants >= 1 && s.variants <= 3);
  assert_true(after < before + (1 << 20));
  close_scene(&s);
}

static void test_cancelling(void **state) {
  scene s;
  (void)state;
  open_scene(&s);
  assert_int_equal(load(&s, false), TN_OK);
  s.most = 5;
  assert_int_equal(run(&s, &(int64_t){9}), TN_ERR_CANCELLED);
  assert_non_null(strstr(tn_binding_message(s.b), "after 5 steps"));
  s.most = 0;
  run_steps(&s, 9);
  close_scene(&s);
}

/** Loads, binds and interprets with one failing allocation; true: none of them failed. */
static bool survives(size_t fail_at) {
  scene s;
  open_scene(&s);
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
  size_t n = 0;
  (void)state;
  for (size_t at = 1; !survives(at); at += 1 + at / 16) n++;
  assert_true(n > 40);
}

/** A run of compiled steps, each allocation of which fails in turn. */
static void test_failing_runs(void **state) {
  scene s;
  (void)state;
  open_scene(&s);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_growth), cmocka_unit_test(test_cancelling),
      cmocka_unit_test(test_failing_allocations), cmocka_unit_test(test_failing_runs)};
  alarm(200);
  return cmocka_run_group_tests_name("host loops", tests, NULL, NULL);
}
