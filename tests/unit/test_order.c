/* Tests step order and buffer reuse: orders of random plans respect dependences and need little
   live memory (for small plans mostly the least of all orders), and results are stored over
   operands that die there. Schedules of graphs are interpreted and compared with the graph. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/rewrite.h"
#include "schedule/memory/in_place_reuse.h"
#include "schedule/memory/part_dependences.h"
#include "schedule/memory/step_order.h"
#include "schedule/schedule.h"

#include "../ir/replay.h"
#include "support/graph_body.h"
#include "support/tensor_matmul.h"

#include <stdlib.h>
#include <time.h>

enum { PLANS = 400, MOST_STEPS = 7, KIB = 1024 };

typedef struct test {
  diag d;
  ir *g;
  uint64_t seed;
  size_t number; /* argument of the test */
  double result;
  void (*body)(struct test *t);
} test;

static void call_body(void *arg) {
  test *t = arg;
  t->body(t);
}

static double run_body(void (*body)(test *t), uint64_t seed, size_t number) {
  test t = {.body = body, .seed = seed, .number = number};
  run_in_graph(&t.g, false, &t.d, call_body, &t, t.seed);
  return t.result;
}

static void require(test *t, bool holds, const char *what) {
  if (!holds) diag_raise(&t->d, TN_ERR_INTERNAL, "%s", what);
}

/* Plans of steps without kernels: only buffers count. */

static size_t add_buffer(test *t, schedule *s, int64_t bytes) {
  schedule_buffer b = {.dtype = DT_U8, .size = ix_const(t->g, bytes)};
  vec_push(ir_arena(t->g), &s->buffers, b);
  return s->buffers.n - 1;
}

/** Adds a step that computes `to` from others. */
static void add_step(test *t, schedule *s, size_t to, const size_t from[], size_t n) {
  size_t *all = arena_alloc(ir_arena(t->g), (n + 1) * sizeof *all);
  for (size_t i = 0; i < n; i++) all[i] = from[i];
  all[n] = to;
  schedule_step step = {.kind = STEP_CUSTOM, .buffers = all, .n_buffers = n + 1};
  vec_push(ir_arena(t->g), &s->steps, step);
}

static uint64_t bytes_of(const lives *l) {
  double *need = arena_alloc(l->a, (l->n_steps + 1) * sizeof *need);
  reuses *taken = arena_calloc(l->a, l->n_steps + 1, sizeof *taken);
  liveness_peak_bytes(l, NULL, need, taken);
  return liveness_plan_bytes(l, NULL, taken);
}

/** True if each step reads the same values as in `before`: for each of its buffers the same last
    writer, after as many writes. */
static bool reads_the_same(test *t, const schedule *before, const schedule *s) {
  arena *a = ir_arena(t->g);
  const schedule *both[] = {before, s};
  map seen[2] = {{0}}; /* a step's list of buffers → their contents */
  for (int i = 0; i < 2; i++) {
    size_t *writer = arena_calloc(a, s->buffers.n + 1, sizeof *writer);
    for (size_t k = 0; k < both[i]->steps.n; k++) {
      const schedule_step *step = &both[i]->steps.at[k];
      size_t *found = arena_alloc(a, (step->n_buffers + 1) * sizeof *found);
      for (size_t j = 0; j < step->n_buffers; j++) found[j] = writer[step->buffers[j]];
      map_set(a, &seen[i], step->buffers, found);
      writer[step->buffers[step->n_buffers - 1]] = (size_t)(uintptr_t)step->buffers;
    }
  }
  if (seen[0].n != before->steps.n || seen[1].n != before->steps.n) return false;
  for (size_t k = 0; k < before->steps.n; k++) {
    const schedule_step *step = &before->steps.at[k];
    const size_t *x = map_get(&seen[0], step->buffers), *y = map_get(&seen[1], step->buffers);
    if (!y || memcmp(x, y, step->n_buffers * sizeof *x)) return false;
  }
  return true;
}

static schedule copy_of(test *t, const schedule *s) {
  schedule copy = *s;
  copy.steps.at = arena_copy(ir_arena(t->g), s->steps.at, s->steps.n * sizeof *s->steps.at);
  return copy;
}

/** Two operands; the second needs far more memory to compute than its result: it is computed
    first. */
static void large_subtree(test *t) {
  schedule s = {0};
  size_t kept = add_buffer(t, &s, 64 * KIB), large = add_buffer(t, &s, 640 * KIB);
  size_t small = add_buffer(t, &s, KIB), sum = add_buffer(t, &s, KIB), end;
  end = add_buffer(t, &s, KIB);
  s.buffers.at[end].is_output = true;
  add_step(t, &s, kept, NULL, 0);
  add_step(t, &s, large, NULL, 0);
  add_step(t, &s, small, &large, 1);
  add_step(t, &s, sum, (size_t[]){kept, small}, 2);
  add_step(t, &s, end, &sum, 1);
  lives l = liveness_of(t->g, &s);
  require(t, bytes_of(&l) == 705 * KIB, "the plan as it is has another size");
  step_order_choose(&l, 0, &s);
  require(t, bytes_of(&l) == 641 * KIB, "what needs much is not made first");
  require(t, s.steps.at[0].buffers[0] == large, "another step is first");
}

static void operands_that_need_most_are_made_first(void **state) {
  (void)state;
  run_body(large_subtree, 0, 0);
}

/** Updates of states by gradients; all gradients may be computed first: each state is written as
    soon as its gradient is there. */
static void updates(test *t) {
  schedule s = {0};
  size_t chain = add_buffer(t, &s, KIB), gradient[20];
  add_step(t, &s, chain, NULL, 0);
  for (size_t i = 0; i < 20; i++) {
    size_t next = add_buffer(t, &s, KIB);
    add_step(t, &s, next, &chain, 1);
    add_step(t, &s, gradient[i] = add_buffer(t, &s, 100 * KIB), &next, 1);
    chain = next;
  }
  for (size_t i = 0; i < 20; i++) {
    size_t updated = add_buffer(t, &s, 100 * KIB);
    s.buffers.at[updated].is_output = true;
    add_step(t, &s, updated, &gradient[i], 1);
  }
  schedule before = copy_of(t, &s);
  lives l = liveness_of(t->g, &s);
  require(t, bytes_of(&l) > 2000 * KIB, "not all gradients live at once");
  step_order_choose(&l, 0, &s);
  require(t, bytes_of(&l) < 210 * KIB, "gradients are kept");
  require(t, reads_the_same(t, &before, &s), "a step reads something else");
}

static void what_can_go_goes_at_once(void **state) {
  (void)state;
  run_body(updates, 0, 0);
}

/** Makes a plan of random steps that read existing buffers and write a new one or overwrite an old
    one. */
static schedule random_plan(test *t, size_t n) {
  rng r = {t->seed};
  schedule s = {0};
  for (size_t i = 0; i < n; i++) {
    size_t from[3], n_from = 0, to = s.buffers.n;
    for (size_t k = s.buffers.n ? rng_below(&r, 4) : 0; k-- > 0;) {
      size_t near = s.buffers.n < 30 ? s.buffers.n : 30;
      from[n_from++] = s.buffers.n - 1 - rng_below(&r, near);
    }
    if (i && rng_chance(&r, 15))
      to = rng_below(&r, s.buffers.n);
    else
      add_buffer(t, &s, rng_between(&r, 0, 50) * KIB);
    s.buffers.at[to].is_output |= rng_chance(&r, 5);
    add_step(t, &s, to, from, n_from);
  }
  return s;
}

static void random_order(test *t) {
  schedule s = random_plan(t, 1 + t->seed % 100), before = copy_of(t, &s);
  lives l = liveness_of(t->g, &s);
  uint64_t was = bytes_of(&l);
  step_order_choose(&l, t->number, &s);
  require(t, reads_the_same(t, &before, &s), "a step reads something else");
  require(t, t->number || bytes_of(&l) <= was, "another order needs more");
  t->result = was ? (double)bytes_of(&l) / (double)was : 1;
}

static void orders_respect_dependences_and_need_no_more(void **state) {
  (void)state;
  double sum = 0;
  for (uint64_t seed = 0; seed < PLANS; seed++) {
    sum += run_body(random_order, seed, 0);
    run_body(random_order, seed, 1 + seed); /* each order that the scheduler tries */
  }
  print_message("%d plans need %.3f of what they did\n", PLANS, sum / PLANS);
  assert_true(sum / PLANS < 0.97);
}

/** Returns the least memory over all orders of a few steps. */
static uint64_t least_of_all(const lives *l, size_t order[], bool is_in[], size_t n) {
  uint64_t least = UINT64_MAX, bytes;
  if (n == l->n_steps) {
    double *need = arena_alloc(l->a, (n + 1) * sizeof *need);
    reuses *taken = arena_calloc(l->a, n + 1, sizeof *taken);
    liveness_peak_bytes(l, order, need, taken);
    return liveness_plan_bytes(l, order, taken);
  }
  for (size_t i = 0; i < l->n_steps; i++) {
    bool may = !is_in[i];
    for (size_t j = 0; may && j < i; j++) /* earlier steps that use the same buffer */
      for (size_t x = 0; may && !is_in[j] && x < l->steps[i].n; x++)
        for (size_t y = 0; may && y < l->steps[j].n; y++)
          may = l->steps[i].buffers[x] != l->steps[j].buffers[y] ||
                (x >= l->steps[i].n_written && y >= l->steps[j].n_written);
    if (!may) continue;
    is_in[order[n] = i] = true;
    bytes = least_of_all(l, order, is_in, n + 1);
    if (bytes < least) least = bytes;
    is_in[i] = false;
  }
  return least;
}

static void small_order(test *t) {
  schedule s = random_plan(t, 2 + t->seed % (MOST_STEPS - 1));
  lives l = liveness_of(t->g, &s);
  size_t order[MOST_STEPS + 1];
  bool is_in[MOST_STEPS + 1] = {false};
  uint64_t least = least_of_all(&l, order, is_in, 0);
  step_order_choose(&l, 0, &s);
  require(t, bytes_of(&l) >= least, "better than the best");
  t->result = bytes_of(&l) == least;
}

static void most_small_plans_are_the_best(void **state) {
  (void)state;
  double best = 0;
  for (uint64_t seed = 0; seed < PLANS; seed++) best += run_body(small_order, seed, 0);
  print_message("%.0f of %d small plans need the least there is\n", best, PLANS);
  assert_true(best >= 0.9 * PLANS);
}

static void long_order(test *t) {
  schedule s = random_plan(t, t->number), before = copy_of(t, &s);
  clock_t from = clock();
  lives l = liveness_of(t->g, &s);
  step_order_choose(&l, 0, &s);
  t->result = (double)(clock() - from) / CLOCKS_PER_SEC;
  print_message("%zu steps: %.1f us each\n", t->number, t->result / (double)t->number * 1e6);
  require(t, reads_the_same(t, &before, &s), "a step reads something else");
}

/** The ratio is 10 if linear, 100 if quadratic. Sanitizers distort memory times. */
static void time_is_nearly_linear_in_the_steps(void **state) {
  const char *sanitizers = getenv("TENON_SANITIZE");
  bool counts = !sanitizers || !*sanitizers;
  (void)state;
  double little = run_body(long_order, 1, 10000), much = run_body(long_order, 1, 100000);
  if (counts) assert_true(much < 50 * little + 0.05);
}

/* Buffer reuse. */

/** A fault planted by hand: an array stored over one that is read later is detected, over a dead
    one not. */
static void planted(test *t) {
  schedule s = {0};
  size_t x = add_buffer(t, &s, KIB), y = add_buffer(t, &s, KIB), z = add_buffer(t, &s, KIB);
  add_step(t, &s, x, NULL, 0);
  add_step(t, &s, y, &x, 1);
  add_step(t, &s, z, (size_t[]){x, y}, 2);
  lives l = liveness_of(t->g, &s);
  require(t, liveness_is_safe(&l, NULL, (size_t[]){x, y, z}),
          "nothing is reused, and something lost");
  require(t, liveness_is_safe(&l, NULL, (size_t[]){x, y, x}),
          "what is over x, after its last reader");
  require(t, !liveness_is_safe(&l, NULL, (size_t[]){x, x, z}),
          "what is over x, before its last reader");
}

static void overwritten_arrays_are_seen(void **state) {
  (void)state;
  run_body(planted, 0, 0);
}

static const node *buffer(test *t, int64_t uid, size_t rank, const int64_t sizes[]) {
  const node *dims[4];
  int64_t ints[] = {uid, 0};
  for (size_t i = 0; i < rank; i++) dims[i] = ix_const(t->g, sizes[i]);
  return ir_node(t->g, OP_BUFFER, DT_F32, dims, rank, ints, 2);
}

/** Counts the arrays stored over operands that die there. The interpreted steps must give the
    graph's values. */
static size_t reused(test *t, const node *const roots[], size_t n, fusion_policy policy) {
  schedule_request r = {
      .roots = roots, .n_roots = n, .math = MATH_DEFAULT, .search.policy = (int)policy};
  schedule *s = schedule_make(t->g, &r);
  replay values = {.a = ir_arena(t->g), .seed = 1};
  replay_compare(&values, &r, s, 1e-4);
  size_t *writes = arena_calloc(ir_arena(t->g), s->buffers.n + 1, sizeof *writes), count = 0;
  for (size_t i = 0; i < s->steps.n; i++) {
    const schedule_step *step = &s->steps.at[i];
    if (!step->kernel) writes[step->buffers[step->n_buffers - 1]]++;
    for (size_t k = 0; k < step->n_outputs; k++) count += writes[step->buffers[k]]++ > 0;
  }
  return count;
}

/** Builds a host function of x, which is materialised thereby. */
static const node *custom(test *t, const node *x, int64_t uid) {
  const node *src[] = {x, x->dims[0], x->dims[1]};
  return ir_node(t->g, OP_CUSTOM, DT_F32, src, 3, (int64_t[]){uid, 0, 1, 0}, 4);
}

enum { DIES, IS_READ_LATER, IS_TURNED, IS_A_RESULT, IS_IN_PARTS, IS_AN_OPERAND, IS_OTHER, CASES };

/** Builds the kernel between two host functions from x. */
static const node *made_of(test *t, const node *x) {
  ir *g = t->g;
  const node *parts[] = {ix_const(g, 2), ix_const(g, 4), ix_const(g, 8)};
  switch (t->number) {
  case IS_TURNED: return ir_op1(g, OP_EXP2, ir_permute(g, x, (int64_t[]){1, 0}));
  case IS_IN_PARTS:
    x = ir_op2(g, OP_MAX, ir_reshape(g, x, 3, parts), buffer(t, 1, 3, (int64_t[]){2, 4, 8}));
    return ir_reshape(g, x, 2, (const node *[]){parts[2], parts[2]});
  case IS_AN_OPERAND: return tensor_matmul(g, x, buffer(t, 1, 2, (int64_t[]){8, 8}));
  case IS_OTHER: return ir_cast(g, x, DT_I32);
  default: return ir_op2(g, OP_ADD, x, x);
  }
}

static void between(test *t) {
  const node *x = custom(t, buffer(t, 0, 2, (int64_t[]){8, 8}), 1);
  const node *y = made_of(t, x), *z = custom(t, y, 2);
  const node *later = ir_op2(t->g, OP_SUB, z, x);
  const node *roots[] = {t->number == IS_READ_LATER ? later : z, x};
  t->result = (double)reused(t, roots, t->number == IS_A_RESULT ? 2 : 1, FUSION_BY_COST);
}

/** Reuse needs that x is not read afterwards, nor by the kernel elsewhere than where it writes, and
    that types are equal. */
static void dying_arrays_are_written_over(void **state) {
  static const double expected[CASES] = {[DIES] = 1, [IS_IN_PARTS] = 1};
  (void)state;
  for (size_t i = 0; i < CASES; i++)
    if (run_body(between, 0, i) != expected[i]) fail_msg("case %zu", i);
}

/** A kernel does not store over its operand if other steps need more memory anyway. */
static void needless(test *t) {
  const node *large = custom(t, buffer(t, 0, 2, (int64_t[]){64, 64}), 1);
  const node *zero[] = {ix_const(t->g, 0), ix_const(t->g, 0)};
  const node *eight[] = {ix_const(t->g, 8), ix_const(t->g, 8)};
  const node *x = custom(t, ir_slice(t->g, large, zero, eight, (int64_t[]){1, 1}), 2);
  const node *z = custom(t, ir_op2(t->g, OP_ADD, x, x), 3);
  t->result = (double)reused(t, &z, 1, (fusion_policy)t->number);
}

static void nothing_is_reused_without_need(void **state) {
  (void)state;
  assert_true(run_body(needless, 0, FUSION_BY_COST) == 0);
  assert_true(run_body(needless, 0, FUSION_NONE) > 0); /* reuse whenever it is legal */
}

/* Parts of one array. */

static array_part random_part(rng *r, const node *const params[]) {
  array_part p = {0};
  size_t kind = rng_below(r, 12);
  if (kind < 3) return p;
  p.is_all = kind == 3;
  p.param = params[kind == 4];
  for (size_t k = 0; k < 2; k++) {
    p.low[k] = rng_between(r, 0, 19);
    p.high[k] = p.low[k] + rng_between(r, 0, k ? 2 : 11);
  }
  return p;
}

static bool have_conflict(const array_accesses *x, const array_accesses *y) {
  return array_parts_overlap(&x->written, &y->written) ||
         array_parts_overlap(&x->written, &y->read) || array_parts_overlap(&x->read, &y->written);
}

/** Compares the edges with all pairs of steps. */
static void random_parts(test *t) {
  enum { STEPS = 40 };
  const node *params[] = {buffer(t, 0, 2, (int64_t[]){32, 32}),
                          buffer(t, 1, 2, (int64_t[]){64, 16})};
  rng r = {t->seed};
  array_accesses x[STEPS];
  bool is_edge[STEPS][STEPS] = {{false}};
  part_uses uses = {0};
  step_edges edges = {0};
  for (size_t i = 0; i < STEPS; i++) {
    x[i] = (array_accesses){random_part(&r, params), random_part(&r, params)};
    vec_push(ir_arena(t->g), &uses, (part_use){i, &x[i]});
  }
  part_dependences_add(ir_arena(t->g), &uses, &edges);
  for (size_t i = 0; i < edges.n; i++) is_edge[edges.at[i].from][edges.at[i].to] = true;
  for (size_t i = 0; i < STEPS; i++)
    for (size_t k = 0; k < STEPS; k++)
      require(t, is_edge[i][k] == (i < k && have_conflict(&x[i], &x[k])), "a wrong edge");
}

static void overlapping_parts_wait(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed < PLANS; seed++) run_body(random_parts, seed, 0);
}

/** Pieces side by side, and a step that reads all of them. */
static void pieces_side_by_side(test *t) {
  arena *a = ir_arena(t->g);
  const node *param = buffer(t, 0, 2, (int64_t[]){8, (int64_t)t->number});
  array_accesses *x = arena_calloc(a, t->number, sizeof *x);
  part_uses uses = {0};
  step_edges edges = {0};
  for (size_t i = 0; i < t->number; i++) {
    array_part *p = i + 1 < t->number ? &x[i].written : &x[i].read;
    *p = (array_part){.param = param, .low[1] = (int64_t)i, .high = {7, (int64_t)i}};
    if (i + 1 == t->number) p->low[1] = 0;
    vec_push(a, &uses, (part_use){i, &x[i]});
  }
  clock_t from = clock();
  part_dependences_add(a, &uses, &edges);
  t->result = (double)(clock() - from) / CLOCKS_PER_SEC;
  require(t, edges.n == t->number - 1, "wrong edges");
}

static void pieces_take_nearly_linear_time(void **state) {
  (void)state;
  const char *which = getenv("TENON_SANITIZE");
  double few = run_body(pieces_side_by_side, 0, 3000),
         many = run_body(pieces_side_by_side, 0, 30000);
  print_message("%.4f s, %.4f s\n", few, many);
  if (!which || !*which) assert_true(many < 50 * few + 0.02);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(operands_that_need_most_are_made_first),
      cmocka_unit_test(what_can_go_goes_at_once),
      cmocka_unit_test(orders_respect_dependences_and_need_no_more),
      cmocka_unit_test(most_small_plans_are_the_best),
      cmocka_unit_test(time_is_nearly_linear_in_the_steps),
      cmocka_unit_test(overlapping_parts_wait),
      cmocka_unit_test(pieces_take_nearly_linear_time),
      cmocka_unit_test(overwritten_arrays_are_seen),
      cmocka_unit_test(dying_arrays_are_written_over),
      cmocka_unit_test(nothing_is_reused_without_need),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
