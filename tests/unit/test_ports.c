/* Tests ports, the inputs and outputs of plans and bindings: their descriptions, lookup by name,
   and use by port number. */
#include "support/tensor_check.h"

enum { BATCH = 3, WIDTH = 4 };

typedef struct ports {
  tn_context *c;
  tn_plan *plan;
  tn_binding *binding;
} ports;

/** Compiles sum = x + y of a variable batch, and twice = x concatenated with itself. */
static int open_ports(void **state) {
  static ports p;
  p.c = tn_open(NULL);
  tn_dim batch = tn_dim_var(p.c, "batch", 1, 8);
  tn_tensor *x = tn_input(p.c, "x", tn_shape(batch, WIDTH), TN_F32);
  tn_tensor *y = tn_input(p.c, "y", tn_shape(batch, WIDTH), TN_F32);
  tn_tensor *out[] = {tn_add(x, y), tn_tile(x, tn_shape(2, 1))};
  const char *const names[] = {"sum", "twice"};
  tn_plan_desc desc = TN_PLAN_DESC_INIT;
  desc.outputs = names;
  check_ok(p.c, tn_plan_compile(p.c, out, 2, &desc, &p.plan));
  check_ok(p.c, tn_plan_bind(p.plan, &p.binding));
  *state = &p;
  return 0;
}

static int close_ports(void **state) { return tn_close(((ports *)*state)->c); }

static void ports_are_described(void **state) {
  const ports *p = *state;
  tn_port port = TN_PORT_INIT, same = TN_PORT_INIT;
  int32_t batch = -1;
  for (size_t i = 0; i < 2; i++) {
    assert_int_equal(tn_plan_port(p->plan, TN_PORT_INPUT, i, &port), TN_OK);
    assert_int_equal(port.type.dtype, TN_F32);
    assert_int_equal(port.type.shape.rank, 2);
    assert_int_equal(port.type.shape.size[0], -1);
    assert_int_equal(port.type.shape.size[1], WIDTH);
    assert_string_equal(port.sizes[0], "batch");
    assert_string_equal(port.sizes[1], "4");
    assert_null(port.sizes[2]);
    assert_true(port.min[0] == 1 && port.max[0] == 8);
    assert_true(port.min[1] == WIDTH && port.max[1] == WIDTH);
    assert_true(port.example[0] == 1 && port.example[1] == WIDTH);
    assert_true(port.variable[0] >= 0 && port.variable[1] == -1);
    if (i) assert_int_equal(port.variable[0], batch);
    batch = port.variable[0];
    assert_int_equal(tn_binding_port(p->binding, TN_PORT_INPUT, i, &same), TN_OK);
    assert_memory_equal(&port, &same, sizeof port);
    assert_int_equal(tn_binding_find(p->binding, TN_PORT_INPUT, port.name), i);
  }
  assert_int_equal(tn_plan_port(p->plan, TN_PORT_OUTPUT, 0, &port), TN_OK);
  assert_string_equal(port.name, "sum");
  assert_int_equal(port.variable[0], batch);
  assert_int_equal(tn_plan_port(p->plan, TN_PORT_OUTPUT, 1, &port), TN_OK);
  assert_string_equal(port.name, "twice");
  assert_string_equal(port.sizes[0], "2*batch");
  assert_true(port.min[0] == 2 && port.max[0] == 16);
  assert_true(port.variable[0] >= 0 && port.variable[0] != batch);
}

static void absent_ports_are_refused(void **state) {
  const ports *p = *state;
  tn_port port = TN_PORT_INIT;
  port.name = "as it was";
  assert_int_equal(tn_plan_port(p->plan, TN_PORT_INPUT, 2, &port), TN_ERR_ARGUMENT);
  assert_int_equal(tn_plan_port(p->plan, (tn_port_kind)7, 0, &port), TN_ERR_ARGUMENT);
  assert_int_equal(tn_plan_port(NULL, TN_PORT_INPUT, 0, &port), TN_ERR_ARGUMENT);
  assert_int_equal(tn_plan_port(p->plan, TN_PORT_INPUT, 0, NULL), TN_ERR_ARGUMENT);
  assert_int_equal(tn_binding_port(p->binding, TN_PORT_OUTPUT, 2, &port), TN_ERR_ARGUMENT);
  assert_int_equal(tn_binding_port(NULL, TN_PORT_OUTPUT, 0, &port), TN_ERR_ARGUMENT);
  assert_string_equal(port.name, "as it was");
  assert_int_equal(tn_binding_find(p->binding, TN_PORT_OUTPUT, "x"), -1);
  assert_int_equal(tn_binding_find(p->binding, (tn_port_kind)7, "x"), -1);
  assert_int_equal(tn_binding_find(p->binding, TN_PORT_INPUT, NULL), -1);
  assert_int_equal(tn_binding_find(NULL, TN_PORT_INPUT, "x"), -1);
}

static void inputs_and_outputs_go_by_number(void **state) {
  const ports *p = *state;
  tn_binding *b = p->binding;
  float in[BATCH * WIDTH], sum[BATCH * WIDTH], given[2 * BATCH * WIDTH];
  size_t x = (size_t)tn_binding_find(b, TN_PORT_INPUT, "x");
  for (int i = 0; i < BATCH * WIDTH; i++) in[i] = (float)i;
  assert_int_equal(tn_binding_type_at(b, 0).dtype, TN_UNDEFINED);
  for (size_t i = 0; i < 2; i++)
    assert_int_equal(tn_binding_input_at(b, i, tn_shape(BATCH, WIDTH), TN_F32, in, sizeof in),
                     TN_OK);
  assert_int_equal(tn_binding_output_at(b, 1, TN_F32, given, sizeof given), TN_OK);
  assert_int_equal(tn_binding_carry_at(b, 0, x), TN_OK);
  for (int run = 1; run <= 3; run++) {
    assert_int_equal(tn_binding_run(b), TN_OK);
    assert_int_equal(tn_binding_read_at(b, 0, TN_F32, sum, sizeof sum), TN_OK);
    for (int i = 0; i < BATCH * WIDTH; i++) {
      assert_true(sum[i] == (float)((run + 1) * i));
      assert_true(given[i] == (float)(run * i) && given[BATCH * WIDTH + i] == given[i]);
    }
  }
  assert_int_equal(tn_binding_type_at(b, 1).shape.size[0], 2 * BATCH);
  assert_int_equal(tn_binding_type_at(b, 2).dtype, TN_UNDEFINED);
  assert_int_equal(tn_binding_type_at(NULL, 0).dtype, TN_UNDEFINED);
}

static void check_refused(tn_binding *b, tn_status s, const char *part) {
  assert_int_equal(s, TN_ERR_ARGUMENT);
  check_text(tn_binding_message(b), part);
}

static void numbers_past_the_last_are_refused(void **state) {
  const ports *p = *state;
  tn_binding *b = p->binding;
  float in[WIDTH] = {0};
  check_refused(b, tn_binding_input_at(b, 2, tn_shape(1, WIDTH), TN_F32, in, sizeof in),
                "there is no input 2: there are 2");
  check_refused(b, tn_binding_output_at(b, 2, TN_F32, in, sizeof in),
                "there is no output 2: there are 2");
  check_refused(b, tn_binding_carry_at(b, 3, 0), "no output 3");
  check_refused(b, tn_binding_carry_at(b, 0, SIZE_MAX), "no input");
  check_refused(b, tn_binding_read_at(b, 9, TN_F32, in, sizeof in), "no output 9");
  assert_int_equal(tn_binding_run(b), TN_ERR_ARGUMENT); /* the first failure is kept */
  assert_int_equal(tn_binding_input_at(NULL, 0, tn_shape(1), TN_F32, in, 4), TN_ERR_ARGUMENT);
  assert_int_equal(tn_binding_read_at(NULL, 0, TN_F32, in, 4), TN_ERR_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(ports_are_described, open_ports, close_ports),
      cmocka_unit_test_setup_teardown(absent_ports_are_refused, open_ports, close_ports),
      cmocka_unit_test_setup_teardown(inputs_and_outputs_go_by_number, open_ports, close_ports),
      cmocka_unit_test_setup_teardown(numbers_past_the_last_are_refused, open_ports, close_ports),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
