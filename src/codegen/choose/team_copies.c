/* Divides the copies of operands that a group of workers shares among all of its workers, and
   builds them some blocks ahead, in slots, where the device copies while workers go on. */
#include "codegen/choose/team_tiles.h"
#include "codegen/choose/teams.h"
#include "ir/core/topo_sort.h"
#include "target/kernel_estimates.h"

/** True for a packed operand that was none of the kernel's arrays before, and whose loops nobody
   has divided yet. */
static bool is_copy(choice *c, const map *before, const node *b) {
  bool is_array = b->op == OP_STAGE && !choice_is_out(c, b) && stage_n_ranges(b);
  if (!is_array || map_has(before, b)) return false;
  for (size_t i = 0; i < stage_n_ranges(b); i++)
    if (range_kind_of(stage_range(b)[i]) != KIND_LOOP) return false;
  node_list nodes = topo_sort(ir_arena(c->laws.g), b->src, stage_n_values(b), NULL, NULL);
  for (size_t i = 0; i < nodes.n; i++)
    if (nodes.at[i]->op == OP_STATE || nodes.at[i]->op == OP_FOLD) return false;
  return true;
}

/** The range of a copy along which its source lies side by side; NULL: none. */
static const node *range_of_source(choice *c, const node *stage) {
  node_list nodes = topo_sort(ir_arena(c->laws.g), stage->src, stage_n_values(stage), NULL, NULL);
  for (size_t i = 0; i < nodes.n; i++)
    for (size_t k = 0; k < stage_n_ranges(stage); k++) {
      const node *n = nodes.at[i], *r = stage_range(stage)[k];
      if (n->op == OP_INDEX && n->src[0]->op == OP_PARAM && node_is_free_in(r, n) &&
          read_is_unit_stride(c->laws.g, r, n))
        return r;
    }
  return NULL;
}

/** One range for all of a copy's; that along its source is the fastest. NULL: refused. */
static const node *flatten(choice *c, const node *stage) {
  const node *fast = range_of_source(c, stage), *any = stage_range(stage)[0], *const * ranges;
  size_t n = stage_n_ranges(stage);
  if (fast && stage_range(stage)[n - 1] != fast &&
      !choice_take(c, law_order(&c->laws, c->sink, fast, n - 1)))
    return NULL;
  while (binder_ranges(law_find_binder(&c->laws, c->sink, any), &ranges) > 1)
    if (!choice_take(c, law_flatten(&c->laws, c->sink, ranges[0], &any))) return NULL;
  return any;
}

/** Divides a range of all workers of a group among its warps. */
static bool fill_by_warps(choice *c, const team_tile *t, const node *team) {
  const node *rows, *columns, *inside, *warp;
  int64_t warps = t->workers[COLUMNS], workers = t->tensor->workers;
  return choice_take(c, law_split(&c->laws, c->sink, team, warps * workers, &rows, &inside)) &&
         choice_take(c, law_split(&c->laws, c->sink, inside, workers, &columns, &warp)) &&
         team_set_digit(c, &columns, KIND_LOCAL, team_digit_axis(COLUMNS)) &&
         team_set_digit(c, &rows, KIND_LOCAL, team_digit_axis(ROWS)) && team_tensor_fill(c, warp);
}

/** Divides a copy among all workers of a group, an element of each in an iteration. */
static bool fill_by_team(choice *c, const team_tile *t, const node *stage) {
  const node *all = flatten(c, stage), *iterations, *team, *rows = NULL, *columns;
  if (!all ||
      !choice_take(c, law_split(&c->laws, c->sink, all, team_group_workers(t), &iterations, &team)))
    return false;
  if (t->tensor) return fill_by_warps(c, t, team);
  columns = team;
  if (t->workers[ROWS] > 1 && t->workers[COLUMNS] > 1 &&
      !choice_take(c, law_split(&c->laws, c->sink, team, t->workers[COLUMNS], &rows, &columns)))
    return false;
  if (t->workers[COLUMNS] == 1) rows = columns, columns = NULL;
  return team_set_digit(c, &columns, KIND_LOCAL, team_digit_axis(COLUMNS)) &&
         team_set_digit(c, &rows, KIND_LOCAL, team_digit_axis(ROWS));
}

bool team_fill_copies(choice *c, const team_tile *t, const map *before) {
  for (bool changed = true; changed;) {
    node_list binders = choice_binders(c);
    changed = false;
    for (size_t i = 0; i < binders.n && !changed; i++) {
      if (!is_copy(c, before, binders.at[i])) continue;
      if (!fill_by_team(c, t, binders.at[i])) return false;
      changed = true;
    }
  }
  return true;
}

/** Gives the copies slots, as far as laws allow it. */
static void set_slots(choice *c, int64_t slots, const map *before) {
  for (bool changed = true; changed;) {
    node_list binders = choice_binders(c);
    changed = false;
    for (size_t i = 0; i < binders.n && !changed; i++) {
      const node *b = binders.at[i];
      bool is_new = b->op == OP_STAGE && !map_has(before, b) && stage_slots(b) == 1;
      changed = is_new && choice_take(c, law_depth(&c->laws, c->sink, b, slots));
    }
  }
}

bool team_fits_group(const choice *c) {
  return team_shared_bytes(c, c->sink) <= (double)c->target->group_bytes;
}

void team_copy_ahead(choice *c, const team_tile *t, const map *before) {
  const node *plain = c->sink;
  for (int64_t slots = t->slots; slots > 1; slots--) {
    set_slots(c, slots, before);
    if (team_fits_group(c)) return;
    c->sink = plain;
  }
}
