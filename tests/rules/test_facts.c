/* Checks the algebraic facts of ops.def (identity, absorbing, idempotent, commutative, …) by
   evaluating each op on edge cases of every type, and that no valid fact is missing, since rules
   and the interpreter rely on the table. */
#include "evaluate.h"

#include "ir/core/scalar_eval.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

typedef struct subject {
  op op;
  dtype type;
  uint64_t values[64];
  size_t n;
} subject;

static uint64_t apply(const subject *s, uint64_t a, uint64_t b) {
  uint64_t args[] = {a, b};
  bool overflow = false;
  dtype result = op_facts_of(s->op)->type == TYPE_COMPARE ? DT_BOOL : s->type;
  return scalar_eval(s->op, s->type, result, args, &overflow);
}

static bool is_nan(const subject *s, uint64_t v) {
  return dtype_is_float(s->type) && isnan(scalar_to_double(s->type, v));
}

static bool same(const subject *s, uint64_t a, uint64_t b) {
  bool compares = op_facts_of(s->op)->type == TYPE_COMPARE;
  return a == b || (!compares && is_nan(s, a) && is_nan(s, b));
}

static bool both_zero(const subject *s, uint64_t a, uint64_t b) {
  return dtype_is_float(s->type) && scalar_to_double(s->type, a) == 0 &&
         scalar_to_double(s->type, b) == 0;
}

static void check_commutative(const subject *s) {
  bool chooses = s->op == OP_MAX || s->op == OP_MIN;
  for (size_t i = 0; i < s->n; i++)
    for (size_t k = 0; k < s->n; k++) {
      uint64_t a = s->values[i], b = s->values[k];
      if (chooses && both_zero(s, a, b)) continue;
      if (!same(s, apply(s, a, b), apply(s, b, a))) fail_msg("%s", op_name(s->op));
    }
}

static void check_associative(const subject *s) {
  if (dtype_is_float(s->type)) return; /* for reductions only */
  for (size_t i = 0; i < s->n; i++)
    for (size_t k = 0; k < s->n; k++)
      for (size_t j = 0; j < s->n; j++) {
        uint64_t a = s->values[i], b = s->values[k], c = s->values[j];
        assert_true(apply(s, apply(s, a, b), c) == apply(s, a, apply(s, b, c)));
      }
}

static void check_elements(const subject *s) {
  uint64_t e, z, start;
  bool right = op_right_identity(s->op, s->type, &e), absorbs = op_absorbing(s->op, s->type, &z);
  for (size_t i = 0; i < s->n; i++) {
    uint64_t v = s->values[i];
    if (right && !same(s, apply(s, v, e), v))
      fail_msg("%s of %s has another identity", op_name(s->op), dtype_name(s->type));
    if (absorbs && (apply(s, v, z) != z || apply(s, z, v) != z))
      fail_msg("%s of %s has another absorbing element", op_name(s->op), dtype_name(s->type));
    if (op_facts_of(s->op)->facts & FACT_IDEMPOTENT) assert_true(same(s, apply(s, v, v), v));
  }
  assert_int_equal(op_identity(s->op, s->type, &start),
                   (op_facts_of(s->op)->facts & FACT_ASSOCIATIVE) != 0);
  if (op_identity(s->op, s->type, &start))
    for (size_t i = 0; i < s->n; i++) {
      uint64_t v = apply(s, start, s->values[i]);
      assert_true(same(s, v, s->values[i]) || both_zero(s, v, s->values[i]));
    }
}

static void facts_of_two_operands(void **state) {
  (void)state;
  size_t commutative = 0, identities = 0;
  for (int o = 0; o < OP_LIMIT; o++)
    for (int t = 0; t < DT_LIMIT; t++) {
      const op_facts *f = op_facts_of((op)o);
      if (!op_has_scalar_eval((op)o) || f->most != 2 || !dtype_is_data((dtype)t)) continue;
      if (!op_takes((op)o, (dtype)t)) continue;
      subject s = {.op = (op)o, .type = (dtype)t};
      uint64_t e;
      s.n = edge_values(s.type, s.values);
      if (f->facts & FACT_COMMUTATIVE) check_commutative(&s), commutative++;
      if (f->facts & FACT_ASSOCIATIVE) check_associative(&s);
      check_elements(&s);
      identities += op_right_identity(s.op, s.type, &e);
    }
  assert_true(commutative > 80 && identities > 100);
}

/** Checks facts on the elements themselves: none that holds may be missing. */
static void elements(void **state) {
  (void)state;
  static const struct {
    op op;
    dtype type;
    uint64_t identity;
    bool absorbs;
    uint64_t absorbing;
  } known[] = {
      {OP_ADD, DT_I8, 0, false, 0},           {OP_ADD, DT_F32, 0, false, 0},
      {OP_MUL, DT_F32, 0x3f800000, false, 0}, {OP_MUL, DT_U16, 1, true, 0},
      {OP_AND, DT_U16, 0xffff, true, 0},      {OP_AND, DT_BOOL, 1, true, 0},
      {OP_AND, DT_I16, UINT64_MAX, true, 0},  {OP_OR, DT_I32, 0, true, UINT64_MAX},
      {OP_OR, DT_BOOL, 0, true, 1},           {OP_XOR, DT_U8, 0, false, 0},
      {OP_MAX, DT_U64, 0, true, UINT64_MAX},  {OP_MAX, DT_I8, (uint64_t)-128, true, 127},
      {OP_MAX, DT_F32, 0xff800000, false, 0}, {OP_MIN, DT_BOOL, 1, true, 0},
      {OP_MIN, DT_F32, 0x7f800000, false, 0},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    uint64_t e = 99, z = 99;
    assert_true(op_identity(known[i].op, known[i].type, &e));
    assert_true(e == known[i].identity);
    assert_int_equal(op_absorbing(known[i].op, known[i].type, &z), known[i].absorbs);
    if (known[i].absorbs) assert_true(z == known[i].absorbing);
  }
  uint64_t e;
  assert_false(op_identity(OP_SUB, DT_I8, &e) || op_identity(OP_SHL, DT_I8, &e));
  assert_true(op_right_identity(OP_ADD, DT_F32, &e) && e == 0x80000000);
  assert_true(op_right_identity(OP_DIV, DT_F32, &e) && e == 0x3f800000);
  assert_false(op_right_identity(OP_MOD, DT_I8, &e));
}

/** Transcendental functions are marked as such, and exact ops are not. */
static void functions(void **state) {
  (void)state;
  static const op exact[] = {OP_NEG,   OP_ABS,  OP_SQRT,  OP_FLOOR, OP_CEIL, OP_TRUNC,
                             OP_ROUND, OP_ADD,  OP_SUB,   OP_MUL,   OP_DIV,  OP_MAX,
                             OP_MIN,   OP_CAST, OP_WHERE, OP_FMA,   OP_LT,   OP_EQ};
  static const op real[] = {OP_EXP, OP_LOG1P, OP_SIN, OP_ATANH, OP_ERF, OP_POW};
  size_t n = 0;
  for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
    assert_false(op_is_transcendental(exact[i]));
  for (size_t i = 0; i < sizeof real / sizeof *real; i++)
    assert_true(op_is_transcendental(real[i]));
  for (int o = 0; o < OP_LIMIT; o++) n += op_is_transcendental((op)o);
  assert_int_equal(n, 20);
}

/** JUMPS marks the unary ops with discontinuities, and no others. */
static void jumps(void **state) {
  (void)state;
  for (int o = 0; o < OP_LIMIT; o++) {
    const op_facts *f = op_facts_of((op)o);
    if (!op_has_scalar_eval((op)o) || f->most != 1 || f->type != TYPE_SAME ||
        !(f->operands & TAKES_FLOAT))
      continue;
    subject s = {.op = (op)o, .type = DT_F32};
    double most = 0;
    for (int i = -6000; i < 6000; i++) {
      double at = i / 4096.0, next = (i + 1) / 4096.0;
      uint64_t a = apply(&s, scalar_from_double(DT_F32, at), 0);
      uint64_t b = apply(&s, scalar_from_double(DT_F32, next), 0);
      double step = fabs(scalar_to_double(DT_F32, a) - scalar_to_double(DT_F32, b));
      if (isfinite(step)) most = fmax(most, step);
    }
    bool pole = o == OP_LOG || o == OP_LOG2 || o == OP_LOG1P;
    if (!pole) assert_int_equal(most > 0.5, (f->facts & FACT_DISCONTINUOUS) != 0);
  }
}

static void not_scalar(void **state) {
  (void)state;
  static const op others[] = {OP_VECTORIZE, OP_EXTRACT, OP_SPLAT, OP_AFFINE, OP_CONST,
                              OP_RESHAPE,   OP_RANGE,   OP_LOAD,  OP_REDUCE};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    assert_false(op_has_scalar_eval(others[i]));
  assert_true(op_has_scalar_eval(OP_ADD) && op_has_scalar_eval(OP_CAST) &&
              op_has_scalar_eval(OP_WHERE));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(facts_of_two_operands),
      cmocka_unit_test(elements),
      cmocka_unit_test(functions),
      cmocka_unit_test(jumps),
      cmocka_unit_test(not_scalar),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
