/* Computing a value inside a group: where it is read, or as an array in a nest further out. */
#include "schedule/grouping.h"

#include "ir/binder.h"

nest *fold_like(const grouping *s, const group *g, const value *v, const point *p) {
  size_t level = v->facts->level + p->under;
  range_mask open = nests_open(&g->nests, p->free);
  if (s->request->policy == GROUPING_STAGED || v->scan) return NULL;
  for (size_t i = 0; i < g->nests.at.n; i++) {
    nest *n = g->nests.at.at[i];
    bool same = n->kind == NEST_FOLD && !n->arrays && n->level == level &&
                n->n_index == v->n_reduced && nests_open(&g->nests, n->outer) == open;
    for (size_t k = 0; same && k < v->n_reduced; k++)
      same = n->extents[k] == range_extent(v->reduced[k]);
    if (same) return n;
  }
  return NULL;
}

double tile_code(const grouping *s, const group *g, const value *v, const point *p) {
  double tile = v->facts->tile;
  return tile > 0 && !fold_like(s, g, v, p) ? tile : 0;
}

static nest *must_open(grouping *s, group *g, nest_kind kind, size_t n, const node *const sizes[],
                       range_mask outer) {
  nest *made = nest_open(&g->nests, kind, n, sizes, NULL, outer);
  if (!made) diag_raise(ir_diag(s->g), TN_ERR_INTERNAL, "a kernel has too many loops");
  return made;
}

/** The nests of a scan's states that are arrays, inside of its loop. */
static void open_arrays(grouping *s, group *g, const value_scan *scan, nest *loop) {
  loop->arrays = arena_calloc(s->a, scan->n, sizeof *loop->arrays);
  for (size_t i = 0; i < scan->n; i++)
    if (scan->state[i].rank) {
      const struct scan_state *state = &scan->state[i];
      double bytes = 2 * (double)dtype_bytes((dtype)state->init->dtype);
      for (size_t k = 0; k < state->rank; k++) bytes *= price_size(state->dims[k]);
      g->scratch += bytes;
      loop->arrays[i] =
          must_open(s, g, NEST_STAGE, state->rank, state->dims, loop->outer | loop->own);
    }
}

static void open_fold(grouping *s, group *g, const value *v, point *p) {
  nests_commit(&g->nests, p->free);
  nest *n = fold_like(s, g, v, p);
  if (!n) {
    const node **sizes = arena_alloc(s->a, v->n_reduced * sizeof *sizes);
    for (size_t i = 0; i < v->n_reduced; i++) sizes[i] = range_extent(v->reduced[i]);
    n = must_open(s, g, NEST_FOLD, v->n_reduced, sizes, p->free);
    n->level = v->facts->level + p->under;
    g->code.once += v->facts->tile;
    if (v->scan) open_arrays(s, g, v->scan, n);
  } else {
    n->outer |= p->free;
    nests_commit(&g->nests, n->outer);
  }
  p->fold = n;
  p->state = n->states.n;
  vec_push(s->a, &n->states, (fold_state){v, p});
}

/** A value is computed at a point: what it reads is needed. */
static void compute_at(grouping *s, group *g, const value *v, point *p) {
  if (value_is_reduction(v)) open_fold(s, g, v, p);
  g->code = code_sum(g->code, v->facts->own);
  add_reads(s, g, v, p);
}

static void place(grouping *s, use *u, uint64_t shared) {
  value *v = u->v;
  group *g = u->g;
  const node *const *coords = u->points.at[0].index->src + 1;
  range_mask free = dependence(g, v, coords, shared);
  nests_commit(&g->nests, free);
  const node **sizes = arena_alloc(s->a, (v->rank + 1) * sizeof *sizes);
  const node **at = arena_alloc(s->a, (v->rank + 1) * sizeof *at);
  for (size_t k = 0; k < v->rank; k++) sizes[k] = shared >> k & 1 ? ix_const(s->g, 1) : v->dims[k];
  u->stage = must_open(s, g, NEST_STAGE, v->rank, sizes, free);
  u->shared = shared;
  g->scratch += stage_bytes(v, shared);
  for (size_t k = 0; k < v->rank; k++) at[k] = shared >> k & 1 ? coords[k] : u->stage->index[k];
  u->built.index = index_make(s->g, (dtype)v->tensor->dtype, v->tensor, 0, v->rank, at);
  u->built.free = nests_free(&g->nests, u->built.index);
  for (size_t i = 0; i < u->points.n; i++)
    if (u->points.at[i].under > u->built.under) u->built.under = u->points.at[i].under;
  compute_at(s, g, v, &u->built);
}

void take(grouping *s, use *u, const option *o) {
  u->how = o->how;
  u->g->frontier--;
  release(u->g, u->v);
  u->g->members++;
  if (o->how == PLACED)
    place(s, u, o->shared);
  else
    for (size_t i = 0; i < u->points.n; i++) {
      u->g->code = code_less(u->g->code, u->points.at[i].code);
      compute_at(s, u->g, u->v, &u->points.at[i]);
    }
}
