/* Tests closed forms of reductions over comparisons of indices (masked sums, one-hot lookups):
   solved ranges of comparisons against every index, and random graphs against the interpreter;
   those with a closed form must leave no loop. Single cases are tested in
   tests/ir/collapse_*.irt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/core/interval.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/text/print.h"
#include "ir/transform/rewrite.h"
#include "schedule/schedule.h"
#include "schedule/values/solve_comparison.h"

#include "../ir/replay.h"

enum { GRAPHS = 6000, DEPTH = 3, MOST_RANK = 3 };

/** A random graph: rows, then one or two reduced axes. */
typedef struct test {
  diag d;
  ir *g;
  rng r;
  size_t rank;
  const node *dims[MOST_RANK];
  dtype type; /* type of the compared indices */
  int64_t buffers;
  const char *text; /* the graph as text */
  bool is_loop;     /* a kernel of the result has a FOLD */
  int64_t n;        /* number of classes */
} test;

/* Terms. */

static const node *number(test *t, dtype type, int64_t v) {
  return ir_fill(t->g, ir_const_int(t->g, type, v), t->rank, t->dims);
}

static const node *iota(test *t, dtype type) {
  return ir_iota(t->g, type, t->rank, t->dims, (int64_t)rng_below(&t->r, t->rank));
}

/** Makes an input that varies along some axes only, most often along rows. */
static const node *data(test *t, dtype type, unsigned along) {
  const node *dims[MOST_RANK];
  int64_t ints[] = {t->buffers++, 0};
  for (size_t i = 0; i < t->rank; i++)
    dims[i] = rng_chance(&t->r, i ? along : 80) ? t->dims[i] : ix_const(t->g, 1);
  return ir_expand(t->g, ir_node(t->g, OP_BUFFER, type, dims, t->rank, ints, 2), t->dims);
}

static const node *condition(test *t, int depth);

static const node *extreme(test *t) {
  bool most = rng_chance(&t->r, 50);
  const node *end = number(t, t->type, most ? dtype_max(t->type) : dtype_min(t->type));
  return ir_op3(t->g, OP_WHERE, data(t, DT_BOOL, 0), end, data(t, t->type, 0));
}

static const node *shifted(test *t, const node *x) {
  op o = rng_chance(&t->r, 60) ? OP_FLOORDIV : OP_SHR;
  return ir_op2(t->g, o, x, number(t, t->type, rng_between(&t->r, 0, 3)));
}

static const node *place(test *t, int depth) {
  static const op ops[] = {OP_ADD, OP_ADD, OP_SUB, OP_SUB, OP_MIN, OP_MAX};
  unsigned way = (unsigned)rng_below(&t->r, depth ? 12 : 7);
  switch (way) {
  case 0: return number(t, t->type, rng_between(&t->r, -3, 9));
  case 1: return data(t, t->type, 3);
  case 2: return extreme(t);
  case 7: return shifted(t, place(t, depth - 1));
  case 8:
    return ir_op2(t->g, OP_MUL, place(t, depth - 1), number(t, t->type, rng_between(&t->r, -3, 3)));
  case 9: return ir_op1(t->g, OP_NEG, place(t, depth - 1));
  case 10:
  case 11: return ir_op2(t->g, ops[rng_below(&t->r, 6)], place(t, depth - 1), place(t, depth - 1));
  default: return iota(t, t->type);
  }
}

static const node *condition(test *t, int depth) {
  static const op compares[] = {OP_LT, OP_LE, OP_EQ, OP_EQ, OP_NE};
  unsigned way = (unsigned)rng_below(&t->r, depth ? 9 : 6);
  if (way == 0 && depth < DEPTH) return data(t, DT_BOOL, 15);
  if (way == 6) return ir_op1(t->g, OP_NOT, condition(t, depth - 1));
  if (way > 6)
    return ir_op2(t->g, way == 7 ? OP_AND : OP_OR, condition(t, depth - 1),
                  condition(t, depth - 1));
  return ir_op2(t->g, compares[rng_below(&t->r, 5)], place(t, depth), place(t, depth));
}

static const node *neutral(test *t, dtype type, op reduce) {
  uint64_t bits = 0;
  op_identity(reduce, type, &bits);
  return ir_fill(t->g, ir_const_bits(t->g, type, bits), t->rank, t->dims);
}

static const node *element(test *t, dtype type) {
  const node *x = data(t, type, 40);
  if (rng_chance(&t->r, 30)) return number(t, type, rng_between(&t->r, 0, 3));
  if (type != DT_BOOL && rng_chance(&t->r, 20)) return ir_cast(t->g, place(t, 2), type);
  if (dtype_is_float(type) && rng_chance(&t->r, 30))
    return ir_op2(t->g, OP_DIV, x,
                  ir_cast(t->g, data(t, DT_BOOL, 40), type)); /* includes ∞ and NaN */
  return x;
}

static const node *term(test *t, dtype type, op reduce, int depth) {
  const node *c = condition(t, depth);
  unsigned way = (unsigned)rng_below(&t->r, 10);
  if (type == DT_BOOL) return c;
  if (way < 2) return ir_cast(t->g, c, type);
  if (way < 4) return ir_op2(t->g, OP_MUL, ir_cast(t->g, c, type), element(t, type));
  const node *x = way == 9 && depth ? term(t, type, reduce, depth - 1) : element(t, type);
  const node *other = way == 4 ? element(t, type) : neutral(t, type, reduce);
  const node *chosen = ir_op3(t->g, OP_WHERE, c, x, other);
  return way == 8 && depth && type != DT_BOOL
             ? ir_op2(t->g, OP_ADD, chosen, term(t, type, reduce, depth - 1))
             : chosen;
}

/* A graph. */

static op reduction(test *t, dtype type) {
  static const op all[] = {OP_ADD, OP_ADD, OP_ADD, OP_MAX, OP_MIN, OP_MUL, OP_XOR, OP_AND, OP_OR};
  for (;;) {
    op o = all[rng_below(&t->r, sizeof all / sizeof *all)];
    if (op_takes(o, type)) return o;
  }
}

static const node *size(test *t) {
  static const uint8_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9};
  int64_t bounds[] = {0, 15};
  if (rng_chance(&t->r, 15))
    return ir_make(
        t->g,
        &(node_spec){
            .op = OP_VAR, .dtype = DT_INDEX, .ints = bounds, .n_int = 2, .text = "n", .n_text = 1});
  return ix_const(t->g, sizes[rng_chance(&t->r, 5) ? 0 : 1 + rng_below(&t->r, 8)]);
}

static const node *graph(test *t) {
  static const dtype places[] = {DT_I64, DT_I64, DT_I64, DT_I32, DT_I32, DT_I16,
                                 DT_I8,  DT_U8,  DT_U16, DT_U32, DT_U64};
  static const dtype types[] = {DT_BOOL, DT_I8,  DT_I32, DT_I64, DT_U8,
                                DT_U64,  DT_F32, DT_F32, DT_F64};
  t->rank = 2 + rng_chance(&t->r, 15);
  for (size_t i = 0; i < t->rank; i++) t->dims[i] = size(t);
  t->type = places[rng_below(&t->r, sizeof places / sizeof *places)];
  dtype type = types[rng_below(&t->r, sizeof types / sizeof *types)];
  op o = reduction(t, type);
  const node *x = term(t, type, o, (int)rng_below(&t->r, DEPTH));
  return ir_reduce(t->g, x, o, t->rank - 1, (int64_t[]){1, 2});
}

static bool has_fold(test *t, const schedule *s) {
  for (size_t i = 0; i < s->steps.n; i++) {
    node_list order = topo_sort(ir_arena(t->g), &s->steps.at[i].kernel, 1, NULL, NULL);
    for (size_t k = 0; k < order.n; k++)
      if (order.at[k]->op == OP_FOLD) return true;
  }
  return false;
}

static void run(void *arg) {
  test *t = arg;
  const node *root = graph(t);
  str text = str_new(ir_arena(t->g));
  print_graph(&text, &root, 1);
  t->text = str_text(&text);
  schedule_request q = {.roots = &root,
                        .n_roots = 1,
                        .math = rng_chance(&t->r, 30) ? MATH_EXACT : MATH_DEFAULT,
                        .search.policy = (int)rng_below(&t->r, 3),
                        .search.seed = t->r.state};
  schedule *s = schedule_make(t->g, &q);
  replay values = {.a = ir_arena(t->g), .seed = t->r.state};
  replay_compare(&values, &q, s, 1e-6);
  t->is_loop = has_fold(t, s);
}

/** Labels of a type whose largest value is about the number of classes. */
static void narrow_labels(void *arg) {
  test *t = arg;
  ir *g = t->g;
  const node *n = ix_const(g, t->n), *one = ix_const(g, 1), *three = ix_const(g, 3);
  const node *dims[] = {three, n}, *column[] = {three, one}, *row[] = {one, n};
  int64_t ints[] = {0, 0}, more[] = {1, 0};
  const node *label = ir_node(g, OP_BUFFER, DT_I8, column, 2, ints, 2);
  const node *x = ir_node(g, OP_BUFFER, DT_F32, row, 2, more, 2);
  const node *hit = ir_op2(g, OP_EQ, ir_iota(g, DT_I8, 2, dims, 1), ir_expand(g, label, dims));
  const node *zero = ir_fill(g, ir_const(g, DT_F32, 0), 2, dims);
  const node *chosen = ir_op3(g, OP_WHERE, hit, ir_expand(g, x, dims), zero);
  const node *root = ir_reduce(g, chosen, OP_ADD, 1, (int64_t[]){1});
  schedule_request q = {.roots = &root, .n_roots = 1, .math = MATH_DEFAULT};
  schedule *s = schedule_make(g, &q);
  replay values = {.a = ir_arena(g), .seed = 3};
  replay_compare(&values, &q, s, 1e-6);
}

static void labels_as_narrow_as_can_be(void **state) {
  (void)state;
  for (int64_t n = 126; n < 130; n++) {
    test t = {.n = n};
    t.g = ir_new(&mem_system, &t.d, false);
    assert_non_null(t.g);
    tn_status status = diag_catch(&t.d, narrow_labels, &t);
    if (status != TN_OK) fail_msg("%lld classes: %s", (long long)n, t.d.text);
    ir_free(t.g);
  }
}

static void random_terms(void **state) {
  size_t loops = 0;
  (void)state;
  for (uint64_t seed = 0; seed < GRAPHS; seed++) {
    test t = {.r = {rng_mix(seed)}};
    t.g = ir_new(&mem_system, &t.d, false);
    assert_non_null(t.g);
    tn_status status = diag_catch(&t.d, run, &t);
    if (status != TN_OK) fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, t.d.text, t.text);
    ir_free(t.g);
    loops += t.is_loop;
  }
  if (loops > GRAPHS / 100 * 65) fail_msg("%zu of %d terms are still loops", loops, (int)GRAPHS);
}

/* Compares ±k·(r div d) + c with a number, for all small k, d and c. */

enum { SIZE = 6, MOST_NUMBER = 12 };

typedef struct linear_form {
  int64_t k, c, d;
  bool turned;
} linear_form;

static int64_t form_at(const linear_form *f, int64_t r) {
  return f->k * floor_div(f->turned ? -r : r, f->d) + f->c;
}

static const node *form_of(ir *g, const linear_form *f, const node *range) {
  const node *x = ir_cast(g, range, DT_I64);
  if (f->turned) x = ir_op1(g, OP_NEG, x);
  x = ir_op2(g, OP_FLOORDIV, x, ir_const_int(g, DT_I64, f->d));
  x = ir_op2(g, OP_MUL, x, ir_const_int(g, DT_I64, f->k));
  return ir_op2(g, OP_ADD, x, ir_const_int(g, DT_I64, f->c));
}

static bool says(const solution *s, int64_t r) {
  bool in = s->last ? (!s->first || r >= node_int(s->first)) && r < node_int(s->last)
                    : r == node_int(s->first);
  if (s->gate && !node_int(s->gate)) in = false;
  return in != s->is_negated;
}

static void check_solution(test *t, op o, const linear_form *f, int64_t number, bool swapped) {
  const node *range = range_make(t->g, ix_const(t->g, SIZE), KIND_LOOP), *side[2];
  side[swapped] = form_of(t->g, f, range);
  side[!swapped] = ir_const_int(t->g, DT_I64, number);
  solution s;
  if (!solve_comparison(t->g, ir_op2(t->g, o, side[0], side[1]), range, &s))
    diag_raise(&t->d, TN_ERR_INTERNAL, "nothing is known");
  for (int64_t r = 0; r < SIZE; r++) {
    uint64_t args[2];
    bool overflow = false;
    args[swapped] = (uint64_t)form_at(f, r);
    args[!swapped] = (uint64_t)number;
    if (says(&s, r) != (bool)scalar_eval(o, DT_I64, DT_BOOL, args, &overflow))
      diag_raise(&t->d, TN_ERR_INTERNAL, "wrong at %d", (int)r);
  }
}

static void solve_all(void *arg) {
  static const op ops[] = {OP_LT, OP_LE, OP_EQ, OP_NE};
  test *t = arg;
  linear_form f;
  for (f.k = -3; f.k <= 3; f.k++)
    for (f.c = -2; f.c <= 2 && f.k; f.c++)
      for (f.d = 1; f.d <= (f.k == 1 || f.k == -1 ? 3 : 1); f.d++)
        for (int rest = 0; rest < 16; rest++)
          for (int64_t n = -MOST_NUMBER; n <= MOST_NUMBER; n++) {
            f.turned = rest & 1;
            check_solution(t, ops[rest >> 2], &f, n, rest & 2);
          }
}

static void all_small_comparisons(void **state) {
  test t = {0};
  (void)state;
  t.g = ir_new(&mem_system, &t.d, false);
  assert_non_null(t.g);
  tn_status status = diag_catch(&t.d, solve_all, &t);
  ir_free(t.g);
  if (status != TN_OK) fail_msg("%s", t.d.text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_small_comparisons),
                                     cmocka_unit_test(random_terms),
                                     cmocka_unit_test(labels_as_narrow_as_can_be)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
