/* Inlines a value into a fusion group: computes it at each point where it is read, or as an array
   in a loop nest further out. A reduction opens a fold (a reduction loop), or shares the fold at
   the same place over the same sizes. */
#include "schedule/fuse/search_state.h"

#include "ir/core/binder.h"
#include "ir/index/index_arithmetic.h"

nest *inline_find_fold(const grouping *s, const group *g, const value *v, const point *p) {
  size_t level = v->facts->level.own + p->under;
  range_mask open = nests_enclosing(&g->nests, p->free);
  if (s->request->policy == FUSION_NONE || v->scan) return NULL;
  for (size_t i = 0; i < g->nests.at.n; i++) {
    nest *n = g->nests.at.at[i];
    bool same = n->kind == NEST_FOLD && !n->arrays && n->level == level &&
                n->n_index == v->reduction.n && nests_enclosing(&g->nests, n->outer) == open;
    for (size_t k = 0; same && k < v->reduction.n; k++)
      same = n->extents[k] == range_extent(v->reduction.ranges[k]);
    if (same) return n;
  }
  return NULL;
}

double inline_tile_code(const grouping *s, const group *g, const value *v, const point *p) {
  double tile = v->facts->tiles.own;
  return tile > 0 && !inline_find_fold(s, g, v, p) ? tile : 0;
}

static nest *open_nest(grouping *s, group *g, nest_kind kind, size_t n, const node *const sizes[],
                       range_mask outer) {
  nest *made = nests_add(&g->nests, kind, n, sizes, NULL, outer);
  if (!made) diag_raise(ir_diag(s->g), TN_ERR_INTERNAL, "a kernel has too many loop nests");
  return made;
}

/** Opens nests for the states of a scan that are arrays, inside of its loop. */
static void open_state_arrays(grouping *s, group *g, const value_scan *scan, nest *loop) {
  loop->arrays = arena_calloc(s->a, scan->n, sizeof *loop->arrays);
  for (size_t i = 0; i < scan->n; i++)
    if (scan->state[i].rank) {
      const struct scan_state *state = &scan->state[i];
      double bytes = 2 * (double)dtype_bytes((dtype)state->init->dtype);
      for (size_t k = 0; k < state->rank; k++) bytes *= ix_likely(state->dims[k]);
      g->used.scratch += bytes;
      loop->arrays[i] =
          open_nest(s, g, NEST_STAGE, state->rank, state->dims, loop->outer | loop->own);
    }
}

static void open_fold(grouping *s, group *g, const value *v, point *p) {
  nests_fix_order(&g->nests, p->free);
  nest *n = inline_find_fold(s, g, v, p);
  if (!n) {
    const node **sizes = arena_alloc(s->a, v->reduction.n * sizeof *sizes);
    for (size_t i = 0; i < v->reduction.n; i++) sizes[i] = range_extent(v->reduction.ranges[i]);
    n = open_nest(s, g, NEST_FOLD, v->reduction.n, sizes, p->free);
    n->level = v->facts->level.own + p->under;
    g->used.code.once += v->facts->tiles.own;
    if (v->scan) open_state_arrays(s, g, v->scan, n);
  } else {
    n->outer |= p->free;
    nests_fix_order(&g->nests, n->outer);
  }
  p->fold = n;
  p->state = n->states.n;
  vec_push(s->a, &n->states, (fold_state){v, p});
}

/** Computes a value at a point, and adds its reads to the group. */
static void compute_at(grouping *s, group *g, const value *v, point *p) {
  if (value_is_reduction(v)) open_fold(s, g, v, p);
  g->used.code = code_add(g->used.code, v->facts->code.own);
  group_add_reads(s, g, v, p);
}

static void build_in_nest(grouping *s, use *u, uint64_t shared) {
  value *v = u->v;
  group *g = u->g;
  const node *const *coords = u->points.at[0].index->src + 1;
  range_mask free = group_ranges_of_coords(g, v, coords, shared);
  nests_fix_order(&g->nests, free);
  const node **sizes = arena_alloc(s->a, (v->rank + 1) * sizeof *sizes);
  const node **at = arena_alloc(s->a, (v->rank + 1) * sizeof *at);
  for (size_t k = 0; k < v->rank; k++) sizes[k] = shared >> k & 1 ? ix_const(s->g, 1) : v->dims[k];
  u->stage = open_nest(s, g, NEST_STAGE, v->rank, sizes, free);
  u->shared = shared;
  g->used.scratch += fusion_stage_bytes(v, shared);
  for (size_t k = 0; k < v->rank; k++) at[k] = shared >> k & 1 ? coords[k] : u->stage->index[k];
  u->built.index = index_make(s->g, (dtype)v->tensor->dtype, v->tensor, 0, v->rank, at);
  u->built.free = nests_free_ranges(&g->nests, u->built.index);
  for (size_t i = 0; i < u->points.n; i++)
    if (u->points.at[i].under > u->built.under) u->built.under = u->points.at[i].under;
  compute_at(s, g, v, &u->built);
}

void inline_by_option(grouping *s, use *u, const option *o) {
  u->how = o->how;
  u->g->used.frontier--;
  group_end_reservation(u->g, u->v);
  u->g->used.members++;
  if (o->how == PLACED)
    build_in_nest(s, u, o->shared);
  else
    for (size_t i = 0; i < u->points.n; i++) {
      u->g->used.code = code_subtract(u->g->used.code, u->points.at[i].code);
      compute_at(s, u->g, u->v, &u->points.at[i]);
    }
}
