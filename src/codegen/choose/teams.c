/* Schedules a kernel for teams of workers. Products are tiled (team_tiles.c). Of other nests, in a
   simple form, the last range is divided among the workers of a group, the ranges around it among
   groups; remainders of tiles are divided among the same rows and columns of workers. Where
   reductions, or arrays that are read as a whole, do not depend on the last range, a group computes
   them together: their ranges are divided among its workers, and the last range in blocks of a
   team. A reduction becomes one of the workers' own reductions, which a tree combines. Ranges along
   which a nest copies a FOLD's array stay loops, so that the array lies in the output. Each law may
   refuse; the range then stays a loop that every worker runs. */
#include "codegen/choose/teams.h"
#include "codegen/choose/nest_analysis.h"
#include "laws/team_arrays.h"

typedef struct team_choice {
  choice *c;
  int64_t workers; /* of a group */
  bool has_tiles;  /* some nest's */
} team_choice;

/** Takes a kernel if its shared arrays fit; false: it stays as it was. */
static bool take(team_choice *t, const node *made) {
  choice *c = t->c;
  if (!made || team_shared_bytes(c, made) > (double)c->target->group_bytes) return false;
  c->sink = made;
  return true;
}

/** The kernel with a range as a digit; NULL: refused. */
static const node *as_digit(team_choice *t, const node *sink, const node *range, range_kind kind,
                            int64_t axis) {
  const node *changed;
  return sink ? law_kind_on_axis(&t->c->laws, sink, range, kind, axis, &changed) : NULL;
}

/** Workers of a group along an axis. */
static int64_t side_of(const team_choice *t, int64_t axis) {
  int64_t side = t->has_tiles ? team_side(t->c, axis) : 0;
  return side ? side : t->workers;
}

/** Divides a range among the workers of a group along an axis, in blocks of as many: the blocks
   become groups, or iterations. */
static void divide_among_workers(team_choice *t, const node *range, int64_t axis, bool has_groups) {
  laws *l = &t->c->laws;
  const node *sink = t->c->sink, *outer = NULL, *inner = range;
  int64_t workers = side_of(t, axis);
  if (range_extent(range)->hi > workers) sink = law_split(l, sink, range, workers, &outer, &inner);
  sink = as_digit(t, sink, inner, KIND_LOCAL, axis);
  if (!take(t, sink) || !outer || !has_groups) return;
  take(t, as_digit(t, t->c->sink, outer, KIND_GLOBAL, axis));
}

/** A worker's reduction of its own part, and one of all parts. */
static void divide_reduction(team_choice *t, const node *fold) {
  laws *l = &t->c->laws;
  const node *range = fold_range(fold)[0], *outer = NULL, *inner, *sink = t->c->sink;
  int64_t n = range_extent(range)->hi, workers = side_of(t, 0);
  bool is_fixed = node_is_const(range_extent(range));
  if (!is_fixed || n < 2 || !law_fold_is_reorderable(fold, t->c->math)) return;
  if (n <= workers) {
    if (fold_n_ranges(fold) > 1) sink = law_nest(l, sink, range);
    take(t, as_digit(t, sink, range, KIND_LOCAL, 0));
    return;
  }
  sink = law_split(l, sink, range, (n + workers - 1) / workers, &outer, &inner);
  if (!sink || !outer) return;
  sink = law_nest(l, sink, outer);
  take(t, as_digit(t, sink, outer, KIND_LOCAL, 0));
}

/** True for reductions and arrays whose elements do not depend on a range. */
static bool is_shared_by(const node *b, const node *range) {
  return (b->op == OP_FOLD || b->op == OP_STAGE) && !node_is_free_in(range, b);
}

/** The binders that a nest reads, outer ones first. */
static node_list binders_in(const choice *c, const node *stage) {
  node_list order = topo_sort(ir_arena(c->laws.g), stage->src, stage_n_values(stage), NULL, NULL);
  node_list found = {0};
  for (size_t i = order.n; i-- > 0;)
    if (order.at[i]->op == OP_FOLD || order.at[i]->op == OP_STAGE)
      vec_push(ir_arena(c->laws.g), &found, order.at[i]);
  return found;
}

/** Divides what a group computes together before it runs the last range of a nest (NULL: the nest
    has none); true: there is something. */
static bool divide_shared(team_choice *t, const node *stage, const node *last) {
  node_list binders = binders_in(t->c, stage), ranges = {0};
  for (size_t i = 0; i < binders.n; i++) {
    const node *b = binders.at[i], *const * own;
    size_t n = binder_ranges(b, &own);
    if (n && (!last || is_shared_by(b, last)))
      vec_push(ir_arena(t->c->laws.g), &ranges, b->op == OP_STAGE ? own[n - 1] : own[0]);
  }
  for (size_t i = 0; i < ranges.n; i++) {
    const node *b = law_find_binder(&t->c->laws, t->c->sink, ranges.at[i]);
    if (!b) continue;
    if (b->op == OP_FOLD)
      divide_reduction(t, b);
    else
      divide_among_workers(t, ranges.at[i], 0, false);
  }
  return ranges.n > 0;
}

/** The ranges of a nest that may be divided: not those along which it copies a FOLD's array, which
    otherwise would not lie in the output, but once in each worker's memory. */
static node_list divisible_ranges(const choice *c, const node *stage) {
  node_list ranges = {0};
  for (size_t i = 0; i < stage_n_ranges(stage); i++)
    if (!nest_copies_along(stage, stage_range(stage)[i]))
      vec_push(ir_arena(c->laws.g), &ranges, stage_range(stage)[i]);
  return ranges;
}

/** Divides a nest of the kernel: its last range among workers, those around it among groups. The
    digits of a nest that copies a FOLD's array are all its own. */
static void divide_nest(team_choice *t, const node *stage) {
  node_list ranges = divisible_ranges(t->c, stage);
  bool copies = ranges.n < stage_n_ranges(stage);
  const node *last = ranges.n ? vec_pop(&ranges) : NULL;
  bool has_shared = !copies && divide_shared(t, stage, last);
  if (last) divide_among_workers(t, last, 0, !has_shared);
  if (ranges.n && t->has_tiles && team_side(t->c, 1))
    divide_among_workers(t, vec_pop(&ranges), 1, true);
  for (size_t i = ranges.n, axis = 1; i-- > 0 && axis < LAW_AXES;) {
    bool taken = take(t, as_digit(t, t->c->sink, ranges.at[i], KIND_GLOBAL, (int64_t)axis));
    axis += taken;
  }
}

/** The STAGE of an output; NULL: the node is none. */
static const node *nest_of(const node *out) {
  return out->op == OP_OUT ? out->src[out->n_src - 1] : NULL;
}

static bool has_digits(const node *stage) {
  for (size_t i = 0; i < stage_n_ranges(stage); i++)
    if (range_is_digit(stage_range(stage)[i])) return true;
  return false;
}

void choose_teams(choice *c) {
  team_choice t = {c, c->target->team_workers, false};
  choose_sink_folds(c);
  for (size_t i = 0; i < c->sink->n_src && c->sink->n_src > 1; i++) {
    const node *stage = nest_of(c->sink->src[i]);
    if (stage && divisible_ranges(c, stage).n < stage_n_ranges(stage)) return;
  }
  for (size_t i = 0; i < c->sink->n_src; i++) {
    const node *stage = nest_of(c->sink->src[i]);
    if (!stage || has_digits(stage)) continue;
    if (choose_team_tile(c, stage))
      t.has_tiles = true;
    else
      divide_nest(&t, stage);
  }
}
