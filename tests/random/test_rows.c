/* Tests online softmax and weighted sums over rows differentially (check.h): random graphs of
   softmax, its logarithm and sums weighted by it, in many spellings, on a machine with caches so
   small that online_softmax.c and factor_sums.c of schedule/values apply.

   TENON_SEED: the first graph's seed; TENON_GRAPHS: number of graphs. */
#include "check.h"
#include "random.h"
#include "suite.h"

#include "ir/core/binder.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "schedule/fuse/fusion_group.h"
#include "schedule/schedule.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { USUAL = 120, MOST_ROOTS = 4, AXES = 3 }; /* heads, rows, elements of a row */

typedef struct maker {
  graph *out;
  ir *g;
  rng r;
  dtype type;
  int64_t dims[AXES], depth; /* depth: inner dimension of a product */
  uint64_t buffers;
  contents_kind contents;
} maker;

/* Tensors. */

static const node *buffer(maker *m, size_t rank, const int64_t dims[], contents_kind kind) {
  const node *sizes[4];
  for (size_t i = 0; i < rank; i++) sizes[i] = ix_const(m->g, dims[i]);
  int64_t ints[] = {graph_uid(m->r.state % 1000 * 50 + m->buffers++, kind, false), 0};
  return ir_node(m->g, OP_BUFFER, m->type, sizes, rank, ints, 2);
}

static const node *filled(maker *m, double x, const node *like) {
  return ir_fill(m->g, ir_const(m->g, m->type, x), like->rank, like->dims);
}

/** Inserts an axis of size 1 at `axis` and repeats it `size` times. */
static const node *repeated(maker *m, const node *x, size_t axis, int64_t size) {
  const node *dims[8];
  for (size_t i = 0; i <= x->rank; i++)
    dims[i] = i == axis ? ix_const(m->g, 1) : x->dims[i - (i > axis)];
  const node *y = ir_reshape(m->g, x, x->rank + 1u, dims);
  dims[axis] = ix_const(m->g, size);
  return ir_expand(m->g, y, dims);
}

static const node *reduced(maker *m, op o, const node *x, int64_t axis) {
  return ir_reduce(m->g, x, o, 1, &axis);
}

/** Multiplies matrices (heads, a, k) and (heads, b, k). */
static const node *product(maker *m, const node *x, const node *y, int64_t a, int64_t b) {
  return reduced(m, OP_ADD, ir_op2(m->g, OP_MUL, repeated(m, x, 2, b), repeated(m, y, 1, a)), 3);
}

/* Rows. */

static const node *with_mask(maker *m, const node *s) {
  const node *row = ir_iota(m->g, DT_I64, AXES, s->dims, 1);
  const node *at = ir_iota(m->g, DT_I64, AXES, s->dims, 2);
  const node *none = filled(m, -INFINITY, s);
  if (rng_chance(&m->r, 50)) return ir_op3(m->g, OP_WHERE, ir_op2(m->g, OP_LE, at, row), s, none);
  const node *mask = rng_chance(&m->r, 60) /* may mask all of a row */
                         ? buffer(m, AXES, m->dims, CONTENTS_SMALL)
                         : repeated(m, buffer(m, 2, m->dims, CONTENTS_SMALL), 2, m->dims[2]);
  const node *keeps = ir_op2(m->g, OP_LT, mask, filled(m, rng_between(&m->r, -9, 4), mask));
  return ir_op3(m->g, OP_WHERE, keeps, s, none);
}

static const node *rows(maker *m) {
  const node *s;
  if (rng_chance(&m->r, 30)) {
    s = buffer(m, AXES, m->dims, m->contents);
  } else {
    int64_t q[] = {m->dims[0], m->dims[1], m->depth}, k[] = {m->dims[0], m->dims[2], m->depth};
    const node *x = buffer(m, 3, q, m->contents), *y = buffer(m, 3, k, CONTENTS_SMALL);
    s = product(m, x, y, m->dims[1], m->dims[2]);
    if (rng_chance(&m->r, 50)) s = ir_op2(m->g, OP_MUL, s, filled(m, 0.25, s));
  }
  return rng_chance(&m->r, 40) ? with_mask(m, s) : s;
}

/** Makes e^(s − max s), or a similar power. */
static const node *powers(maker *m, const node *s, const node **most) {
  op o = rng_chance(&m->r, 25) ? OP_EXP2 : OP_EXP;
  *most = reduced(m, OP_MAX, s, 2);
  const node *all = repeated(m, *most, 2, m->dims[2]);
  const node *d = rng_chance(&m->r, 70) ? ir_op2(m->g, OP_SUB, s, all)
                                        : ir_op2(m->g, OP_ADD, s, ir_op1(m->g, OP_NEG, all));
  /* Scales, some of which the transformation must refuse. */
  static const double scales[] = {1.4426950408889634, 0.5, 2, -0.5, 0};
  if (rng_chance(&m->r, 40)) d = ir_op2(m->g, OP_MUL, d, filled(m, scales[rng_below(&m->r, 5)], d));
  return ir_op1(m->g, o, d);
}

static const node *row_sum(maker *m, const node *p) { return reduced(m, OP_ADD, p, 2); }

static const node *shared(maker *m, const node *p) {
  const node *sum = row_sum(m, p);
  if (rng_chance(&m->r, 60)) return ir_op2(m->g, OP_DIV, p, repeated(m, sum, 2, m->dims[2]));
  sum = ir_op2(m->g, OP_DIV, filled(m, 1, sum), sum);
  return ir_op2(m->g, OP_MUL, p, repeated(m, sum, 2, m->dims[2]));
}

static const node *weighted(maker *m, const node *p, contents_kind kind) {
  int64_t width = rng_between(&m->r, 1, 5), v[] = {m->dims[0], width, m->dims[2]};
  return product(m, p, buffer(m, 3, v, kind), m->dims[1], width);
}

/** Makes one of the results computed from such rows. */
static const node *result(maker *m, const node *s, const node *p, const node *most) {
  const node *sum = row_sum(m, p);
  contents_kind kind = rng_chance(&m->r, 20) ? CONTENTS_SPECIAL : CONTENTS_SMALL;
  static const uint8_t cases[] = {0, 0, 1, 2, 2, 2, 3, 3, 3, 4, 5, 6, 6, 7, 7};
  switch (cases[rng_below(&m->r, sizeof cases)]) {
  case 0: return ir_op2(m->g, OP_ADD, ir_op1(m->g, OP_LOG, sum), most);
  case 1: return shared(m, p);
  case 2: return weighted(m, shared(m, p), kind);
  case 3: return weighted(m, p, kind);
  case 4: return row_sum(m, ir_op2(m->g, OP_MUL, p, s)); /* sum of s itself */
  case 5: { /* sum of terms that depend on the maximum: refused */
    const node *d = ir_op2(m->g, OP_SUB, s, repeated(m, most, 2, m->dims[2]));
    return row_sum(m, ir_op2(m->g, OP_MUL, p, d));
  }
  case 6: {
    const node *w = buffer(m, AXES, m->dims, CONTENTS_SMALL);
    op o = rng_chance(&m->r, 50) ? OP_MUL : OP_DIV;
    return row_sum(m, ir_op2(m->g, o, p, w));
  }
  default: return sum;
  }
}

static void generate_rows(graph *g, uint64_t seed) {
  static const int64_t lengths[] = {2, 4, 6, 8, 12, 16, 24, 30, 7, 9};
  static const dtype types[] = {DT_F32, DT_F32, DT_F32, DT_F32, DT_F64, DT_F16};
  maker m = {.out = g, .g = g->ir, .r = {rng_mix(seed)}};
  m.type = types[rng_below(&m.r, 6)];
  m.contents = rng_chance(&m.r, 25) ? CONTENTS_SPECIAL : CONTENTS_SMALL;
  m.dims[0] = rng_between(&m.r, 1, 2);
  m.dims[1] = rng_between(&m.r, 1, 5);
  m.dims[2] = lengths[rng_below(&m.r, sizeof lengths / sizeof *lengths)];
  if (rng_chance(&m.r, 5)) m.dims[1] = 1, m.dims[2] = 1280;
  m.depth = rng_between(&m.r, 1, 4);
  g->seed = seed;
  g->math = rng_chance(&m.r, 90) ? MATH_DEFAULT : MATH_EXACT;
  g->roots = arena_alloc(g->a, MOST_ROOTS * sizeof *g->roots);
  const node *most, *s = rows(&m), *p = powers(&m, s, &most);
  size_t n = rng_chance(&m.r, 60) ? 1 : (size_t)rng_between(&m.r, 2, 3);
  for (size_t i = 0; i < n; i++) g->roots[g->n_roots++] = ir_retain(result(&m, s, p, most));
  if (rng_chance(&m.r, 10)) g->roots[g->n_roots++] = ir_retain(most);
}

/* Coverage. */

typedef struct done {
  size_t estimated, random; /* graphs with an online softmax, by fusion policy */
} done;

static bool is_scan(const node *n) {
  return n->op == OP_FOLD && fold_n_states(n) > 1 && fold_op(n, 0) < 0;
}

typedef struct job {
  graph *g;
  const target *target;
  report *r;
  done *done;
  uint64_t seed;
} job;

static bool has_scan(const job *j, int policy) {
  ir *k = ir_new(&mem_system, j->g->a->diag, false);
  schedule *s = schedule_make(k, &(schedule_request){.roots = j->g->roots,
                                                     .n_roots = j->g->n_roots,
                                                     .math = j->g->math,
                                                     .target.hardware = j->target->hardware,
                                                     .search.policy = policy,
                                                     .search.seed = j->seed});
  size_t scans = 0;
  for (size_t i = 0; i < s->steps.n; i++) {
    node_list order = topo_sort(ir_arena(k), &s->steps.at[i].kernel, 1, NULL, NULL);
    for (size_t n = 0; n < order.n; n++) scans += is_scan(order.at[n]);
  }
  ir_free(k);
  return scans > 0;
}

static void check_body(void *arg) {
  job *j = arg;
  generate_rows(j->g, j->seed);
  graph_prepare(j->g);
  check_graph(j->g, j->target, j->r);
  j->done->estimated += has_scan(j, FUSION_BY_COST);
  j->done->random += has_scan(j, FUSION_RANDOM);
}

static bool check_one(uint64_t seed, const target *t, done *d) {
  static diag problem;
  arena a;
  report r = {0};
  arena_init(&a, &mem_system, &problem);
  graph g = {.ir = ir_new(&mem_system, &problem, true), .a = &a};
  job j = {&g, t, &r, d, seed};
  if (diag_catch(&problem, check_body, &j) != TN_OK) {
    r.failed = true;
    snprintf(r.text, sizeof r.text, "%s", problem.text);
  }
  if (r.failed) {
    printf("FAILED at %s: %s\nagain: TENON_SEED=%llu TENON_GRAPHS=1\n%s", r.stage, r.text,
           (unsigned long long)seed, graph_text(&g));
    fflush(stdout);
  }
  ir_free(g.ir);
  arena_free(&a);
  return !r.failed;
}

int main(void) {
  uint64_t first = suite_number("TENON_SEED", 1), n = suite_number("TENON_GRAPHS", USUAL);
  target t = {.vector_bytes = 32,
              .registers = 16,
              .threads = true,
              .hardware = {.l1_bytes = 4096, .l2_bytes = 4096, .l3_bytes = 4096, .cores = 2}};
  done d = {0};
  size_t failures = 0;
  for (uint64_t i = 0; i < n && failures < 5; i++) {
    t.arguments = (first + i) % 4 ? 0 : 6;
    failures += !check_one(first + i, &t, &d);
  }
  printf("TENON_SEED=%llu, %llu graphs, %zu and %zu of them with scans; %zu failures\n",
         (unsigned long long)first, (unsigned long long)n, d.estimated, d.random, failures);
  if (n >= USUAL && (d.estimated * 6 < n || d.random * 4 < n))
    printf("few of them had a scan\n"), failures++;
  return failures > 0;
}
