/* Measures the accuracy of the functions of transcendental.rules (expansions of exp, log, sin, …)
   against the C library in a wider type: largest errors in units in the last place over edge
   values, random bits and dense intervals. With TENON_LONG set, a hundred times as many. */
#include "evaluate.h"

#include "ir/core/build.h"
#include "rules/rule_sets.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef long double wide;

/** A function, its reference in long double, and its error bounds in ulp of f32 and f64, from the
    rule file. */
typedef struct function {
  op op;
  wide (*reference)(wide x);
  double bound[2];
  double low, high; /* densely sampled interval */
  double hard;      /* argument with the largest known f32 error, or 1 */
} function;

static const function functions[] = {
    {OP_EXP, expl, {1, 1}, -110, 95, 0x1.4ce7a6p+2},
    {OP_EXP2, exp2l, {1, 1}, -152, 130, 0x1.0113a6p-1},
    {OP_EXPM1, expm1l, {2, 2}, -30, 90, 0x1.0fba1p+4},
    {OP_LOG, logl, {1, 1}, 0, 4, 0x1.69c43cp-1},
    {OP_LOG2, log2l, {1, 1}, 0, 4, 0x1.65d6bap+0},
    {OP_LOG1P, log1pl, {2, 2}, -1, 4, 0x1.c63d22p-2},
    {OP_SIN, sinl, {2, 2}, -1000, 1000, 0x1.8f3a7ap+111},
    {OP_COS, cosl, {2, 2}, -1000, 1000, 0x1.a36232p+125},
    {OP_TAN, tanl, {4, 4}, -100, 100, 1},
    {OP_ASIN, asinl, {2, 2}, -1, 1, 1},
    {OP_ACOS, acosl, {2, 2}, -1, 1, 1},
    {OP_ATAN, atanl, {3, 3}, -6, 6, 1},
    {OP_SINH, sinhl, {2, 2}, -5, 5, 0x1.6e25d6p+0},
    {OP_COSH, coshl, {2, 2}, -5, 5, 0x1.4ccddap+2},
    {OP_TANH, tanhl, {2, 2}, -5, 5, 0x1.429024p-1},
    {OP_ASINH, asinhl, {3, 3}, -5, 5, 1},
    {OP_ACOSH, acoshl, {3, 3}, 1, 9, 1},
    {OP_ATANH, atanhl, {3, 3}, -1, 1, 1},
    {OP_ERF, erfl, {2, 2}, -5, 5, 0x1.2b8416p+0},
};

enum { FUNCTIONS = sizeof functions / sizeof *functions, SAMPLES = 20000 };

static int samples(void) { return getenv("TENON_LONG") ? 100 * SAMPLES : SAMPLES; }

static rule_target target_without_functions(void) {
  rule_target t = {.lacks = {0}};
  for (int o = 0; o < OP_LIMIT; o++)
    if (op_is_transcendental((op)o)) rule_target_add_missing_op(&t, (op)o);
  return t;
}

/** Returns the distance between neighbours at a value. */
static wide spacing(dtype t, wide v) {
  int exponent, mantissa = dtype_facts_of(t)->mantissa_bits;
  int least = 3 - (1 << (dtype_facts_of(t)->exponent_bits - 1)); /* exponent of frexp, subnormals */
  frexpl(v, &exponent);
  return ldexpl(1, (exponent < least ? least : exponent) - 1 - mantissa);
}

/** Returns the bound beyond which values round to infinity. */
static wide greatest(dtype t) { return t == DT_F32 ? 0x1.ffffffp127L : 0x1.fffffffffffff8p1023L; }

/** Returns the error in units in the last place; infinite if only one
    is NaN, infinite or a zero of this sign. */
static double error_of(dtype t, uint64_t bits, wide expected) {
  double got = scalar_to_double(t, bits);
  if (isnan(expected)) return isnan(got) ? 0 : INFINITY;
  if (expected == 0) return got == 0 && !signbit(got) == !signbit(expected) ? 0 : INFINITY;
  if (fabsl(expected) >= greatest(t)) expected = copysignl(INFINITY, expected);
  if (isinf(expected) || isinf(got) || isnan(got)) {
    bool nearly = fabsl(expected) > greatest(t) * 0.9999999L && isinf(got);
    return got == expected || nearly ? 0 : INFINITY;
  }
  return (double)(fabsl(got - expected) / spacing(t, expected));
}

typedef struct measurement {
  const function *f;
  op op;
  dtype type;
  int math; /* a math_mode */
  program p;
  ir *g;
  arena *a;
  double worst;
  uint64_t worst_at[2];
} measurement;

static void prepare(void *arg) {
  measurement *m = arg;
  size_t n = op_facts_of(m->op)->most;
  const node *src[2], *root;
  for (int64_t i = 0; i < (int64_t)n; i++)
    src[i] = ir_node(m->g, OP_PARAM, m->type, NULL, 0, &i, 1);
  root = ir_node(m->g, m->op, m->type, src, n, NULL, 0);
  rule_target target = target_without_functions();
  rewriter rw = {.ir = m->g, .math = m->math, .target = &target};
  rewrite(&rw, rules_lower, RULES_LOWER, &root, 1);
  m->p = program_make(m->a, &root, 1);
}

static void start(measurement *m, diag *d, arena *a) {
  arena_init(a, &mem_system, d);
  m->a = a;
  m->g = ir_new(&mem_system, d, false);
  if (diag_catch(d, prepare, m) != TN_OK) fail_msg("%s: %s", op_name(m->op), d->text);
  for (size_t i = 0; i < m->p.order.n; i++)
    if (op_is_transcendental((op)m->p.order.at[i]->op))
      fail_msg("%s leaves %s", op_name(m->op), op_name((op)m->p.order.at[i]->op));
}

static void finish(measurement *m, double bound) {
  print_message("%-6s %s: %4.2f ulp at %a, %a (%zu nodes)\n", op_name(m->op), dtype_name(m->type),
                m->worst, scalar_to_double(m->type, m->worst_at[0]),
                scalar_to_double(m->type, m->worst_at[1]), m->p.order.n);
  if (!(m->worst <= bound))
    fail_msg("%s is %g ulp off, more than %g", op_name(m->op), m->worst, bound);
  ir_free(m->g);
  arena_free(m->a);
}

/** True for an infinite argument whose limit is an integer, which must be exact. */
static bool is_limit(dtype t, uint64_t x, wide expected) {
  return isinf(scalar_to_double(t, x)) && expected == rintl(expected);
}

/** True if 0 is right for a result that is below twice the least normal number. */
static bool may_flush(const measurement *m, wide expected) {
  wide least = m->type == DT_F32 ? FLT_MIN : DBL_MIN;
  return m->op == OP_EXP && (m->math & MATH_FLUSH) && expected < 2 * least;
}

static void measure(measurement *m, uint64_t x, uint64_t y, wide expected) {
  uint64_t inputs[MOST_INPUTS] = {x, y};
  program_run(&m->p, inputs);
  double error = error_of(m->type, program_result(&m->p, 0), expected);
  if (may_flush(m, expected) && scalar_to_double(m->type, program_result(&m->p, 0)) == 0) error = 0;
  if (error > 0 && is_limit(m->type, x, expected)) error = INFINITY;
  if (error <= m->worst) return;
  m->worst = error;
  m->worst_at[0] = x;
  m->worst_at[1] = y;
}

static void measure_one(measurement *m, uint64_t x) {
  measure(m, x, 0, m->f->reference(scalar_to_double(m->type, x)));
}

static void measure_function(const function *f, dtype t, int math, double bound) {
  diag d = {0};
  arena a;
  measurement m = {.f = f, .op = f->op, .type = t, .math = math};
  uint64_t edge[64], state = 7;
  start(&m, &d, &a);
  size_t n = edge_values(t, edge);
  for (size_t i = 0; i < n; i++) measure_one(&m, edge[i]);
  measure_one(&m, scalar_from_double(t, f->hard));
  for (int i = 0; i < samples(); i++) {
    measure_one(&m, random_value(t, &state));
    double x = f->low + (f->high - f->low) * ((i + 0.37) / samples());
    measure_one(&m, scalar_from_double(t, x));
    measure_one(&m, scalar_from_double(t, x * 0x1p-9)); /* dense near 0 */
  }
  /* Near multiples of π/2 and powers of two. */
  for (int i = 1; i < 2000; i++) measure_one(&m, scalar_from_double(t, i * 1.5707963267948966));
  for (int i = -1080; i < 1024; i++) measure_one(&m, scalar_from_double(t, ldexp(1.3, i)));
  finish(&m, bound);
}

static void single_precision(void **state) {
  (void)state;
  for (int i = 0; i < FUNCTIONS; i++)
    measure_function(&functions[i], DT_F32, MATH_EXACT, functions[i].bound[0]);
}

static void double_precision(void **state) {
  (void)state;
  if (LDBL_MANT_DIG < 64) {
    print_message("skipped: long double is no more exact\n");
    skip();
  }
  for (int i = 0; i < FUNCTIONS; i++)
    measure_function(&functions[i], DT_F64, MATH_EXACT, functions[i].bound[1]);
}

/** Exponentials that flush are as exact as others above twice the least normal number. */
static void flushed(void **state) {
  (void)state;
  for (int i = 0; i < FUNCTIONS; i++)
    if (functions[i].op == OP_EXP) {
      measure_function(&functions[i], DT_F32, MATH_FLUSH, functions[i].bound[0]);
      if (LDBL_MANT_DIG >= 64)
        measure_function(&functions[i], DT_F64, MATH_FLUSH, functions[i].bound[1]);
    }
}

/** powl; except for infinite and zero bases, where some libraries' powl gives (−∞)^(−2^63) = ∞. */
static wide power(dtype t, uint64_t x, uint64_t y) {
  double base = scalar_to_double(t, x), exponent = scalar_to_double(t, y);
  return isinf(base) || base == 0 ? pow(base, exponent) : powl(base, exponent);
}

static void powers(dtype t, double bound) {
  diag d = {0};
  arena a;
  measurement m = {.op = OP_POW, .type = t, .math = MATH_DEFAULT};
  uint64_t x[64], y[64], state = 9;
  start(&m, &d, &a);
  size_t n = edge_values(t, x);
  edge_values(t, y);
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < n; k++) measure(&m, x[i], y[k], power(t, x[i], y[k]));
  for (int i = 0; i < samples(); i++) {
    uint64_t u = random_value(t, &state), v = random_value(t, &state);
    measure(&m, u, v, power(t, u, v));
    /* Results over the whole range: y = target / log x. */
    double base = fabs(scalar_to_double(t, u)), most = t == DT_F32 ? 100 : 740;
    if (!isnormal(base) || base == 1) continue;
    v = scalar_from_double(t, most * (2.0 * i / samples() - 1) / log(base));
    u = scalar_from_double(t, base);
    measure(&m, u, v, power(t, u, v));
  }
  finish(&m, bound);
}

static void power_single(void **state) {
  (void)state;
  powers(DT_F32, 1);
}

static void power_double(void **state) {
  (void)state;
  if (LDBL_MANT_DIG < 64) {
    print_message("skipped: long double is no more exact\n");
    skip();
  }
  powers(DT_F64, 16);
}

/** The table above covers all functions. */
static void all_are_measured(void **state) {
  (void)state;
  for (int o = 0; o < OP_LIMIT; o++) {
    bool found = o == OP_POW;
    for (int i = 0; i < FUNCTIONS; i++) found |= functions[i].op == (op)o;
    assert_int_equal(found, op_is_transcendental((op)o));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(single_precision), cmocka_unit_test(double_precision),
      cmocka_unit_test(flushed),          cmocka_unit_test(power_single),
      cmocka_unit_test(power_double),     cmocka_unit_test(all_are_measured),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
