/* Tests launch expressions, a launch's sizes as functions of runtime variables: compilation,
   evaluation, serialisation, and a message of its own for each way to fail. */
#include "device/program/launch_expr.h"
#include "ir/core/build.h"
#include "ir/index/index_arithmetic.h"
#include "support/index_var.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

enum { MOST_ROOM = 64 };

static const char *const names[] = {"batch", "core_count", "n"};

typedef struct fixture {
  diag diag;
  ir *ir;
  const node *const *exprs;
  size_t n;
  launch_exprs code;
} fixture;

static int set_up(void **state) {
  static fixture f;
  memset(&f, 0, sizeof f);
  f.ir = ir_new(&mem_system, &f.diag, false);
  *state = &f;
  return 0;
}

static int tear_down(void **state) {
  ir_free(((fixture *)*state)->ir);
  return 0;
}

static void compile(void *arg) {
  fixture *f = arg;
  f->code = launch_exprs_compile(ir_arena(f->ir), f->exprs, f->n, names, 3);
}

static tn_status try_compile(fixture *f, const node *const exprs[], size_t n) {
  f->exprs = exprs;
  f->n = n;
  return diag_catch(&f->diag, compile, f);
}

static const node *var(fixture *f, dtype t, const char *name, int64_t min, int64_t max) {
  return make_var(f->ir, t, name, min, max);
}

static const node *n_var(fixture *f, dtype t) { return var(f, t, "n", -1000, INT64_MAX); }

/** Evaluates an expression for batch 3, core_count 2 and n. */
static tn_status evaluate(fixture *f, const node *e, int64_t n, int64_t *result) {
  int64_t room[MOST_ROOM];
  assert_int_equal(try_compile(f, &e, 1), TN_OK);
  assert_true(f->code.n_terms <= MOST_ROOM);
  return launch_exprs_eval(&f->code, (int64_t[]){3, 2, n}, room, result, &f->diag);
}

static int64_t value(fixture *f, const node *e, int64_t n) {
  int64_t result;
  assert_int_equal(evaluate(f, e, n, &result), TN_OK);
  return result;
}

static void refused(fixture *f, const node *e, int64_t n, const char *message) {
  int64_t result;
  assert_int_equal(evaluate(f, e, n, &result), TN_ERR_ARGUMENT);
  assert_string_equal(f->diag.text, message);
}

static void refused_early(fixture *f, const node *e, const char *message) {
  assert_int_equal(try_compile(f, &e, 1), TN_ERR_ARGUMENT);
  assert_string_equal(f->diag.text, message);
}

static const node *number(fixture *f, int64_t k) { return ir_const_int(f->ir, DT_I64, k); }

static void computes(void **state) {
  fixture *f = *state;
  const node *n = n_var(f, DT_I64), *five = number(f, 5);
  static const struct {
    op op;
    int64_t n, expected;
  } cases[] = {{OP_ADD, 7, 12},   {OP_SUB, 7, 2},  {OP_MUL, -7, -35}, {OP_FLOORDIV, -7, -2},
               {OP_CDIV, -7, -1}, {OP_MOD, -7, 3}, {OP_CMOD, -7, -2}, {OP_MAX, 7, 7},
               {OP_MAX, 2, 5},    {OP_MIN, 7, 5},  {OP_MIN, -7, -7},  {OP_FLOORDIV, 9, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_int_equal(value(f, ir_op2(f->ir, cases[i].op, n, five), cases[i].n), cases[i].expected);
  assert_int_equal(value(f, ir_op1(f->ir, OP_NEG, n), 9), -9);
  assert_int_equal(value(f, ir_op1(f->ir, OP_ABS, n), -9), 9);
  assert_int_equal(value(f, ir_cast(f->ir, n, DT_I32), 77), 77);
  const node *small = ir_cast(f->ir, n, DT_I8), *byte = ir_bitcast(f->ir, small, DT_U8);
  assert_int_equal(value(f, byte, -1), 255);
  assert_int_equal(value(f, ir_bitcast(f->ir, byte, DT_I8), -128), -128);
  assert_int_equal(value(f, ir_bitcast(f->ir, n, DT_U64), 7), 7);
  assert_int_equal(value(f, five, 0), 5);
  assert_int_equal(value(f, NULL, 0), 1);
}

static void computes_affine_forms(void **state) {
  fixture *f = *state;
  const node *n = n_var(f, DT_INDEX), *b = var(f, DT_INDEX, "batch", 1, 8);
  const node *e = ix_add_const(f->ir, ix_sub(f->ir, ix_scale(f->ir, n, 4), b), 10);
  assert_int_equal(e->op, OP_AFFINE);
  assert_int_equal(value(f, e, 5), 27);
  assert_int_equal(value(f, ix_floordiv(f->ir, e, ix_const(f->ir, 10)), 5), 2);
}

static void computes_conditions(void **state) {
  fixture *f = *state;
  const node *n = n_var(f, DT_INDEX), *two = ix_const(f->ir, 2), *six = ix_const(f->ir, 6);
  const node *above = ir_op2(f->ir, OP_LT, two, n), *below = ir_op2(f->ir, OP_LE, n, six);
  static const struct {
    op op;
    int64_t at_1, at_4, at_9;
  } cases[] = {
      {OP_AND, 0, 1, 0}, {OP_OR, 1, 1, 1}, {OP_XOR, 1, 0, 1}, {OP_EQ, 0, 1, 0}, {OP_NE, 1, 0, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const node *c = ir_op2(f->ir, cases[i].op, above, below);
    const node *e = ir_op3(f->ir, OP_WHERE, c, n, two);
    assert_int_equal(value(f, e, 1), cases[i].at_1 ? 1 : 2);
    assert_int_equal(value(f, e, 4), cases[i].at_4 ? 4 : 2);
    assert_int_equal(value(f, e, 9), cases[i].at_9 ? 9 : 2);
    assert_int_equal(value(f, ir_op1(f->ir, OP_NOT, c), 9), !cases[i].at_9);
  }
  const node *k = n_var(f, DT_I64), *twelve = number(f, 12);
  assert_int_equal(value(f, ir_op2(f->ir, OP_AND, k, twelve), 10), 8);
  assert_int_equal(value(f, ir_op2(f->ir, OP_OR, k, twelve), -16), -4);
  assert_int_equal(value(f, ir_op2(f->ir, OP_XOR, k, twelve), 10), 6);
  assert_int_equal(value(f, ir_op1(f->ir, OP_NOT, k), 10), -11);
  assert_int_equal(value(f, ir_op1(f->ir, OP_NOT, ir_cast(f->ir, k, DT_U8)), 10), 245);
}

static void computes_several(void **state) {
  fixture *f = *state;
  const node *n = n_var(f, DT_I64);
  const node *e[] = {n, NULL, ir_op2(f->ir, OP_MUL, n, n)};
  int64_t room[MOST_ROOM], results[3];
  assert_int_equal(try_compile(f, e, 3), TN_OK);
  assert_int_equal(launch_exprs_eval(&f->code, (int64_t[]){1, 1, 6}, room, results, &f->diag),
                   TN_OK);
  assert_int_equal(results[0], 6);
  assert_int_equal(results[1], 1);
  assert_int_equal(results[2], 36);
}

static void tells_overflow(void **state) {
  fixture *f = *state;
  const node *n = n_var(f, DT_I64), *most = number(f, INT64_MAX), *least = number(f, INT64_MIN);
  refused(f, ir_op2(f->ir, OP_ADD, most, n), 1, "a launch size overflows: 9223372036854775807 + 1");
  refused(f, ir_op2(f->ir, OP_SUB, least, n), 1,
          "a launch size overflows: -9223372036854775808 - 1");
  refused(f, ir_op2(f->ir, OP_MUL, most, n), 2, "a launch size overflows: 9223372036854775807 * 2");
  refused(f, ir_op1(f->ir, OP_NEG, least), 0, "a launch size overflows: 0 - -9223372036854775808");
  refused(f, ir_op1(f->ir, OP_ABS, least), 0, "a launch size overflows: 0 - -9223372036854775808");
  refused(f, ir_op2(f->ir, OP_CDIV, least, n), -1,
          "a launch size overflows: -9223372036854775808 cdiv -1");
  assert_int_equal(value(f, ir_op2(f->ir, OP_CMOD, least, n), -1), 0);
  assert_int_equal(value(f, ir_op2(f->ir, OP_MOD, least, n), -1), 0);
}

/* Evaluating what has a value. */

static void check_refused(fixture *f, const launch_terms *t, size_t result, const int64_t values[],
                          const char *message) {
  assert_true(launch_terms_result(t, &f->code, result) == LAUNCH_NO_VALUE);
  assert_int_equal(launch_terms_refuse(t, &f->code, result, values, &f->diag), TN_ERR_ARGUMENT);
  assert_string_equal(f->diag.text, message);
}

/** Terms that overflow or divide by zero leave what does not depend on them, and what a factor of 0
    or an untaken side makes independent. */
static void other_terms_have_values(void **state) {
  fixture *f = *state;
  const node *n = n_var(f, DT_I64), *b = var(f, DT_I64, "batch", -8, 8),
             *most = number(f, INT64_MAX);
  const node *over = ir_op2(f->ir, OP_MUL, most, n), *zero = ir_op2(f->ir, OP_SUB, b, number(f, 3));
  const node *is_zero = ir_op2(f->ir, OP_EQ, zero, number(f, 0));
  const node *e[] = {over,
                     n,
                     ir_op2(f->ir, OP_MUL, over, zero),
                     ir_op2(f->ir, OP_MUL, zero, over),
                     ir_op2(f->ir, OP_ADD, over, zero),
                     ir_op3(f->ir, OP_WHERE, is_zero, n, over),
                     ir_op3(f->ir, OP_WHERE, is_zero, over, n),
                     ir_op2(f->ir, OP_FLOORDIV, n, zero),
                     ir_op2(f->ir, OP_MAX, ir_op2(f->ir, OP_MOD, n, zero), n)};
  enum { COUNT = sizeof e / sizeof *e };
  assert_int_equal(try_compile(f, e, COUNT), TN_OK);
  launch_terms t = launch_terms_open(ir_arena(f->ir), f->code.n_terms);
  const int64_t values[] = {3, 2, 5}, others[] = {-8, 2, 1};
  launch_terms_eval(&t, &f->code, NULL, f->code.n_terms, values);
  static const char *const message = "a launch size overflows: 9223372036854775807 * 5";
  static const size_t failing[] = {0, 4, 6};
  static const int64_t expected[][2] = {{1, 5}, {2, 0}, {3, 0}, {5, 5}};
  for (size_t i = 0; i < 3; i++) check_refused(f, &t, failing[i], values, message);
  for (size_t i = 0; i < 4; i++)
    assert_int_equal(launch_terms_result(&t, &f->code, (size_t)expected[i][0]), expected[i][1]);
  check_refused(f, &t, 7, values, "a launch size divides by zero: 5 floordiv 0");
  check_refused(f, &t, 8, values, "a launch size divides by zero: 5 mod 0");
  launch_terms_eval(&t, &f->code, NULL, f->code.n_terms, others); /* all have values now */
  const int64_t all[] = {INT64_MAX, 1, 0, 0, INT64_MAX - 11, INT64_MAX, 1, -1, 1};
  for (size_t i = 0; i < COUNT; i++)
    if (i != 2 && i != 3) assert_true(launch_terms_result(&t, &f->code, i) == all[i]);
}

/** Values become known one by one: each time the terms that can be computed then, and each once. */
static void terms_become_known(void **state) {
  fixture *f = *state;
  const node *n = n_var(f, DT_I64), *b = var(f, DT_I64, "batch", -8, 8), *five = number(f, 5);
  const node *both = ir_op2(f->ir, OP_MUL, n, ir_op2(f->ir, OP_ADD, b, b));
  const node *e[] = {five, ir_op2(f->ir, OP_ADD, n, five), both,
                     ir_op3(f->ir, OP_WHERE, ir_op2(f->ir, OP_LT, b, five), n, both)};
  assert_int_equal(try_compile(f, e, 4), TN_OK);
  launch_order o =
      launch_order_open(ir_arena(f->ir), &f->code, (const bool[]){true, false, true}, 3);
  const uint32_t *result = f->code.results;
  assert_true(o.is_known[result[0]] && !o.is_known[result[1]] && !o.is_known[result[2]]);
  launch_order_know(&o, 2);
  assert_true(o.is_known[result[1]] && !o.is_known[result[2]] && !o.is_known[result[3]]);
  launch_order_know(&o, 0);
  assert_int_equal(o.n, f->code.n_terms);
  bool seen[MOST_ROOM] = {0};
  for (size_t i = 0; i < o.n; i++) {
    assert_true(o.is_known[o.terms[i]] && !seen[o.terms[i]]);
    seen[o.terms[i]] = true;
  }
}

static void tells_division_by_zero(void **state) {
  fixture *f = *state;
  const node *n = n_var(f, DT_I64), *seven = number(f, 7);
  refused(f, ir_op2(f->ir, OP_FLOORDIV, seven, n), 0,
          "a launch size divides by zero: 7 floordiv 0");
  refused(f, ir_op2(f->ir, OP_MOD, seven, n), 0, "a launch size divides by zero: 7 mod 0");
  refused(f, ir_op2(f->ir, OP_CDIV, seven, n), 0, "a launch size divides by zero: 7 cdiv 0");
  refused(f, ir_op2(f->ir, OP_CMOD, seven, n), 0, "a launch size divides by zero: 7 cmod 0");
}

static void tells_bounds(void **state) {
  fixture *f = *state;
  const node *n = var(f, DT_I64, "n", 1, 100);
  assert_int_equal(value(f, n, 1), 1);
  assert_int_equal(value(f, n, 100), 100);
  refused(f, n, 0, "variable n is 0, not between 1 and 100");
  refused(f, n, 101, "variable n is 101, not between 1 and 100");
}

static void tells_types_that_are_too_small(void **state) {
  fixture *f = *state;
  const node *n = n_var(f, DT_I64);
  refused(f, ir_cast(f->ir, n, DT_I8), 300, "a launch size is 300, which does not fit in type i8");
  refused(f, ir_cast(f->ir, n, DT_U32), -1, "a launch size is -1, which does not fit in type u32");
  refused(f, ir_bitcast(f->ir, n, DT_U64), -1,
          "a launch size is -1, which does not fit in type u64");
  const node *small = ir_cast(f->ir, n, DT_I32);
  refused(f, ir_op2(f->ir, OP_MUL, small, small), 65536,
          "a launch size is 4294967296, which does not fit in type i32");
}

static void tells_what_is_no_size(void **state) {
  fixture *f = *state;
  const node *n = n_var(f, DT_I64);
  refused_early(f, ir_const(f->ir, DT_F32, 2.5), "a launch size uses the float constant 2.5");
  refused_early(f, ir_const_bits(f->ir, DT_U64, UINT64_MAX),
                "the constant 18446744073709551615 overflows a launch size");
  refused_early(f, ir_cast(f->ir, n, DT_F32),
                "a launch size has type f32, expected an integer type");
  refused_early(f, ir_bitcast(f->ir, n, DT_F64),
                "a launch size has type f64, expected an integer type");
  refused_early(f, ir_op2(f->ir, OP_SHL, n, n),
                "a launch size uses shl, which is not supported in sizes");
  refused_early(f, var(f, DT_I64, "heads", 1, 8), "variable heads of a launch size has no value");
}

/* Sizes of launches. */

typedef struct sizes {
  const node *global[3], *local[3];
  int64_t got_global[3], got_local[3];
} sizes;

static void compile_sizes(void *arg) {
  fixture *f = arg;
  sizes *s = (sizes *)f->exprs;
  f->code = launch_grid_compile(ir_arena(f->ir), s->global, s->local, names, 3);
}

static tn_status try_sizes(fixture *f, sizes *s) {
  f->exprs = (void *)s;
  return diag_catch(&f->diag, compile_sizes, f);
}

static tn_status get_sizes(fixture *f, sizes *s, int64_t n) {
  return launch_grid_eval(&f->code, (int64_t[]){3, 2, n}, s->got_global, s->got_local, &f->diag);
}

static void groups_are_sized(void **state) {
  fixture *f = *state;
  const node *n = n_var(f, DT_I64), *one = number(f, 1);
  sizes s = {{ir_op2(f->ir, OP_CDIV, n, number(f, 8)), one, var(f, DT_I64, "batch", 1, 8)},
             {number(f, 8), one, one},
             {0},
             {0}};
  assert_int_equal(try_sizes(f, &s), TN_OK);
  assert_int_equal(get_sizes(f, &s, 40), TN_OK);
  assert_memory_equal(s.got_global, ((int64_t[]){5, 1, 3}), sizeof s.got_global);
  assert_memory_equal(s.got_local, ((int64_t[]){8, 1, 1}), sizeof s.got_local);
  assert_int_equal(get_sizes(f, &s, 7), TN_ERR_ARGUMENT);
  assert_string_equal(f->diag.text, "global size 0 is 0, expected a positive number");
  s.local[1] = n;
  assert_int_equal(try_sizes(f, &s), TN_OK);
  assert_int_equal(get_sizes(f, &s, 40), TN_OK);
  s.global[0] = one;
  assert_int_equal(try_sizes(f, &s), TN_OK);
  assert_int_equal(get_sizes(f, &s, -4), TN_ERR_ARGUMENT);
  assert_string_equal(f->diag.text, "local size 1 is -4, expected a positive number");
}

static void without_groups_local_sizes_are_absent(void **state) {
  fixture *f = *state;
  const node *one = number(f, 1);
  sizes s = {{one, n_var(f, DT_I64), one}, {NULL}, {0}, {7, 7, 7}};
  assert_int_equal(try_sizes(f, &s), TN_OK);
  assert_int_equal(get_sizes(f, &s, 9), TN_OK);
  assert_memory_equal(s.got_global, ((int64_t[]){1, 9, 1}), sizeof s.got_global);
  assert_memory_equal(s.got_local, ((int64_t[]){0, 0, 0}), sizeof s.got_local);
}

static void copies_stand_alone(void **state) {
  fixture *f = *state;
  const node *one = number(f, 1);
  sizes s = {{var(f, DT_I64, "batch", 1, 8), n_var(f, DT_I64), one}, {one, one, one}, {0}, {0}};
  static const char *const own[] = {"BATCH", "CORE_COUNT", "N"};
  assert_int_equal(try_sizes(f, &s), TN_OK);
  void *block = test_malloc(launch_exprs_bytes(&f->code));
  f->code = launch_exprs_copy(&f->code, block, own);
  assert_int_equal(get_sizes(f, &s, 9), TN_OK);
  assert_int_equal(s.got_global[0], 3);
  assert_int_equal(s.got_global[1], 9);
  assert_int_equal(get_sizes(f, &s, -1001), TN_ERR_ARGUMENT);
  assert_non_null(strstr(f->diag.text, "variable N is -1001, not between"));
  test_free(block);
}

typedef struct reading {
  fixture *f;
  deserialiser r;
} reading;

static void read_sizes(void *arg) {
  reading *j = arg;
  j->f->code = launch_grid_read(&j->r, ir_arena(j->f->ir), names, 3);
}

static tn_status try_reading(reading *j, const void *data, size_t bytes) {
  j->r = (deserialiser){.at = data, .end = (const unsigned char *)data + bytes};
  return diag_catch(&j->f->diag, read_sizes, j);
}

typedef struct writing {
  const launch_exprs *code;
  str text;
} writing;

static void write_sizes(void *arg) {
  writing *w = arg;
  launch_exprs_write(w->code, &w->text);
}

/** A serialised expression is read back with the same meaning; changed bytes are refused or give a
    usable expression. */
static void survives_being_written(void **state) {
  fixture *f = *state;
  const node *n = n_var(f, DT_I64), *one = number(f, 1);
  sizes s = {{ir_op2(f->ir, OP_CDIV, n, number(f, 8)), one, var(f, DT_I64, "batch", 1, 8)},
             {number(f, 8), one, one},
             {0},
             {0}};
  assert_int_equal(try_sizes(f, &s), TN_OK);
  writing w = {&f->code, str_new(ir_arena(f->ir))};
  assert_int_equal(diag_catch(&f->diag, write_sizes, &w), TN_OK);
  str text = w.text;
  reading j = {.f = f};
  for (size_t i = 0; i < text.n; i++) {
    assert_int_equal(try_reading(&j, text.at, i), TN_OK);
    assert_true(j.r.failed);
  }
  for (size_t i = 0; i < 255 * text.n; i++) {
    char *copy = memcpy(test_malloc(text.n), text.at, text.n);
    copy[i / 255] = (char)(copy[i / 255] + i % 255 + 1);
    assert_int_equal(try_reading(&j, copy, text.n), TN_OK);
    if (!j.r.failed) get_sizes(f, &s, 40);
    test_free(copy);
  }
  assert_int_equal(try_reading(&j, text.at, text.n), TN_OK);
  assert_true(!j.r.failed && j.r.at == j.r.end);
  assert_int_equal(get_sizes(f, &s, 40), TN_OK);
  assert_memory_equal(s.got_global, ((int64_t[]){5, 1, 3}), sizeof s.got_global);
  assert_memory_equal(s.got_local, ((int64_t[]){8, 1, 1}), sizeof s.got_local);
  assert_int_equal(get_sizes(f, &s, -1001), TN_ERR_ARGUMENT);
  assert_string_equal(f->diag.text,
                      "variable n is -1001, not between -1000 and 9223372036854775807");
}

static void sizes_must_be_short(void **state) {
  fixture *f = *state;
  const node *one = number(f, 1), *e = n_var(f, DT_I64);
  for (int i = 0; i < LAUNCH_MOST_TERMS; i++) e = ir_op1(f->ir, OP_NEG, e);
  sizes s = {{one, one, e}, {NULL}, {0}, {0}};
  assert_int_equal(try_sizes(f, &s), TN_ERR_UNSUPPORTED);
  assert_string_equal(f->diag.text, "launch sizes need 259 terms; at most 256 are supported");
}

static void deep_and_shared(void **state) {
  fixture *f = *state;
  const node *n = n_var(f, DT_I64), *e = n;
  enum { DEPTH = 100000 };
  for (int i = 0; i < DEPTH; i++) e = ir_op2(f->ir, OP_SUB, ir_op2(f->ir, OP_ADD, e, e), e);
  int64_t *room = test_malloc((2 * DEPTH + 8) * sizeof *room), result;
  assert_int_equal(try_compile(f, &e, 1), TN_OK);
  assert_true(f->code.n_terms <= 2 * DEPTH + 8);
  assert_int_equal(launch_exprs_eval(&f->code, (int64_t[]){1, 1, 11}, room, &result, &f->diag),
                   TN_OK);
  assert_int_equal(result, 11);
  test_free(room);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {TEST(computes),
                                     TEST(computes_affine_forms),
                                     TEST(computes_conditions),
                                     TEST(computes_several),
                                     TEST(tells_overflow),
                                     TEST(other_terms_have_values),
                                     TEST(terms_become_known),
                                     TEST(tells_division_by_zero),
                                     TEST(tells_bounds),
                                     TEST(tells_types_that_are_too_small),
                                     TEST(tells_what_is_no_size),
                                     TEST(groups_are_sized),
                                     TEST(without_groups_local_sizes_are_absent),
                                     TEST(copies_stand_alone),
                                     TEST(survives_being_written),
                                     TEST(sizes_must_be_short),
                                     TEST(deep_and_shared)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
