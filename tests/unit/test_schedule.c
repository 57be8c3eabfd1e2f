/* Tests whole schedules of tensor graphs: interpreted results, each value computed once and before
   it is read, fusion decisions and their limits, and compile time that is linear in the graph.
   Single ops are tested in tests/ir. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/core/tensor_loop.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/rewrite.h"
#include "ir/verify/verify_graph.h"
#include "schedule/core/axis_views.h"
#include "schedule/fuse/search_state.h"
#include "schedule/loops/outline_loops.h"
#include "schedule/schedule.h"
#include "schedule/values/build_values.h"
#include "schedule/values/constant_folding.h"
#include "schedule/values/versions.h"

#include "../ir/replay.h"
#include "support/counting_mem.h"
#include "support/graph_body.h"
#include "support/index_var.h"
#include "support/tensor_matmul.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

enum { GRAPHS = 400, LAYERS = 200, MOST_OPS = 200, MOST_BUFFERS = 25, MOST_SCRATCH = 1 << 18 };

typedef struct test {
  diag d;
  ir *g;
  uint64_t seed;
  double number;      /* argument or result of the test */
  const char *reason; /* of the last decision that costs did not make (static) */
  void (*body)(struct test *t);
} test;

static void call_body(void *arg) {
  test *t = arg;
  t->body(t);
}

static test run_case(void (*body)(test *t), uint64_t seed, double number) {
  test t = {.body = body, .seed = seed, .number = number};
  run_in_graph(&t.g, false, &t.d, call_body, &t, t.seed);
  return t;
}

static double run_body(void (*body)(test *t), uint64_t seed, double number) {
  return run_case(body, seed, number).number;
}

static void require(test *t, bool holds, const char *what) {
  if (!holds) diag_raise(&t->d, TN_ERR_INTERNAL, "%s", what);
}

static const node *buffer(test *t, dtype type, int64_t uid, size_t rank, const int64_t sizes[]) {
  const node *dims[4];
  int64_t ints[] = {uid, 0};
  for (size_t i = 0; i < rank; i++) dims[i] = ix_const(t->g, sizes[i]);
  return ir_node(t->g, OP_BUFFER, type, dims, rank, ints, 2);
}

static bool any(void *user, const node *n) {
  (void)user, (void)n;
  return true;
}

/* Invariants of every schedule. */

/** Returns the bytes of arrays that STAGEs build inside a kernel. */
static double scratch_of(const node *n) {
  double bytes = 0;
  if (n->op != OP_STAGE || stage_is_cut(n)) return 0;
  for (size_t i = 0; i < stage_n_values(n); i++) {
    double size = (double)dtype_bytes((dtype)stage_value(n, i)->dtype);
    for (size_t k = 0; k < stage_rank(n, i); k++) size *= (double)stage_extents(n, i)[k]->hi;
    bytes += size;
  }
  return bytes;
}

/** Checks that a step's kernel is well-formed and within the limits. */
static void check_kernel(test *t, const schedule_step *s) {
  double scratch = 0;
  if (s->kind == STEP_CUSTOM) return;
  if (verify_graph(&s->kernel, 1, LEVEL_KERNEL, ir_mem(t->g), &t->d) != TN_OK) diag_rethrow(&t->d);
  require(t, s->n_buffers <= MOST_BUFFERS, "a kernel has too many buffers");
  size_t ops = 0;
  node_list order = topo_sort(ir_arena(t->g), &s->kernel, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    ops += op_is_elementwise((op)order.at[i]->op) && order.at[i]->dtype != DT_INDEX;
    scratch += scratch_of(order.at[i]);
  }
  require(t, scratch <= MOST_SCRATCH, "a kernel has too much memory of its own");
  require(t, ops <= 2 * MOST_OPS, "a kernel has too many ops");
}

/** True if a step writes its k-th buffer. */
static bool writes_to(const schedule_step *s, size_t k) {
  return s->kind == STEP_CUSTOM ? k + 1 == s->n_buffers : k < s->n_outputs;
}

/** True if a step reads its k-th buffer. */
static bool reads_from(test *t, const schedule_step *s, size_t k) {
  if (s->kind == STEP_CUSTOM) return k + 1 < s->n_buffers;
  node_list order = topo_sort(ir_arena(t->g), &s->kernel, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *of = order.at[i]->op == OP_INDEX ? order.at[i]->src[0] : NULL;
    if (of && of->op == OP_PARAM && (size_t)of->ints[0] == k) return true;
  }
  return false;
}

/** Checks that buffers are written before they are read, and once unless a SET changes them or a
    step stores over its operand, and that they live from their first step to their last. */
static void check_buffers(test *t, const schedule *s) {
  arena *a = ir_arena(t->g);
  size_t *writes = arena_calloc(a, s->buffers.n + 1, sizeof *writes);
  size_t *first = arena_calloc(a, s->buffers.n + 1, sizeof *first);
  size_t *last = arena_calloc(a, s->buffers.n + 1, sizeof *last);
  for (size_t i = 0; i < s->steps.n; i++) {
    const schedule_step *step = &s->steps.at[i];
    check_kernel(t, step);
    for (size_t k = 0; k < step->n_buffers; k++) {
      size_t b = schedule_storage(s, step->buffers[k]);
      bool known = s->buffers.at[b].origin || writes[b];
      require(t, known || writes_to(step, k), "a buffer is read before it is written");
      if (!first[b]) first[b] = i + 1;
      last[b] = i + 1;
    }
    for (size_t k = 0; k < step->n_buffers; k++) {
      size_t b = schedule_storage(s, step->buffers[k]);
      bool is_over = writes[b] && !s->buffers.at[b].n_places && reads_from(t, step, k);
      if (writes_to(step, k) && !is_over) writes[b]++;
    }
  }
  for (size_t b = 0; b < s->buffers.n; b++) {
    const schedule_buffer *x = &s->buffers.at[b];
    if (!first[b] && !x->is_output) continue; /* an input removed by simplification */
    if (x->within) continue;
    require(t, x->is_written || (x->n_places ? writes[b] > 0 : writes[b] == !x->origin),
            "a value is not made exactly once");
    if (x->origin || !writes[b]) continue;
    require(t, x->first + 1 == first[b] && x->last + 1 == last[b], "a lifetime is wrong");
  }
}

static schedule *make(test *t, const schedule_request *r) {
  schedule *s = schedule_make(t->g, r);
  check_buffers(t, s);
  return s;
}

/* Random graphs of 32-bit integers, 4 by 6: exact, and with SETs in all places. */

typedef struct deciding {
  test *t;
  map decided; /* values with a decision */
} deciding;

typedef struct maker {
  test *t;
  rng r;
  node_list pool;
} maker;

static const node *any_value(maker *m) { return m->pool.at[rng_below(&m->r, m->pool.n)]; }

static const node *shaped(maker *m, const node *x, const int64_t sizes[2]) {
  const node *dims[] = {ix_const(m->t->g, sizes[0]), ix_const(m->t->g, sizes[1])};
  return ir_reshape(m->t->g, x, 2, dims);
}

/** Reverses rows or columns of x by a slice of all of it. */
static const node *flipped(maker *m, const node *x) {
  ir *g = m->t->g;
  bool rows = rng_chance(&m->r, 50);
  const node *starts[] = {ix_const(g, rows ? 3 : 0), ix_const(g, rows ? 0 : 5)};
  return ir_slice(g, x, starts, x->dims, (int64_t[]){rows ? -1 : 1, rows ? 1 : -1});
}

static const node *turned(maker *m, const node *x) {
  return shaped(m, ir_permute(m->t->g, x, (int64_t[]){1, 0}), (int64_t[]){4, 6});
}

/** Sums rows or columns, broadcast back. */
static const node *summed(maker *m, const node *x) {
  int64_t axis = (int64_t)rng_below(&m->r, 2);
  const node *sum = ir_reduce(m->t->g, x, OP_ADD, 1, &axis);
  return ir_expand(m->t->g, shaped(m, sum, (int64_t[]){axis ? 4 : 1, axis ? 1 : 6}), x->dims);
}

/** Replaces a rectangle of x by the same rectangle of another value, or of itself. */
static const node *changed(maker *m, const node *x) {
  ir *g = m->t->g;
  int64_t rows = rng_between(&m->r, 1, 4), columns = rng_between(&m->r, 1, 6);
  const node *starts[] = {ix_const(g, rng_between(&m->r, 0, 4 - rows)),
                          ix_const(g, rng_between(&m->r, 0, 6 - columns))};
  const node *sizes[] = {ix_const(g, rows), ix_const(g, columns)};
  const node *from = rng_chance(&m->r, 30) ? flipped(m, x) : any_value(m);
  const node *src[] = {x, ir_slice(g, x, starts, sizes, (int64_t[]){1, 1}),
                       ir_slice(g, from, starts, sizes, (int64_t[]){1, 1})};
  return ir_node(g, OP_SET, DT_I32, src, 3, NULL, 0);
}

static const node *custom(maker *m, const node *x) {
  const node *src[] = {x, any_value(m), x->dims[0], x->dims[1]};
  int64_t ints[] = {(int64_t)rng_below(&m->r, 1000), 0, 2, 0};
  return ir_node(m->t->g, OP_CUSTOM, DT_I32, src, 4, ints, 4);
}

static const node *next_value(maker *m) {
  const node *x = any_value(m);
  switch (rng_below(&m->r, 10)) {
  case 0: return flipped(m, x);
  case 1: return turned(m, x);
  case 2: return summed(m, x);
  case 3:
  case 4: return changed(m, x);
  case 5: return rng_chance(&m->r, 30) ? custom(m, x) : ir_op1(m->t->g, OP_NEG, x);
  case 6: return ir_op2(m->t->g, OP_MAX, x, any_value(m));
  case 7: return ir_op2(m->t->g, OP_SUB, x, any_value(m));
  default: return ir_op2(m->t->g, OP_ADD, x, any_value(m));
  }
}

/** Checks that each value is decided once, and by cost unless a rule decides. */
static void note_decision(void *user, const schedule_decision *d) {
  deciding *w = user;
  require(w->t, !map_has(&w->decided, d->tensor), "a value is decided twice");
  map_set(ir_arena(w->t->g), &w->decided, d->tensor, NULL);
  bool is_cheaper = d->fused > d->written;
  require(w->t, d->is_written == (d->reason || is_cheaper), "costs do not decide");
  require(w->t, d->reason || isfinite(d->fused), "what is impossible is chosen");
  require(w->t, d->fused <= d->inlined && d->fused <= d->placed, "there was a cheaper way");
  require(w->t, !d->is_hosted || d->is_written, "a host writes nothing");
}

static void check_values(const deciding *w, const schedule *s) {
  for (size_t i = 0; i < s->steps.n; i++) {
    require(w->t, *s->steps.at[i].name, "a step has no name");
    for (size_t k = 0; k < s->steps.at[i].values.n; k++)
      require(w->t, map_has(&w->decided, s->steps.at[i].values.at[k]),
              "a value is computed that was not decided");
  }
}

static void random_graph(test *t) {
  arena *a = ir_arena(t->g);
  deciding w = {.t = t};
  maker m = {.t = t, .r = {t->seed}};
  for (int64_t i = 0; i < 3; i++) vec_push(a, &m.pool, buffer(t, DT_I32, i, 2, (int64_t[]){4, 6}));
  for (size_t i = rng_below(&m.r, 25); i-- > 0;) {
    const node *x = next_value(&m);
    vec_push(a, &m.pool, x);
  }
  node_list roots = {0};
  for (size_t i = 1 + rng_below(&m.r, 4); i-- > 0;) vec_push(a, &roots, any_value(&m));
  schedule_request r = {.roots = roots.at,
                        .n_roots = roots.n,
                        .may_overwrite = t->seed % 3 ? any : NULL,
                        .observer.decided = note_decision,
                        .observer.user = &w,
                        .math = MATH_EXACT,
                        .target.arguments = t->seed % 5 ? 0 : 3};
  replay values = {.a = a, .seed = t->seed};
  schedule *s = make(t, &r);
  check_values(&w, s);
  replay_compare(&values, &r, s, 0);
}

static void schedules_do_what_graphs_mean(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < GRAPHS; seed++) run_body(random_graph, seed, 0);
}

/* Growth. */

/** Schedules a chain of `number` ops, with a second input now and then; the result is the time. */
static void long_chain(test *t) {
  ir *g = t->g;
  const node *x = buffer(t, DT_F32, 0, 1, (int64_t[]){64});
  for (int64_t i = 0; i < (int64_t)t->number; i++) {
    if (i % 7 == 3)
      x = ir_op2(g, OP_ADD, x, buffer(t, DT_F32, 1 + i % 50, 1, (int64_t[]){64}));
    else
      x = ir_op1(g, i % 2 ? OP_EXP : OP_ABS, x);
  }
  schedule_request r = {.roots = &x, .n_roots = 1, .math = MATH_DEFAULT};
  clock_t from = clock();
  schedule *s = schedule_make(g, &r);
  double seconds = (double)(clock() - from) / CLOCKS_PER_SEC;
  check_buffers(t, s);
  require(t, s->steps.n >= (size_t)t->number / MOST_OPS, "too few kernels for the cap");
  require(t, s->steps.n <= 2 + (size_t)t->number / 40, "too many kernels for the cap");
  t->number = seconds;
}

/** Schedules a chain of reductions, each read by the next: one kernel per value. */
static void chain_of_reductions(test *t) {
  ir *g = t->g;
  const node *x = buffer(t, DT_F32, 0, 2, (int64_t[]){4, 4});
  for (int64_t i = 0; i < (int64_t)t->number; i++) {
    const node *sum = ir_reduce(g, x, OP_ADD, 1, (int64_t[]){i % 2});
    const node *row[] = {ix_const(g, 1), ix_const(g, 4)};
    x = ir_expand(g, ir_reshape(g, sum, 2, row), x->dims);
  }
  schedule_request r = {.roots = &x, .n_roots = 1, .math = MATH_DEFAULT};
  clock_t from = clock();
  schedule *s = schedule_make(g, &r);
  double seconds = (double)(clock() - from) / CLOCKS_PER_SEC;
  check_buffers(t, s);
  t->number = seconds;
}

/** Schedules `number` states changed in place, each a root. */
static void many_states(test *t) {
  ir *g = t->g;
  node_list roots = {0};
  for (int64_t i = 0; i < (int64_t)t->number; i++) {
    const node *x = buffer(t, DT_F32, i, 1, (int64_t[]){4});
    const node *src[] = {x, x, ir_op1(g, OP_EXP, x)};
    vec_push(ir_arena(g), &roots, ir_node(g, OP_SET, DT_F32, src, 3, NULL, 0));
  }
  schedule_request r = {
      .roots = roots.at, .n_roots = roots.n, .may_overwrite = any, .math = MATH_DEFAULT};
  clock_t from = clock();
  schedule *s = schedule_make(g, &r);
  double seconds = (double)(clock() - from) / CLOCKS_PER_SEC;
  check_buffers(t, s);
  t->number = seconds;
}

/* Loops. */

static const node *chain_of(test *t, const node *x) {
  for (size_t i = 0; i < (size_t)t->number; i++) x = ir_op1(t->g, i % 2 ? OP_EXP : OP_ABS, x);
  return x;
}

/** Returns the results of a loop of three trips, in which the states start alike. */
static node_list loop_over(test *t, const node *init, const node *range, const node_list *steps) {
  node_list inits = {0}, results = {0};
  for (size_t i = 0; i < steps->n; i++) vec_push(ir_arena(t->g), &inits, init);
  const node *loop = loop_make(
      t->g, ir_arena(t->g),
      &(loop_spec){.range = range, .n_states = steps->n, .inits = inits.at, .steps = steps->at});
  for (size_t i = 0; i < steps->n; i++)
    vec_push(ir_arena(t->g), &results, loop_result(t->g, loop, i));
  return results;
}

static void take_loops_out(test *t, const node_list *roots) {
  normalised n;
  schedule_request r = {.roots = roots->at, .n_roots = roots->n, .math = MATH_DEFAULT};
  normalise_graph(t->g, &r, &n);
  clock_t from = clock();
  loops_extract(t->g, &r, &n, 0);
  t->number = (double)(clock() - from) / CLOCKS_PER_SEC;
  require(t, n.loops.n <= 1, "more loops than there were");
}

/** States whose steps share most of their nodes. */
static void states_of_a_loop(test *t) {
  const node *x = buffer(t, DT_F32, 0, 1, (int64_t[]){4});
  const node *range = range_make(t->g, ix_const(t->g, 3), KIND_LOOP);
  const node *shared = chain_of(t, loop_carry_make(t->g, range, 0, x));
  node_list steps = {0};
  for (int64_t i = 0; i < (int64_t)t->number; i++)
    vec_push(ir_arena(t->g), &steps,
             ir_op2(t->g, OP_ADD, loop_carry_make(t->g, range, i, x), shared));
  node_list results = loop_over(t, x, range, &steps);
  take_loops_out(t, &results);
}

/** Roots that share most of their nodes, behind a state that stays. */
static void roots_behind_a_loop(test *t) {
  const node *x = buffer(t, DT_F32, 0, 1, (int64_t[]){4});
  const node *range = range_make(t->g, ix_const(t->g, 3), KIND_LOOP);
  const node *kept = loop_carry_make(t->g, range, 0, x);
  node_list steps = {0}, roots = {0};
  vec_push(ir_arena(t->g), &steps, kept);
  vec_push(ir_arena(t->g), &steps, ir_op2(t->g, OP_ADD, kept, loop_carry_make(t->g, range, 1, x)));
  const node *shared = chain_of(t, loop_over(t, x, range, &steps).at[1]);
  for (int64_t i = 0; i < (int64_t)t->number; i++)
    vec_push(ir_arena(t->g), &roots,
             ir_op2(t->g, OP_ADD, shared, buffer(t, DT_F32, 1 + i, 1, (int64_t[]){4})));
  take_loops_out(t, &roots);
}

/** States that each become the one before; the first stays. */
static void states_that_stay(test *t) {
  const node *x = buffer(t, DT_F32, 0, 1, (int64_t[]){4});
  const node *range = range_make(t->g, ix_const(t->g, 3), KIND_LOOP);
  node_list steps = {0};
  for (int64_t i = 0; i < (int64_t)t->number; i++)
    vec_push(ir_arena(t->g), &steps, loop_carry_make(t->g, range, i ? i - 1 : 0, x));
  node_list results = loop_over(t, x, range, &steps);
  take_loops_out(t, &results);
}

/** True under a sanitizer, which distorts memory times, so that times are not checked. */
static bool is_sanitized(void) {
  const char *which = getenv("TENON_SANITIZE");
  return which && *which;
}

static void check_linear(const char *what, void (*body)(test *t), double most) {
  double times[3], nodes = most / 100;
  if (is_sanitized()) nodes /= 10;
  for (int i = 0; i < 3; i++, nodes *= 10) {
    times[i] = run_body(body, 0, nodes);
    print_message("%s: %.0f nodes, %.4f s\n", what, nodes, times[i]);
  }
  /* 10 if linear, 100 if quadratic; the largest graph exceeds the caches */
  if (!is_sanitized()) assert_true(times[2] < 50 * times[1] + 0.05);
}

static void time_is_linear_in_the_graph(void **state) {
  (void)state;
  check_linear("elementwise chain", long_chain, 100000);
  check_linear("chain of reductions", chain_of_reductions, 30000);
  check_linear("states", many_states, 30000);
  check_linear("states of a loop", states_of_a_loop, 1000);
  check_linear("roots behind a loop", roots_behind_a_loop, 3000);
  check_linear("states that stay", states_that_stay, 3000);
}

/* Equal layers. */

static const node *layer(test *t, const node *x, int64_t uid) {
  ir *g = t->g;
  const int64_t n = 8;
  const node *dims[] = {ix_const(g, n), ix_const(g, n), ix_const(g, n)};
  const node *left[] = {dims[0], dims[0], ix_const(g, 1)},
             *right[] = {ix_const(g, 1), dims[0], dims[0]};
  const node *w = buffer(t, DT_F32, uid, 2, (int64_t[]){n, n});
  const node *a = ir_expand(g, ir_reshape(g, x, 3, left), dims);
  const node *b = ir_expand(g, ir_reshape(g, w, 3, right), dims);
  const node *y = ir_reduce(g, ir_op2(g, OP_MUL, a, b), OP_ADD, 1, (int64_t[]){1});
  const node *zero = ir_fill(g, ir_const(g, DT_F32, 0), 2, dims);
  return ir_op2(g, OP_MAX, y, zero);
}

static bool is_weight(void *user, const node *n) {
  (void)user;
  return n->ints[0] > 0;
}

/** Looks for constants of layers with weights of their own. */
static void constants_of_layers(test *t) {
  const node *x = buffer(t, DT_F32, 0, 2, (int64_t[]){8, 8});
  int64_t n = (int64_t)t->number;
  for (int64_t i = 0; i < n; i++) x = layer(t, x, 1 + i);
  clock_t from = clock();
  constant_folding_find(
      t->g,
      &(constant_folding_request){
          .roots = &x, .n_roots = 1, .is_constant = is_weight, .first_uid = n + 1, .vector = 32});
  t->number = (double)(clock() - from) / CLOCKS_PER_SEC;
}

static void time_is_linear_in_constants(void **state) {
  (void)state;
  check_linear("layers with weights", constants_of_layers, 10000);
}

/** Counts the different kernels of LAYERS equal layers. */
static void equal_layers(test *t) {
  const node *x = buffer(t, DT_F32, 0, 2, (int64_t[]){8, 8});
  for (int64_t i = 0; i < LAYERS; i++) x = layer(t, x, 1 + i);
  schedule_request r = {.roots = &x, .n_roots = 1, .math = MATH_DEFAULT};
  schedule *s = make(t, &r);
  map kernels = {0};
  for (size_t i = 0; i < s->steps.n; i++)
    map_set(ir_arena(t->g), &kernels, s->steps.at[i].kernel, t);
  print_message("%d equal layers: %zu steps, %zu different kernels\n", LAYERS, s->steps.n,
                kernels.n);
  t->number = (double)kernels.n;
}

/** Equal layers share kernels: a constant number, for one or two layers each, and others for the
    first and last ones, which read the input and write the result. */
static void equal_layers_share_kernels(void **state) {
  (void)state;
  assert_true(run_body(equal_layers, 0, 0) <= 8);
}

/* Memory. */

enum { MANY_LAYERS = 2000, LAYER_BYTES = 20000 };

static void layers_of_a_plan(test *t) {
  const node *x = buffer(t, DT_F32, 0, 2, (int64_t[]){8, 8});
  for (int64_t i = 0; i < MANY_LAYERS; i++) x = layer(t, x, 1 + i);
  schedule_request r = {.roots = &x, .n_roots = 1, .math = MATH_DEFAULT};
  make(t, &r);
}

/** A pass keeps nothing but its result: a layer of a plan takes the memory of its nodes, values and
    steps. */
static void layers_take_little_memory(void **state) {
  (void)state;
  counting_mem counts = {0};
  mem m = counting_mem_of(&counts);
  test t = {.body = layers_of_a_plan};
  t.g = ir_new(&m, &t.d, false);
  assert_non_null(t.g);
  assert_int_equal(diag_catch(&t.d, call_body, &t), TN_OK);
  print_message("%zu bytes a layer\n", counts.peak / MANY_LAYERS);
  assert_in_range(counts.peak / MANY_LAYERS, 1, LAYER_BYTES);
  ir_free(t.g);
  assert_int_equal(counts.bytes, 0);
}

/* Limits. */

/** Three products with computed left sides: a row of one fits into a kernel's own memory, rows of
    all three do not. */
static void three_products(test *t) {
  ir *g = t->g;
  const node *sum = NULL;
  for (int64_t i = 0; i < 3; i++) {
    const node *a = buffer(t, DT_F32, 2 * i, 2, (int64_t[]){2, 7000});
    const node *b = buffer(t, DT_F32, 2 * i + 1, 2, (int64_t[]){7000, 16});
    const node *p = tensor_matmul(g, ir_op1(g, OP_EXP, a), b);
    sum = sum ? ir_op2(g, OP_ADD, sum, p) : p;
  }
  schedule_request r = {.roots = &sum, .n_roots = 1, .math = MATH_DEFAULT};
  for (int i = 0; i < 20; i++) {
    r.search.policy = i ? FUSION_RANDOM : FUSION_BY_COST;
    r.search.seed = (uint64_t)i;
    make(t, &r);
  }
}

static void scratch_is_limited_for_a_kernel(void **state) {
  (void)state;
  run_body(three_products, 0, 0);
}

/* Costs of kernels. */

static double same_cost(void *user, size_t device, const node *kernel, bool is_searched) {
  (void)user, (void)device, (void)kernel, (void)is_searched;
  return 1;
}

static bool has_two_reductions(const test *t, const node *kernel) {
  node_list order = topo_sort(ir_arena(t->g), &kernel, 1, NULL, NULL);
  size_t n = 0;
  for (size_t i = 0; i < order.n; i++) n += order.at[i]->op == OP_FOLD;
  return n > 1;
}

/** Kernels of several reductions are dear. */
static double cost_of_reductions(void *user, size_t device, const node *kernel, bool is_searched) {
  (void)device, (void)is_searched;
  return has_two_reductions(user, kernel) ? 1e9 : 1;
}

enum { PAGE_OF_ROWS = 1100 }; /* columns: rows of f32 that are more than a page apart */

/** Sums that read an array of rows a page apart are dear. */
static double cost_of_pages(void *user, size_t device, const node *kernel, bool is_searched) {
  (void)device, (void)is_searched;
  const test *t = user;
  node_list order = topo_sort(ir_arena(t->g), &kernel, 1, NULL, NULL);
  bool has_fold = false, has_rows = false;
  for (size_t i = 0; i < order.n; i++) {
    const node *x = order.at[i];
    has_fold |= x->op == OP_FOLD;
    has_rows |= x->op == OP_PARAM && node_is_bits(x->dims[x->rank - 1u], PAGE_OF_ROWS);
  }
  return has_fold && has_rows ? 1e9 : 1;
}

enum { OF_WEIGHTS = 40 }; /* columns of weights */

/** Products with weights are dear if they compute another reduction. */
static double cost_of_computed_operands(void *user, size_t device, const node *kernel,
                                        bool is_searched) {
  (void)device, (void)is_searched;
  const test *t = user;
  node_list order = topo_sort(ir_arena(t->g), &kernel, 1, NULL, NULL);
  bool has_weights = false;
  for (size_t i = 0; i < order.n; i++) {
    const node *x = order.at[i];
    has_weights |= x->op == OP_PARAM && x->rank == 2 && node_is_bits(x->dims[0], 64) &&
                   node_is_bits(x->dims[1], OF_WEIGHTS);
  }
  return has_weights && has_two_reductions(t, kernel) ? 1e9 : 1;
}

enum {
  NO_COSTS,
  SAME_COSTS,
  DEAR_PAGES,
  DEAR_OPERANDS,
  DEAR_REDUCTIONS,
  FIRST_GAINS,
  BOTH_GAIN,
  BEST_GAINS
};

/** Costs with the first and with the best schedule, of kernels with one reduction and with two:
   one kernel in place of two saves a tenth by first schedules but nothing by best ones; by both;
   and by best ones alone. */
static const double gains[][2][2] = {[FIRST_GAINS] = {{0.45e6, 0.8e6}, {0.35e6, 0.75e6}},
                                     [BOTH_GAIN] = {{0.45e6, 0.8e6}, {0.4e6, 0.5e6}},
                                     [BEST_GAINS] = {{0.45e6, 1e6}, {0.45e6, 0.5e6}}};

static double cost_with_gain(void *user, size_t device, const node *kernel, bool is_searched) {
  (void)device;
  const test *t = user;
  return gains[t->seed][is_searched][has_two_reductions(t, kernel)];
}

static double (*const costs[])(void *, size_t, const node *,
                               bool) = {[SAME_COSTS] = same_cost,
                                        [DEAR_PAGES] = cost_of_pages,
                                        [DEAR_OPERANDS] = cost_of_computed_operands,
                                        [DEAR_REDUCTIONS] = cost_of_reductions,
                                        [FIRST_GAINS] = cost_with_gain,
                                        [BOTH_GAIN] = cost_with_gain,
                                        [BEST_GAINS] = cost_with_gain};

/** Keeps the reason of a decision about a value that kernels read. */
static void note_reason(void *user, const schedule_decision *d) {
  test *t = user;
  if (d->readers && d->reason) t->reason = d->reason;
}

/** The steps of a result, by costs of kernels. */
static void count_steps(test *t, const node *y) {
  schedule_request r = {.roots = &y, .n_roots = 1, .math = MATH_DEFAULT};
  r.target.vector = 64;
  r.estimates = (kernel_estimates){costs[t->seed], t};
  r.observer.decided = note_reason;
  r.observer.user = t;
  t->number = (double)make(t, &r)->steps.n;
}

/** A product of the sum of four elements of another product's rows. */
static void combined_operand(test *t) {
  ir *g = t->g;
  const int64_t square[] = {64, 64};
  const node *y = NULL, *rows = ix_const(g, 64);
  const node *p = tensor_matmul(g, buffer(t, DT_F32, 0, 2, (int64_t[]){256, 64}),
                                buffer(t, DT_F32, 1, 2, square));
  for (int64_t i = 0; i < 4; i++) {
    const node *part = axis_slice(g, p, 0, 64 * i, rows, 1);
    y = y ? ir_op2(g, OP_ADD, y, part) : part;
  }
  y = tensor_matmul(g, y, buffer(t, DT_F32, 2, 2, square));
  count_steps(t, y);
}

/** The sum is stored: not each tile of the second product adds the elements that it reads. */
static void combined_operands_are_stored(void **state) {
  (void)state;
  assert_int_equal(run_body(combined_operand, NO_COSTS, 0), 2);
}

/** Distances of rows from their maxima, squared and added. */
static void two_reductions(test *t) {
  ir *g = t->g;
  const node *x = buffer(t, DT_F32, 0, 2, (int64_t[]){256, 512});
  const node *column[] = {x->dims[0], ix_const(g, 1)};
  const node *most = ir_reshape(g, ir_reduce(g, x, OP_MAX, 1, (int64_t[]){1}), 2, column);
  most = ir_expand(g, most, x->dims);
  const node *d = ir_op2(g, OP_SUB, x, most);
  const node *y = ir_reduce(g, ir_op2(g, OP_MUL, d, d), OP_ADD, 1, (int64_t[]){1});
  count_steps(t, y);
}

/** Kernels are merged, and split, where their costs say so. */
static void stores_follow_costs(void **state) {
  (void)state;
  assert_int_equal(run_body(combined_operand, SAME_COSTS, 0), 1);
  assert_int_equal(run_body(combined_operand, DEAR_REDUCTIONS, 0), 2);
  assert_int_equal(run_body(two_reductions, NO_COSTS, 0), 1);
  assert_int_equal(run_body(two_reductions, SAME_COSTS, 0), 1);
  assert_int_equal(run_body(two_reductions, DEAR_REDUCTIONS, 0), 2);
}

/** A product with a transposed left factor of rows more than a page apart. */
static void product_across_pages(test *t) {
  ir *g = t->g;
  const node *a = buffer(t, DT_F32, 0, 2, (int64_t[]){200, PAGE_OF_ROWS});
  const node *b = buffer(t, DT_F32, 1, 2, (int64_t[]){200, 64});
  count_steps(t, tensor_matmul(g, ir_permute(g, a, (int64_t[]){1, 0}), b));
}

/** The same with rows that share a page. */
static void product_within_pages(test *t) {
  ir *g = t->g;
  const node *a = buffer(t, DT_F32, 0, 2, (int64_t[]){200, 100});
  const node *b = buffer(t, DT_F32, 1, 2, (int64_t[]){200, 64});
  count_steps(t, tensor_matmul(g, ir_permute(g, a, (int64_t[]){1, 0}), b));
}

/** The same for a right factor, which lanes read along its rows. */
static void product_of_long_rows(test *t) {
  ir *g = t->g;
  const node *a = buffer(t, DT_F32, 0, 2, (int64_t[]){64, 200});
  const node *b = buffer(t, DT_F32, 1, 2, (int64_t[]){200, PAGE_OF_ROWS});
  count_steps(t, tensor_matmul(g, a, b));
}

/** The cost of the same of a sum that is an output too. */
static void product_of_an_output(test *t) {
  ir *g = t->g;
  const int64_t long_rows[] = {200, PAGE_OF_ROWS};
  const node *a = buffer(t, DT_F32, 0, 2, long_rows), *b = buffer(t, DT_F32, 1, 2, long_rows);
  const node *sum = ir_op2(g, OP_ADD, a, b);
  const node *c = buffer(t, DT_F32, 2, 2, (int64_t[]){200, 640});
  const node *roots[] = {sum, tensor_matmul(g, ir_permute(g, sum, (int64_t[]){1, 0}), c)};
  schedule_request r = {.roots = roots, .n_roots = 2, .math = MATH_DEFAULT};
  r.target.vector = 64;
  r.estimates = (kernel_estimates){costs[t->seed], t};
  const schedule *s = make(t, &r);
  for (size_t i = 0; i < s->steps.n; i++)
    t->number += cost_of_pages(t, 0, s->steps.at[i].kernel, false);
}

/** An operand that reductions read across pages is copied, with their axis last, where costs say
    so; no other is. */
static void operands_across_pages_are_copied(void **state) {
  (void)state;
  assert_int_equal(run_body(product_across_pages, SAME_COSTS, 0), 1);
  assert_int_equal(run_body(product_across_pages, DEAR_PAGES, 0), 2);
  assert_int_equal(run_body(product_within_pages, DEAR_PAGES, 0), 1);
  assert_true(run_body(product_of_an_output, SAME_COSTS, 0) > 1e9);
  assert_int_equal(run_body(product_of_an_output, DEAR_PAGES, 0), 2);
  assert_int_equal(run_body(product_of_long_rows, DEAR_PAGES, 0), 1);
}

/** A product of open rows, from which their sums were taken away again and again. */
static void product_of_open_rows(test *t) {
  ir *g = t->g;
  const node *dims[] = {index_var(g, "n", 64, 4096), ix_const(g, 64)};
  const node *column[] = {dims[0], ix_const(g, 1)};
  const node *x = ir_node(g, OP_BUFFER, DT_F32, dims, 2, (int64_t[]){0, 0}, 2);
  for (size_t i = 0; i < 8; i++) {
    const node *sum = ir_reshape(g, ir_reduce(g, x, OP_ADD, 1, (int64_t[]){1}), 2, column);
    x = ir_op2(g, OP_SUB, x, ir_expand(g, sum, x->dims));
  }
  count_steps(t, tensor_matmul(g, x, buffer(t, DT_F32, 1, 2, (int64_t[]){64, OF_WEIGHTS})));
}

/** The operand that a contraction of open rows computes is tried before the many values that it is
    made of. */
static void operands_of_open_rows_are_tried_first(void **state) {
  (void)state;
  assert_int_equal(run_body(product_of_open_rows, SAME_COSTS, 0), 1);
  assert_int_equal(run_body(product_of_open_rows, DEAR_OPERANDS, 0), 2);
}

/** A decision is explained by what made it. */
static void decisions_have_their_reasons(void **state) {
  (void)state;
  assert_string_equal(run_case(combined_operand, NO_COSTS, 0).reason,
                      "a contraction or window would compute it again and again");
  assert_string_equal(run_case(combined_operand, SAME_COSTS, 0).reason,
                      "kernels that compute it themselves take less time");
  assert_string_equal(run_case(two_reductions, DEAR_REDUCTIONS, 0).reason,
                      "kernels that read it from memory take less time");
}

/** A gain by first schedules has to hold for the best ones, which are searched for it alone. */
static void best_schedules_decide(void **state) {
  (void)state;
  assert_int_equal(run_body(combined_operand, FIRST_GAINS, 0), 2);
  assert_int_equal(run_body(combined_operand, BOTH_GAIN, 0), 1);
  assert_int_equal(run_body(combined_operand, BEST_GAINS, 0), 2);
}

/* Code size. A kernel with many loads compiles slowly, even more so if each lane has its own
   mask. */

enum { MOST_LOADS = 40 }; /* masked, in 64-byte vectors of f32 */

static size_t count_loads(ir *g, const node *kernel) {
  node_list order = topo_sort(ir_arena(g), &kernel, 1, NULL, NULL);
  size_t loads = 0;
  for (size_t i = 0; i < order.n; i++)
    loads += order.at[i]->op == OP_INDEX && order.at[i]->src[0]->op == OP_PARAM;
  return loads;
}

static const node *padded(ir *g, const node *x, const node *low, const node *size) {
  return ir_pad(g, x, ir_const(g, (dtype)x->dtype, 0), &low, &size);
}

/** Selects x before `at` and y from there on; both begin at 0 and have the size of the result. */
static const node *chosen(ir *g, const node *at, const node *x, const node *y) {
  const node *where = ir_fill(g, ir_cast(g, at, DT_I64), 1, x->dims);
  const node *iota = ir_iota(g, DT_I64, 1, x->dims, 0);
  return ir_op3(g, OP_WHERE, ir_op2(g, OP_LT, iota, where), x, y);
}

/** Rotates x: its first `by` elements come last. */
static const node *rolled(ir *g, const node *x, int64_t by) {
  const node *size = x->dims[0], *first = ix_const(g, by), *zero = ix_const(g, 0);
  const node *rest = ix_add_const(g, size, -by);
  const node *low = ir_slice(g, x, &first, &rest, (int64_t[]){1});
  const node *high = ir_slice(g, x, &zero, &first, (int64_t[]){1});
  return chosen(g, rest, padded(g, low, zero, size), padded(g, high, rest, size));
}

/** Nested rotations: each level reads the one before at two positions. */
static void rolls(test *t) {
  ir *g = t->g;
  int64_t ints[] = {0, 0}, bounds[] = {16, 20};
  const node *size = ir_make(
      g,
      &(node_spec){
          .op = OP_VAR, .dtype = DT_INDEX, .ints = bounds, .n_int = 2, .text = "n", .n_text = 1});
  const node *x = ir_node(g, OP_BUFFER, DT_F32, &size, 1, ints, 2);
  for (int64_t i = 0; i < (int64_t)t->number; i++)
    x = ir_op2(g, OP_ADD, x, rolled(g, x, 1 + i % 15));
  schedule_request r = {.roots = &x, .n_roots = 1, .math = MATH_DEFAULT, .target.vector = 64};
  clock_t from = clock();
  schedule *s = schedule_make(g, &r);
  t->number = (double)(clock() - from) / CLOCKS_PER_SEC;
  check_buffers(t, s);
  for (size_t i = 0; i < s->steps.n; i++)
    require(t, count_loads(g, s->steps.at[i].kernel) <= MOST_LOADS, "a kernel has too many loads");
}

enum { COLUMNS = 5 };

/** Concatenates rows of an array by halving the list, as users concatenate arrays. */
static const node *rows(test *t, const node *x, int64_t first, int64_t last) {
  ir *g = t->g;
  int64_t middle = first + (last - first) / 2;
  if (last - first > 1)
    return chosen(g, ix_const(g, COLUMNS * middle), rows(t, x, first, middle),
                  rows(t, x, middle, last));
  const node *starts[] = {ix_const(g, first), ix_const(g, 0)};
  const node *sizes[] = {ix_const(g, 1), ix_const(g, COLUMNS)};
  const node *row = ir_reshape(g, ir_slice(g, x, starts, sizes, (int64_t[]){1, 1}), 1, sizes + 1);
  return padded(g, row, ix_const(g, COLUMNS * first), ix_mul(g, x->dims[0], sizes[1]));
}

static void many_rows(test *t) {
  ir *g = t->g;
  int64_t n = (int64_t)t->number;
  const node *x = rows(t, buffer(t, DT_F32, 0, 2, (int64_t[]){n, COLUMNS}), 0, n);
  schedule_request r = {.roots = &x, .n_roots = 1, .math = MATH_DEFAULT, .target.vector = 64};
  clock_t from = clock();
  schedule *s = schedule_make(g, &r);
  t->number = (double)(clock() - from) / CLOCKS_PER_SEC;
  check_buffers(t, s);
  for (size_t i = 0; i < s->steps.n; i++)
    require(t, count_loads(g, s->steps.at[i].kernel) <= MOST_LOADS, "a kernel has too many loads");
  print_message("%lld rows: %zu kernels\n", (long long)n, s->steps.n);
  require(t, s->steps.n <= 1 + (size_t)n / 6, "too many kernels for the cap");
}

static void code_is_limited_for_a_kernel(void **state) {
  (void)state;
  check_linear("rolls", rolls, 5000);
  check_linear("rows", many_rows, 10000);
}

/** Elementwise operations, each level of which reads the one before twice, then a chain of others:
    as a tree they are more than a kernel may have, and the part below some of the chain is less. */
static void shared_operands(test *t) {
  ir *g = t->g;
  const int64_t size = 64;
  const node *x = buffer(t, DT_F32, 0, 1, &size), *by = buffer(t, DT_F32, 1, 1, &size);
  for (int64_t i = 0; i < 7; i++)
    x = ir_op2(g, OP_MAX, ir_op2(g, OP_MUL, x, by), ir_op2(g, OP_ADD, x, by));
  for (int64_t i = 0; i < 340; i++) x = ir_op2(g, i % 2 ? OP_MUL : OP_ADD, x, by);
  count_steps(t, x);
}

/** Elements that several operands share are one kernel's code once. */
static void shared_operands_count_once(void **state) {
  (void)state;
  assert_int_equal(run_body(shared_operands, NO_COSTS, 0), 1);
}

/** Rows that are added at indices, times a costly number of each row; to distinct elements, if the
    number of the test says so. */
static void rows_at_indices(test *t) {
  ir *g = t->g;
  const int64_t size[] = {1 << 16, 64};
  const node *x = buffer(t, DT_F32, 0, 2, size);
  const node *old = buffer(t, DT_F32, 1, 2, (int64_t[]){16, 64});
  const node *row = ir_op1(g, OP_EXP, ir_op1(g, OP_EXP, buffer(t, DT_F32, 2, 1, size)));
  const node *column[] = {x->dims[0], ix_const(g, 1)};
  const node *at = ir_reshape(g, buffer(t, DT_I64, 3, 1, size), 2, column);
  const node *factor = ir_expand(g, ir_reshape(g, row, 2, column), x->dims);
  const node *index[] = {ir_expand(g, at, x->dims), ir_iota(g, DT_I64, 2, x->dims, 1)};
  const node *values = ir_op2(g, OP_MUL, x, factor);
  count_steps(t, (t->number ? ir_scatter_distinct : ir_scatter)(g, old, values, index, OP_ADD));
}

/** The loop over updates is inside of all others: what each of them needs is computed before. Those
    of distinct elements may run in any order. */
static void updates_are_innermost(void **state) {
  (void)state;
  assert_int_equal(run_body(rows_at_indices, NO_COSTS, 0), 3); /* with a copy of the array */
  assert_int_equal(run_body(rows_at_indices, NO_COSTS, 1), 2);
}

/* Names of steps. */

/** A product of a product of an array that rows were added to, of which the old contents are kept;
    all but the first product are labelled. */
static void named_steps(test *t) {
  ir *g = t->g;
  const int64_t size[] = {256, 512};
  const node *old = buffer(t, DT_F32, 0, 2, size), *x = buffer(t, DT_F32, 1, 2, size);
  const node *at = ir_expand(
      g,
      ir_reshape(g, buffer(t, DT_I64, 2, 1, size), 2, (const node *[]){x->dims[0], ix_const(g, 1)}),
      x->dims);
  const node *index[] = {at, ir_iota(g, DT_I64, 2, x->dims, 1)};
  const node *y = ir_scatter(g, old, x, index, OP_ADD);
  const node *first = tensor_matmul(g, y, buffer(t, DT_F32, 3, 2, (int64_t[]){512, 512}));
  const node *sum = tensor_matmul(g, first, buffer(t, DT_F32, 4, 2, (int64_t[]){512, 512}));
  const node *roots[] = {sum, ir_op1(g, OP_NEG, old)};
  const schedule_label labels[] = {{y, "Scatter"}, {sum, "Products"}, {roots[1], "Neg"}};
  schedule_request r = {.roots = roots, .n_roots = 2, .math = MATH_DEFAULT, .target.vector = 64};
  r.labels = labels;
  r.n_labels = 3;
  const schedule *s = make(t, &r);
  size_t scatters = 0, products = 0;
  for (size_t i = 0; i < s->steps.n; i++) {
    scatters += !strcmp(s->steps.at[i].name, "Scatter");
    products += !strcmp(s->steps.at[i].name, "Products");
  }
  require(t, s->steps.n == 5, "the steps are others");
  require(t, scatters == 2, "the copy and the updates have not their label");
  require(t, products == 2, "both products have not the label of their result");
}

/** Labels stay at what they label where arrays are copied, and name what that consists of. */
static void steps_have_the_names_of_labels(void **state) {
  (void)state;
  run_body(named_steps, 0, 0);
}

/* State and options of the fusion search. */

static const machine some_machine = {.cores = 2,
                                     .operation = 0.03,
                                     .tile = 12,
                                     .launch = 3000,
                                     .scratch = 1 << 15,
                                     .cache = {1 << 15, 1 << 20},
                                     .shared = 1 << 25};

/** Caches grow with the cores; the memory's bandwidth does not without end. */
static void memory_saturates(void **state) {
  (void)state;
  machine few = some_machine, many = some_machine, most = some_machine;
  many.cores = 64;
  most.cores = 1024;
  double far = 2 * few.shared, near = few.cache[1] / 8;
  assert_true(cost_per_shared_byte(&few, near) == 512 * cost_per_shared_byte(&most, near));
  assert_true(cost_per_shared_byte(&few, few.shared) ==
              512 * cost_per_shared_byte(&most, few.shared));
  assert_true(cost_per_shared_byte(&few, far) > 20 * cost_per_shared_byte(&many, far));
  assert_true(cost_per_shared_byte(&many, far) == cost_per_shared_byte(&most, far));
}

static values values_of(test *t, const node *root) {
  schedule_request r = {.roots = &root, .n_roots = 1, .math = MATH_EXACT};
  normalised n;
  values v;
  normalise_graph(t->g, &r, &n);
  versions_insert_copies(t->g, &r, &n);
  values_build(t->g, r.math, NULL, NULL, &n, &v);
  cost_model_measure(t->g, &some_machine, &v);
  return v;
}

static const node *reversed(ir *g, const node *x) {
  const node *start = ix_add_const(g, x->dims[0], -1);
  return ir_slice(g, x, &start, x->dims, (int64_t[]){-1});
}

/** A value that reads x, then another array, then x again. */
static void read_between(test *t) {
  ir *g = t->g;
  const node *x = ir_op1(g, OP_EXP, buffer(t, DT_F32, 0, 1, (int64_t[]){9}));
  const node *y = ir_op1(g, OP_EXP, buffer(t, DT_F32, 1, 1, (int64_t[]){9}));
  values v = values_of(t, ir_op3(g, OP_FMA, x, y, reversed(g, x)));
  require(t, v.at.n == 3 && v.at.at[2]->inputs.elements.n == 3, "values or reads are missing");
  require(t, v.at.at[2]->inputs.tensors.n == 2, "a source is not there once");
  for (size_t i = 0; i < 2; i++)
    require(t, v.at.at[i]->facts->readers == 1, "a reader is not counted once");
}

static void readers_count_once(void **state) {
  (void)state;
  run_body(read_between, 0, 0);
}

/** Several SETs of one array, of which one keeps it: each other one changes a copy of the array,
   not of another copy. */
static void set_often(test *t) {
  enum { SETS = 6 };
  ir *g = t->g;
  const node *x = ir_op1(g, OP_EXP, buffer(t, DT_F32, 0, 1, (int64_t[]){8})), *roots[SETS];
  for (int i = 0; i < SETS; i++) {
    const node *at = ix_const(g, i), *size = ix_const(g, 2);
    const node *src[] = {x, ir_slice(g, x, &at, &size, (int64_t[]){1}),
                         buffer(t, DT_F32, 1 + i, 1, (int64_t[]){2})};
    roots[i] = ir_node(g, OP_SET, DT_F32, src, 3, NULL, 0);
  }
  schedule_request r = {.roots = roots, .n_roots = SETS, .math = MATH_EXACT};
  normalised n;
  values v;
  normalise_graph(g, &r, &n);
  versions_insert_copies(g, &r, &n);
  require(t, !n.copies.n, "an array that nothing else needs is copied");
  values_build(g, r.math, NULL, NULL, &n, &v);
  size_t copies = 0, keepers = 0;
  for (size_t i = 0; i < SETS; i++) {
    const node *old = n.roots[i]->src[0];
    keepers += old->op == OP_EXP;
    copies += map_has(&n.copies, old) && old->src[0]->op == OP_EXP;
    for (size_t k = 0; k < i; k++)
      require(t, n.roots[k]->src[0] != old, "two SETs change one array");
  }
  require(t, keepers == 1 && copies == SETS - 1, "a copy is one of another copy");
  require(t, v.at.n == 1 + copies + SETS, "values are missing");
}

static void sets_have_copies(void **state) {
  (void)state;
  run_body(set_often, 0, 0);
}

/** Returns the options of a value that only exp computes, in the only group that reads it; all
    other values are roots or inlined. */
static options options_of_exp(test *t, values *v) {
  fusion_request request = {.machine = some_machine, .arguments = 24};
  grouping s = {.g = t->g,
                .a = ir_arena(t->g),
                .work = ir_scratch(t->g),
                .request = &request,
                .m = &request.machine};
  s.values = v;
  for (size_t i = 0; i < v->at.n; i++)
    v->at.at[i]->places = arena_calloc(s.a, 1, sizeof(value_placement));
  for (size_t i = v->at.n; i-- > 0;) {
    value *at = v->at.at[i];
    const option *none = NULL;
    if (!at->places->uses.n) {
      store_write_value(&s, at, &none, NULL);
      continue;
    }
    options o = fusion_options_of(&s, at->places->uses.at[0]);
    if (at->tensor->op == OP_EXP) return o;
    require(t, o.n && o.at[0].how == FUSION_INLINED, "a value is not computed where it is read");
    inline_by_option(&s, at->places->uses.at[0], &o.at[0]);
  }
  diag_raise(&t->d, TN_ERR_INTERNAL, "there is no exp");
}

/** y[b, h, q] = Σ_k exp(a)[b, h, k] · c[q, k]: exp is computed at each b, h, q and k, or in an
    array for each b and h, for each b, or once. */
static void places_inside_out(test *t) {
  ir *g = t->g;
  const node *b = ix_const(g, 3), *h = ix_const(g, 5), *q = ix_const(g, 4), *k = ix_const(g, 7);
  const node *one = ix_const(g, 1), *all[] = {b, h, q, k};
  const node *x = ir_op1(g, OP_EXP, buffer(t, DT_F32, 0, 3, (int64_t[]){3, 5, 7}));
  const node *c = buffer(t, DT_F32, 1, 2, (int64_t[]){4, 7});
  x = ir_expand(g, ir_reshape(g, x, 4, (const node *[]){b, h, one, k}), all);
  c = ir_expand(g, ir_reshape(g, c, 4, (const node *[]){one, one, q, k}), all);
  const node *y = ir_reduce(g, ir_op2(g, OP_MUL, x, c), OP_ADD, 1, (int64_t[]){3});
  values v = values_of(t, y);
  options o = options_of_exp(t, &v);
  require(t, o.n == 4 && o.at[0].how == FUSION_INLINED, "an option is missing");
  require(t, o.at[1].shared == 3 && o.at[2].shared == 1 && !o.at[3].shared,
          "places do not go outwards one by one");
}

static void places_go_outwards_one_by_one(void **state) {
  (void)state;
  run_body(places_inside_out, 0, 0);
}

static const node *square_product(test *t, const node *x, const node *w) {
  ir *g = t->g;
  const node *n = x->dims[0], *one = ix_const(g, 1), *all[] = {n, n, n};
  x = ir_expand(g, ir_reshape(g, x, 3, (const node *[]){n, n, one}), all);
  w = ir_expand(g, ir_reshape(g, w, 3, (const node *[]){one, n, n}), all);
  return ir_reduce(g, ir_op2(g, OP_MUL, x, w), OP_ADD, 1, (int64_t[]){1});
}

/** Elementwise ops after a product are its epilogue. */
static void product_then_exp(test *t) {
  const int64_t size[] = {512, 512};
  const node *x = buffer(t, DT_F32, 0, 2, size), *w = buffer(t, DT_F32, 1, 2, size);
  const node *e = ir_op1(t->g, OP_EXP, square_product(t, x, w));
  const node *y = square_product(t, e, buffer(t, DT_F32, 2, 2, size));
  schedule_request r = {.roots = &y, .n_roots = 1, .math = MATH_DEFAULT, .target.vector = 64};
  schedule *s = schedule_make(t->g, &r);
  require(t, s->steps.n == 2, "two products are not two kernels");
  node_list first = topo_sort(ir_arena(t->g), &s->steps.at[0].kernel, 1, NULL, NULL);
  size_t found = 0;
  for (size_t i = 0; i < first.n; i++) found += first.at[i]->op == OP_EXP;
  require(t, found == 1, "the first kernel does not compute what follows from its product");
}

static void cuts_come_after_what_follows(void **state) {
  (void)state;
  run_body(product_then_exp, 0, 0);
}

/** A product of converted operands, which are read as often as they have rows. */
static void product_of_halves(test *t) {
  const int64_t size[] = {(int64_t)t->number, (int64_t)t->number};
  const node *x = ir_cast(t->g, buffer(t, DT_BF16, 0, 2, size), DT_F32);
  const node *y = square_product(t, x, buffer(t, DT_F32, 1, 2, size));
  schedule_request r = {.roots = &y, .n_roots = 1, .math = MATH_DEFAULT, .target.vector = 64};
  t->number = (double)schedule_make(t->g, &r)->steps.n;
}

static void halves_that_are_read_often_are_converted_once(void **state) {
  (void)state;
  assert_true(run_body(product_of_halves, 0, 1024) == 2);
  assert_true(run_body(product_of_halves, 0, 32) == 1);
}

/** A full reduction: partial results per core, a remainder, and the final one. None with exact
    arithmetic, where the order decides even which of two zeros is the largest. */
static void sum_of_everything(test *t) {
  const node *x = buffer(t, DT_F32, 0, 2, (int64_t[]){3, 70001});
  const node *sum = ir_reduce(t->g, x, OP_ADD, 2, (int64_t[]){0, 1});
  const node *roots[] = {sum, ir_reduce(t->g, x, OP_MAX, 2, (int64_t[]){0, 1})};
  schedule_request r = {.roots = roots, .n_roots = 2, .math = (int)t->seed};
  r.target.hardware.cores = (int32_t)t->number;
  schedule *s = schedule_make(t->g, &r);
  replay values = {.a = ir_arena(t->g), .seed = 1};
  replay_compare(&values, &r, s, 1e-4);
  t->number = (double)s->steps.n;
}

static void much_is_reduced_in_parts(void **state) {
  (void)state;
  assert_true(run_body(sum_of_everything, MATH_DEFAULT, 1) == 1);
  assert_true(run_body(sum_of_everything, MATH_DEFAULT, 4) == 2);
  assert_true(run_body(sum_of_everything, MATH_EXACT, 4) == 1);
}

/** A sum on device 1, of which only that one, or only device 0, has several cores. */
static void sum_on_another_device(test *t) {
  ir *g = t->g;
  const node *x = buffer(t, DT_F32, 0, 1, (int64_t[]){1 << 20});
  const node *there = ir_node(g, OP_TO, DT_F32, &x, 1, (int64_t[]){1}, 1);
  const node *sum = ir_reduce(g, there, OP_ADD, 1, (int64_t[]){0});
  schedule_target other = {.hardware.cores = (uint32_t)t->number};
  schedule_request r = {
      .roots = &sum, .n_roots = 1, .math = MATH_DEFAULT, .more = &other, .n_more = 1};
  r.target.hardware.cores = t->number > 1 ? 1 : 4;
  t->number = (double)schedule_make(g, &r)->steps.n;
}

static void parts_follow_from_the_sums_device(void **state) {
  (void)state;
  assert_true(run_body(sum_on_another_device, 0, 4) == 3); /* with the copy */
  assert_true(run_body(sum_on_another_device, 0, 1) == 2);
}

/** A value that three readers would compute anew, on a machine with some cores. */
static void four_exponentials(test *t) {
  ir *g = t->g;
  const node *x = buffer(t, DT_F32, 0, 2, (int64_t[]){8192, 8192});
  for (int i = 0; i < 4; i++) x = ir_op1(g, OP_EXP, x);
  const node *product = ir_op2(g, OP_MUL, x, ir_permute(g, x, (int64_t[]){1, 0}));
  const node *roots[] = {ir_reduce(g, x, OP_ADD, 1, (int64_t[]){0}),
                         ir_reduce(g, x, OP_ADD, 1, (int64_t[]){1}),
                         ir_reduce(g, product, OP_MAX, 1, (int64_t[]){1})};
  schedule_request r = {.roots = roots, .n_roots = 3, .math = MATH_DEFAULT};
  r.target.hardware.cores = (uint32_t)t->number;
  t->number = (double)schedule_make(g, &r)->steps.n;
}

/** Computing gets cheaper with the cores, storing in memory only until its bandwidth is used. */
static void many_cores_compute_rather_than_store(void **state) {
  (void)state;
  assert_true(run_body(four_exponentials, 0, 2) == 2);
  assert_true(run_body(four_exponentials, 0, 64) == 2);
  assert_true(run_body(four_exponentials, 0, 1024) == 1);
}

/* Sums weighted by e^(s − max s), on a machine whose caches hold no row: factors keep the source's
   grouping, by which no product overflows. */

enum { WEIGHTED_ROWS = 4, WEIGHTED_COLUMNS = 2048, LARGEST_AT = 5 };

static const node *along_rows(test *t, const node *rows) {
  const node *dims[] = {rows->dims[0], ix_const(t->g, 1)};
  const node *all[] = {rows->dims[0], ix_const(t->g, WEIGHTED_COLUMNS)};
  return ir_expand(t->g, ir_reshape(t->g, rows, 2, dims), all);
}

/** Makes a BUFFER with one number in all columns but one. */
static const node *filled(test *t, replay *r, int64_t uid, double x, double x_at_largest) {
  const node *b = buffer(t, DT_F32, uid, 2, (int64_t[]){WEIGHTED_ROWS, WEIGHTED_COLUMNS});
  float *data = arena_alloc(r->a, WEIGHTED_ROWS * WEIGHTED_COLUMNS * sizeof *data);
  for (size_t i = 0; i < WEIGHTED_ROWS * WEIGHTED_COLUMNS; i++)
    data[i] = (float)(i % WEIGHTED_COLUMNS == LARGEST_AT ? x_at_largest : x);
  interp_array a = {.dtype = DT_F32,
                    .rank = 2,
                    .dims = {WEIGHTED_ROWS, WEIGHTED_COLUMNS},
                    .data = data,
                    .bytes = WEIGHTED_ROWS * WEIGHTED_COLUMNS * sizeof *data};
  map_set(r->a, &r->buffers, b, arena_copy(r->a, &a, sizeof a));
  return b;
}

static bool has_scan(test *t, const schedule *s) {
  bool found = false;
  for (size_t i = 0; i < s->steps.n; i++) {
    if (s->steps.at[i].kind != STEP_KERNEL) continue;
    node_list order = topo_sort(ir_arena(t->g), &s->steps.at[i].kernel, 1, NULL, NULL);
    for (size_t k = 0; k < order.n; k++)
      found |= order.at[k]->op == OP_FOLD && fold_op(order.at[k], 0) < 0;
  }
  return found;
}

/** Seed 0: (p·v)·(k/d), where v·k overflows; 1: (p·a)·b, where a·b does. */
static void weighted_sum(test *t) {
  ir *g = t->g;
  replay r = {.a = ir_arena(g), .seed = 1};
  const node *s = filled(t, &r, 0, -60, 0);
  const node *most = along_rows(t, ir_reduce(g, s, OP_MAX, 1, (int64_t[]){1}));
  const node *term = ir_op1(g, OP_EXP, ir_op2(g, OP_SUB, s, most));
  if (t->seed == 0) {
    const node *v = filled(t, &r, 1, 1e30, 1e30), *k = filled(t, &r, 2, 1e30, 1e30);
    const node *d = filled(t, &r, 3, 1e30, 1e30);
    term = ir_op2(g, OP_MUL, ir_op2(g, OP_MUL, term, v), ir_op2(g, OP_DIV, k, d));
  } else {
    const node *a = filled(t, &r, 1, 1e25, 0), *b = filled(t, &r, 2, 1e25, 0);
    term = ir_op2(g, OP_MUL, ir_op2(g, OP_MUL, term, a), b);
  }
  const node *sum = ir_reduce(g, term, OP_ADD, 1, (int64_t[]){1});
  schedule_request q = {.roots = &sum, .n_roots = 1, .math = MATH_DEFAULT};
  q.target.hardware = (tn_hardware){.l1_bytes = 4096, .l2_bytes = 4096};
  schedule *made = schedule_make(g, &q);
  require(t, has_scan(t, made), "the softmax is not online");
  replay_compare(&r, &q, made, 1e-5);
}

static void weights_keep_the_grouping_of_the_source(void **state) {
  (void)state;
  for (uint64_t i = 0; i < 2; i++) run_body(weighted_sum, i, 0);
}

/** The softmax of rows on device 1, weighed; the seed tells whose caches hold no row: 1, that
    device's; else those of device 0. Returns whether it is online. */
static void softmax_on_another_device(test *t) {
  ir *g = t->g;
  const tn_hardware small = {.l1_bytes = 4096, .l2_bytes = 4096}, large = {.l2_bytes = 1 << 22};
  const node *x[2];
  for (int64_t i = 0; i < 2; i++) {
    x[i] = buffer(t, DT_F32, i, 2, (int64_t[]){WEIGHTED_ROWS, WEIGHTED_COLUMNS});
    x[i] = ir_node(g, OP_TO, DT_F32, &x[i], 1, (int64_t[]){1}, 1);
  }
  const node *most = along_rows(t, ir_reduce(g, x[0], OP_MAX, 1, (int64_t[]){1}));
  const node *power = ir_op1(g, OP_EXP, ir_op2(g, OP_SUB, x[0], most));
  const node *sum = ir_reduce(g, ir_op2(g, OP_MUL, power, x[1]), OP_ADD, 1, (int64_t[]){1});
  const schedule_target there = {.hardware = t->seed == 1 ? small : large};
  schedule_request r = {.roots = &sum,
                        .n_roots = 1,
                        .math = MATH_DEFAULT,
                        .target.hardware = t->seed == 1 ? large : small,
                        .more = &there,
                        .n_more = 1};
  t->number = has_scan(t, schedule_make(g, &r));
}

static void online_softmax_follows_from_its_device(void **state) {
  (void)state;
  assert_true(run_body(softmax_on_another_device, 1, 0) == 1);
  assert_true(run_body(softmax_on_another_device, 0, 0) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(schedules_do_what_graphs_mean),
      cmocka_unit_test(time_is_linear_in_the_graph),
      cmocka_unit_test(equal_layers_share_kernels),
      cmocka_unit_test(time_is_linear_in_constants),
      cmocka_unit_test(layers_take_little_memory),
      cmocka_unit_test(scratch_is_limited_for_a_kernel),
      cmocka_unit_test(combined_operands_are_stored),
      cmocka_unit_test(stores_follow_costs),
      cmocka_unit_test(operands_across_pages_are_copied),
      cmocka_unit_test(best_schedules_decide),
      cmocka_unit_test(operands_of_open_rows_are_tried_first),
      cmocka_unit_test(decisions_have_their_reasons),
      cmocka_unit_test(code_is_limited_for_a_kernel),
      cmocka_unit_test(shared_operands_count_once),
      cmocka_unit_test(updates_are_innermost),
      cmocka_unit_test(steps_have_the_names_of_labels),
      cmocka_unit_test(readers_count_once),
      cmocka_unit_test(sets_have_copies),
      cmocka_unit_test(places_go_outwards_one_by_one),
      cmocka_unit_test(cuts_come_after_what_follows),
      cmocka_unit_test(halves_that_are_read_often_are_converted_once),
      cmocka_unit_test(much_is_reduced_in_parts),
      cmocka_unit_test(memory_saturates),
      cmocka_unit_test(parts_follow_from_the_sums_device),
      cmocka_unit_test(many_cores_compute_rather_than_store),
      cmocka_unit_test(weights_keep_the_grouping_of_the_source),
      cmocka_unit_test(online_softmax_follows_from_its_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
