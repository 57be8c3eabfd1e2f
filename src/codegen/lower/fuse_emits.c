/* Fuses the loop over a FOLD's emitted values with the FOLD's own. A STAGE that an OUT alone reads,
   and that reads emitted values along one of its loops, each at its own index, needs no array of
   them: the FOLD's loop stores what the STAGE would.

     f = FOLD[r](…; emit e; r)        OUT(y, STAGE[b, s](v(f.1[s], s); p(f.1[s], s)))
       →  f = FOLD[r](…; emit v(e, r); p(e, r))   in place of y, inside of the loops over b

   Emitted values are separated from steps before (fold_analysis.c), so that they read the state
   after the step. The result is no kernel of the IR: parts of the output are those of several FOLDs
   (output_arrays.c), which holds as the STAGE writes no element twice. In a kernel for teams, all
   digits are the STAGE's own: else each worker has its part of the array. */
#include "codegen/lower/lowering.h"
#include "ir/transform/substitute.h"

typedef struct fusing {
  lowering *l;
  node_list order;
} fusing;

/** The FOLD whose emitted values are read along the range s; NULL: there is not exactly one. */
static const node *emitting_fold(const fusing *f, const node *s) {
  const node *fold = NULL;
  for (size_t i = 0; i < f->order.n; i++) {
    const node *n = f->order.at[i];
    if (n->op != OP_INDEX || n->src[0]->op != OP_FOLD || !node_is_free_in(s, n)) continue;
    if (fold && n->src[0] != fold) return NULL;
    fold = n->src[0];
  }
  return fold;
}

/** True if all that a FOLD makes are values emitted at its only range, read at s. */
static bool emits_along(const fusing *f, const node *fold, const node *s) {
  const node *r = fold_innermost_range(fold);
  if (fold_n_ranges(fold) != 1 || range_kind_of(r) != KIND_LOOP || lower_is_team_fold(fold) ||
      range_extent(r) != range_extent(s) || node_is_free_in(s, fold))
    return false;
  for (size_t e = 0; e < fold_n_emits(fold); e++)
    if (fold_rank(fold, fold_n_states(fold) + e) != 1 || fold_coords(fold, e)[0] != r) return false;
  for (size_t i = 0; i < f->order.n; i++) {
    const node *n = f->order.at[i];
    for (uint32_t k = 0; k < n->n_src; k++)
      if (n->src[k] == fold && (n->op != OP_INDEX || n->n_src != 2 || n->src[1] != s ||
                                n->ints[0] < (int64_t)fold_n_states(fold)))
        return false;
  }
  return true;
}

/** True if the FOLD runs anew for each index of a STAGE's other ranges. */
static bool is_inside_others(const node *stage, const node *fold, const node *s) {
  for (size_t i = 0; i < stage_n_ranges(stage); i++) {
    const node *r = stage_range(stage)[i];
    if (r != s && !node_is_free_in(r, fold)) return false;
  }
  return true;
}

/** True for a value that output_arrays.c finds: elements of a FOLD, stored along a whole axis by s
    itself. */
static bool is_copy(const node *stage, const node *s) {
  const node *v = stage_value(stage, 0);
  if (v->op != OP_INDEX || v->src[0]->op != OP_FOLD) return false;
  for (size_t i = 0; i < stage_rank(stage, 0); i++)
    if (stage_coords(stage, 0)[i] == s) return stage_extents(stage, 0)[i] == range_extent(s);
  return false;
}

static bool is_read(const fusing *f, const node *param) {
  for (size_t i = 0; i < f->order.n; i++)
    if (f->order.at[i]->op == OP_INDEX && f->order.at[i]->src[0] == param) return true;
  return false;
}

/** The FOLD that may store an OUT's values in its loop; sets the STAGE's range along it. NULL:
   there is none. */
static const node *fold_for(const fusing *f, const node *out, const node **along) {
  const node *stage = out->src[out->n_src - 1];
  if (stage->op != OP_STAGE || stage_n_values(stage) != 1) return NULL;
  if (map_get(&f->l->direct, stage) != out || is_read(f, out->src[0])) return NULL;
  if (!lower_parts_workers(f->l, stage)) return NULL;
  for (size_t i = 0; i < stage_n_ranges(stage); i++) {
    const node *s = stage_range(stage)[i];
    if (range_kind_of(s) != KIND_LOOP || is_copy(stage, s)) continue;
    const node *fold = emitting_fold(f, s);
    if (fold && emits_along(f, fold, s) && is_inside_others(stage, fold, s)) {
      *along = s;
      return fold;
    }
  }
  return NULL;
}

/** The FOLD with the STAGE's value as the only one that it emits, at the STAGE's coordinates. */
static const node *fold_with_value(const fusing *f, const node *fold, const node *out,
                                   const node *s) {
  lowering *l = f->l;
  const node *stage = out->src[1], *param = out->src[0];
  size_t n = fold_n_states(fold), rank = param->rank;
  const node **coords = arena_alloc(l->a, (rank + 1) * sizeof *coords);
  int64_t *ops = arena_alloc(l->a, n * sizeof *ops), *at = arena_alloc(l->a, n * sizeof *at);
  map with = {0};
  map_set(l->a, &with, s, (void *)fold_innermost_range(fold));
  for (size_t i = 0; i < f->order.n; i++) {
    const node *read = f->order.at[i];
    if (read->op == OP_INDEX && read->src[0] == fold)
      map_set(l->a, &with, read, (void *)fold_emit(fold, (size_t)read->ints[0] - n));
  }
  for (size_t i = 0; i < n; i++) {
    ops[i] = fold_op(fold, i);
    at[i] = fold_component(fold, i);
  }
  const node *value = subst(l->g, stage_value(stage, 0), &with);
  for (size_t i = 0; i < rank; i++) coords[i] = subst(l->g, stage_coords(stage, 0)[i], &with);
  return fold_make(l->g, &(fold_spec){.n_states = n,
                                      .n_emits = 1,
                                      .n_ranges = 1,
                                      .n_pins = fold_n_pins(fold),
                                      .inits = fold->src,
                                      .steps = fold->src + n,
                                      .ops = ops,
                                      .components = at,
                                      .emits = &value,
                                      .ranks = &rank,
                                      .coords = coords,
                                      .extents = param->dims,
                                      .ranges = fold_range(fold),
                                      .pins = fold->src + fold->n_src - fold_n_pins(fold)});
}

/** The OUT of a FOLD that stores to its param. */
static const node *out_of_fold(lowering *l, const node *out, const node *fold, const node *s) {
  const node *stage = out->src[1], *param = out->src[0];
  size_t rank = param->rank, n = 0;
  const node **own = arena_alloc(l->a, (rank + 1) * sizeof *own);
  const node **ranges = arena_alloc(l->a, (rank + stage_n_ranges(stage)) * sizeof *ranges);
  output_part *p = arena_alloc(l->a, sizeof *p);
  *p = (output_part){.param = param, .at = own, .own = own};
  for (size_t i = 0; i < stage_n_ranges(stage); i++)
    if (stage_range(stage)[i] != s) ranges[n++] = stage_range(stage)[i];
  for (size_t i = 0; i < rank; i++) {
    own[i] = ranges[n++] = range_make(l->g, param->dims[i], KIND_LOOP);
    p->axis[i] = i;
  }
  const node *v =
      index_make(l->g, (dtype)param->dtype, fold, (int64_t)fold_n_states(fold), rank, own);
  const node *made = stage_make(l->g, &(stage_spec){.n_values = 1,
                                                    .n_ranges = n,
                                                    .values = &v,
                                                    .ranks = &rank,
                                                    .coords = own,
                                                    .extents = param->dims,
                                                    .ranges = ranges,
                                                    .cut = true});
  map_set(l->a, &l->outputs, v, p);
  return ir_with_sources(l->g, out, (const node *[]){param, made});
}

const node *lower_fuse_emits(lowering *l, const node *sink, const node_list *order) {
  fusing f = {.l = l, .order = *order};
  map with = {0};
  for (size_t i = 0; i < order->n; i++) {
    const node *out = order->at[i], *s;
    const node *fold = out->op == OP_OUT ? fold_for(&f, out, &s) : NULL;
    if (!fold) continue;
    const node *fused = fold_with_value(&f, fold, out, s);
    map_set(l->a, &with, out, (void *)out_of_fold(l, out, fused, s));
  }
  return with.n ? subst(l->g, sink, &with) : sink;
}
