/* Limits the unrolling of epilogues, the elementwise operations on a register tile's results, which
   are unrolled with the tile. Where all copies together are much code, the outermost copies become
   a loop instead; the results are then spilled to memory (lower/register_promotion.c), a store and
   a load of each. */
#include "codegen/choose/choice.h"
#include "codegen/choose/nest_analysis.h"
#include "target/kernel_estimates.h"

/** True if a reduction depends on a range of copies: a loop over it would repeat the reduction. */
static bool is_around_folds(const node_list *nest, const node *range) {
  for (size_t i = 0; i < nest->n; i++)
    if (nest->at[i]->op == OP_FOLD && node_is_free_in(range, nest->at[i])) return true;
  return false;
}

/** True if a nest reads a reduction's result for each index of a range. */
static bool reads_results(const node_list *nest, const node *range) {
  for (size_t i = 0; i < nest->n; i++) {
    const node *n = nest->at[i];
    if (n->op == OP_INDEX && n->src[0]->op == OP_FOLD && node_is_free_in(range, n)) return true;
  }
  return false;
}

/** Unrolled copies of a node in a stage; NULL: of the stage's body. */
static double copies_of(const node *stage, const node *n) {
  double copies = 1;
  for (size_t i = 0; i < stage_n_ranges(stage); i++) {
    const node *r = stage_range(stage)[i];
    if (range_is_unrolled(r) && (!n || node_is_free_in(r, n))) copies *= range_likely_trips(r);
  }
  return copies;
}

/** Operations of one copy of a node; scattered reads are gathered lane by lane. */
static double copy_operations(ir *g, const node *n, const node *lanes) {
  if (op_is_elementwise((op)n->op)) return op_cost((op)n->op);
  if (!nest_is_array_read(n)) return 0;
  bool in_lanes = lanes && node_is_free_in(lanes, n);
  return in_lanes && !read_is_unit_stride(g, lanes, n)
             ? MACHINE_GATHER_OPERATIONS * range_likely_trips(lanes)
             : 1;
}

/** Operations of storing an element of each array of a stage, scattered ones lane by lane. */
static double store_operations(ir *g, const node *stage, const node *lanes) {
  double sum = 0;
  for (size_t i = 0; i < stage_n_values(stage); i++) {
    size_t rank = stage_rank(stage, i);
    bool is_consecutive =
        !lanes || coordinates_are_unit_stride(g, lanes, rank, stage_extents(stage, i),
                                              stage_coords(stage, i));
    sum += is_consecutive ? 1 : MACHINE_GATHER_OPERATIONS * range_likely_trips(lanes);
  }
  return sum;
}

/** Operations of all copies of a stage's epilogue. */
static double epilogue_operations(ir *g, const node *stage, const node_list *nest) {
  const node *lanes = nest_vector_range(stage);
  double sum = store_operations(g, stage, lanes) * copies_of(stage, NULL);
  for (size_t i = 0; i < nest->n; i++) {
    double copies = copies_of(stage, nest->at[i]);
    if (copies > 1) sum += copies * copy_operations(g, nest->at[i], lanes);
  }
  return sum;
}

/** The outermost range of copies that should be a loop; NULL: none. */
static const node *copies_to_loop(ir *g, const node *stage) {
  node_list nest = nest_nodes(ir_arena(g), stage);
  if (epilogue_operations(g, stage, &nest) <= MACHINE_EPILOGUE_CODE) return NULL;
  for (size_t k = 0; k < stage_n_ranges(stage); k++) {
    const node *r = stage_range(stage)[k];
    if (range_is_unrolled(r) && reads_results(&nest, r) && !is_around_folds(&nest, r)) return r;
  }
  return NULL;
}

/** Turns one range of copies into a loop; false: none is left. */
static bool roll_copies(choice *c) {
  node_list binders = choice_binders(c);
  for (size_t i = 0; i < binders.n; i++) {
    const node *b = binders.at[i], *changed;
    const node *r = b->op == OP_STAGE ? copies_to_loop(c->laws.g, b) : NULL;
    const node *made = r ? law_kind(&c->laws, c->sink, r, KIND_LOOP, &changed) : NULL;
    if (choice_take(c, made)) return true;
  }
  return false;
}

void choose_epilogue_loops(choice *c) {
  while (roll_copies(c)) {}
}
