/* Tests schedules as callers inspect them, before anything is compiled, and slots: where runs have
   the values of watched tensors, which are read and written with conversion, on devices whose
   memory the host sees and on others. */
#include "../backend/ref.c"
#include "support/tensor_check.h"

#include <tenon/cache.h>
#include <tenon/unstable/schedule.h>

enum { ROWS = 6, COLUMNS = 5 };

static float x[ROWS * COLUMNS];

static tn_status pass_on(void *user, tn_call *call) {
  (void)user;
  tn_array from = tn_call_in(call, 0), to = tn_call_out(call, 0);
  memcpy(to.data, from.data, ROWS * sizeof(float));
  return TN_OK;
}

static tn_tensor *through_host(tn_context *c, tn_tensor *t) {
  tn_tensor *out;
  tn_custom_desc desc = TN_CUSTOM_DESC_INIT;
  tn_type type = {TN_F32, tn_shape(ROWS)};
  desc.run = pass_on;
  tn_custom(c, &desc, &t, 1, &type, &out, 1);
  return out;
}

/** Sums of squares of rows, through a host function, and their doubles: [0] is the input, [1] is
    computed in its reader, [2] and [3] are stored for and by the function, [4] is the output. */
static void build(tn_context *c, tn_dim rows, tn_tensor *made[5]) {
  made[0] = tn_input(c, "x", tn_shape(rows, COLUMNS), TN_F32);
  made[1] = tn_mul(made[0], made[0]);
  made[2] = tn_sum(made[1], tn_axes(1), false);
  made[3] = through_host(c, made[2]);
  made[4] = tn_add(made[3], made[3]);
}

static uint64_t compiled_so_far(tn_context *c) {
  tn_kernel_cache_info info = TN_KERNEL_CACHE_INFO_INIT;
  check_ok(c, tn_kernel_cache_get(c, &info));
  return info.compiled + info.found;
}

static tn_schedule *schedule_watched(tn_context *c, tn_tensor *made[5]) {
  tn_schedule *s;
  tn_plan_desc desc = TN_PLAN_DESC_INIT;
  desc.watched = made;
  desc.n_watched = 5;
  check_ok(c, tn_schedule_make(c, &made[4], 1, &desc, &s));
  return s;
}

static void schedules_are_inspected(void **state) {
  tn_context *c = *state;
  tn_tensor *made[5];
  build(c, ROWS, made);
  uint64_t before = compiled_so_far(c);
  tn_schedule *s = schedule_watched(c, made);
  assert_int_equal(compiled_so_far(c), before);
  tn_scheduled_step step = TN_SCHEDULED_STEP_INIT;
  tn_scheduled_kernel kernel = TN_SCHEDULED_KERNEL_INIT;
  tn_scheduled_buffer buffer = TN_SCHEDULED_BUFFER_INIT;
  static const char *const kinds[] = {"", "a host function", ""};
  size_t n = 0, inputs = 0, outputs = 0, scratch = 0;
  for (; tn_schedule_step(s, n, &step) == TN_OK; n++) {
    assert_true(n < 3);
    assert_string_equal(step.what, kinds[n]);
    assert_int_equal(step.kernel < 0, n == 1);
    assert_int_equal(step.n_buffers, 2);
    assert_string_equal(step.device, "CPU:0");
  }
  assert_int_equal(n, 3);
  tn_ir *ir;
  assert_int_equal(tn_ir_open(NULL, &ir), TN_OK);
  for (n = 0; tn_schedule_kernel(s, n, &kernel) == TN_OK; n++) {
    assert_non_null(tn_ir_parse(ir, kernel.text, strlen(kernel.text)));
    assert_int_equal(kernel.steps, 1);
  }
  assert_int_equal(n, 2);
  tn_ir_close(ir);
  for (n = 0; tn_schedule_buffer(s, n, &buffer) == TN_OK; n++) {
    bool is_input = !strcmp(buffer.kind, "input"), is_scratch = !strcmp(buffer.kind, "scratch");
    inputs += is_input;
    outputs += !strcmp(buffer.kind, "output");
    scratch += is_scratch;
    assert_int_equal(buffer.elements, is_input ? ROWS * COLUMNS : ROWS);
    assert_int_equal(buffer.bytes, buffer.elements * 4);
    assert_int_equal(buffer.has_offset, is_scratch);
    if (is_scratch) assert_true(buffer.offset + buffer.bytes <= tn_schedule_bytes(s));
    if (is_scratch) assert_int_equal(buffer.last, buffer.first + 1);
  }
  assert_true(inputs == 1 && outputs == 1 && scratch == 2);
  tn_schedule_free(s);
  tn_schedule_free(NULL);
}

static void slots_tell_where_values_are(void **state) {
  tn_context *c = *state;
  tn_tensor *made[5];
  build(c, ROWS, made);
  tn_schedule *s = schedule_watched(c, made);
  tn_slot slot = TN_SLOT_INIT;
  for (size_t i = 0; i < 5; i++) {
    assert_int_equal(tn_schedule_slot(s, i, &slot), TN_OK);
    assert_int_equal(slot.has_buffer, i != 1); /* the product is part of the sum's kernel */
    assert_int_equal(slot.bytes, i == 1 ? 0 : i ? ROWS * 4 : sizeof x);
    if (i != 1) assert_int_equal(slot.dtype, TN_F32);
  }
  assert_int_equal(tn_schedule_slot(s, 5, &slot), TN_ERR_ARGUMENT);
  tn_schedule_free(s);
}

static void sizes_may_be_open(void **state) {
  tn_context *c = *state;
  tn_tensor *in = tn_input(c, "x", tn_shape(tn_dim_var(c, "n", 1, 9), COLUMNS), TN_F32);
  tn_tensor *out = tn_softmax(tn_cumsum(in, 0), 0);
  tn_schedule *s;
  check_ok(c, tn_schedule_make(c, &out, 1, NULL, &s));
  tn_scheduled_buffer buffer = TN_SCHEDULED_BUFFER_INIT;
  for (size_t i = 0; tn_schedule_buffer(s, i, &buffer) == TN_OK; i++)
    assert_true(buffer.bytes == 0 || buffer.elements > 0);
  assert_int_equal(tn_schedule_bytes(s), 0);
  assert_int_equal(tn_schedule_bytes(NULL), 0);
}

/** Values between steps are read from slots after a run that keeps them. */
static void check_slots_on(tn_context *c) {
  tn_tensor *made[5];
  tn_plan_desc desc = TN_PLAN_DESC_INIT;
  tn_slot slot = TN_SLOT_INIT;
  tn_failure f;
  double got[ROWS + 1], sums[ROWS] = {0};
  for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = (float)(i % 7) - 2;
  for (int i = 0; i < ROWS * COLUMNS; i++) sums[i / COLUMNS] += x[i] * x[i];
  build(c, ROWS, made);
  desc.watched = made;
  desc.n_watched = 5;
  tn_binding *b = bind_compiled(c, &made[4], 1, &desc);
  check_bound(b, tn_binding_reuse(b, true));
  check_bound(b, tn_binding_input(b, "x", tn_shape(ROWS, COLUMNS), TN_F32, x, sizeof x));
  check_bound(b, tn_binding_slot(b, 2, &slot));
  assert_true(slot.has_buffer && !slot.span.memory); /* known before the run, without memory */
  check_bound(b, tn_binding_run(b));
  for (size_t i = 2; i < 5; i++) {
    check_bound(b, tn_binding_slot(b, i, &slot));
    assert_true(slot.has_buffer && slot.span.memory && slot.bytes == ROWS * 4);
    if (tn_span_read(&slot.span, slot.dtype, TN_F64, got, ROWS, &f)) fail_msg("%s", f.text);
    for (int k = 0; k < ROWS; k++) assert_true(got[k] == sums[k] * (i == 4 ? 2 : 1));
    assert_int_equal(tn_span_read(&slot.span, slot.dtype, TN_F64, got, ROWS + 1, &f), TN_ERR_SHAPE);
    assert_int_equal(tn_span_write(&slot.span, slot.dtype, TN_F64, got, ROWS + 1, &f),
                     TN_ERR_SHAPE);
    for (int k = 0; k < ROWS; k++) got[k] = k + 0.25;
    if (tn_span_write(&slot.span, slot.dtype, TN_F64, got, ROWS, &f)) fail_msg("%s", f.text);
    float back[ROWS];
    if (tn_span_read(&slot.span, slot.dtype, TN_F32, back, ROWS, &f)) fail_msg("%s", f.text);
    for (int k = 0; k < ROWS; k++) assert_true(back[k] == (float)k + 0.25f);
  }
  check_bound(b, tn_binding_slot(b, 1, &slot));
  assert_true(!slot.has_buffer && !slot.bytes);
  assert_int_equal(tn_binding_slot(b, 5, &slot), TN_ERR_ARGUMENT);
  check_text(tn_binding_message(b), "watches 5 tensors; there is no number 5");
}

static void slots_are_read_and_written(void **state) { check_slots_on(*state); }

static void slots_of_other_memory_are_too(void **state) {
  (void)state;
  tn_context *first = tn_open(NULL);
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  check_ok(first, tn_backend_add(first, &ref_backend));
  desc.device = "REF";
  tn_context *c = tn_open(&desc);
  check_slots_on(c);
  tn_close(c);
  tn_close(first);
}

static void misuse_is_refused(void **state) {
  tn_context *c = *state;
  tn_tensor *made[5], *other = tn_input(c, "y", tn_shape(3), TN_F32), *none = NULL;
  tn_plan_desc desc = TN_PLAN_DESC_INIT;
  tn_schedule *s;
  tn_plan *p;
  build(c, ROWS, made);
  desc.n_watched = 1;
  assert_int_equal(tn_schedule_make(c, &made[4], 1, &desc, &s), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "the list of watched tensors is NULL");
  desc.watched = &none;
  assert_int_equal(tn_plan_compile(c, &made[4], 1, &desc, &p), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "watched tensor 0 is NULL");
  desc.watched = &other;
  assert_int_equal(tn_schedule_make(c, &made[4], 1, &desc, &s), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "no output is computed of watched tensor 0");
  assert_null(s);
  assert_int_equal(tn_schedule_make(c, &made[4], 1, NULL, NULL), TN_ERR_ARGUMENT);
  assert_int_equal(tn_schedule_make(NULL, &made[4], 1, NULL, &s), TN_ERR_ARGUMENT);
  assert_int_equal(tn_schedule_step(NULL, 0, NULL), TN_ERR_ARGUMENT);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, open_context, close_context)

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH(schedules_are_inspected),
      WITH(slots_tell_where_values_are),
      WITH(sizes_may_be_open),
      WITH(slots_are_read_and_written),
      cmocka_unit_test(slots_of_other_memory_are_too),
      WITH(misuse_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
