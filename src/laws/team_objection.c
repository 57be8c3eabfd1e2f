/* Checks whether a kernel whose ranges are digits can run in teams. Workers of a team run each by
   itself and meet where memory that they share changes hands, so they must all come by there: the
   loops around an array that they share, or around a reduction over digits, have equal lengths for
   all of them. */
#include "ir/core/op.h"
#include "ir/index/write_once.h"
#include "laws/laws.h"
#include "laws/team_arrays.h"
#include "laws/warp_tile.h"

typedef struct check {
  ir *g;
  const node *sink;
  node_list nodes;
  team_arrays t;
} check;

/** True if workers of one group may have different numbers: a size that depends on their digits or
    on computed elements. */
static bool may_differ(const check *c, const node *size) {
  for (uint32_t i = 0; i < size->free->n; i++)
    if (range_is_digit(size->free->at[i]) && range_kind_of(size->free->at[i]) != KIND_GLOBAL)
      return true;
  node_list order = topo_sort(ir_arena(c->g), &size, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_STAGE || order.at[i]->op == OP_FOLD || order.at[i]->op == OP_STATE)
      return true;
  return false;
}

/** True if all workers of a group run the same iterations of a range: of a loop over it, or of the
    gate of one that is shorter than its digit. */
static bool is_uniform(const check *c, const node *range) {
  bool is_workers = range_is_digit(range) && range_kind_of(range) != KIND_GLOBAL;
  return is_workers ? team_digits_has_all(&c->t.digits, range)
                    : !may_differ(c, range_extent(range));
}

/** True if a binder's team has to meet where it runs. */
static bool meets(const check *c, const node *b) {
  const node *const *ranges;
  size_t n = b->op == OP_STAGE ? stage_n_values(b) : fold_n_states(b) + fold_n_emits(b);
  bool is_out = b->op == OP_STAGE && law_find_out(c->sink, b) != NULL;
  for (size_t i = 0; i < n; i++)
    if (team_arrays_find(&c->t, b, i)->widest != KIND_LOOP && !is_out) return true;
  n = binder_ranges(b, &ranges);
  warp_tile unused;
  return b->op == OP_FOLD &&
         (range_is_digit(ranges[n - 1]) || warp_tile_match(c->g, &c->t, b, &unused));
}

static const char *place_objection(const check *c, const node *b) {
  const node_list *open = map_get(&c->t.open, b);
  for (size_t i = 0; i < open->n; i++) {
    if (range_kind_of(open->at[i]) == KIND_VECTOR) return "a team would meet inside of a vector";
    if (!is_uniform(c, open->at[i])) return "a team would meet where some of its workers are not";
  }
  return NULL;
}

static bool is_repeated(const node *const ranges[], size_t n, const node *const others[],
                        size_t n_others) {
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < n_others && range_is_digit(ranges[i]); k++)
      if (others[k] != ranges[i] && range_is_same_digit(others[k], ranges[i])) return true;
  return false;
}

/** True if a digit of a binder is also a range around it, which the binder depends on, or which
   some workers are left out of. */
static bool is_around(const check *c, const node *b, const node *const ranges[], size_t n,
                      const node_list *open) {
  for (size_t i = 0; i < open->n; i++) {
    const node *around = open->at[i];
    if (!is_repeated(ranges, n, &around, 1)) continue;
    if (!is_uniform(c, around) || team_differs_along(c->g, b, around)) return true;
  }
  return false;
}

/** True if workers share the array of a component of a STAGE or FOLD; false for scalars. */
static bool is_shared_by_team(const check *c, const node *b, int64_t component) {
  if (component < 0 || (b->op != OP_STAGE && b->op != OP_FOLD)) return false;
  return team_arrays_find(&c->t, b, (size_t)component)->widest != KIND_LOOP;
}

static const char *fold_objection(const check *c, const node *f) {
  size_t n = fold_n_ranges(f), digits = 0;
  for (size_t i = 0; i < n; i++) {
    digits += range_is_digit(fold_range(f)[i]);
    if (range_kind_of(fold_range(f)[i]) == KIND_GLOBAL) return "groups would share a state";
  }
  for (size_t i = 0; i < fold_n_states(f); i++)
    if (is_shared_by_team(c, f, (int64_t)i) ||
        is_shared_by_team(c, fold_init(f, i), fold_component(f, i)) ||
        is_shared_by_team(c, fold_step(f, i), fold_component(f, i)))
      return "a team would share a state";
  if (!digits) return NULL;
  if (digits < n) return "a FOLD has digits and other ranges (NEST parts them)";
  if (fold_n_emits(f)) return "a FOLD over digits emits values";
  for (size_t i = 0; i < fold_n_states(f); i++) {
    uint64_t start;
    if (fold_op(f, i) < 0 || fold_component(f, i) >= 0) return "a state of a FOLD has no tree";
    if (!op_identity((op)fold_op(f, i), (dtype)fold_init(f, i)->dtype, &start))
      return "an op of a FOLD has no identity";
  }
  return NULL;
}

/** Objection to the ranges of a binder: those that it binds and those around it. */
static const char *digits_objection(const check *c, const node *b) {
  const node *const *ranges;
  size_t n = binder_ranges(b, &ranges);
  const node_list *open = map_get(&c->t.open, b);
  if (is_repeated(ranges, n, ranges, n) || is_around(c, b, ranges, n, open))
    return "a digit would be two indices at once";
  bool in_vector = false;
  for (size_t i = 0; i < open->n; i++) in_vector |= range_kind_of(open->at[i]) == KIND_VECTOR;
  for (size_t i = 0; i < n; i++) {
    if (range_is_digit(ranges[i]) && in_vector) return "a digit would be inside of a vector";
    in_vector |= range_kind_of(ranges[i]) == KIND_VECTOR;
  }
  return NULL;
}

/** True if a coordinate of a STAGE's value depends on a range. */
static bool is_in_coordinates(const node *stage, size_t value, const node *range) {
  for (size_t p = 0; p < stage_rank(stage, value); p++)
    if (node_is_free_in(range, stage_coords(stage, value)[p])) return true;
  return false;
}

/** True if some workers would miss an array of their own: its STAGE leaves them out by a digit that
    no coordinate depends on. */
static bool leaves_out(const check *c, const node *stage) {
  for (size_t i = 0; i < stage_n_values(stage); i++)
    for (size_t k = 0; k < stage_n_ranges(stage); k++) {
      const node *r = stage_range(stage)[k];
      bool is_for_all = !range_is_digit(r) || team_digits_has_all(&c->t.digits, r);
      if (!is_for_all && !is_in_coordinates(stage, i, r)) return true;
    }
  return false;
}

static const char *binder_objection(const check *c, const node *b) {
  const char *why = digits_objection(c, b);
  if (!why && b->op == OP_FOLD) why = fold_objection(c, b);
  bool is_array = b->op == OP_STAGE && !law_find_out(c->sink, b);
  for (size_t i = 0; is_array && !why && i < stage_n_values(b); i++)
    if (team_arrays_find(&c->t, b, i)->widest == KIND_GLOBAL) why = "groups would share an array";
  if (is_array && !why && leaves_out(c, b)) why = "some workers would miss an array";
  return !why && meets(c, b) ? place_objection(c, b) : why;
}

/** True if the kernel reads a buffer that it stores to. */
static bool is_in_place(const check *c) {
  for (size_t i = 0; i < c->nodes.n; i++) {
    const node *n = c->nodes.at[i];
    for (uint32_t k = 0; n->op == OP_INDEX && k < c->sink->n_src; k++) {
      const node *out = c->sink->src[k];
      if (out->op == OP_OUT && nodes_contain(out->src, out->n_src - 1, n->src[0])) return true;
    }
  }
  return false;
}

/** Objection to digits of a kernel that updates buffers in place: they are those of its only nest,
    all of which each of its stores depends on. */
static const char *in_place_objection(const check *c) {
  const node *out = c->sink->src[0];
  size_t digits = 0;
  if (c->sink->n_src > 1) return "the kernel updates a buffer in place in one of several nests";
  const node *stage = out->src[out->n_src - 1];
  for (size_t i = 0; i < stage_n_ranges(stage); i++)
    digits += range_is_digit(stage_range(stage)[i]);
  for (size_t i = 0; i < stage_n_values(stage); i++)
    for (size_t k = 0; k < stage_n_ranges(stage); k++) {
      const node *r = stage_range(stage)[k];
      if (range_is_digit(r) && !is_in_coordinates(stage, i, r))
        return "workers would read what others store";
    }
  return digits == c->t.digits.all.n ? NULL : "workers would read what others store";
}

/** True if two outputs' nests may store elements of one param, which different workers run then:
    parts of a nest both store values that do not depend on the range that parts them, and blocks
    that overlap reach into the other part. */
static bool overlap(const check *c, const node *one, const node *other) {
  const node *a = one->src[one->n_src - 1], *b = other->src[other->n_src - 1];
  for (size_t i = 0; i < stage_n_values(a); i++)
    for (size_t k = 0; k < stage_n_values(b); k++)
      if (one->src[i] == other->src[k] && !stages_write_apart(c->g, a, i, b, k)) return true;
  return false;
}

static const char *outputs_objection(const check *c) {
  for (size_t i = 0; i < c->sink->n_src; i++)
    for (size_t k = 0; k < i; k++)
      if (c->sink->src[i]->op == OP_OUT && c->sink->src[k]->op == OP_OUT &&
          overlap(c, c->sink->src[i], c->sink->src[k]))
        return "two nests would store one element";
  return NULL;
}

static bool has_thread_range(const check *c) {
  for (size_t i = 0; i < c->nodes.n; i++)
    if (c->nodes.at[i]->op == OP_RANGE && range_kind_of(c->nodes.at[i]) == KIND_THREAD) return true;
  return false;
}

const char *team_objection(ir *g, const node *sink) {
  check c = {.g = g, .sink = sink, .nodes = topo_sort(ir_arena(g), &sink, 1, NULL, NULL)};
  bool has_digits = false;
  for (size_t i = 0; i < c.nodes.n && !has_digits; i++)
    has_digits = c.nodes.at[i]->op == OP_RANGE && range_is_digit(c.nodes.at[i]);
  if (!has_digits) return NULL;
  if (has_thread_range(&c)) return "a kernel is shared out among threads or among teams";
  c.t = team_arrays_of(g, sink);
  const char *why = is_in_place(&c) ? in_place_objection(&c) : NULL;
  if (!why) why = outputs_objection(&c);
  for (size_t i = 0; i < c.nodes.n && !why; i++)
    if (c.nodes.at[i]->op == OP_STAGE || c.nodes.at[i]->op == OP_FOLD)
      why = binder_objection(&c, c.nodes.at[i]);
  return why;
}
