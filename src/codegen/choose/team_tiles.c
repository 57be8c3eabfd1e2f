/* Tiles products for teams of workers: a group computes a block of rows and columns of a nest, and
   each of its workers a register tile in it, whose rows and columns have a stride of as many as the
   group has workers there. Reductions run in blocks; operands that depend on rows or on columns
   alone are copied for each block to memory that the group shares (team_copies.c); what a kernel
   computes of them before, as exponentials or conversions in an array, is computed there. The
   cheapest tile by estimate (team_tile_list.c) that laws allow is taken.

     for i, j { FOLD k }
       →  for gi, gj (groups), il, jl (workers)
            FOLD over ko, ki (STAGE over copies of i, j),  operands packed for each ko */
#include "codegen/choose/team_tiles.h"
#include "codegen/choose/teams.h"
#include "ir/core/topo_sort.h"

/** Finds the nest of whole blocks: the remainder of an open size is a nest of its own. */
static bool cut_remainders(choice *c, const team_tile *t, cut *made) {
  const product *p = t->of;
  const node *stage = p->stage, *whole = p->axis[ROWS], *rest;
  for (size_t k = 0; k < AXES; k++) {
    size_t at = range_position(stage_range(p->stage), p->axis[k]);
    const node *range = stage_range(stage)[at];
    if (node_is_const(range_extent(range))) continue;
    if (!choice_split_remainder(c, range, team_group_indices(t, k), &whole, &rest)) return false;
    stage = law_find_binder(&c->laws, c->sink, whole);
  }
  for (size_t k = 0; k < AXES; k++)
    made->axis[k] = stage_range(stage)[range_position(stage_range(p->stage), p->axis[k])];
  made->fold = team_only_fold(c, stage);
  return made->fold != NULL;
}

static bool cut_axis(choice *c, const team_tile *t, size_t axis, cut *made) {
  const node *inner, *rest;
  int64_t lanes = t->tensor ? team_tensor_side(t, axis) : axis == COLUMNS ? t->lanes : 1;
  /* The last block overlaps the one before. */
  if (!choice_take(c, law_overlap(&c->laws, c->sink, made->axis[axis], team_group_indices(t, axis),
                                  &made->groups[axis], &inner)))
    return false;
  if (!choice_take(c, law_split(&c->laws, c->sink, inner, t->workers[axis] * lanes,
                                &made->copies[axis], &rest)))
    return false;
  made->workers[axis] = rest;
  if (lanes == 1) return true;
  if (t->tensor)
    return choice_take(c,
                       law_split(&c->laws, c->sink, rest, lanes, &made->workers[axis], &inner)) &&
           team_tensor_cut(c, t, axis, inner, made);
  if (!choice_take(c,
                   law_split(&c->laws, c->sink, rest, lanes, &made->workers[axis], &made->lanes)))
    return false;
  return true;
}

/** Blocks of a reduction: its innermost ranges, and a part of the next. */
static bool cut_terms(choice *c, const team_tile *t, cut *made) {
  const node *fold = made->fold, *outer, *inner;
  int64_t left = t->block;
  size_t n = fold_n_ranges(fold);
  made->n_terms = 0;
  while (n > 0) {
    const node *r = fold_range(fold)[--n], *extent = range_extent(r);
    bool is_whole = node_is_const(extent) && node_int(extent) <= left;
    if (!is_whole && left < 2) break;
    inner = r;
    if (!is_whole && !choice_take(c, law_split(&c->laws, c->sink, r, left, &outer, &inner)))
      return false;
    made->terms[made->n_terms++] = inner;
    if (!is_whole) break;
    left /= node_int(extent);
  }
  return made->n_terms > 0;
}

static bool is_among_terms(const cut *k, const node *n) {
  for (size_t i = 0; i < k->n_terms; i++)
    if (node_is_free_in(k->terms[i], n)) return true;
  return false;
}

/** Lists the ranges of an axis inside of a group. */
static size_t inside_group(const cut *k, size_t axis, const node *to[]) {
  size_t n = 0;
  if (k->copies[axis]) to[n++] = k->copies[axis];
  if (k->workers[axis]) to[n++] = k->workers[axis];
  if (axis == COLUMNS && k->lanes) to[n++] = k->lanes;
  const node *tile[] = {axis == ROWS ? k->part[axis] : k->lane[axis],
                        axis == ROWS ? k->lane[axis] : k->part[axis]};
  for (size_t i = 0; i < 2 && tile[i]; i++) to[n++] = tile[i];
  return n;
}

static bool varies_along(const cut *k, size_t axis, const node *n) {
  const node *inside[MOST_INSIDE];
  size_t count = inside_group(k, axis, inside);
  for (size_t i = 0; i < count; i++)
    if (node_is_free_in(inside[i], n)) return true;
  return false;
}

/** Packs an expression of the reduction that depends on one axis, if workers along the other share
    it; NULL: refused. */
static const node *pack(choice *c, const team_tile *t, const cut *k, const node *e) {
  const node *inner[MOST_RANGES + MOST_INSIDE], *element;
  bool along[AXES] = {varies_along(k, ROWS, e), varies_along(k, COLUMNS, e)};
  if (!is_among_terms(k, e) || along[ROWS] == along[COLUMNS]) return NULL;
  if (!t->tensor && t->workers[along[ROWS] ? COLUMNS : ROWS] < 2) return NULL;
  size_t n = 0, count = inside_group(k, along[ROWS] ? ROWS : COLUMNS, inner);
  for (size_t i = 0; i < count; i++)
    if (node_is_free_in(inner[i], e)) inner[n++] = inner[i];
  for (size_t i = 0; i < k->n_terms; i++)
    if (node_is_free_in(k->terms[i], e)) inner[n++] = k->terms[i];
  const node *lanes = along[COLUMNS] && k->lanes && node_is_free_in(k->lanes, e) ? k->lanes : NULL;
  return law_data(&c->laws, c->sink, e, inner, n, lanes, &element);
}

static void pack_operands(choice *c, const team_tile *t, const cut *k) {
  for (bool changed = true; changed;) {
    node_list all = law_data_expressions(&c->laws, c->sink);
    changed = false;
    for (size_t i = 0; i < all.n && !changed; i++)
      changed = choice_take(c, pack(c, t, k, all.at[i]));
  }
}

/** Gives a range a kind, and moves it behind the others of its nest. */
static bool set_copies(choice *c, const node **range, range_kind kind) {
  const node *const *ranges, *changed;
  if (!*range) return true;
  size_t n = binder_ranges(law_find_binder(&c->laws, c->sink, *range), &ranges);
  if (ranges[n - 1] != *range && !choice_take(c, law_order(&c->laws, c->sink, *range, n - 1)))
    return false;
  if (!choice_take(c, law_kind(&c->laws, c->sink, *range, kind, &changed))) return false;
  *range = changed;
  return true;
}

static bool set_kinds(choice *c, cut *k) {
  for (size_t i = 0; i < AXES; i++)
    if (!team_set_digit(c, &k->groups[i], KIND_GLOBAL, team_digit_axis(i)) ||
        !team_set_digit(c, &k->workers[i], KIND_LOCAL, team_digit_axis(i)) ||
        !team_set_digit(c, &k->lane[i], KIND_WARP, team_digit_axis(i)))
      return false;
  return set_copies(c, &k->copies[ROWS], KIND_UNROLL) &&
         set_copies(c, &k->copies[COLUMNS], KIND_UNROLL) &&
         set_copies(c, &k->part[ROWS], KIND_UNROLL) &&
         set_copies(c, &k->part[COLUMNS], KIND_UNROLL) && set_copies(c, &k->lanes, KIND_VECTOR);
}

/** Other ranges of a nest become groups, as long as there are axes. */
static void set_other_groups(choice *c, const node *any) {
  const node *stage = law_find_binder(&c->laws, c->sink, any);
  node_list ranges = {0};
  for (size_t i = 0; i < stage_n_ranges(stage); i++)
    vec_push(ir_arena(c->laws.g), &ranges, stage_range(stage)[i]);
  for (size_t i = ranges.n, axis = AXES; i-- > 0 && axis < LAW_AXES;)
    if (range_kind_of(ranges.at[i]) == KIND_LOOP)
      axis += team_set_digit(c, &ranges.at[i], KIND_GLOBAL, (int64_t)axis);
}

/** Tiles a nest; false: a law refuses, or the arrays that the group shares are too large. */
static bool apply(choice *c, const team_tile *t) {
  cut k = {0};
  map before = {0};
  node_list arrays = choice_binders(c);
  for (size_t i = 0; i < arrays.n; i++) map_set(ir_arena(c->laws.g), &before, arrays.at[i], NULL);
  if (!cut_remainders(c, t, &k) || !cut_axis(c, t, ROWS, &k) || !cut_axis(c, t, COLUMNS, &k) ||
      !cut_terms(c, t, &k))
    return false;
  pack_operands(c, t, &k);
  if (!set_kinds(c, &k)) return false;
  set_other_groups(c, t->tensor ? k.lane[COLUMNS] : k.lanes ? k.lanes : k.workers[COLUMNS]);
  if (t->tensor && !team_tensor_jam(c, t, &k)) return false;
  if (!t->tensor) choose_unroll_and_jam(c);
  if (!team_fill_copies(c, t, &before) || (t->tensor && !team_tensor_finish(c))) return false;
  team_copy_ahead(c, t, &before);
  return team_fits_group(c);
}

/** Tiles a nest by one of the best tiles, in tiles of warps or not. */
static bool choose_tile(choice *c, const node *stage, const node *fold, bool tensor) {
  const node *before = c->sink;
  team_tile_list tiles = team_list_tiles(c, stage, fold, tensor);
  if (!tiles.n) return false;
  size_t taken = choice_decide(c, DECISION_TILE, tiles.n);
  for (size_t i = 0; i < tiles.n; i++) {
    if (apply(c, &tiles.at[(taken + i) % tiles.n])) return true;
    c->sink = before;
  }
  return false;
}

/** Computes elements of arrays where a nest reads them, as far as a law allows it, so that tiles
    pack them as they do operands; the nest after that. */
static const node *inline_arrays(choice *c, const node *stage) {
  const node *any = stage_range(stage)[0];
  for (bool changed = true; changed;) {
    node_list order = topo_sort(ir_arena(c->laws.g), stage->src, stage_n_values(stage), NULL, NULL);
    changed = false;
    for (size_t i = 0; i < order.n && !changed; i++)
      changed =
          order.at[i]->op == OP_STAGE && choice_take(c, law_inline(&c->laws, c->sink, order.at[i]));
    if (changed) stage = law_find_binder(&c->laws, c->sink, any);
  }
  return stage;
}

bool choose_team_tile(choice *c, const node *stage) {
  const node *before = c->sink, *fold;
  if (!stage_n_ranges(stage)) return false;
  stage = inline_arrays(c, stage);
  fold = team_only_fold(c, stage);
  if (fold && (choose_tile(c, stage, fold, true) || choose_tile(c, stage, fold, false)))
    return true;
  c->sink = before;
  return false;
}
