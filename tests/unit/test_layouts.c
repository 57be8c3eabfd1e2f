/* Tests the choice of array layouts between kernels: the PBQP solver against exhaustive search on
   random problems, and schedules of small graphs, which are interpreted and compared with the
   graph. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/rewrite.h"
#include "schedule/layout/pbqp.h"
#include "schedule/schedule.h"

#include "../ir/replay.h"
#include "support/graph_body.h"

enum { PROBLEMS = 500, MOST_VERTICES = 7, MOST_CHOICES = 4, NEVER_OF = 5 };

typedef struct test {
  diag d;
  ir *g;
  uint64_t seed;
  bool is_exact;
  void (*body)(struct test *t);
} test;

static void call_body(void *arg) {
  test *t = arg;
  t->body(t);
}

static bool run_body(void (*body)(test *t), uint64_t seed) {
  test t = {.body = body, .seed = seed};
  run_in_graph(&t.g, false, &t.d, call_body, &t, t.seed);
  return t.is_exact;
}

static void require(test *t, bool holds, const char *what) {
  if (!holds) diag_raise(&t->d, TN_ERR_INTERNAL, "%s", what);
}

/* Problems are generated twice, as the solver consumes them. */

typedef struct problem {
  pbqp p;
  size_t n;
  bool edge[MOST_VERTICES][MOST_VERTICES];
} problem;

static double some_cost(rng *state) {
  return rng_below(state, NEVER_OF) ? (double)rng_below(state, 100) : 0;
}

static void add_edge(problem *x, rng *state, size_t u, size_t v) {
  x->edge[u][v] = true;
  for (size_t i = 0; i < x->p.vertices.at[u].n; i++)
    for (size_t k = 0; k < x->p.vertices.at[v].n; k++)
      *pbqp_cost(&x->p, u, i, v, k) +=
          rng_below(state, NEVER_OF) || i == k ? some_cost(state) : PBQP_FORBIDDEN;
}

/** Adds edges from a vertex to earlier ones: `is_easy` adds one, or two that end at an edge, which
    reductions solve exactly; else any. */
static void add_edges(problem *x, rng *state, bool is_easy) {
  for (size_t v = 1; v < x->n; v++) {
    size_t u = rng_below(state, v);
    add_edge(x, state, u, v);
    for (size_t w = 0; w < v; w++) {
      bool also = w != u && (is_easy ? x->edge[w][u] || x->edge[u][w] : rng_below(state, 2));
      if (!also) continue;
      add_edge(x, state, w, v);
      if (is_easy) break;
    }
  }
}

static problem make_problem(test *t, uint64_t seed, bool is_easy) {
  problem x = {.p = {.a = ir_arena(t->g)}};
  rng state = {seed};
  x.n = 1 + rng_below(&state, MOST_VERTICES);
  for (size_t v = 0; v < x.n; v++) {
    double cost[MOST_CHOICES];
    size_t n = 1 + rng_below(&state, MOST_CHOICES);
    for (size_t i = 0; i < n; i++) cost[i] = some_cost(&state);
    pbqp_add(&x.p, n, cost);
  }
  add_edges(&x, &state, is_easy);
  return x;
}

static double cost_of(problem *x, const size_t choice[]) {
  double sum = 0;
  for (size_t v = 0; v < x->n; v++) sum += x->p.vertices.at[v].cost[choice[v]];
  for (size_t u = 0; u < x->n; u++)
    for (size_t v = 0; v < x->n; v++)
      if (x->edge[u][v]) sum += *pbqp_cost(&x->p, u, choice[u], v, choice[v]);
  return sum;
}

static double least_cost(problem *x) {
  size_t choice[MOST_VERTICES] = {0};
  double least = cost_of(x, choice);
  for (size_t v = 0; v < x->n;) {
    if (++choice[v] == x->p.vertices.at[v].n) {
      choice[v++] = 0;
      continue;
    }
    v = 0;
    if (cost_of(x, choice) < least) least = cost_of(x, choice);
  }
  return least;
}

static void compare(test *t, bool is_easy) {
  problem x = make_problem(t, t->seed, is_easy), same = make_problem(t, t->seed, is_easy);
  const size_t *choice = pbqp_solve(&x.p);
  double got = cost_of(&same, choice), least = least_cost(&same);
  require(t, got >= least, "less than the least");
  t->is_exact = got == least;
}

static void easy(test *t) { compare(t, true); }
static void hard(test *t) { compare(t, false); }

static size_t solved_exactly(void (*body)(test *t)) {
  size_t n = 0;
  for (uint64_t seed = 1; seed <= PROBLEMS; seed++) n += run_body(body, seed);
  return n;
}

static void what_can_be_taken_apart_is_solved_exactly(void **state) {
  (void)state;
  assert_int_equal(solved_exactly(easy), PROBLEMS);
}

static void what_cannot_is_solved_well(void **state) {
  (void)state;
  size_t n = solved_exactly(hard);
  print_message("%zu of %d exactly\n", n, PROBLEMS);
  assert_true(n > PROBLEMS * 4 / 5);
}

/* Graphs. */

enum { CHANNELS = 32, SIZE = 17, VECTOR_BYTES = 32 };

static const node *buffer(test *t, int64_t uid, size_t rank, const int64_t sizes[]) {
  const node *dims[4];
  int64_t ints[] = {uid, 0};
  for (size_t i = 0; i < rank; i++) dims[i] = ix_const(t->g, sizes[i]);
  return ir_node(t->g, OP_BUFFER, DT_F32, dims, rank, ints, 2);
}

/** Builds a 1 × 1 convolution: w [k, n] over x [k, size, size] gives [n, size, size]. */
static const node *mixed(test *t, const node *x, const node *w) {
  ir *g = t->g;
  const node *one = ix_const(g, 1), *k = w->dims[0], *n = w->dims[1], *size = x->dims[1];
  const node *all[] = {k, n, size, size}, *of_x[] = {k, one, size, size},
             *of_w[] = {k, n, one, one};
  const node *a = ir_expand(g, ir_reshape(g, x, 4, of_x), all);
  const node *b = ir_expand(g, ir_reshape(g, w, 4, of_w), all);
  return ir_reduce(g, ir_op2(g, OP_MUL, a, b), OP_ADD, 1, (int64_t[]){0});
}

/** Builds a 3 × 3 max-pooling with stride 2 of [n, size, size]. */
static const node *pooled(test *t, const node *x) {
  ir *g = t->g;
  const node *half = ix_const(g, SIZE / 2), *most = NULL;
  const node *dims[] = {x->dims[0], half, half};
  for (int64_t i = 0; i < 9; i++) {
    const node *starts[] = {ix_const(g, 0), ix_const(g, i / 3), ix_const(g, i % 3)};
    const node *part = ir_slice(g, x, starts, dims, (int64_t[]){1, 2, 2});
    most = most ? ir_op2(g, OP_MAX, most, part) : part;
  }
  return most;
}

static schedule *scheduled(test *t, const node *root, fusion_policy policy) {
  schedule_request r = {.roots = &root,
                        .n_roots = 1,
                        .math = MATH_DEFAULT,
                        .target.vector = VECTOR_BYTES,
                        .search.policy = (int)policy,
                        .search.seed = t->seed};
  schedule *s = schedule_make(t->g, &r);
  replay values = {.a = ir_arena(t->g), .seed = 1};
  replay_compare(&values, &r, s, 1e-4);
  return s;
}

/** Returns the array between the first two steps, as the second reads it. */
static const node *array_between(test *t, const schedule *s) {
  require(t, s->steps.n == 2, "other than two steps");
  size_t number = s->steps.at[0].buffers[0];
  const schedule_step *reader = &s->steps.at[1];
  node_list order = topo_sort(ir_arena(t->g), &reader->kernel, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_PARAM && reader->buffers[order.at[i]->ints[0]] == number)
      return order.at[i];
  diag_raise(&t->d, TN_ERR_INTERNAL, "the second step reads something else");
}

/** Positions are read with stride 2, channels consecutively. */
static void strided(test *t) {
  const node *x = buffer(t, 1, 3, (int64_t[]){CHANNELS, SIZE, SIZE});
  const node *y = mixed(t, x, buffer(t, 2, 2, (int64_t[]){CHANNELS, CHANNELS}));
  const node *z = mixed(t, pooled(t, y), buffer(t, 3, 2, (int64_t[]){CHANNELS, CHANNELS}));
  const node *array = array_between(t, scheduled(t, z, FUSION_BY_COST));
  require(t, array->rank == 3 && node_is_bits(array->dims[2], CHANNELS), "channels are not last");
}

static void channels_are_last_where_places_are_strided(void **state) {
  (void)state;
  run_body(strided, 1);
}

static const node *product(test *t, const node *a, const node *b) {
  ir *g = t->g;
  const node *m = a->dims[0], *k = a->dims[1], *n = b->dims[1], *dims[] = {m, k, n};
  const node *one = ix_const(g, 1), *left[] = {m, k, one}, *right[] = {one, k, n};
  const node *x = ir_expand(g, ir_reshape(g, a, 3, left), dims);
  const node *y = ir_expand(g, ir_reshape(g, b, 3, right), dims);
  return ir_reduce(g, ir_op2(g, OP_MUL, x, y), OP_ADD, 1, (int64_t[]){1});
}

/** True if a kernel has an array of this rank with permuted sizes. */
static bool has_turned(test *t, const schedule *s, size_t rank, int64_t first) {
  for (size_t i = 0; i < s->steps.n; i++) {
    node_list order = topo_sort(ir_arena(t->g), &s->steps.at[i].kernel, 1, NULL, NULL);
    for (size_t k = 0; k < order.n; k++) {
      const node *x = order.at[k];
      if (x->op == OP_PARAM && x->rank == rank && !node_is_bits(x->dims[0], (uint64_t)first))
        return true;
    }
  }
  return false;
}

/** Scales a matrix by the sums of its columns, then by those of its rows. */
static void plain(test *t) {
  const node *a = buffer(t, 1, 2, (int64_t[]){64, 64}),
             *b = buffer(t, 2, 2, (int64_t[]){64, CHANNELS});
  const node *y = product(t, a, b), *row[] = {ix_const(t->g, 1), y->dims[1]};
  const node *sum = ir_reduce(t->g, y, OP_ADD, 1, (int64_t[]){0});
  const node *all = ir_expand(t->g, ir_reshape(t->g, sum, 2, row), y->dims);
  const node *scaled = ir_op2(t->g, OP_MUL, y, all), *column[] = {y->dims[0], row[0]};
  sum = ir_reduce(t->g, scaled, OP_ADD, 1, (int64_t[]){1});
  all = ir_expand(t->g, ir_reshape(t->g, sum, 2, column), y->dims);
  const schedule *s = scheduled(t, ir_op2(t->g, OP_MUL, scaled, all), FUSION_BY_COST);
  require(t, s->steps.n > 1, "one step");
  require(t, !has_turned(t, s, 2, 64), "an array is turned");
}

static void arrays_stay_where_nothing_is_gained(void **state) {
  (void)state;
  run_body(plain, 1);
}

/** Forced random layouts give the graph's results. */
static void any(test *t) {
  const node *x = buffer(t, 1, 3, (int64_t[]){CHANNELS / 8, SIZE, SIZE});
  const node *w = buffer(t, 2, 2, (int64_t[]){CHANNELS / 8, CHANNELS / 8});
  const schedule *s = scheduled(t, mixed(t, pooled(t, mixed(t, x, w)), w), FUSION_RANDOM);
  t->is_exact = has_turned(t, s, 3, CHANNELS / 8);
}

static void any_layout_gives_the_same(void **state) {
  size_t turned = 0;
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) turned += run_body(any, seed);
  assert_true(turned > 5);
}

/** Residual blocks of two convolutions, the second one's output transposed. */
static void blocks(test *t) {
  const node *y = buffer(t, 1, 3, (int64_t[]){CHANNELS, SIZE, SIZE});
  size_t counts[2], n = 0;
  for (int64_t i = 1; i <= 24; i++) {
    const node *w = buffer(t, 2 * i, 2, (int64_t[]){CHANNELS, CHANNELS});
    const node *v = buffer(t, 2 * i + 1, 2, (int64_t[]){CHANNELS, CHANNELS}), *z = mixed(t, y, w);
    z = ir_op2(t->g, OP_MAX, z, ir_permute(t->g, z, (int64_t[]){0, 2, 1}));
    y = ir_op2(t->g, OP_ADD, y, mixed(t, z, v));
    if (i % 12) continue;
    schedule_request r = {
        .roots = &y, .n_roots = 1, .math = MATH_DEFAULT, .target.vector = VECTOR_BYTES};
    const schedule *s = schedule_make(t->g, &r);
    map kernels = {0};
    for (size_t k = 0; k < s->steps.n; k++)
      map_set(ir_arena(t->g), &kernels, s->steps.at[k].kernel, NULL);
    counts[n++] = kernels.n;
  }
  require(t, counts[0] == counts[1], "more blocks are more kernels");
  require(t, counts[1] < 6, "equal blocks are many kernels");
}

static void equal_blocks_are_equal_kernels(void **state) {
  (void)state;
  run_body(blocks, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_can_be_taken_apart_is_solved_exactly),
      cmocka_unit_test(what_cannot_is_solved_well),
      cmocka_unit_test(channels_are_last_where_places_are_strided),
      cmocka_unit_test(arrays_stay_where_nothing_is_gained),
      cmocka_unit_test(any_layout_gives_the_same),
      cmocka_unit_test(equal_blocks_are_equal_kernels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
