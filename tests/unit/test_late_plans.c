/* Tests late plans: those of models whose graph depends on the elements of inputs. Plans are found
   by values and shared by values that vary; where a shared one fits no run or has no kernels, runs
   have plans of their own. Operators are tested in tests/models/onnx. */
#include "../models/onnx/writer.h"
#include "support/temporary.h"
#include "support/tensor_check.h"

#include <unistd.h>

enum { MOST_ELEMENTS = 256 };

static tn_binding *bound(tn_context *c, tn_model *m) {
  tn_binding *b;
  check_ok(c, tn_model_bind(m, &b));
  return b;
}

static float element(size_t i) { return (float)((int)(i * 7 % 13) - 6); }

/** Runs a binding of reshape_model. */
static void check_reshape(tn_context *c, tn_binding *b, int64_t n, int64_t rows) {
  float x[MOST_ELEMENTS], y[MOST_ELEMENTS];
  int64_t count = 4 * n;
  const int64_t shape[] = {rows, count / rows};
  for (int64_t i = 0; i < count; i++) x[i] = element((size_t)i);
  tn_binding_input(b, "x", tn_shape(n, 4), TN_F32, x, (size_t)count * sizeof *x);
  tn_binding_input(b, "shape", tn_shape(2), TN_I64, shape, sizeof shape);
  if (tn_binding_run(b) != TN_OK) fail_msg("%s", tn_binding_message(b));
  check_ok(c, tn_binding_read(b, "y", TN_F32, y, (size_t)count * sizeof *y));
  tn_type t = tn_binding_type(b, "y");
  assert_true(t.shape.rank == 2 && t.shape.size[0] == rows && t.shape.size[1] == count / rows);
  for (int64_t i = 0; i < count; i++) assert_true(y[i] == (x[i] < 0 ? -x[i] : x[i]));
}

/** Runs a binding of first_rows_model on 5 rows. Returns the variant that ran. */
static int64_t check_first_rows(tn_context *c, tn_binding *b, int64_t end) {
  enum { ROWS = 5 };
  float x[4 * ROWS], y[4 * ROWS];
  int64_t rows = end < 0 ? end + ROWS : end;
  rows = rows < 0 ? 0 : rows > ROWS ? ROWS : rows;
  for (size_t i = 0; i < 4 * ROWS; i++) x[i] = element(i);
  tn_binding_input(b, "x", tn_shape(ROWS, 4), TN_F32, x, sizeof x);
  tn_binding_input(b, "end", tn_shape(1), TN_I64, &end, sizeof end);
  if (tn_binding_run(b) != TN_OK) fail_msg("end %lld: %s", (long long)end, tn_binding_message(b));
  assert_int_equal(tn_binding_type(b, "y").shape.size[0], rows);
  check_ok(c, tn_binding_read(b, "y", TN_F32, y, (size_t)rows * 4 * sizeof *y));
  for (int64_t i = 0; i < 4 * rows; i++) assert_true(y[i] == (x[i] < 0 ? -x[i] : x[i]));
  return tn_binding_variant(b);
}

/** From the third value of an input on, one plan computes with all of them; one that it cannot
    compute with has a plan of its own, as all have by other policies. */
static void plans_compute_with_values_that_vary(void **state) {
  static const tn_variants policies[] = {TN_VARIANTS_AUTO, TN_VARIANTS_STEADY, TN_VARIANTS_EXACT,
                                         TN_VARIANTS_ONE};
  tn_context *c = *state;
  bytes late = {0};
  first_rows_model(&late);
  for (size_t i = 0; i < 8; i++) {
    tn_model_desc d = TN_MODEL_DESC_INIT;
    tn_model *m;
    d.variants = policies[i % 4];
    d.interpreted = i >= 4;
    check_ok(c, tn_model_load_bytes(c, late.at, late.n, &d, &m));
    tn_binding *b = bound(c, m), *other = bound(c, m);
    int64_t first = check_first_rows(c, b, 1), second = check_first_rows(c, b, 2);
    int64_t third = check_first_rows(c, b, 4), far = check_first_rows(c, b, INT64_MAX);
    int64_t fourth = check_first_rows(c, other, -2), fifth = check_first_rows(c, b, 0);
    assert_int_equal(check_first_rows(c, b, 1), first);
    assert_int_equal(check_first_rows(c, b, INT64_MAX), far);
    assert_int_equal(check_first_rows(c, b, 4), third);
    tn_binding_free(other);
    tn_model_free(m);
    if (d.interpreted) continue;
    bool is_shared = i < 2;
    assert_true(first != second && second != third && third != far &&
                (third == fourth) == is_shared);
    assert_int_equal(fourth == fifth, is_shared);
  }
}

/** A run that fails for its values names the file and the values. */
static void failures_name_the_values_that_decide(void **state) {
  tn_context *c = *state;
  bytes late = {0};
  tn_model_desc d = TN_MODEL_DESC_INIT;
  const float x[8] = {0};
  const int64_t shape[] = {3, 4};
  tn_model *m;
  d.name = "folder/late.onnx";
  reshape_model(&late);
  check_ok(c, tn_model_load_bytes(c, late.at, late.n, &d, &m));
  tn_binding *b = bound(c, m);
  tn_binding_input(b, "x", tn_shape(2, 4), TN_F32, x, sizeof x);
  tn_binding_input(b, "shape", tn_shape(2), TN_I64, shape, sizeof shape);
  assert_int_equal(tn_binding_run(b), TN_ERR_SHAPE);
  check_text(tn_binding_message(b), "folder/late.onnx: Reshape node");
  check_text(tn_binding_message(b), "; with 'shape' = [3, 4]");
  check_reshape(c, b, 2, 4);
}

/** Elements of an attribute are a weight of variants that are made when the import is over. */
static void attributes_are_weights_of_late_plans(void **state) {
  tn_context *c = *state;
  bytes file = {0}, graph = {0}, constant = {0};
  const int64_t list[] = {5, 0, -7, 9}, shape[] = {4, 2};
  const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  float y[8], squares[4];
  tn_model *m;
  put_attribute_list(&constant, "value_ints", 4, list);
  put_node_with(&graph, "Constant", (const char *[]){NULL}, "list", &constant);
  put_node(&graph, "Cast", (const char *[]){"list", NULL}, "reals", "to", ONNX_TYPE_F32);
  put_node(&graph, "Mul", (const char *[]){"reals", "reals", NULL}, "squares", NULL, 0);
  put_node(&graph, "Add", (const char *[]){"x", "squares", NULL}, "sum", NULL, 0);
  put_node(&graph, "Reshape", (const char *[]){"sum", "shape", NULL}, "y", NULL, 0);
  put_port(&graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"n", "4", NULL});
  put_port(&graph, 11, "shape", ONNX_TYPE_I64, (const char *[]){"2", NULL});
  put_port(&graph, 12, "y", ONNX_TYPE_F32, (const char *[]){"a", "b", NULL});
  put_port(&graph, 12, "squares", ONNX_TYPE_F32, (const char *[]){"4", NULL});
  put_model(&file, "late", &graph, 13);
  check_ok(c, tn_model_load_bytes(c, file.at, file.n, NULL, &m));
  tn_binding *b = bound(c, m);
  for (size_t n = 2; n > 0; n--) {
    const int64_t given[] = {shape[0], (int64_t)n};
    tn_binding_input(b, "x", tn_shape((tn_dim)n, 4), TN_F32, x, n * 4 * sizeof *x);
    tn_binding_input(b, "shape", tn_shape(2), TN_I64, given, sizeof given);
    check_ok(c, tn_binding_run(b));
    check_ok(c, tn_binding_read(b, "y", TN_F32, y, n * 4 * sizeof *y));
    check_ok(c, tn_binding_read(b, "squares", TN_F32, squares, sizeof squares));
    for (size_t i = 0; i < 4 * n; i++) assert_true(y[i] == x[i] + squares[i % 4]);
    for (size_t i = 0; i < 4; i++) assert_true(squares[i] == (float)(list[i] * list[i]));
  }
}

/** Elements of an input decide on shapes: ports are those that the file declares, and each run
   takes what its values decide, whatever became of model and file. */
static void inputs_decide_on_shapes(void **state) {
  tn_context *c = *state;
  bytes late = {0};
  char path[] = "/tmp/tenon-model-XXXXXX";
  tn_model_desc d = TN_MODEL_DESC_INIT;
  tn_port port = TN_PORT_INIT;
  tn_contractions count = TN_CONTRACTIONS_INIT;
  const tn_shape shapes[] = {tn_shape(2, 4), tn_shape(2)};
  tn_model *m;
  reshape_model(&late);
  int fd = mkstemp(path);
  assert_true(fd >= 0 && write(fd, late.at, late.n) == (ssize_t)late.n);
  d.copy = true;
  check_ok(c, tn_model_load(c, path, &d, &m));
  assert_int_equal(ftruncate(fd, 0) | close(fd) | unlink(path), 0);
  check_ok(c, tn_model_port(m, TN_PORT_OUTPUT, 0, &port));
  assert_true(port.type.dtype == TN_F32 && port.type.shape.rank == 2 &&
              !strcmp(port.sizes[1], "b") && port.type.shape.size[1] == -1);
  assert_int_equal(tn_model_port(m, TN_PORT_OUTPUT, 1, &port), TN_ERR_ARGUMENT);
  assert_int_equal(tn_model_contractions(m, shapes, 2, &count), TN_ERR_UNSUPPORTED);
  tn_tensor *in[] = {tn_full(c, tn_shape(2, 4), TN_F32, 1), tn_full(c, tn_shape(2), TN_I64, 1)};
  tn_tensor *out[1];
  tn_model_apply(m, in, 2, out, 1);
  assert_int_equal(tn_realize(c, out, 1), TN_ERR_UNSUPPORTED);
  check_text(tn_message(c), "decide on its shapes");
  tn_binding *b = bound(c, m), *other = bound(c, m);
  check_ok(c, tn_binding_port(b, TN_PORT_OUTPUT, 0, &port));
  assert_int_equal(port.type.shape.rank, -1);
  check_reshape(c, b, 2, 4);
  check_reshape(c, b, 3, 2);
  check_reshape(c, other, 2, 4);
  tn_model_free(m);
  check_reshape(c, b, 2, 8);
  check_reshape(c, b, 2, 4);
  tn_binding_free(b);
  check_reshape(c, other, 2, 1);
}

/* Plans that cannot be shared. */

/** The log lines of a context. */
typedef struct lines {
  char text[4096];
} lines;

static void add_line(void *user, tn_log_level level, const char *text) {
  lines *l = user;
  size_t n = strlen(l->text);
  if (level == TN_LOG_WARNING) snprintf(l->text + n, sizeof l->text - n, "%s\n", text);
}

static size_t count_text(const lines *l, const char *part) {
  size_t n = 0;
  for (const char *at = l->text; (at = strstr(at, part)) != NULL; at++) n++;
  return n;
}

static tn_context *open_logged(lines *l, const char *folder, const char *compiler) {
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.logger = (tn_logger){.log = add_line, .user = l};
  d.cache_dir = folder;
  d.compiler = compiler;
  d.pair = compiler ? "c/cc" : NULL;
  d.threads = 1;
  *l = (lines){0};
  return tn_open(&d);
}

/** Runs first_rows_model for the ends in turn, in a context and a binding of their own. */
static void run_ends(lines *l, const char *folder, const char *compiler, const int64_t ends[],
                     size_t n) {
  tn_context *c = open_logged(l, folder, compiler);
  tn_model *m;
  bytes late = {0};
  assert_non_null(c);
  first_rows_model(&late);
  check_ok(c, tn_model_load_bytes(c, late.at, late.n, NULL, &m));
  tn_binding *b = bound(c, m);
  for (size_t i = 0; i < n; i++) check_first_rows(c, b, ends[i]);
  tn_close(c);
}

/** A shared plan whose kernels cannot be compiled leaves the runs those of their values alone, and
    one warning. */
static void runs_fall_back_where_shared_plans_do_not_compile(void **state) {
  (void)state;
  static const int64_t ends[] = {1, 2, 3, 4, 3};
  diag d = {0};
  arena a;
  lines l;
  arena_init(&a, &mem_system, &d);
  char *folder = temporary_folder(&a), *compiler = arena_printf(&a, "%s/cc", folder);
  char *broken = arena_printf(&a, "%s/broken", folder),
       *cache = arena_printf(&a, "%s/cache", folder);
  const char *script = arena_printf(&a,
                                    "#!/bin/sh\n"
                                    "case $* in *--version*) exec cc \"$@\" ;; esac\n"
                                    "[ ! -e '%s' ] || { echo 'out of order' >&2; exit 1; }\n"
                                    "exec cc \"$@\"\n",
                                    broken);
  assert_true(temporary_write(compiler, 0755, script, strlen(script)));
  for (size_t i = 0; i < 4; i++) run_ends(&l, cache, compiler, &ends[i], 1);
  assert_string_equal(l.text, "");
  assert_true(temporary_write(broken, 0644, "", 0));
  run_ends(&l, cache, compiler, ends, 5);
  assert_int_equal(count_text(&l, "is compiled for each set of values"), 1);
  check_text(l.text, "out of order");
  temporary_remove(&a, folder);
  arena_free(&a);
}

/** y = the largest of each 2 × 2 of the rows of |x| before the one that an input gives. */
static void windows_model(bytes *file) {
  bytes graph = {.n = 0}, pool = {.n = 0};
  put_weight(&graph, "zero", ONNX_TYPE_I64, 1, (int64_t[]){1}, (int64_t[]){0}, 8);
  put_weight(&graph, "axes", ONNX_TYPE_I64, 1, (int64_t[]){2}, (int64_t[]){0, 1}, 16);
  put_attribute_list(&pool, "kernel_shape", 2, (int64_t[]){2, 2});
  put_node(&graph, "Abs", (const char *[]){"x", NULL}, "a", NULL, 0);
  put_node(&graph, "Slice", (const char *[]){"a", "zero", "end", NULL}, "rows", NULL, 0);
  put_node(&graph, "Unsqueeze", (const char *[]){"rows", "axes", NULL}, "image", NULL, 0);
  put_node_with(&graph, "MaxPool", (const char *[]){"image", NULL}, "y", &pool);
  put_port(&graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"5", "4", NULL});
  put_port(&graph, 11, "end", ONNX_TYPE_I64, (const char *[]){"1", NULL});
  put_port(&graph, 12, "y", ONNX_TYPE_F32, (const char *[]){"1", "1", "a", "3", NULL});
  put_model(file, "windows", &graph, 13);
}

static float largest(float a, float b, float c, float d) {
  float x = a > b ? a : b, y = c > d ? c : d;
  return x > y ? x : y;
}

static void check_windows(tn_context *c, tn_binding *b, int64_t end) {
  float x[20], y[20];
  for (size_t i = 0; i < 20; i++) x[i] = (float)(i * 7 % 13);
  tn_binding_input(b, "x", tn_shape(5, 4), TN_F32, x, sizeof x);
  tn_binding_input(b, "end", tn_shape(1), TN_I64, &end, sizeof end);
  check_bound(b, tn_binding_run(b));
  assert_int_equal(tn_binding_type(b, "y").shape.size[2], end - 1);
  check_ok(c, tn_binding_read(b, "y", TN_F32, y, (size_t)(end - 1) * 3 * sizeof *y));
  for (int64_t i = 0; i < 3 * (end - 1); i++) {
    const float *at = &x[i / 3 * 4 + i % 3];
    assert_true(y[i] == largest(at[0], at[1], at[4], at[5]));
  }
}

/** A graph that computed sizes do not fit has a plan for each value, and one warning. */
static void graphs_that_fit_no_computed_sizes_have_plans_of_each_value(void **state) {
  (void)state;
  lines l;
  bytes late = {0};
  tn_model *m;
  tn_context *c = open_logged(&l, NULL, NULL);
  windows_model(&late);
  check_ok(c, tn_model_load_bytes(c, late.at, late.n, NULL, &m));
  tn_binding *b = bound(c, m);
  for (int64_t end = 2; end <= 5; end++) check_windows(c, b, end);
  check_windows(c, b, 3);
  assert_int_equal(count_text(&l, "cannot be made for values that vary"), 1);
  check_text(l.text, "MaxPool node 'y'");
  tn_close(c);
}

/** An output's memory that is too small for what the run computed fails the run, and leaves the
    shared plan to the next one. */
static void small_outputs_leave_plans_shared(void **state) {
  tn_context *c = *state;
  bytes late = {0};
  const float x[4 * 5] = {0};
  float y[4 * 5];
  tn_model *m;
  first_rows_model(&late);
  check_ok(c, tn_model_load_bytes(c, late.at, late.n, NULL, &m));
  tn_binding *b = bound(c, m);
  for (int64_t end = 1; end < 3; end++) check_first_rows(c, b, end);
  int64_t shared = check_first_rows(c, b, 3), four = 4;
  check_bound(b, tn_binding_output(b, "y", TN_F32, y, 4 * 3 * sizeof *y));
  check_bound(b, tn_binding_input(b, "x", tn_shape(5, 4), TN_F32, x, sizeof x));
  check_bound(b, tn_binding_input(b, "end", tn_shape(1), TN_I64, &four, sizeof four));
  assert_int_equal(tn_binding_run(b), TN_ERR_SHAPE);
  check_text(tn_binding_message(b), "output y");
  check_bound(b, tn_binding_output(b, "y", TN_F32, y, sizeof y));
  assert_int_equal(check_first_rows(c, b, 4), shared);
  assert_int_equal(check_first_rows(c, b, 5), shared);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_context, close_context)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(plans_compute_with_values_that_vary),
      TEST(failures_name_the_values_that_decide),
      TEST(attributes_are_weights_of_late_plans),
      TEST(inputs_decide_on_shapes),
      cmocka_unit_test(runs_fall_back_where_shared_plans_do_not_compile),
      cmocka_unit_test(graphs_that_fit_no_computed_sizes_have_plans_of_each_value),
      TEST(small_outputs_leave_plans_shared),
  };
  return cmocka_run_group_tests_name("late plans", tests, NULL, NULL);
}
