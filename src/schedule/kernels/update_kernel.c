/* Implements the kernels of values that a FOLD computes:

     a scatter  f = FOLD[r](STAGE[d](y[d, c]; d); op STAGE[](x[r, c]; p[r]))
                OUT(y, STAGE[c, d](f[d]; d, c))
     a scan     f = FOLD[r](identity; op x[i, r]; emit STATE; r)
                OUT(y, STAGE[i, s](v(f.1[s]); i, s))
     by classes f = FOLD[r](STAGE[d](identity; d); op STAGE[](x[i, r]; p[i, r]);
                            emit STATE[p[i, r]]; r)

   c and i are coordinates along which elements are apart, and become loops of the STAGE, which may
   run in any order; r are the FOLD's. Where a scatter has no such r, or its indices are distinct,
   each element has one update at most, and the STAGE writes at the indices. */
#include "schedule/kernels/update_kernel.h"

#include "ir/core/binder.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"

static const node *sink_over(const update_kernel *k, const node *v, const node *const coords[],
                             const node *const ranges[], size_t n) {
  size_t rank = k->param->rank;
  const node *stage = stage_make(k->g, &(stage_spec){.n_values = 1,
                                                     .n_ranges = n,
                                                     .values = &v,
                                                     .ranks = &rank,
                                                     .coords = coords,
                                                     .extents = k->param->dims,
                                                     .ranges = ranges,
                                                     .cut = true});
  const node *out = ir_node(k->g, OP_OUT, DT_VOID, (const node *[]){k->param, stage}, 2, NULL, 0);
  return ir_node(k->g, OP_SINK, DT_VOID, &out, 1, NULL, 0);
}

/** The ranges that the FOLD binds, in row-major order of the updates. */
static size_t fold_ranges(const update_kernel *k, const node *ranges[]) {
  size_t n = 0;
  for (size_t i = 0; i < k->v->rank; i++)
    if (k->v->updates->along >> i & 1) ranges[n++] = k->index[i];
  return n;
}

/** The other ranges of the nest. */
static size_t stage_ranges(const update_kernel *k, const node *const bound[], size_t n_bound,
                           const node *ranges[]) {
  size_t n = 0;
  for (size_t i = 0; i < k->n_ranges; i++)
    if (!nodes_contain(bound, n_bound, k->ranges[i])) ranges[n++] = k->ranges[i];
  return n;
}

static const node *element(const update_kernel *k, const node *const coords[]) {
  return index_make(k->g, (dtype)k->param->dtype, k->param, 0, k->param->rank, coords);
}

static const node *stage_of_state(const update_kernel *k, const node *v, size_t rank,
                                  const node *const coords[], const node *const extents[], size_t n,
                                  const node *const ranges[]) {
  return stage_make(k->g, &(stage_spec){.n_values = 1,
                                        .n_ranges = n,
                                        .values = &v,
                                        .ranks = &rank,
                                        .coords = coords,
                                        .extents = extents,
                                        .ranges = ranges});
}

/** True if a coordinate does not depend on the FOLD's ranges nor on memory: it is one of the
    STAGE's. */
static bool is_apart(const update_kernel *k, const node *at, const node *dim) {
  if (node_is_const(at)) return at->lo >= 0 && at->hi < dim->lo;
  for (size_t i = 0; i < k->v->rank; i++)
    if (k->index[i] == at && !(k->v->updates->along >> i & 1)) return true;
  return false;
}

/** The state of a scatter's FOLD: an array along the axes of the output whose indices depend on the
    FOLD's ranges or on memory. Two STAGEs have loops over it, which start and store it. */
typedef struct scatter_state {
  size_t rank, n_loops;
  const node *extents[IR_MAX_RANK];
  const node *where[IR_MAX_RANK]; /* index along an axis at which an update writes */
  const node *start[IR_MAX_RANK], *store[IR_MAX_RANK]; /* the same of both STAGEs: a RANGE, or 0 */
  const node *starts[IR_MAX_RANK], *stores[IR_MAX_RANK];     /* these RANGEs, n_loops each */
  const node *start_at[IR_MAX_RANK], *store_at[IR_MAX_RANK]; /* coordinates in the output */
} scatter_state;

/** An index over an axis: a RANGE, or 0 for a size of 1. */
static const node *index_over(const update_kernel *k, const node *dim) {
  return node_is_bits(dim, 1) ? ix_const(k->g, 0) : range_make(k->g, dim, KIND_LOOP);
}

static scatter_state scatter_state_of(const update_kernel *k, const node *const at[]) {
  scatter_state s = {0};
  for (size_t i = 0; i < k->param->rank; i++) {
    const node *dim = k->param->dims[i];
    s.start_at[i] = s.store_at[i] = at[i];
    if (is_apart(k, at[i], dim)) continue;
    s.extents[s.rank] = dim;
    s.where[s.rank] = at[i];
    s.start_at[i] = s.start[s.rank] = index_over(k, dim);
    s.store_at[i] = s.store[s.rank] = index_over(k, dim);
    if (s.start[s.rank]->op == OP_RANGE) {
      s.starts[s.n_loops] = s.start[s.rank];
      s.stores[s.n_loops++] = s.store[s.rank];
    }
    s.rank++;
  }
  return s;
}

/** The FOLD of the updates; its state is a scalar if its rank is 0. */
static const node *fold_of_updates(const update_kernel *k, const scatter_state *s,
                                   const node *const bound[], size_t n_bound) {
  const node *init = element(k, s->start_at), *step = k->body->src[0];
  int64_t component = s->rank ? 0 : -1;
  if (s->rank) {
    init = stage_of_state(k, init, s->rank, s->start, s->extents, s->n_loops, s->starts);
    step = stage_of_state(k, step, s->rank, s->where, s->extents, 0, NULL);
  }
  return fold_make(k->g, &(fold_spec){.n_states = 1,
                                      .n_ranges = n_bound,
                                      .inits = &init,
                                      .steps = &step,
                                      .ops = &k->v->updates->op,
                                      .components = &component,
                                      .ranges = bound});
}

/** The coordinates of updates that write no element twice: one of those by which they are told
    apart says so. False if all are the updates' own. */
static bool distinct_coordinates(const update_kernel *k, const node *const bound[], size_t n_bound,
                                 const node *to[]) {
  const node *const *at = k->body->src + 1;
  size_t rank = k->param->rank, first = 0, n = 2;
  while (first < rank && is_apart(k, at[first], k->param->dims[first])) first++;
  if (first == rank) return false;
  const node **src = arena_alloc(k->a, (rank + 2) * sizeof *src);
  for (size_t i = 0; i < rank; i++) {
    to[i] = at[i];
    if (i != first) src[n++] = at[i];
  }
  for (size_t i = 0; i < n_bound; i++) {
    src[0] = to[first], src[1] = bound[i];
    to[first] = ir_node(k->g, OP_DISTINCT, DT_INDEX, src, n, NULL, 0);
  }
  return true;
}

static const node *scatter(const update_kernel *k) {
  const node *const *at = k->body->src + 1, *value = k->body->src[0];
  int64_t o = k->v->updates->op;
  const node **bound = arena_alloc(k->a, (k->v->rank + 1) * sizeof *bound);
  const node **all = arena_alloc(k->a, (k->n_ranges + k->param->rank + 1) * sizeof *all);
  const node **distinct = arena_alloc(k->a, (k->param->rank + 1) * sizeof *distinct);
  size_t n_bound = fold_ranges(k, bound);
  if (n_bound && k->v->updates->is_distinct && distinct_coordinates(k, bound, n_bound, distinct)) {
    at = distinct;
    n_bound = 0;
  }
  size_t n = stage_ranges(k, bound, n_bound, all);
  if (!n_bound) {
    if (o >= 0) value = ir_op2(k->g, (op)o, element(k, at), value);
    return sink_over(k, value, at, all, n);
  }
  scatter_state s = scatter_state_of(k, at);
  const node *fold = fold_of_updates(k, &s, bound, n_bound);
  for (size_t i = 0; i < s.n_loops; i++) all[n++] = s.stores[i];
  const node *v = index_make(k->g, (dtype)value->dtype, fold, 0, s.rank, s.store);
  return sink_over(k, v, s.store_at, all, n);
}

/* The parts of a scan's FOLD. The state is an element, or, of a scan by classes, an array of one
   for each. */
typedef struct scan_parts {
  const node *init, *step, *emit;
  int64_t component; /* of the STAGE that is the step; −1: none */
} scan_parts;

static scan_parts state_of_element(const update_kernel *k, const node *r, const node *init) {
  dtype t = (dtype)init->dtype;
  const node *state = index_make(k->g, t, fold_state_make(k->g, t, r, 0), 0, 0, NULL);
  return (scan_parts){init, k->body, state, -1};
}

static scan_parts state_of_classes(const update_kernel *k, const node *r, const node *init) {
  ir *g = k->g;
  dtype t = (dtype)init->dtype;
  const node *value = k->body->src[0], *at = k->body->src[1];
  const node *extent = ix_const(g, k->v->updates->classes), *own = ix_const(g, 0);
  bool one = node_is_bits(extent, 1);
  if (!one) own = range_make(g, extent, KIND_LOOP);
  const node *state = index_make(g, t, fold_state_make(g, t, r, 0), 0, 1, &at);
  if (at->lo < 0) { /* of no class: the first element of its own */
    const node *alone = ir_op2(g, (op)k->v->updates->op, init, value);
    state = ir_op3(g, OP_WHERE, ix_lt(g, at, ix_const(g, 0)), alone, state);
  }
  return (scan_parts){stage_of_state(k, init, 1, &own, &extent, !one, &own),
                      stage_of_state(k, value, 1, &at, &extent, 0, NULL), state, 0};
}

/** The value that a kernel stores for an element of a scan: the element, or an expression of it. */
static const node *stored_value(const update_kernel *k, const node *emitted) {
  const value_updates *u = k->v->updates;
  map with = {0};
  if (!u->stored) return emitted;
  map_set(k->a, &with, u->read, (void *)emitted);
  return subst(k->g, u->stored, &with);
}

static const node *scan(const update_kernel *k) {
  ir *g = k->g;
  bool has_classes = k->v->updates->classes > 0;
  dtype t = (dtype)(has_classes ? k->body->src[0] : k->body)->dtype;
  const node *bound[1], **all = arena_alloc(k->a, (k->n_ranges + 1) * sizeof *all);
  size_t rank = k->param->rank, one = 1, n = stage_ranges(k, bound, fold_ranges(k, bound), all);
  const node *r = bound[0], *own = range_clone(g, r, range_extent(r));
  const node **to = arena_alloc(k->a, (rank + 1) * sizeof *to), *extent = range_extent(r);
  uint64_t start = 0;
  op_identity((op)k->v->updates->op, t, &start);
  const node *init = ir_const_bits(g, t, start);
  scan_parts s = has_classes ? state_of_classes(k, r, init) : state_of_element(k, r, init);
  const node *fold = fold_make(g, &(fold_spec){.n_states = 1,
                                               .n_emits = 1,
                                               .n_ranges = 1,
                                               .inits = &s.init,
                                               .steps = &s.step,
                                               .ops = &k->v->updates->op,
                                               .components = &s.component,
                                               .emits = &s.emit,
                                               .ranks = &one,
                                               .coords = &r,
                                               .extents = &extent,
                                               .ranges = &r});
  map with = {0};
  for (size_t i = 0; i < k->v->rank; i++)
    if (k->v->coords[i]->op == OP_RANGE)
      map_set(k->a, &with, k->v->coords[i], (void *)(k->index[i] == r ? own : k->index[i]));
  for (size_t i = 0; i < rank; i++)
    to[i] = subst_ranges(g, k->v->memory.stores.at[0].coords[i], &with);
  all[n++] = own;
  return sink_over(k, stored_value(k, index_make(g, t, fold, 1, 1, &own)), to, all, n);
}

const node *update_kernel_make(const update_kernel *k) {
  return k->v->updates->is_scan ? scan(k) : scatter(k);
}
