/* Flattens (coalesces) loops: two ranges of a nest become one where every access and every array of
   the nest is as contiguous across both as within the inner one: fewer loops, longer rows for
   vectors. */
#include "codegen/choose/choice.h"
#include "codegen/choose/nest_analysis.h"
#include "ir/index/row_major_address.h"
#include "target/kernel_estimates.h"

#include "base/map.h"

/** True if an element's address is linear in a range. */
static bool is_linear(ir *g, const node *range, size_t rank, const node *const extents[],
                      const node *const coords[]) {
  int64_t stride;
  return address_has_stride(g, range, row_major_address(g, rank, extents, coords), &stride);
}

static bool read_is_linear(ir *g, const node *range, const node *n) {
  const node *from = n->src[0];
  size_t i = (size_t)n->ints[0];
  if (from->op == OP_PARAM) return is_linear(g, range, from->rank, from->dims, n->src + 1);
  return from->op == OP_STAGE &&
         is_linear(g, range, stage_rank(from, i), stage_extents(from, i), n->src + 1);
}

/** True if a node uses a range otherwise than in an address. */
static bool uses_range(const node *n, const node *range) {
  bool uses = n->op == OP_RANGE && n != range && node_is_free_in(range, n);
  for (uint32_t i = 0; i < n->n_src && n->dtype != DT_INDEX && n->op != OP_INDEX; i++)
    uses |= n->src[i]->dtype == DT_INDEX && n->src[i]->op != OP_RANGE &&
            node_is_free_in(range, n->src[i]);
  return uses && n->op != OP_STAGE && n->op != OP_FOLD;
}

/** True if the arrays that a binder writes have addresses linear in a range. */
static bool stores_are_linear(ir *g, const node *range, const node *b) {
  if (b->op == OP_FOLD) {
    for (size_t e = 0; e < fold_n_emits(b); e++) {
      size_t component = fold_n_states(b) + e;
      if (!is_linear(g, range, fold_rank(b, component), fold_extents(b, component),
                     fold_coords(b, e)))
        return false;
    }
    return true;
  }
  for (size_t i = 0; i < stage_n_values(b); i++)
    if (!is_linear(g, range, stage_rank(b, i), stage_extents(b, i), stage_coords(b, i)))
      return false;
  return true;
}

/** True if the flattened range of a binder appears in nothing but linear addresses. */
static bool is_contiguous(ir *g, const node *binder, const node *range) {
  node_list nest = nest_nodes(ir_arena(g), binder);
  if (!stores_are_linear(g, range, binder)) return false;
  for (size_t i = 0; i < nest.n; i++) {
    const node *n = nest.at[i];
    if (!node_is_free_in(range, n)) continue;
    bool array = n->op == OP_STAGE || n->op == OP_FOLD;
    if (n->op == OP_INDEX
            ? n->src[0]->op != OP_STATE && n->src[0]->op != OP_FOLD && !read_is_linear(g, range, n)
            : uses_range(n, range))
      return false;
    if (array && !stores_are_linear(g, range, n)) return false;
  }
  return true;
}

/** Flattens the first two adjacent ranges of a binder that are contiguous; false: none are. */
static bool flatten_binder(choice *c, const node *binder) {
  const node *const *ranges;
  size_t n = binder_ranges(binder, &ranges);
  for (size_t i = 0; i + 1 < n; i++) {
    if (nest_copies_along(binder, ranges[i + 1])) continue;
    const node *both, *made = law_flatten(&c->laws, c->sink, ranges[i], &both);
    if (!made || !is_contiguous(c->laws.g, law_find_binder(&c->laws, made, both), both)) continue;
    c->sink = made;
    return true;
  }
  return false;
}

void choose_flatten_loops(choice *c) {
  for (bool changed = true; changed;) {
    changed = false;
    node_list binders = choice_binders(c);
    for (size_t i = 0; i < binders.n && !changed; i++) changed = flatten_binder(c, binders.at[i]);
  }
}
