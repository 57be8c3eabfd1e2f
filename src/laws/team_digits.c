/* Collects the digits of the numbers of groups and workers from a kernel's ranges. */
#include "laws/team_digits.h"

#include "ir/index/index_arithmetic.h"

/** The most indices of a range, at least one, as a size that does not depend on other ranges. */
static const node *whole_extent(ir *g, const node *range) {
  const node *e = range_extent(range);
  bool is_open = range_kind_of(range) == KIND_GLOBAL && !e->free->n;
  return ix_max(g, is_open ? e : ix_const(g, e->hi), ix_const(g, 1));
}

/** Order of the digits: WARP, LOCAL, GLOBAL, then by axis. */
static bool is_before(const team_digit *d, const node *range) {
  if (d->kind != range_kind_of(range)) return d->kind > range_kind_of(range);
  return d->axis < range_axis(range);
}

static void add_range(ir *g, team_digits *t, const node *range) {
  const node *extent = whole_extent(g, range);
  size_t at = 0;
  while (at < t->all.n && is_before(&t->all.at[at], range)) at++;
  team_digit *d = at < t->all.n ? &t->all.at[at] : NULL;
  if (d && d->kind == range_kind_of(range) && d->axis == range_axis(range)) {
    d->extent = ix_max(g, d->extent, extent);
    return;
  }
  team_digit made = {range_kind_of(range), range_axis(range), extent, NULL};
  vec_push(ir_arena(g), &t->all, made);
  for (size_t i = t->all.n - 1; i > at; i--) t->all.at[i] = t->all.at[i - 1];
  t->all.at[at] = made;
}

team_digits team_digits_of(ir *g, const node_list *nodes) {
  team_digits t = {.groups = ix_const(g, 1), .workers = 1, .warp = 1};
  for (size_t i = 0; i < nodes->n; i++)
    if (nodes->at[i]->op == OP_RANGE && range_is_digit(nodes->at[i]))
      add_range(g, &t, nodes->at[i]);
  for (size_t i = 0; i < t.all.n; i++) {
    team_digit *d = &t.all.at[i];
    d->stride = d->kind == KIND_GLOBAL ? t.groups : ix_const(g, t.workers);
    if (d->kind == KIND_GLOBAL)
      t.groups = ix_mul(g, t.groups, d->extent);
    else
      t.workers *= node_int(d->extent);
    if (d->kind == KIND_WARP) t.warp = t.workers;
  }
  return t;
}

const team_digit *team_digits_find(const team_digits *t, const node *range) {
  for (size_t i = 0; i < t->all.n; i++)
    if (t->all.at[i].kind == range_kind_of(range) && t->all.at[i].axis == range_axis(range))
      return &t->all.at[i];
  return NULL;
}

bool team_digits_has_all(const team_digits *t, const node *range) {
  return range_extent(range) == team_digits_find(t, range)->extent;
}
