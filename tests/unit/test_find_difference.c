/* Tests the search for the first node that differs (tenon check): values that the interpreter would
   have computed are replaced by wrong expectations, so that a compiled node seems to be wrong. */
#include "../models/onnx/writer.h"
#include "cli/data/find_difference.h"
#include "support/temporary.h"
#include "support/tensor_check.h"

#include <math.h>

enum { LAYERS = 40, N = 4 };

static const verb check_verb = {.name = "check"};

typedef struct fixture {
  command c;
  const char *folder, *path;
  tn_model_file *file;
  bytes model;
  checked_model m;
} fixture;

/** y = abs(… abs(x + 1) + 1 …): values a0, b0, a1, b1, … */
static void write_chain(bytes *file) {
  bytes graph = {.n = 0};
  const float one = 1;
  char names[2 * LAYERS][16];
  const char *last = "x";
  put_weight(&graph, "one", ONNX_TYPE_F32, 0, NULL, &one, sizeof one);
  for (int i = 0; i < LAYERS; i++) {
    char *sum = names[2 * i], *positive = names[2 * i + 1];
    snprintf(sum, sizeof *names, "a%d", i);
    snprintf(positive, sizeof *names, "b%d", i);
    put_node(&graph, "Add", (const char *[]){last, "one", NULL}, sum, NULL, 0);
    put_node(&graph, "Abs", (const char *[]){sum, NULL}, positive, NULL, 0);
    last = positive;
  }
  put_port(&graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"n", NULL});
  put_port(&graph, 12, last, ONNX_TYPE_F32, (const char *[]){"n", NULL});
  put_model(file, "chain", &graph, 17);
}

/** Two branches, p and q, of x; the sum of both, and its rounding. */
static void write_branches(bytes *file) {
  bytes graph = {.n = 0};
  const float half = 0.5f;
  put_weight(&graph, "half", ONNX_TYPE_F32, 0, NULL, &half, sizeof half);
  put_node(&graph, "Abs", (const char *[]){"x", NULL}, "p0", NULL, 0);
  put_node(&graph, "Neg", (const char *[]){"x", NULL}, "q0", NULL, 0);
  put_node(&graph, "Add", (const char *[]){"p0", "half", NULL}, "p1", NULL, 0);
  put_node(&graph, "Add", (const char *[]){"q0", "half", NULL}, "q1", NULL, 0);
  put_node(&graph, "Add", (const char *[]){"p1", "q1", NULL}, "s", NULL, 0);
  put_node(&graph, "Round", (const char *[]){"s", NULL}, "r", NULL, 0);
  put_port(&graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"n", NULL});
  put_port(&graph, 12, "r", ONNX_TYPE_F32, (const char *[]){"n", NULL});
  put_model(file, "branches", &graph, 17);
}

/** y = (x + w) · v, 4 by 300 times 300 by 4. */
static void write_product(bytes *file) {
  bytes graph = {.n = 0};
  float w[300], v[300][4];
  for (int i = 0; i < 300; i++) {
    w[i] = 1.0f / (float)(i + 3);
    for (int k = 0; k < 4; k++) v[i][k] = 1.0f / (float)(i * (k + 1) + 7);
  }
  put_weight(&graph, "w", ONNX_TYPE_F32, 2, (int64_t[]){1, 300}, w, sizeof w);
  put_weight(&graph, "v", ONNX_TYPE_F32, 2, (int64_t[]){300, 4}, v, sizeof v);
  put_weight(&graph, "axis", ONNX_TYPE_I64, 1, (int64_t[]){1}, (int64_t[]){1}, 8);
  put_node(&graph, "Unsqueeze", (const char *[]){"x", "axis", NULL}, "column", NULL, 0);
  put_node(&graph, "Add", (const char *[]){"column", "w", NULL}, "sums", NULL, 0);
  put_node(&graph, "MatMul", (const char *[]){"sums", "v", NULL}, "y", NULL, 0);
  put_port(&graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"n", NULL});
  put_port(&graph, 12, "y", ONNX_TYPE_F32, (const char *[]){"n", "4", NULL});
  put_model(file, "product", &graph, 17);
}

static void interpret_all(void *arg) {
  fixture *f = arg;
  command *c = &f->c;
  tn_failure why = {0};
  f->folder = temporary_folder(&c->arena);
  f->path = arena_printf(&c->arena, "%s/m.onnx", f->folder);
  assert_true(temporary_write(f->path, 0600, f->model.at, f->model.n));
  c->operand = f->path;
  command_open_context(c, NULL, 1, NULL);
  assert_int_equal(tn_model_file_parse(f->model.at, f->model.n, &f->file, &why), TN_OK);
  f->m = (checked_model){.c = c,
                         .desc = TN_MODEL_DESC_INIT,
                         .threads = 1,
                         .tolerance = -1,
                         .nodes = model_nodes_list(c, f->file)};
  const tn_shape shape = {1, {N}};
  host_array *x = arena_alloc(&c->arena, sizeof *x);
  *x = host_array_alloc(c, "x", TN_F32, shape);
  memcpy(x->data, (const float[N]){0.25f, -1.5f, 2, -3}, x->bytes);
  string_map_set(&c->arena, &f->m.inputs, "x", x);
  tn_model_desc desc = f->m.desc;
  const char **names = arena_alloc(&c->arena, f->m.nodes.values.n * sizeof *names);
  for (size_t i = 0; i < f->m.nodes.values.n; i++) names[i] = f->m.nodes.values.at[i].name;
  desc.interpreted = true;
  desc.outputs = names;
  desc.n_outputs = f->m.nodes.values.n;
  model_values_compute(c, &desc, &f->m.inputs, &f->m.interpreted);
}

static fixture *opened(void (*write)(bytes *)) {
  fixture *f = calloc(1, sizeof *f);
  arena_init(&f->c.arena, &mem_system, &f->c.diag);
  progress_init(&f->c.progress);
  f->c.verb = &check_verb;
  f->c.math = TN_MATH_DEFAULT;
  write(&f->model);
  if (diag_catch(&f->c.diag, interpret_all, f)) fail_msg("%s", f->c.diag.text);
  return f;
}

static void closed(fixture *f) {
  tn_close(f->c.context);
  tn_model_file_free(f->file);
  progress_free(&f->c.progress);
  assert_int_equal(temporary_tear_down(&f->c.arena, f->folder, f), 0);
}

static float *expected(const fixture *f, const char *name) {
  return ((host_array *)string_map_get(&f->m.interpreted, name))->data;
}

static const char *name_of(const fixture *f, size_t v) { return f->m.nodes.values.at[v].name; }

/** Searches in both ways; the model's last value is known to differ. */
static void check_found(fixture *f, const char *name, difference_cause cause) {
  size_t last = f->m.nodes.values.n - 1;
  checked_value differs = {0};
  for (int bisects = 0; bisects < 2; bisects++) {
    found_difference found =
        bisects ? bisect_difference(&f->m, last, &differs) : find_difference(&f->m, NULL);
    assert_true(found.is_found && checked_value_differs(&found.check));
    assert_string_equal(name_of(f, found.value), name);
    assert_int_equal(find_cause(&f->m, &found), cause);
    assert_true(found.runs < 8);
  }
}

static void equal_values_give_no_difference(void **state) {
  (void)state;
  fixture *f = opened(write_chain);
  checked_values all = {0};
  assert_int_equal(f->m.nodes.at.n, 2 * LAYERS);
  assert_false(find_difference(&f->m, &all).is_found);
  assert_int_equal(all.n, 2 * LAYERS);
  closed(f);
}

/** From node `at` on, all expectations are other ones, as if the node were compiled wrongly. */
static void a_wrong_node_of_a_chain_is_found(void **state) {
  (void)state;
  static const int places[] = {0, 1, 17, 46, 2 * LAYERS - 2, 2 * LAYERS - 1};
  for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
    fixture *f = opened(write_chain);
    for (size_t v = (size_t)places[p]; v < f->m.nodes.values.n; v++)
      expected(f, name_of(f, v))[2] += 5;
    check_found(f, name_of(f, (size_t)places[p]), CAUSE_WRONG);
    closed(f);
  }
}

static void a_wrong_branch_is_found(void **state) {
  (void)state;
  fixture *f = opened(write_branches);
  static const char *const wrong[] = {"q0", "q1", "s", "r"};
  for (size_t i = 0; i < 4; i++) expected(f, wrong[i])[1] += 3;
  check_found(f, "q0", CAUSE_WRONG);
  closed(f);
}

/** Other NaNs, and other infinities, are differences too. */
static void a_missing_nan_is_found(void **state) {
  (void)state;
  fixture *f = opened(write_branches);
  expected(f, "p1")[0] = expected(f, "s")[0] = expected(f, "r")[0] = (float)NAN;
  check_found(f, "p1", CAUSE_WRONG);
  closed(f);
}

/** s is 4.5, which is rounded to 4, and expected a little above, within the tolerance. */
static void a_node_that_makes_differences_larger_is_told(void **state) {
  (void)state;
  fixture *f = opened(write_branches);
  const host_array *x = string_map_get(&f->m.inputs, "x");
  ((float *)x->data)[1] = -1.75f;
  expected(f, "p0")[1] = expected(f, "q0")[1] = 1.75f;
  expected(f, "p1")[1] = expected(f, "q1")[1] = 2.25f;
  expected(f, "s")[1] = 4.5001f;
  expected(f, "r")[1] = 5;
  check_found(f, "r", CAUSE_INPUTS);
  closed(f);
}

/** Products of long rows are summed in another order than by the interpreter. */
static void another_order_of_sums_is_told(void **state) {
  (void)state;
  fixture *f = opened(write_product);
  f->m.tolerance = 0;
  found_difference found = find_difference(&f->m, NULL);
  assert_true(found.is_found);
  assert_string_equal(name_of(f, found.value), "y");
  assert_int_equal(find_cause(&f->m, &found), CAUSE_SUMS);
  closed(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equal_values_give_no_difference),
      cmocka_unit_test(a_wrong_node_of_a_chain_is_found),
      cmocka_unit_test(a_wrong_branch_is_found),
      cmocka_unit_test(a_missing_nan_is_found),
      cmocka_unit_test(a_node_that_makes_differences_larger_is_told),
      cmocka_unit_test(another_order_of_sums_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
