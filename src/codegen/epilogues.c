/* What is computed of a tile's results. It is copied for each of them, and where that would be much
   code it is done in a loop: the results wait in memory (registers.c), which costs a store and a
   load of each, beside all that is computed of it. */
#include "codegen/choice.h"
#include "ir/weigh.h"

enum { MOST_COPIED = 256 }; /* operations of all copies together */

/** Whether a reduction is inside of copies: loops would be around all of it. */
static bool is_around_folds(const node_list *nest, const node *range) {
  for (size_t i = 0; i < nest->n; i++)
    if (nest->at[i]->op == OP_FOLD && node_is_free_in(range, nest->at[i])) return true;
  return false;
}

/** Whether a nest reads what a reduction made for each of some copies. */
static bool reads_results(const node_list *nest, const node *range) {
  for (size_t i = 0; i < nest->n; i++) {
    const node *n = nest->at[i];
    if (n->op == OP_INDEX && n->src[0]->op == OP_FOLD && node_is_free_in(range, n)) return true;
  }
  return false;
}

/** The copies that a stage makes of something. */
static double copies_of(const node *stage, const node *n) {
  double copies = 1;
  for (size_t i = 0; i < stage_ranges(stage); i++) {
    const node *r = stage_range(stage)[i];
    if (range_is_copies(r) && (!n || node_is_free_in(r, n))) copies *= weigh_indices(r);
  }
  return copies;
}

/** Operations of one copy of a node: what is scattered is loaded lane by lane. */
static double operations_of(ir *g, const node *n, const node *lanes) {
  if (op_is_elementwise((op)n->op)) return op_cost((op)n->op);
  if (!weigh_is_read(n)) return 0;
  bool in_lanes = lanes && node_is_free_in(lanes, n);
  return in_lanes && !weigh_reads_streamed(g, lanes, n) ? WEIGH_SCATTERED * weigh_indices(lanes)
                                                        : 1;
}

/** The same for an element of each array that a stage writes. */
static double stores_of(ir *g, const node *stage, const node *lanes) {
  double sum = 0;
  for (size_t i = 0; i < stage_values(stage); i++) {
    size_t rank = stage_rank(stage, i);
    bool streamed =
        !lanes || weigh_streamed(g, lanes, rank, stage_extents(stage, i), stage_coords(stage, i));
    sum += streamed ? 1 : WEIGH_SCATTERED * weigh_indices(lanes);
  }
  return sum;
}

/** Operations of a stage's nest, in all copies. */
static double code_of(ir *g, const node *stage, const node_list *nest) {
  const node *lanes = weigh_vector(stage);
  double sum = stores_of(g, stage, lanes) * copies_of(stage, NULL);
  for (size_t i = 0; i < nest->n; i++) {
    double copies = copies_of(stage, nest->at[i]);
    if (copies > 1) sum += copies * operations_of(g, nest->at[i], lanes);
  }
  return sum;
}

/** The outermost copies of a stage that are to be a loop; NULL: none are. */
static const node *copies_to_loop(ir *g, const node *stage) {
  node_list nest = weigh_nest(ir_arena(g), stage);
  if (code_of(g, stage, &nest) <= MOST_COPIED) return NULL;
  for (size_t k = 0; k < stage_ranges(stage); k++) {
    const node *r = stage_range(stage)[k];
    if (range_is_copies(r) && reads_results(&nest, r) && !is_around_folds(&nest, r)) return r;
  }
  return NULL;
}

static bool make_loop(choice *c) {
  node_list binders = choice_binders(c);
  for (size_t i = 0; i < binders.n; i++) {
    const node *b = binders.at[i], *changed;
    const node *r = b->op == OP_STAGE ? copies_to_loop(c->laws.g, b) : NULL;
    const node *made = r ? law_kind(&c->laws, c->sink, r, KIND_LOOP, &changed) : NULL;
    if (made) c->sink = made;
    if (made) return true;
  }
  return false;
}

void choose_epilogues(choice *c) {
  while (make_loop(c)) {}
}
