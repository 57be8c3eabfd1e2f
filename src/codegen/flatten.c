/* Ranges of a nest become one where everything they lead to is in memory as it is in the loops:
   fewer loops, and more indices for vectors. */
#include "codegen/choice.h"
#include "ir/address.h"
#include "ir/weigh.h"

#include "base/map.h"

/** Whether an address is some number of steps of a range from a base. */
static bool is_straight(ir *g, const node *range, size_t rank, const node *const extents[],
                        const node *const coords[]) {
  const node *a = address_of(g, rank, extents, coords);
  int64_t c = ix_coefficient(a, range);
  return !node_is_free_in(range, ix_sub(g, a, ix_scale(g, range, c)));
}

static bool reads_straight(ir *g, const node *range, const node *n) {
  const node *from = n->src[0];
  size_t i = (size_t)n->ints[0];
  if (from->op == OP_PARAM) return is_straight(g, range, from->rank, from->dims, n->src + 1);
  return from->op == OP_STAGE &&
         is_straight(g, range, stage_rank(from, i), stage_extents(from, i), n->src + 1);
}

/** Whether a node uses the range other than in an address. */
static bool uses_range(const node *n, const node *range) {
  bool uses = n->op == OP_RANGE && n != range && node_is_free_in(range, n);
  for (uint32_t i = 0; i < n->n_src && n->dtype != DT_INDEX && n->op != OP_INDEX; i++)
    uses |= n->src[i]->dtype == DT_INDEX && n->src[i]->op != OP_RANGE &&
            node_is_free_in(range, n->src[i]);
  return uses && n->op != OP_STAGE && n->op != OP_FOLD;
}

/** Whether arrays inside of a nest are as they were before a range of theirs became two. */
static bool builds_straight(ir *g, const node *range, const node *b) {
  if (b->op == OP_FOLD) {
    for (size_t e = 0; e < fold_emits(b); e++) {
      size_t component = fold_states(b) + e;
      if (!is_straight(g, range, fold_rank(b, component), fold_extents(b, component),
                       fold_coords(b, e)))
        return false;
    }
    return true;
  }
  for (size_t i = 0; i < stage_values(b); i++)
    if (!is_straight(g, range, stage_rank(b, i), stage_extents(b, i), stage_coords(b, i)))
      return false;
  return true;
}

static bool is_better(ir *g, const node *binder, const node *range) {
  node_list nest = weigh_nest(ir_arena(g), binder);
  if (!builds_straight(g, range, binder)) return false;
  for (size_t i = 0; i < nest.n; i++) {
    const node *n = nest.at[i];
    if (!node_is_free_in(range, n)) continue;
    bool array = n->op == OP_STAGE || n->op == OP_FOLD;
    if (n->op == OP_INDEX
            ? n->src[0]->op != OP_STATE && n->src[0]->op != OP_FOLD && !reads_straight(g, range, n)
            : uses_range(n, range))
      return false;
    if (array && !builds_straight(g, range, n)) return false;
  }
  return true;
}

/** One range for two of a binder's, the first that can be; false: none can. */
static bool flatten_one(choice *c, const node *binder) {
  const node *const *ranges;
  size_t n = binder_ranges(binder, &ranges);
  for (size_t i = 0; i + 1 < n; i++) {
    const node *both, *made = law_flatten(&c->laws, c->sink, ranges[i], &both);
    if (!made || !is_better(c->laws.g, law_binder(&c->laws, made, both), both)) continue;
    c->sink = made;
    return true;
  }
  return false;
}

void choose_flat(choice *c) {
  for (bool again = true; again;) {
    again = false;
    node_list binders = choice_binders(c);
    for (size_t i = 0; i < binders.n && !again; i++) again = flatten_one(c, binders.at[i]);
  }
}
