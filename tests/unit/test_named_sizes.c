/* Tests sizes of a model's inputs that have one name: one variable until a run contradicts, and two
   from then on; where nodes need them to be equal, runs that contradict are refused. */
#include "../models/onnx/writer.h"
#include "support/tensor_check.h"

#include "formats/model/model.h"
#include "tensor/plan/binding.h"
#include "tensor/plan/variant_table.h"

enum { MOST = 16 };

static const char *const x_and_y[] = {"x", "y", NULL};

/** Loads a model of x[n] and y[n, 2]: −x and |y|, or a node of both (y[n]). */
static tn_status load_pair(tn_context *c, const char *op, const tn_model_desc *d, tn_model **m) {
  bytes graph = {.n = 0}, file = {.n = 0};
  put_port(&graph, 11, "x", ONNX_TYPE_F32, (const char *[]){"n", NULL});
  put_port(&graph, 11, "y", ONNX_TYPE_F32, (const char *[]){"n", op ? NULL : "2", NULL});
  put_port(&graph, 12, "u", ONNX_TYPE_F32, (const char *[]){NULL});
  if (op) {
    put_node(&graph, op, x_and_y, "u", NULL, 0);
  } else {
    put_port(&graph, 12, "v", ONNX_TYPE_F32, (const char *[]){NULL});
    put_node(&graph, "Neg", (const char *[]){"x", NULL}, "u", NULL, 0);
    put_node(&graph, "Abs", (const char *[]){"y", NULL}, "v", NULL, 0);
  }
  put_model(&file, "pair", &graph, 17);
  return tn_model_load_bytes(c, file.at, file.n, d, m);
}

static tn_binding *bind_pair(tn_context *c, const char *op, tn_variants policy) {
  tn_model_desc d = TN_MODEL_DESC_INIT;
  tn_model *m;
  tn_binding *b;
  d.variants = policy;
  check_ok(c, load_pair(c, op, &d, &m));
  check_ok(c, tn_model_bind(m, &b));
  return b;
}

/** Runs with sizes of x and y, and returns the number of the variant. */
static int64_t run_sizes(tn_binding *b, size_t nx, size_t ny) {
  float x[MOST], y[2 * MOST], u[MOST], v[2 * MOST];
  for (size_t i = 0; i < MOST; i++) x[i] = (float)i;
  for (size_t i = 0; i < 2 * MOST; i++) y[i] = -(float)i;
  tn_binding_input(b, "x", tn_shape((tn_dim)nx), TN_F32, x, nx * sizeof *x);
  tn_binding_input(b, "y", tn_shape((tn_dim)ny, 2), TN_F32, y, 2 * ny * sizeof *y);
  check_bound(b, tn_binding_run(b));
  check_bound(b, tn_binding_read(b, "u", TN_F32, u, nx * sizeof *u));
  check_bound(b, tn_binding_read(b, "v", TN_F32, v, 2 * ny * sizeof *v));
  for (size_t i = 0; i < nx; i++) assert_true(u[i] == -(float)i);
  for (size_t i = 0; i < 2 * ny; i++) assert_true(v[i] == (float)i);
  return tn_binding_variant(b);
}

static size_t count_open(const tn_binding *b) { return executable_vars(b->variant->executable); }

static void equal_names_are_one_variable_until_a_run_contradicts(void **state) {
  tn_binding *b = bind_pair(*state, NULL, TN_VARIANTS_STEADY);
  assert_int_equal(run_sizes(b, 3, 3), 0);
  assert_int_equal(run_sizes(b, 5, 5), 1);
  assert_int_equal(count_open(b), 1);
  assert_int_equal(run_sizes(b, 9, 9), 1);
  assert_int_equal(run_sizes(b, 4, 6), 2);
  assert_int_equal(count_open(b), 2);
  assert_int_equal(run_sizes(b, 2, 8), 2);
  assert_int_equal(run_sizes(b, 7, 7), 1); /* what was equal keeps its variant */
  assert_int_equal(run_sizes(b, 3, 3), 0);
}

static void the_first_run_may_contradict(void **state) {
  tn_binding *b = bind_pair(*state, NULL, TN_VARIANTS_STEADY);
  assert_int_equal(run_sizes(b, 3, 5), 0);
  assert_int_equal(run_sizes(b, 3, 6), 1);
  assert_int_equal(count_open(b), 1);
  assert_int_equal(run_sizes(b, 4, 4), 2);
  assert_int_equal(run_sizes(b, 5, 6), 3); /* open in all: no size is taken as another */
  assert_int_equal(count_open(b), 2);
}

/** A size of 0 is a number in its variants. */
static void one_of_them_may_be_empty(void **state) {
  tn_binding *b = bind_pair(*state, NULL, TN_VARIANTS_STEADY);
  assert_int_equal(run_sizes(b, 3, 3), 0);
  assert_int_equal(run_sizes(b, 4, 4), 1);
  assert_int_equal(run_sizes(b, 0, 4), 2);
  assert_int_equal(run_sizes(b, 0, 5), 3);
  assert_int_equal(run_sizes(b, 6, 6), 1);
}

static void other_policies_serve_both(void **state) {
  tn_binding *b = bind_pair(*state, NULL, TN_VARIANTS_ONE);
  assert_int_equal(run_sizes(b, 3, 3), 0);
  assert_int_equal(run_sizes(b, 3, 5), 0);
  assert_int_equal(count_open(b), 2);
  b = bind_pair(*state, NULL, TN_VARIANTS_EXACT);
  assert_int_equal(run_sizes(b, 3, 3), 0);
  assert_int_equal(run_sizes(b, 3, 5), 1);
  assert_int_equal(run_sizes(b, 3, 3), 0);
}

static void ports_show_the_name(void **state) {
  tn_context *c = *state;
  tn_model *m;
  tn_port x = TN_PORT_INIT, y = TN_PORT_INIT;
  check_ok(c, load_pair(c, NULL, NULL, &m));
  check_ok(c, tn_model_port(m, TN_PORT_INPUT, 0, &x));
  check_ok(c, tn_model_port(m, TN_PORT_INPUT, 1, &y));
  assert_string_equal(x.sizes[0], "n");
  assert_string_equal(y.sizes[0], "n");
  assert_int_not_equal(x.variable[0], y.variable[0]);
  check_ok(c, load_pair(c, "Add", NULL, &m));
  check_ok(c, tn_model_port(m, TN_PORT_INPUT, 0, &x));
  check_ok(c, tn_model_port(m, TN_PORT_INPUT, 1, &y));
  assert_string_equal(y.sizes[0], "n");
  assert_int_equal(x.variable[0], y.variable[0]);
}

/** Nodes that need equal sizes get them from the name. */
static void contradictions_are_refused_where_sizes_must_be_equal(void **state) {
  tn_binding *b = bind_pair(*state, "Add", TN_VARIANTS_STEADY);
  const float f[4] = {1, 2, 3, 4};
  float got[4];
  tn_binding_input(b, "x", tn_shape(3), TN_F32, f, 12);
  tn_binding_input(b, "y", tn_shape(4), TN_F32, f, 16);
  assert_int_equal(tn_binding_run(b), TN_ERR_SHAPE);
  check_text(tn_binding_message(b),
             "input y: axis 0 has size 4, not 3, as n is 3 by axis 0 of input x");
  tn_binding_input(b, "x", tn_shape(4), TN_F32, f, 16);
  check_bound(b, tn_binding_run(b));
  check_bound(b, tn_binding_read(b, "u", TN_F32, got, sizeof got));
  assert_true(got[0] == 2 && got[3] == 8);
}

/** Bounds of a name are those of all its sizes, and those of an axis of it alone. */
static void constraints_are_of_names_and_axes(void **state) {
  tn_context *c = *state;
  tn_model_size sizes[2] = {TN_MODEL_SIZE_INIT, TN_MODEL_SIZE_INIT};
  tn_model_desc d = TN_MODEL_DESC_INIT;
  tn_model *m;
  tn_port x = TN_PORT_INIT, y = TN_PORT_INIT;
  d.sizes = sizes;
  d.n_sizes = 2;
  sizes[0].name = "n";
  sizes[0].min = 2;
  sizes[0].max = 9;
  sizes[1].name = "y:0";
  sizes[1].max = 5;
  check_ok(c, load_pair(c, NULL, &d, &m));
  check_ok(c, tn_model_port(m, TN_PORT_INPUT, 0, &x));
  check_ok(c, tn_model_port(m, TN_PORT_INPUT, 1, &y));
  assert_true(x.min[0] == 2 && x.max[0] == 9 && y.min[0] == 2 && y.max[0] == 5);
  tn_binding *b;
  check_ok(c, tn_model_bind(m, &b));
  assert_int_equal(run_sizes(b, 3, 3), 0);
  assert_int_equal(run_sizes(b, 4, 4), 1);
  assert_int_equal(count_open(b), 1);
  const tn_program_var *var = executable_var_at(b->variant->executable, 0);
  assert_true(var->min == 2 && var->max == 5);
  assert_int_equal(run_sizes(b, 9, 5), 2);
  sizes[1] = (tn_model_size)TN_MODEL_SIZE_INIT;
  sizes[1].name = "y:0";
  sizes[1].same = "n";
  check_ok(c, load_pair(c, NULL, &d, &m));
  check_ok(c, tn_model_port(m, TN_PORT_INPUT, 0, &x));
  check_ok(c, tn_model_port(m, TN_PORT_INPUT, 1, &y));
  assert_int_equal(x.variable[0], y.variable[0]);
  sizes[0].min = sizes[0].max = 4;
  d.n_sizes = 1;
  check_ok(c, load_pair(c, NULL, &d, &m));
  check_ok(c, tn_model_port(m, TN_PORT_INPUT, 1, &y));
  assert_int_equal(y.type.shape.size[0], 4);
}

/** Operands need not agree either. */
static void operands_may_contradict(void **state) {
  tn_context *c = *state;
  tn_model *m;
  check_ok(c, load_pair(c, NULL, NULL, &m));
  tn_tensor *in[] = {tn_full(c, tn_shape(3), TN_F32, 1), tn_full(c, tn_shape(2, 2), TN_F32, -7)};
  tn_tensor *out[2];
  tn_model_apply(m, in, 2, out, 2);
  check_floats(c, out[0], FLOATS(-1, -1, -1));
  check_floats(c, out[1], FLOATS(7, 7, 7, 7));
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, open_context, close_context)

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH(equal_names_are_one_variable_until_a_run_contradicts),
      WITH(the_first_run_may_contradict),
      WITH(one_of_them_may_be_empty),
      WITH(other_policies_serve_both),
      WITH(ports_show_the_name),
      WITH(contradictions_are_refused_where_sizes_must_be_equal),
      WITH(constraints_are_of_names_and_axes),
      WITH(operands_may_contradict),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
