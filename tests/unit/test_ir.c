/* Tests the core of the IR: hash consing and reference counts of nodes, topological walks, shape
   inference, bounds, free ranges of binders, index arithmetic and proofs, substitution and copies
   between IRs. */
#include "ir/core/binder.h"
#include "ir/core/shape_inference.h"
#include "ir/core/topo_sort.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "ir/transform/copy_graph.h"
#include "ir/transform/substitute.h"
#include "support/counting_mem.h"
#include "support/fold_reduction.h"
#include "support/index_var.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/** A test's graph and state; `counted` is chosen before the body runs. */
typedef struct world {
  diag d;
  arena a;
  ir *g;
  counting_mem memory;
  mem m; /* of `memory` */
} world;

static tn_status run_failing(bool counted, void (*body)(void *w), size_t fail_at) {
  world w = {.memory.fail_at = fail_at};
  w.m = counting_mem_of(&w.memory);
  arena_init(&w.a, &w.m, &w.d);
  w.g = ir_new(&w.m, &w.d, counted);
  tn_status s = w.g ? diag_catch(&w.d, body, &w) : TN_ERR_MEMORY;
  ir_free(w.g);
  arena_free(&w.a);
  assert_int_equal(w.memory.bytes, 0);
  return s;
}

static void run(bool counted, void (*body)(void *w)) {
  assert_int_equal(run_failing(counted, body, 0), TN_OK);
}

static const node *buffer(ir *g, dtype t, int64_t uid, size_t rank, const int64_t sizes[]) {
  const node *dims[8] = {0};
  int64_t ints[] = {uid, 0};
  for (size_t i = 0; i < rank; i++) dims[i] = ix_const(g, sizes[i]);
  return ir_node(g, OP_BUFFER, t, dims, rank, ints, 2);
}

/* Interning. */

static void interned(void *arg) {
  ir *g = ((world *)arg)->g;
  const node *a = buffer(g, DT_F32, 1, 2, (int64_t[]){2, 3}),
             *b = buffer(g, DT_F32, 2, 2, (int64_t[]){2, 3});
  assert_ptr_equal(a, buffer(g, DT_F32, 1, 2, (int64_t[]){2, 3}));
  assert_ptr_not_equal(a, b);
  assert_ptr_not_equal(a, buffer(g, DT_F64, 1, 2, (int64_t[]){2, 3}));
  assert_ptr_equal(ir_op2(g, OP_ADD, a, b), ir_op2(g, OP_ADD, a, b));
  assert_ptr_not_equal(ir_op2(g, OP_ADD, a, b), ir_op2(g, OP_ADD, b, a));
  assert_ptr_not_equal(ir_op2(g, OP_ADD, a, b), ir_op2(g, OP_MUL, a, b));
  assert_ptr_not_equal(index_var(g, "n", 0, 8), index_var(g, "m", 0, 8));
  assert_ptr_not_equal(index_var(g, "n", 0, 8), index_var(g, "n", 0, 9));
  assert_ptr_equal(ir_const(g, DT_F32, 0.0), ir_const(g, DT_F32, 0.0));
  assert_ptr_not_equal(ir_const(g, DT_F32, 0.0), ir_const(g, DT_F32, -0.0));
  const node *s =
      ir_make(g, &(node_spec){.op = OP_SINK, .dtype = DT_VOID, .text = "k", .n_text = 1});
  assert_string_equal(s->text, "k");
  assert_ptr_equal(
      s, ir_make(g, &(node_spec){
                        .op = OP_SINK, .dtype = DT_VOID, .lanes = 1, .text = "k", .n_text = 1}));
}

static void interned_once(void **state) {
  (void)state;
  run(false, interned);
  run(true, interned);
}

static void shaped(void *arg) {
  ir *g = ((world *)arg)->g;
  const node *x = buffer(g, DT_F32, 0, 3, (int64_t[]){2, 3, 4});
  const node *p = ir_permute(g, x, (int64_t[]){2, 0, 1});
  assert_int_equal(p->rank, 3);
  assert_int_equal(node_int(p->dims[0]), 4);
  assert_int_equal(node_int(p->dims[2]), 3);
  const node *r = ir_reduce(g, x, OP_ADD, 2, (int64_t[]){0, 2});
  assert_int_equal(r->rank, 1);
  assert_int_equal(node_int(r->dims[0]), 3);
  const node *neg = ir_op1(g, OP_NEG, p);
  assert_true(ir_same_shape(neg, p));
  assert_int_equal(node_int(ir_element_count(g, neg)), 24);
  assert_int_equal(ir_op2(g, OP_LT, x, x)->dtype, DT_BOOL);
}

static void shapes(void **state) {
  (void)state;
  run(false, shaped);
  run(true, shaped);
}

/* Counting. */

static void counted(void *arg) {
  ir *g = ((world *)arg)->g;
  const node *x = ir_retain(buffer(g, DT_F32, 0, 1, (int64_t[]){4}));
  const node *y = ir_retain(ir_op1(g, OP_NEG, x));
  ir_op1(g, OP_EXP, y);
  assert_int_equal(ir_node_count(g), 4); /* a size, a buffer, neg, exp */
  ir_release_unheld(g);
  assert_int_equal(ir_node_count(g), 3);
  ir_release(g, x);
  assert_int_equal(ir_node_count(g), 3); /* neg holds it */
  assert_ptr_equal(y, ir_op1(g, OP_NEG, y->src[0]));
  ir_release(g, y);
  ir_release_unheld(g);
  assert_int_equal(ir_node_count(g), 0);
  ir_release(g, NULL);
}

static void owners(void **state) {
  (void)state;
  run(true, counted);
}

enum { DEEP = 100000 };

static void deep(void *arg) {
  ir *g = ((world *)arg)->g;
  const node *x = buffer(g, DT_F32, 0, 1, (int64_t[]){4});
  for (int i = 0; i < DEEP; i++) x = ir_op1(g, i % 2 ? OP_NEG : OP_ABS, x);
  ir_retain(x);
  ir_release_unheld(g);
  assert_int_equal(ir_node_count(g), DEEP + 2);
  ir_release(g, x);
  assert_int_equal(ir_node_count(g), 0);
}

static void deep_chain(void **state) {
  (void)state;
  run(true, deep);
}

/** A graph with shared sources, its dimensions among them. */
static void shared(void *arg) {
  ir *g = ((world *)arg)->g;
  const node *x = buffer(g, DT_F32, 0, 2, (int64_t[]){2, 2});
  for (int i = 0; i < 40; i++) x = ir_op2(g, OP_ADD, x, ir_permute(g, x, (int64_t[]){1, 0}));
  ir_retain(x);
  ir_release_unheld(g);
  assert_int_equal(ir_node_count(g), 82);
  ir_release(g, x);
  assert_int_equal(ir_node_count(g), 0);
}

static void shared_sources(void **state) {
  (void)state;
  run(true, shared);
}

typedef struct failing {
  world *w;
  const node *kept;
} failing;

static void make_and_fail(void *arg) {
  failing *f = arg;
  ir *g = f->w->g;
  const node *x = ir_op1(g, OP_NEG, f->kept);
  for (int i = 0; i < 10; i++) x = ir_op2(g, OP_MUL, x, x);
  diag_raise(&f->w->d, TN_ERR_SHAPE, "on purpose");
}

typedef struct watched {
  size_t made, released;
} watched;

static void count_made(void *user, const node *n) { ((watched *)user)->made += n->refs > 0; }
static void count_released(void *user, const node *n) { ((watched *)user)->released += !n->refs; }

static void collected(void *arg) {
  failing f = {.w = arg};
  ir *g = f.w->g;
  watched seen = {0};
  ir_observe(g, &(ir_observer){count_made, count_released, &seen});
  f.kept = ir_retain(buffer(g, DT_F32, 0, 1, (int64_t[]){4}));
  ir_release_unheld(g);
  assert_int_equal(diag_catch(&f.w->d, make_and_fail, &f), TN_ERR_SHAPE);
  assert_int_equal(ir_node_count(g), 13);
  assert_int_equal(seen.made, 13);
  assert_int_equal(seen.released, 0);
  ir_release_unheld(g);
  assert_int_equal(ir_node_count(g), 2);
  assert_int_equal(seen.released, 11);
  ir_release(g, f.kept);
  assert_int_equal(ir_node_count(g), 0);
  assert_int_equal(seen.made, 13);
  assert_int_equal(seen.released, 13);
  ir_observe(g, NULL);
}

static void collect_after_failure(void **state) {
  (void)state;
  run(true, collected);
}

static void some_graph(void *arg) {
  world *w = arg;
  ir *g = w->g;
  const node *i = range_make(g, ix_const(g, 8), KIND_LOOP), *k = range_make(g, i, KIND_LOOP);
  const node *x = ir_cast(g, ix_add(g, ix_mul(g, i, k), i), DT_F32), *with = NULL;
  for (int n = 0; n < 100; n++) x = ir_op2(g, OP_ADD, x, ir_const(g, DT_F32, n));
  map m = {0};
  map_set(&w->a, &m, i, (void *)ix_const(g, 3));
  with = subst_ranges(g, x, &m);
  assert_true(with->free->n <= 1);
}

static void memory_runs_out(void **state) {
  (void)state;
  for (int c = 0; c < 2; c++) {
    tn_status s = TN_ERR_MEMORY;
    size_t n = 1;
    for (; s != TN_OK && n < 1000; n++) {
      s = run_failing(c, some_graph, n);
      assert_true(s == TN_OK || s == TN_ERR_MEMORY);
    }
    assert_true(n > 5 && n < 1000);
  }
}

/* Constants from other sources. */

static void fresh_numbers(void *arg) {
  ir *g = ((world *)arg)->g;
  const node *extent = ix_const(g, 4);
  int64_t ints[] = {41, KIND_LOOP, 0, 0};
  const node *given = ir_node(g, OP_RANGE, DT_INDEX, &extent, 1, ints, 4);
  const node *made = range_make(g, extent, KIND_LOOP);
  assert_ptr_not_equal(given, made);
  assert_int_equal(made->ints[0], 42);
}

static void fresh_after_given(void **state) {
  (void)state;
  run(false, fresh_numbers);
}

/* Free ranges. */

static void freed(void *arg) {
  ir *g = ((world *)arg)->g;
  const node *n = ix_const(g, 8), *zero = ix_const(g, 0);
  const node *i = range_make(g, n, KIND_LOOP), *k = range_make(g, ix_add_const(g, i, 1), KIND_LOOP);
  assert_int_equal(i->free->n, 1);
  assert_int_equal(k->free->n, 2);
  const node *sum = ix_add(g, i, k);
  assert_true(node_is_free_in(i, sum) && node_is_free_in(k, sum));
  assert_ptr_equal(sum->free, ix_mul(g, i, k)->free);
  const node *r = fold_make_reduction(g, OP_ADD, ir_cast(g, sum, DT_F32), 1, &k);
  assert_true(node_is_free_in(i, r) && !node_is_free_in(k, r));
  size_t rank = 1;
  const node *s = stage_make(g, &(stage_spec){.n_values = 1,
                                              .n_ranges = 1,
                                              .values = &r,
                                              .ranks = &rank,
                                              .coords = &i,
                                              .extents = &n,
                                              .ranges = &i});
  assert_int_equal(s->free->n, 0);
  const node *pinned = stage_make(g, &(stage_spec){.n_values = 1,
                                                   .n_ranges = 1,
                                                   .n_pins = 1,
                                                   .values = &r,
                                                   .ranks = &rank,
                                                   .coords = &i,
                                                   .extents = &n,
                                                   .ranges = &i,
                                                   .pins = &(const node *){range_make(g, n, 0)}});
  assert_int_equal(pinned->free->n, 1);
  assert_int_equal(zero->free->n, 0);
  assert_true(range_set_is_subset(i->free, k->free) && !range_set_is_subset(k->free, i->free));
  assert_true(range_set_intersects(i->free, k->free) &&
              !range_set_intersects(pinned->free, k->free));
  assert_ptr_equal(range_set_without(g, k->free, k), i->free);
  const node *list[] = {i, k};
  const node *linear = ir_node(g, OP_LINEAR, DT_VOID, list, 2, NULL, 0);
  assert_int_equal(linear->free->n, 0);
}

static void free_sets(void **state) {
  (void)state;
  run(false, freed);
}

/* Bounds. */

static void bounded(void *arg) {
  ir *g = ((world *)arg)->g;
  const node *n = index_var(g, "n", 1, 100), *i = range_make(g, n, KIND_LOOP);
  assert_int_equal(i->lo, 0);
  assert_int_equal(i->hi, 99);
  const node *a = ix_add_const(g, ix_scale(g, i, -3), 7);
  assert_int_equal(a->lo, 7 - 3 * 99);
  assert_int_equal(a->hi, 7);
  const node *q = ix_floordiv(g, a, ix_const(g, 4));
  assert_int_equal(q->lo, floor_div(7 - 297, 4));
  assert_int_equal(q->hi, 1);
  assert_int_equal(ix_mod(g, a, ix_const(g, 4))->hi, 3);
  const node *far = index_var(g, "far", BOUND_LOW, BOUND_HIGH);
  const node *huge = ix_const(g, INT64_MAX - 1);
  assert_int_equal(ix_add(g, far, i)->lo, BOUND_LOW);
  assert_int_equal(ir_op2(g, OP_ADD, huge, i)->hi, BOUND_HIGH);
  assert_int_equal(ir_op2(g, OP_MUL, huge, ix_const(g, -2))->lo, BOUND_LOW);
  /* a lower bound beyond 64 bits proves nothing */
  const node *beyond = ir_op2(g, OP_ADD, huge, huge);
  assert_true(ir_op2(g, OP_SUB, ir_op2(g, OP_SUB, beyond, huge), huge)->lo <= 0);
  assert_int_equal(ix_mul(g, far, i)->hi, BOUND_HIGH);
  assert_int_equal(ir_const_int(g, DT_U8, 200)->hi, 200);
  assert_int_equal(ir_cast(g, i, DT_I8)->hi, 99);
  const node *small = ir_cast(g, i, DT_I8), *twice = ir_op2(g, OP_ADD, small, small);
  assert_int_equal(twice->lo, -128); /* it may wrap */
  assert_false(infer_never_wraps(twice));
  const node *half = ir_op2(g, OP_CDIV, small, ir_const_int(g, DT_I8, 2));
  assert_int_equal(half->hi, 49);
  assert_true(infer_never_wraps(ir_op2(g, OP_ADD, half, half)));
  assert_true(ix_prove_nonnegative(g, ix_add_const(g, ix_sub(g, n, i), -1)));
  assert_false(ix_prove_nonnegative(g, ix_add_const(g, ix_sub(g, n, i), -2)));
}

static void bounds(void **state) {
  (void)state;
  run(false, bounded);
}

/* Index arithmetic against plain evaluation. */

enum { VARS = 3, RANGES = 4, STEPS = 14, TRIALS = 60, GRAPHS = 400 };

typedef struct bench {
  world *w;
  uint64_t seed;
  const node *var[VARS], *range[RANGES];
  int64_t var_value[VARS], range_value[RANGES];
} bench;

static uint64_t pick(bench *b, uint64_t below) {
  b->seed = b->seed * 6364136223846793005u + 1442695040888963407u;
  return (b->seed >> 33) % below;
}

static int64_t divide(int64_t a, int64_t b) { return b ? floor_div(a, b) : 0; }
static int64_t modulo(int64_t a, int64_t b) { return b ? floor_mod(a, b) : 0; }

static int64_t apply(op o, int64_t a, int64_t b) {
  switch (o) {
  case OP_ADD: return a + b;
  case OP_SUB: return a - b;
  case OP_MUL: return a * b;
  case OP_FLOORDIV: return divide(a, b);
  case OP_MOD: return modulo(a, b);
  case OP_MIN: return a < b ? a : b;
  case OP_MAX: return a > b ? a : b;
  case OP_LT: return a < b;
  case OP_LE: return a <= b;
  default: fail_msg("no index op"); return 0;
  }
}

/** Evaluates an index node by definition; checks that the value is within the node's bounds. */
static int64_t value_of(const bench *b, const node *n) {
  int64_t v = 0;
  for (int i = 0; i < VARS; i++)
    if (b->var[i] == n) return b->var_value[i];
  for (int i = 0; i < RANGES; i++)
    if (b->range[i] == n) return b->range_value[i];
  if (n->op == OP_CONST) return node_int(n);
  if (n->op == OP_AFFINE) {
    v = n->ints[0];
    for (uint32_t i = 0; i < n->n_src; i++) v += n->ints[i + 1] * value_of(b, n->src[i]);
  } else if (n->op == OP_WHERE) {
    v = value_of(b, n->src[value_of(b, n->src[0]) ? 1 : 2]);
  } else {
    v = apply((op)n->op, value_of(b, n->src[0]), value_of(b, n->src[1]));
  }
  assert_true(v >= n->lo && v <= n->hi);
  return v;
}

typedef struct step {
  op op; /* OP_CONST: a number; OP_VAR, OP_RANGE: the a-th */
  int a, b;
  int64_t number;
} step;

static const node *build_step(bench *b, const step *s, const node *const made[]) {
  ir *g = b->w->g;
  const node *x = made[s->a], *y = made[s->b];
  switch (s->op) {
  case OP_ADD: return ix_add(g, x, y);
  case OP_SUB: return ix_sub(g, x, y);
  case OP_MUL: return ix_mul(g, x, y);
  case OP_FLOORDIV: return ix_floordiv(g, x, y);
  case OP_MOD: return ix_mod(g, x, y);
  case OP_MIN: return ix_min(g, x, y);
  case OP_MAX: return ix_max(g, x, y);
  case OP_CONST: return ix_const(g, s->number);
  case OP_VAR: return b->var[s->number];
  default: return b->range[s->number];
  }
}

static int64_t eval_step(const bench *b, const step *s, const int64_t made[]) {
  switch (s->op) {
  case OP_CONST: return s->number;
  case OP_VAR: return b->var_value[s->number];
  case OP_RANGE: return b->range_value[s->number];
  default: return apply(s->op, made[s->a], made[s->b]);
  }
}

static step random_step(bench *b, int i) {
  static const op ops[] = {OP_ADD,      OP_SUB, OP_ADD, OP_MUL, OP_FLOORDIV,
                           OP_FLOORDIV, OP_MOD, OP_MOD, OP_MIN, OP_MAX};
  if (i < 4 || !pick(b, 3)) {
    uint64_t leaf = pick(b, 3);
    if (leaf == 0) return (step){.op = OP_CONST, .number = (int64_t)pick(b, 16) - 4};
    if (leaf == 1) return (step){.op = OP_VAR, .number = (int64_t)pick(b, VARS)};
    return (step){.op = OP_RANGE, .number = (int64_t)pick(b, RANGES)};
  }
  return (step){.op = ops[pick(b, sizeof ops / sizeof *ops)],
                .a = (int)pick(b, (uint64_t)i),
                .b = (int)pick(b, (uint64_t)i)};
}

static void make_leaves(bench *b) {
  ir *g = b->w->g;
  b->var[0] = index_var(g, "n", 1, 40);
  b->var[1] = index_var(g, "m", 0, 9);
  b->var[2] = index_var(g, "s", -7, 7);
  b->range[0] = range_make(g, ix_const(g, 8), KIND_LOOP);
  b->range[1] = range_make(g, ix_const(g, 3), KIND_LOOP);
  b->range[2] = range_make(g, b->var[0], KIND_LOOP);
  b->range[3] =
      range_make(g, ix_min(g, ix_const(g, 4), ix_sub(g, b->var[0], b->range[2])), /* at least 1 */
                 KIND_LOOP);
}

static void choose_values(bench *b) {
  for (int i = 0; i < VARS; i++)
    b->var_value[i] =
        b->var[i]->lo + (int64_t)pick(b, (uint64_t)(b->var[i]->hi - b->var[i]->lo + 1));
  for (int i = 0; i < RANGES; i++) {
    int64_t extent = value_of(b, range_extent(b->range[i]));
    assert_true(extent > 0);
    b->range_value[i] = (int64_t)pick(b, (uint64_t)extent);
  }
}

/** True if a product has too many or too large factors: values stay small, so that nothing
    overflows. */
static bool too_large(const node *n) {
  return n->lo < -(INT64_C(1) << 40) || n->hi > INT64_C(1) << 40;
}

static void check_comparisons(bench *b, const node *x, const node *y) {
  ir *g = b->w->g;
  const node *lt = ix_lt(g, x, y), *le = ix_le(g, x, y);
  bool proved = ix_prove_nonnegative(g, x);
  for (int t = 0; t < TRIALS / 4; t++) {
    choose_values(b);
    assert_int_equal(value_of(b, lt), value_of(b, x) < value_of(b, y));
    assert_int_equal(value_of(b, le), value_of(b, x) <= value_of(b, y));
    if (proved) assert_true(value_of(b, x) >= 0);
  }
}

static void random_arithmetic(void *arg) {
  bench b = {.w = arg, .seed = 7};
  make_leaves(&b);
  for (int graph = 0; graph < GRAPHS; graph++) {
    step steps[STEPS];
    const node *made[STEPS];
    int n = 0;
    while (n < STEPS) {
      steps[n] = random_step(&b, n);
      made[n] = build_step(&b, &steps[n], made);
      if (!too_large(made[n]) || steps[n].op == OP_FLOORDIV || steps[n].op == OP_MOD) n++;
    }
    for (int t = 0; t < TRIALS; t++) {
      int64_t values[STEPS];
      choose_values(&b);
      for (int i = 0; i < STEPS; i++) {
        values[i] = eval_step(&b, &steps[i], values);
        assert_int_equal(value_of(&b, made[i]), values[i]);
      }
    }
    check_comparisons(&b, made[STEPS - 1], made[STEPS - 2]);
  }
}

static void index_arithmetic(void **state) {
  (void)state;
  run(false, random_arithmetic);
}

static void canonical(void *arg) {
  ir *g = ((world *)arg)->g;
  const node *n = index_var(g, "n", 1, 40), *m = index_var(g, "m", 1, 40);
  const node *i = range_make(g, ix_const(g, 12), KIND_LOOP), *four = ix_const(g, 4);
  assert_ptr_equal(ix_add(g, n, m), ix_add(g, m, n));
  assert_ptr_equal(ix_mul(g, ix_mul(g, n, m), i), ix_mul(g, m, ix_mul(g, i, n)));
  assert_ptr_equal(ix_sub(g, ix_add(g, n, m), m), n);
  const node *q = ix_floordiv(g, i, four), *r = ix_mod(g, i, four);
  assert_ptr_equal(ix_add(g, ix_scale(g, q, 4), r), i);
  assert_ptr_equal(ix_floordiv(g, ix_add(g, ix_scale(g, n, 4), r), four), n);
  assert_ptr_equal(ix_mod(g, ix_add(g, ix_scale(g, n, 4), r), four), r);
  assert_ptr_equal(ix_floordiv(g, q, ix_const(g, 3)), ix_const(g, 0));
  assert_ptr_equal(ix_min(g, i, ix_const(g, 12)), i);
  const node *nine = ix_const(g, 9), *late = range_make(g, nine, KIND_LOOP);
  assert_ptr_equal(ix_max(g, ix_const(g, 5), late), ix_max(g, late, ix_const(g, 5)));
  assert_ptr_equal(ix_max(g, late, ix_const(g, 5))->src[1], ix_const(g, 5));
  assert_ptr_equal(ix_max(g, four, late)->src[1], four); /* older than the range */
  assert_ptr_equal(ix_floordiv(g, ix_mul(g, n, m), m), n);
  assert_ptr_equal(ix_lt(g, i, ix_const(g, 12)), ir_const_int(g, DT_BOOL, 1));
  /* x mod 0 is 0, also after further arithmetic */
  const node *x = index_var(g, "x", -9, 9), *zero = ix_const(g, 0);
  const node *by_zero = ix_mod(g, ix_mod(g, x, zero), ix_const(g, 3));
  assert_ptr_not_equal(by_zero, ix_mod(g, x, ix_const(g, 3)));
}

static void canonical_forms(void **state) {
  (void)state;
  run(false, canonical);
}

/** For ranges r_i below n_i and a number c, c − Σ r_i is proved non-negative if and only if c ≥ Σ
    (n_i − 1), in any order. */
static void proved(void *arg) {
  ir *g = ((world *)arg)->g;
  enum { TERMS = 14 };
  const node *hopeless = index_var(g, "c", 0, 1000000), *enough = ix_const(g, 0);
  for (int i = 0; i < TERMS; i++) {
    char name[8] = {'n', (char)('a' + i), 0};
    const node *n = index_var(g, name, 1, 1000), *r = range_make(g, n, KIND_LOOP);
    hopeless = ix_sub(g, hopeless, r);
    enough = ix_add_const(g, ix_add(g, enough, ix_sub(g, n, r)), -1);
  }
  size_t before = ir_node_count(g);
  assert_false(ix_prove_nonnegative(g, hopeless));
  assert_int_equal(ir_node_count(g), before);
  assert_true(ix_prove_nonnegative(g, enough));
  assert_false(ix_prove_nonnegative(g, ix_add_const(g, enough, -1)));
  /* (r·n + s)·m + t < n·n·m for r, s < n and t < m, in any order of creation */
  const node *n = index_var(g, "n", 1, 40), *m = index_var(g, "m", 1, 40);
  const node *t = range_make(g, m, KIND_LOOP), *s = range_make(g, n, KIND_LOOP),
             *r = range_make(g, n, KIND_LOOP);
  const node *at = ix_add(g, ix_mul(g, ix_add(g, ix_mul(g, r, n), s), m), t);
  const node *size = ix_mul(g, ix_mul(g, n, n), m);
  assert_true(ix_prove_lt(g, at, size));
  assert_false(ix_prove_lt(g, ix_add_const(g, at, 1), size));
  /* n minus a range is the extent of another range */
  const node *rest = range_make(g, ix_sub(g, n, s), KIND_LOOP);
  assert_true(ix_prove_lt(g, ix_add(g, s, rest), n));
  assert_true(ix_prove_lt(g, ix_min(g, ix_scale(g, n, 9), ix_add(g, s, rest)), n));
  /* both sides of a minimum bound it from below, and both of a maximum from above */
  const node *q = index_var(g, "q", 0, 40), *three = ix_const(g, 3), *zero = ix_const(g, 0);
  const node *tail = ix_sub(g, q, ix_min(g, q, three)), *less = ix_add_const(g, q, -1);
  assert_true(tail->lo < 0 && ix_prove_nonnegative(g, tail));
  assert_true(ix_prove_nonnegative(g, ix_min(g, tail, three)));
  assert_false(ix_prove_nonnegative(g, ix_min(g, less, three)));
  assert_true(ix_prove_le(g, ix_max(g, less, zero), q));
  assert_false(ix_prove_le(g, ix_max(g, less, three), q));
  /* an ITEM is at most what its run lets pass */
  const node *item = ir_item(g, ir_const_int(g, DT_I64, 7), NULL, 0, q);
  assert_true(ix_prove_le(g, item, q) && ix_prove_nonnegative(g, ix_sub(g, q, item)));
  assert_true(ix_prove_le(g, ix_mul(g, item, m), ix_mul(g, q, m)));
  assert_false(ix_prove_lt(g, item, q) || ix_prove_le(g, q, item));
  /* n div k ≤ n */
  const node *half = ix_floordiv(g, n, ix_const(g, 2)), *third = ix_floordiv(g, n, ix_const(g, 3));
  assert_true(ix_prove_le(g, half, n));
  assert_true(ix_prove_le(g, ix_add(g, half, third), n));
  assert_false(ix_prove_le(g, ix_add(g, ix_add(g, half, half), third), n));
  /* n div 2 less twice n div 4 is 0 or 1, and its half is 0 */
  const node *left = ix_sub(g, half, ix_scale(g, ix_floordiv(g, half, ix_const(g, 2)), 2));
  assert_true(left->lo < 0 && ix_prove_nonnegative(g, left));
  assert_false(ix_prove_nonnegative(g, ix_add_const(g, left, -1)));
  assert_ptr_equal(ix_floordiv(g, left, ix_const(g, 2)), ix_const(g, 0));
  /* q less an ITEM is at least 0, and so are its half, the rest of it, and a choice of these */
  const node *over = ix_sub(g, q, item), *half_over = ix_floordiv(g, over, ix_const(g, 2));
  assert_true(half_over->lo < 0 && ix_prove_nonnegative(g, half_over));
  assert_false(ix_prove_lt(g, zero, half_over));
  assert_true(ix_prove_nonnegative(g, ix_sub(g, over, half_over)));
  assert_true(ix_prove_nonnegative(g, ix_add_const(g, ix_sub(g, half_over, over), 40)));
  assert_false(ix_prove_nonnegative(g, ix_floordiv(g, ix_add_const(g, over, -1), ix_const(g, 2))));
  const node *either = ir_op3(g, OP_WHERE, ix_lt(g, n, m), over, half_over);
  assert_true(either->lo < 0 && ix_prove_nonnegative(g, either) && ix_prove_le(g, either, q));
  assert_true(ix_prove_le(g, either, over) && !ix_prove_le(g, over, either));
  assert_false(ix_prove_nonnegative(g, ir_op3(g, OP_WHERE, ix_lt(g, n, m), over, less)) ||
               ix_prove_nonnegative(g, ir_op3(g, OP_WHERE, ix_lt(g, n, m), less, over)));
}

/** (n div 4 + 1) div 2 = (n + 4) div 8, so that sizes are equal however they were computed. */
static void merged_divisions(void *arg) {
  ir *g = ((world *)arg)->g;
  const node *n = index_var(g, "n", 0, 1000), *two = ix_const(g, 2);
  const node *quarter = ix_floordiv(g, ix_add_const(g, n, 3), ix_const(g, 4));
  assert_ptr_equal(ix_floordiv(g, ix_add_const(g, quarter, 1), two),
                   ix_floordiv(g, ix_add_const(g, n, 7), ix_const(g, 8)));
  const node *r = ix_mod(g, ix_add_const(g, quarter, 1), two);
  assert_ptr_equal(ix_add(g, ix_scale(g, ix_floordiv(g, ix_add_const(g, quarter, 1), two), 2), r),
                   ix_add_const(g, quarter, 1));
}

static void divisions(void **state) {
  (void)state;
  run(false, merged_divisions);
}

static void proofs(void **state) {
  (void)state;
  run(false, proved);
}

/** A product with more factors than affine forms hold, as a text may contain. */
static void many_factors(void *arg) {
  ir *g = ((world *)arg)->g;
  const node *n = index_var(g, "n", 1, 2), *m = index_var(g, "m", 1, 2), *p = n;
  for (int i = 0; i < 40; i++) p = ir_op2(g, OP_MUL, p, n);
  const node *r = range_make(g, m, KIND_LOOP), *q = ir_op2(g, OP_MUL, p, r);
  assert_int_equal(ix_floordiv(g, p, m)->op, OP_FLOORDIV);
  assert_int_equal(ix_floordiv(g, m, p)->op, OP_FLOORDIV);
  assert_int_equal(ix_floordiv(g, p, p)->op, OP_FLOORDIV);
  assert_false(ix_prove_le(g, q, m));
}

static void products_of_many_factors(void **state) {
  (void)state;
  run(false, many_factors);
}

static void overflow(void *arg) {
  ir *g = ((world *)arg)->g;
  const node *n = index_var(g, "n", 1, 40);
  ix_scale(g, ix_scale(g, n, INT64_MAX), 2);
}

static void too_large_for_64_bits(void **state) {
  (void)state;
  assert_int_equal(run_failing(false, overflow, 0), TN_ERR_SHAPE);
}

/* Substitution. */

static void substituted(void *arg) {
  bench b = {.w = arg, .seed = 3};
  ir *g = b.w->g;
  make_leaves(&b);
  for (int t = 0; t < 200; t++) {
    step steps[STEPS];
    const node *made[STEPS];
    for (int i = 0; i < STEPS;) {
      steps[i] = random_step(&b, i);
      made[i] = build_step(&b, &steps[i], made);
      if (!too_large(made[i])) i++;
    }
    const node *with = ix_add_const(g, ix_scale(g, b.range[1], 2), 1); /* in 0 … 7 */
    map m = {0};
    map_set(&b.w->a, &m, b.range[0], (void *)with);
    const node *root = made[STEPS - 1], *after = subst_ranges(g, root, &m);
    assert_false(node_is_free_in(b.range[0], after));
    for (int k = 0; k < 20; k++) {
      choose_values(&b);
      b.range_value[0] = value_of(&b, with);
      assert_int_equal(value_of(&b, after), value_of(&b, root));
    }
  }
}

static void substitution(void **state) {
  (void)state;
  run(false, substituted);
}

/** Makes a sum over k of a term that depends on i. */
static const node *sum_with(ir *g, const node *i, const node *k) {
  return fold_make_reduction(g, OP_ADD, ir_cast(g, ix_add(g, i, k), DT_F32), 1, &k);
}

static void in_binders(void *arg) {
  world *w = arg;
  ir *g = w->g;
  const node *i = range_make(g, ix_const(g, 8), KIND_LOOP),
             *k = range_make(g, ix_const(g, 5), KIND_LOOP);
  const node *sum = sum_with(g, i, k), *two = ix_const(g, 2);
  map m = {0};
  map_set(&w->a, &m, i, (void *)two);
  assert_ptr_equal(subst_ranges(g, sum, &m), sum_with(g, two, k));
  const node *copy = subst_fresh_ranges(g, sum, &m), *fold = copy->src[0];
  assert_ptr_not_equal(copy, sum_with(g, two, k));
  assert_ptr_not_equal(fold_range(fold)[0], k);
  assert_ptr_equal(copy, sum_with(g, two, fold_range(fold)[0]));
  assert_int_equal(copy->free->n, 0);
  map bound = {0};
  map_set(&w->a, &bound, k, (void *)two);
  assert_ptr_equal(subst_ranges(g, sum, &bound), sum);
  map none = {0};
  assert_ptr_equal(subst_fresh_ranges(g, sum, &none), sum);
}

static void substitution_in_binders(void **state) {
  (void)state;
  run(false, in_binders);
}

/** Nodes that depend on a range bound inside the copy change with it; the range's fields stay. */
static void copied_ranges(void *arg) {
  world *w = arg;
  ir *g = w->g;
  const node *i = range_make(g, ix_const(g, 8), KIND_LOOP), *extent = ix_add_const(g, i, 1);
  int64_t ints[] = {ir_fresh_id(g), KIND_UNROLL, 3, 2};
  const node *k = ir_node(g, OP_RANGE, DT_INDEX, &extent, 1, ints, 4);
  const node *j = range_make(g, ix_add_const(g, k, 1), KIND_LOOP);
  const node *inner =
      fold_make_reduction(g, OP_ADD, ir_cast(g, j, DT_F32), 1, &j); /* independent of i */
  const node *sum = fold_make_reduction(g, OP_ADD, inner, 1, &k);
  map m = {0};
  map_set(&w->a, &m, i, (void *)ix_const(g, 2));
  const node *fold = subst_fresh_ranges(g, sum, &m)->src[0], *fresh = fold_range(fold)[0];
  assert_int_equal(fold->free->n, 0);
  assert_ptr_not_equal(fresh, k);
  assert_int_equal(fresh->ints[1], KIND_UNROLL);
  assert_int_equal(fresh->ints[2], 3);
  assert_int_equal(fresh->ints[3], 2);
  const node *inside = fold_step(fold, 0)->src[0];
  assert_int_equal(inside->op, OP_FOLD);
  assert_ptr_not_equal(fold_range(inside)[0], j);
  assert_ptr_equal(range_extent(fold_range(inside)[0]), ix_add_const(g, fresh, 1));
}

static void substitution_in_copies(void **state) {
  (void)state;
  run(false, copied_ranges);
}

/** A graph built without canonicalisation is canonical in its copy. */
static void copied_from(void *arg) {
  world *w = arg;
  ir *to = ir_new(&w->m, &w->d, false);
  assert_non_null(to);
  const node *i = range_make(w->g, ix_const(w->g, 8), KIND_LOOP);
  const node *below = ix_sub(w->g, i, ix_const(w->g, 9)), *copies[3];
  int64_t ints[] = {ir_fresh_id(w->g), KIND_LOOP, 0, 0};
  const node *roots[] = {ir_op2(w->g, OP_LT, i, ix_const(w->g, 8)),
                         ir_op2(w->g, OP_LE, ix_const(w->g, 8), i),
                         ir_node(w->g, OP_RANGE, DT_INDEX, &below, 1, ints, 4)};
  ir_copy(to, &w->a, roots, 3, NULL, NULL, copies);
  assert_true(node_is_bits(copies[0], 1) && copies[0]->dtype == DT_BOOL);
  assert_true(node_is_bits(copies[1], 0) && copies[1]->dtype == DT_BOOL);
  assert_true(node_is_bits(range_extent(copies[2]), 0));
  ir_free(to);
}

static void copies_are_canonical(void **state) {
  (void)state;
  run(false, copied_from);
}

/* Traversal. */

static bool below_neg(const node *n, void *user) {
  (void)user;
  return n->op != OP_NEG;
}

static void walked(void *arg) {
  world *w = arg;
  ir *g = w->g;
  const node *x = buffer(g, DT_F32, 0, 0, NULL), *y = ir_op1(g, OP_NEG, x);
  const node *roots[] = {ir_op2(g, OP_ADD, y, y), y};
  node_list all = topo_sort(&w->a, roots, 2, NULL, NULL);
  assert_int_equal(all.n, 3);
  assert_ptr_equal(all.at[0], x);
  assert_ptr_equal(all.at[2], roots[0]);
  node_list some = topo_sort(&w->a, roots, 2, below_neg, NULL);
  assert_int_equal(some.n, 2);
}

/** Sorts the same graph while it is being sorted. */
static bool sort_inside(const node *n, void *user) {
  world *w = user;
  const node *root = n;
  while (root->n_src) root = root->src[0];
  node_list inner = topo_sort(&w->a, &n, 1, NULL, NULL);
  assert_ptr_equal(inner.at[0], root);
  assert_ptr_equal(inner.at[inner.n - 1], n);
  return true;
}

static void sorted_while_sorted(void *arg) {
  world *w = arg;
  const node *n = buffer(w->g, DT_F32, 0, 0, NULL);
  for (int i = 0; i < 100; i++) n = ir_op2(w->g, OP_ADD, n, n);
  node_list all = topo_sort(&w->a, &n, 1, sort_inside, w);
  assert_int_equal(all.n, 101);
}

static void walks_inside_walks(void **state) {
  (void)state;
  run(false, sorted_while_sorted);
  run(true, sorted_while_sorted);
}

enum { WALKING_THREADS = 4, WALKS = 200, WALKED_NODES = 500 };

static void *sort_many_times(void *arg) {
  const node *root = arg;
  diag d = {0};
  arena a;
  size_t wrong = 0;
  arena_init(&a, &mem_system, &d);
  for (int i = 0; i < WALKS; i++) {
    wrong += topo_sort(&a, &root, 1, NULL, NULL).n != WALKED_NODES + 1;
    arena_free(&a);
  }
  return (void *)wrong;
}

/** A traversal does not change the graph, so threads may traverse it at once. */
static void sorted_by_threads(void *arg) {
  world *w = arg;
  const node *n = buffer(w->g, DT_F32, 0, 0, NULL);
  for (int i = 0; i < WALKED_NODES; i++) n = ir_op2(w->g, OP_ADD, n, n);
  pthread_t threads[WALKING_THREADS];
  for (int i = 0; i < WALKING_THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, sort_many_times, (void *)n), 0);
  for (int i = 0; i < WALKING_THREADS; i++) {
    void *wrong;
    pthread_join(threads[i], &wrong);
    assert_ptr_equal(wrong, NULL);
  }
}

static void walks_of_threads(void **state) {
  (void)state;
  run(false, sorted_by_threads);
  run(true, sorted_by_threads);
}

static void walks(void **state) {
  (void)state;
  run(false, walked);
  run(true, walked);
}

typedef struct walk_job {
  world *w;
  const node *root;
  size_t found;
} walk_job;

static void walk_job_run(void *arg) {
  walk_job *j = arg;
  j->found = topo_sort(&j->w->a, &j->root, 1, NULL, NULL).n;
}

/** Traverses a deep graph, first with the n-th allocation failing, then with memory. */
static void walked_twice(void *arg) {
  world *w = arg;
  enum { DEEP = 3000 };
  const node *n = buffer(w->g, DT_F32, 0, 0, NULL);
  for (int i = 0; i < DEEP; i++) n = ir_op1(w->g, OP_NEG, n);
  walk_job job = {.w = w, .root = n};
  tn_status s = TN_ERR_MEMORY;
  size_t failures = 0;
  for (; s != TN_OK; failures++) {
    w->memory.fail_at = w->memory.calls + failures + 1;
    s = diag_catch(&w->d, walk_job_run, &job);
    w->memory.fail_at = 0;
    arena_free(&w->a);
    assert_int_equal(diag_catch(&w->d, walk_job_run, &job), TN_OK);
    assert_int_equal(job.found, DEEP + 1);
    arena_free(&w->a);
  }
  assert_true(failures > 3);
}

static void walk_after_failure(void **state) {
  (void)state;
  run(false, walked_twice);
  run(true, walked_twice);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(interned_once),
      cmocka_unit_test(shapes),
      cmocka_unit_test(owners),
      cmocka_unit_test(deep_chain),
      cmocka_unit_test(shared_sources),
      cmocka_unit_test(collect_after_failure),
      cmocka_unit_test(memory_runs_out),
      cmocka_unit_test(fresh_after_given),
      cmocka_unit_test(free_sets),
      cmocka_unit_test(bounds),
      cmocka_unit_test(index_arithmetic),
      cmocka_unit_test(canonical_forms),
      cmocka_unit_test(proofs),
      cmocka_unit_test(divisions),
      cmocka_unit_test(products_of_many_factors),
      cmocka_unit_test(too_large_for_64_bits),
      cmocka_unit_test(substitution),
      cmocka_unit_test(substitution_in_binders),
      cmocka_unit_test(substitution_in_copies),
      cmocka_unit_test(copies_are_canonical),
      cmocka_unit_test(walks),
      cmocka_unit_test(walks_inside_walks),
      cmocka_unit_test(walks_of_threads),
      cmocka_unit_test(walk_after_failure),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
