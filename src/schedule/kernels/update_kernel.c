/* Implements the kernels of values that a FOLD computes:

     a scatter  f = FOLD[r](STAGE[d](y[d, c]; d); op STAGE[](x[r, c]; p[r]))
                OUT(y, STAGE[c, d](f[d]; d, c))
     a scan     f = FOLD[r](identity; op x[i, r]; emit STATE; r)
                OUT(y, STAGE[i, s](f.1[s]; i, s))

   c and i are coordinates along which elements are apart, and become loops of the STAGE, which may
   run in any order; r are the FOLD's. Where a scatter has no such r, each element has one update at
   most, and the STAGE writes at the indices. */
#include "schedule/kernels/update_kernel.h"

#include "ir/core/binder.h"
#include "ir/index/index_arithmetic.h"

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

static const node *scatter(const update_kernel *k) {
  ir *g = k->g;
  const value_updates *u = k->v->updates;
  size_t rank = k->param->rank, n_own = 0, n_loops = 0;
  const node **loops = arena_alloc(k->a, (rank + 1) * sizeof *loops);
  const node *const *at = k->body->src + 1, *value = k->body->src[0];
  const node **bound = arena_alloc(k->a, (k->v->rank + 1) * sizeof *bound);
  const node **all = arena_alloc(k->a, (k->n_ranges + rank + 1) * sizeof *all);
  const node **own = arena_alloc(k->a, (rank + 1) * sizeof *own);
  const node **first = arena_alloc(k->a, (rank + 1) * sizeof *first);
  const node **where = arena_alloc(k->a, (rank + 1) * sizeof *where);
  const node **extents = arena_alloc(k->a, (rank + 1) * sizeof *extents);
  const node **held = arena_alloc(k->a, (rank + 1) * sizeof *held);
  const node **to = arena_alloc(k->a, (rank + 1) * sizeof *to);
  size_t n_bound = fold_ranges(k, bound), n = stage_ranges(k, bound, n_bound, all);
  if (!n_bound) {
    if (u->op >= 0) value = ir_op2(g, (op)u->op, element(k, at), value);
    return sink_over(k, value, at, all, n);
  }
  for (size_t i = 0; i < rank; i++) {
    held[i] = to[i] = at[i];
    if (is_apart(k, at[i], k->param->dims[i])) continue;
    where[n_own] = at[i];
    extents[n_own] = k->param->dims[i];
    bool one = node_is_bits(k->param->dims[i], 1);
    held[i] = first[n_own] = one ? ix_const(g, 0) : range_make(g, k->param->dims[i], KIND_LOOP);
    to[i] = own[n_own] = one ? ix_const(g, 0) : range_make(g, k->param->dims[i], KIND_LOOP);
    if (!one) loops[n_loops] = first[n_own], all[n + n_loops++] = own[n_own];
    n_own++;
  }
  const node *init = element(k, held), *step = value;
  int64_t component = n_own ? 0 : -1;
  if (n_own) {
    init = stage_of_state(k, init, n_own, first, extents, n_loops, loops);
    step = stage_of_state(k, value, n_own, where, extents, 0, NULL);
  }
  const node *fold = fold_make(g, &(fold_spec){.n_states = 1,
                                               .n_ranges = n_bound,
                                               .inits = &init,
                                               .steps = &step,
                                               .ops = &u->op,
                                               .components = &component,
                                               .ranges = bound});
  const node *v = index_make(g, (dtype)value->dtype, fold, 0, n_own, own);
  return sink_over(k, v, to, all, n + n_loops);
}

static const node *scan(const update_kernel *k) {
  ir *g = k->g;
  dtype t = (dtype)k->body->dtype;
  const node *bound[1], **all = arena_alloc(k->a, (k->n_ranges + 1) * sizeof *all);
  size_t rank = k->param->rank, one = 1, n = stage_ranges(k, bound, fold_ranges(k, bound), all);
  const node *r = bound[0], *own = range_clone(g, r, range_extent(r));
  const node **to = arena_alloc(k->a, (rank + 1) * sizeof *to), *extent = range_extent(r);
  uint64_t start = 0;
  op_identity((op)k->v->updates->op, t, &start);
  const node *init = ir_const_bits(g, t, start);
  const node *state = index_make(g, t, fold_state_make(g, t, r, 0), 0, 0, NULL);
  const node *fold = fold_make(g, &(fold_spec){.n_states = 1,
                                               .n_emits = 1,
                                               .n_ranges = 1,
                                               .inits = &init,
                                               .steps = &k->body,
                                               .ops = &k->v->updates->op,
                                               .emits = &state,
                                               .ranks = &one,
                                               .coords = &r,
                                               .extents = &extent,
                                               .ranges = &r});
  for (size_t i = 0; i < rank; i++) to[i] = k->index[i] == r ? own : k->index[i];
  all[n++] = own;
  return sink_over(k, index_make(g, t, fold, 1, 1, &own), to, all, n);
}

const node *update_kernel_make(const update_kernel *k) {
  return k->v->updates->is_scan ? scan(k) : scatter(k);
}
