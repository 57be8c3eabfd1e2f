/* Tests elementwise ops and reductions on rows, of every op and type, against scalar_eval on each
   element: with random and extreme elements, at odd addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "ir/core/scalar_eval.h"
#include "ir/interp/element_rows.h"

#include <math.h>
#include <string.h>

enum { LENGTH = 200, OPERANDS = 3 };

/* Rows of elements, one byte off their alignment. */
typedef struct rows {
  char at[OPERANDS + 1][LENGTH * 8 + 1];
  uint64_t seed;
} rows;

static uint64_t random_element(rows *r, dtype t) {
  static const double numbers[] = {0, -0.0, 1, -1, 2.5, -3, INFINITY, -INFINITY, NAN};
  uint64_t bits = random_next(&r->seed);
  if (bits % 4 == 0) return scalar_from_double(t, numbers[(bits >> 8) % 9]);
  if (bits % 4 == 1) return scalar_cast(t, DT_I64, (bits >> 8) % 5);
  if (bits % 4 == 2) return dtype_is_float(t) ? scalar_from_double(t, (double)(int32_t)bits) : 0;
  bits = random_next(&r->seed);
  return scalar_load(t, &bits);
}

static char *element_at(rows *r, size_t row, dtype t, size_t i) {
  return &r->at[row][1 + i * dtype_bytes(t)];
}

static void fill_row(rows *r, size_t row, dtype t) {
  for (size_t i = 0; i < LENGTH; i++)
    scalar_store(t, element_at(r, row, t, i), random_element(r, t));
}

static bool same(dtype t, uint64_t a, uint64_t b) {
  bool are_nan =
      dtype_is_float(t) && isnan(scalar_to_double(t, a)) && isnan(scalar_to_double(t, b));
  return a == b || are_nan;
}

static void check_eval(rows *r, const row_op *o) {
  const char *from[OPERANDS];
  bool overflow = false, expected_overflow = false;
  for (size_t k = 0; k < o->n; k++) {
    fill_row(r, k, o->operands[k]);
    from[k] = r->at[k] + 1;
  }
  row_eval(o, from, r->at[OPERANDS] + 1, LENGTH, &overflow);
  for (size_t i = 0; i < LENGTH; i++) {
    uint64_t args[OPERANDS];
    for (size_t k = 0; k < o->n; k++)
      args[k] = scalar_load(o->operands[k], element_at(r, k, o->operands[k], i));
    uint64_t want = scalar_eval(o->o, o->operands[scalar_typed_operand(o->o)], o->result, args,
                                &expected_overflow);
    uint64_t got = scalar_load(o->result, element_at(r, OPERANDS, o->result, i));
    if (!same(o->result, got, want))
      fail_msg("%s on %s: element %zu is %llx, not %llx", op_name(o->o), dtype_name(o->operands[0]),
               i, (unsigned long long)got, (unsigned long long)want);
  }
  assert_int_equal(overflow, expected_overflow);
}

static void test_ops(void **state) {
  (void)state;
  rows r = {.seed = 7};
  size_t checked = 0;
  for (int o = 0; o < OP_LIMIT; o++)
    for (int t = 0; t < DT_LIMIT; t++) {
      const op_facts *f = op_facts_of((op)o);
      if (!op_has_scalar_eval((op)o) || !dtype_is_data((dtype)t) || !op_takes((op)o, (dtype)t))
        continue;
      if (f->type == TYPE_FREE) continue;
      row_op of = {(op)o, f->most, {(dtype)t, (dtype)t, (dtype)t}, (dtype)t};
      if (f->type == TYPE_COMPARE) of.result = DT_BOOL;
      if (f->type == TYPE_SELECT) of.operands[0] = DT_BOOL;
      check_eval(&r, &of);
      checked++;
    }
  assert_true(checked > 300);
}

static void test_casts(void **state) {
  (void)state;
  rows r = {.seed = 11};
  for (int from = 0; from < DT_LIMIT; from++)
    for (int to = 0; to < DT_LIMIT; to++)
      if (dtype_is_data((dtype)from) && dtype_is_data((dtype)to) && op_takes(OP_CAST, (dtype)from))
        check_eval(&r, &(row_op){OP_CAST, 1, {(dtype)from}, (dtype)to});
}

static void check_reduce(rows *r, op o, dtype t) {
  uint64_t start = 0;
  bool overflow = false;
  op_identity(o, t, &start);
  fill_row(r, 0, t);
  uint64_t want = start;
  for (size_t i = 0; i < LENGTH; i++)
    want =
        scalar_eval(o, t, t, (uint64_t[]){want, scalar_load(t, element_at(r, 0, t, i))}, &overflow);
  uint64_t got = row_reduce(o, t, start, r->at[0] + 1, LENGTH / 2);
  got = row_reduce(o, t, got, element_at(r, 0, t, LENGTH / 2), LENGTH - LENGTH / 2);
  if (!same(t, got, want))
    fail_msg("%s of %s is %llx, not %llx", op_name(o), dtype_name(t), (unsigned long long)got,
             (unsigned long long)want);
}

static void test_reductions(void **state) {
  (void)state;
  rows r = {.seed = 13};
  for (int o = 0; o < OP_LIMIT; o++)
    for (int t = 0; t < DT_LIMIT; t++) {
      uint64_t identity;
      if (dtype_is_data((dtype)t) && op_is_elementwise((op)o) && op_takes((op)o, (dtype)t) &&
          op_identity((op)o, (dtype)t, &identity) && !op_rounds_reduction((op)o, (dtype)t))
        for (int i = 0; i < 10; i++) check_reduce(&r, (op)o, (dtype)t);
    }
}

/* Sums in long double keep what a sum in double loses. */
static void test_exact_reductions(void **state) {
  (void)state;
  static const double numbers[] = {3, 0x1p60, -0x1p60, 0.5};
  static const dtype types[] = {DT_F32, DT_F64, DT_BF16};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    rows r = {.seed = 1};
    dtype t = types[i];
    for (size_t k = 0; k < 4; k++)
      scalar_store(t, element_at(&r, 0, t, k), scalar_from_double(t, numbers[k]));
    assert_true(row_reduce_exactly(OP_ADD, t, 0, r.at[0] + 1, 4) == 3.5L);
    assert_true(row_reduce_exactly(OP_MUL, t, 1, r.at[0] + 1, 4) == -1.5L * 0x1p120L);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ops),
      cmocka_unit_test(test_casts),
      cmocka_unit_test(test_reductions),
      cmocka_unit_test(test_exact_reductions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
