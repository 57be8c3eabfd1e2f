/* Orders the loops around a register tile. The tile reads vectors of one operand and scalars of
   another; the loops that run innermost read one of them again and again, which then stays in a
   near cache, and sweep the other. The order that the kernel comes with is kept unless the search
   prefers the loops of the other operand innermost. */
#include "codegen/choose/choice.h"
#include "codegen/choose/nest_analysis.h"

/** A nest's reductions without those of the arrays that it builds. */
static node_list own_reductions(arena *a, const node_list *nest) {
  map of_arrays = {0};
  node_list own = {0};
  for (size_t i = 0; i < nest->n; i++) {
    if (nest->at[i]->op != OP_STAGE) continue;
    node_list array = nest_nodes(a, nest->at[i]);
    for (size_t k = 0; k < array.n; k++) map_set(a, &of_arrays, array.at[k], NULL);
  }
  for (size_t i = 0; i < nest->n; i++)
    if (nest->at[i]->op == OP_FOLD && !map_has(&of_arrays, nest->at[i]))
      vec_push(a, &own, nest->at[i]);
  return own;
}

/** True if a range is a loop along which the vectors that reductions read change (or scalars, if
   not `vectors`), and operands of the other kind do not all change. */
static bool changes(ir *g, const node_list *reductions, const node *range, bool vectors) {
  bool changes = false, reuses = false;
  for (size_t i = 0; i < reductions->n; i++) {
    const node *f = reductions->at[i];
    if (!node_is_free_in(range, f)) continue;
    node_list body = nest_nodes(ir_arena(g), f);
    const node *lanes = nest_lane_range(g, f, &body);
    for (size_t k = 0; k < body.n && lanes; k++) {
      if (!nest_is_array_read(body.at[k])) continue;
      bool is_wanted = node_is_free_in(lanes, body.at[k]) == vectors;
      bool varies = node_is_free_in(range, body.at[k]);
      changes |= is_wanted && varies;
      reuses |= !is_wanted && !varies;
    }
  }
  return changes && reuses;
}

/** Number of a stage's outermost loops up to the last that arrays of its nest are built in. */
static size_t loops_of_arrays(const node_list *nest, const node *stage) {
  size_t n = 0;
  for (size_t i = 0; i < nest->n; i++)
    for (size_t k = n; k < nest_count_loops(stage) && nest->at[i]->op == OP_STAGE; k++)
      if (node_is_free_in(stage_range(stage)[k], nest->at[i])) n = k + 1;
  return n;
}

/** The kernel with a tile's loops, from a position on, along which its vectors (or scalars) change
    innermost; NULL: there are none, they are so already, or the law refuses. */
static const node *move_inside(choice *c, const node *stage, size_t first, bool vectors) {
  node_list nest = nest_nodes(ir_arena(c->laws.g), stage);
  node_list reductions = own_reductions(ir_arena(c->laws.g), &nest);
  const node *const *ranges = stage_range(stage), *sink = c->sink;
  size_t n = nest_count_loops(stage), end = n;
  for (size_t i = n; i-- > first && sink;) {
    if (!changes(c->laws.g, &reductions, ranges[i], vectors)) continue;
    end--;
    if (i != end) sink = law_order(&c->laws, sink, ranges[i], end);
  }
  return sink == c->sink ? NULL : sink;
}

/** The kernel in the other order: vectors change innermost, or else scalars, in the loops inside of
    those that arrays are built in. NULL: there is none. */
static const node *exchange_loops(choice *c, const node *stage) {
  node_list nest = nest_nodes(ir_arena(c->laws.g), stage);
  const node *made = move_inside(c, stage, 0, true);
  return made ? made : move_inside(c, stage, loops_of_arrays(&nest, stage), false);
}

void choose_loop_order(choice *c) {
  node_list binders = choice_binders(c);
  for (size_t i = 0; i < binders.n; i++) {
    const node *b = binders.at[i];
    if (b->op != OP_STAGE || !nest_is_unrolled(b)) continue;
    b = law_find_binder(&c->laws, c->sink, stage_range(b)[0]);
    const node *made = b ? exchange_loops(c, b) : NULL;
    if (made && choice_decide(c, DECISION_ORDER, 2)) c->sink = made;
  }
}
