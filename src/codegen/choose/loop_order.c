/* Orders the loops around a register tile. The tile reads vectors of one operand and scalars of
   another; the loops that run innermost read one of them again and again, which then stays in a
   near cache, and sweep the other. The order that the kernel comes with is kept unless the search
   prefers the loops along which the vectors change innermost. */
#include "codegen/choose/choice.h"
#include "codegen/choose/nest_analysis.h"

/** True if a range is a loop along which the vectors that a nest's reductions read change, and
   other operands do not all change. */
static bool changes_vectors(ir *g, const node_list *nest, const node *range) {
  bool changes = false, reuses = false;
  for (size_t i = 0; i < nest->n; i++) {
    const node *f = nest->at[i];
    if (f->op != OP_FOLD || !node_is_free_in(range, f)) continue;
    node_list body = nest_nodes(ir_arena(g), f);
    const node *lanes = nest_lane_range(g, f, &body);
    for (size_t k = 0; k < body.n && lanes; k++) {
      if (!nest_is_array_read(body.at[k])) continue;
      bool is_vector = node_is_free_in(lanes, body.at[k]);
      bool varies = node_is_free_in(range, body.at[k]);
      changes |= is_vector && varies;
      reuses |= !is_vector && !varies;
    }
  }
  return changes && reuses;
}

/** The kernel with a tile's loops along which its vectors change innermost; NULL: there are none,
    they are so already, or the law refuses. */
static const node *move_vectors_inside(choice *c, const node *stage) {
  node_list nest = nest_nodes(ir_arena(c->laws.g), stage);
  const node *const *ranges = stage_range(stage), *sink = c->sink;
  size_t n = nest_count_loops(stage), end = n;
  for (size_t i = n; i-- > 0 && sink;) {
    if (!changes_vectors(c->laws.g, &nest, ranges[i])) continue;
    end--;
    if (i != end) sink = law_order(&c->laws, sink, ranges[i], end);
  }
  return sink == c->sink ? NULL : sink;
}

void choose_loop_order(choice *c) {
  node_list binders = choice_binders(c);
  for (size_t i = 0; i < binders.n; i++) {
    const node *b = binders.at[i];
    if (b->op != OP_STAGE || !nest_is_unrolled(b)) continue;
    b = law_find_binder(&c->laws, c->sink, stage_range(b)[0]);
    const node *made = b ? move_vectors_inside(c, b) : NULL;
    if (made && choice_decide(c, DECISION_ORDER, 2)) c->sink = made;
  }
}
