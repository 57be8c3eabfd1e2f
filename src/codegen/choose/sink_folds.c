/* Implements the choice where FOLDs run whose arrays a nest stores, such as the elements of scans.
   A FOLD that does not depend on some loops of the nest runs before these, and the nest copies its
   array for each of their indices. Where the array is too large for the scratch memory at its
   largest size, or such a loop has one index, the FOLD moves into the loop (law SINK): it then
   stores its elements where the nest would (lower/output_arrays.c, lower/fuse_emits.c). */
#include "codegen/choose/choice.h"
#include "codegen/choose/nest_analysis.h"
#include "ir/index/write_once.h"
#include "target/hardware.h"

/** Bytes of the array that an element of a FOLD is read from, at its largest size. */
static double most_bytes(const node *read) {
  const node *const *extents = fold_extents(read->src[0], (size_t)read->ints[0]);
  double bytes = (double)dtype_bytes((dtype)read->dtype);
  for (uint32_t i = 0; i + 1 < read->n_src; i++) bytes *= (double)extents[i]->hi;
  return bytes;
}

/** True if an INDEX reads an array of a FOLD that may lie in an output. */
static bool reads_placed_array(const node *n) {
  return n->op == OP_INDEX && n->n_src > 1 && n->src[0]->op == OP_FOLD &&
         fold_array_is_placed(n->src[0], (size_t)n->ints[0]);
}

/** True if a FOLD whose element is read is to run inside of a loop around it. */
static bool is_sunk(const choice *c, const node *read, const node *range) {
  uint64_t most = hardware_scratch_bytes(&c->target->hardware, c->target->scratch);
  if (range_kind_of(range) != KIND_LOOP || node_is_free_in(range, read)) return false;
  return node_is_bits(range_extent(range), 1) || most_bytes(read) > (double)most;
}

/** Moves a FOLD of a nest into one of its loops; false: there is none to move. */
static bool sink_one(choice *c, const node *stage) {
  node_list nest = nest_nodes(ir_arena(c->laws.g), stage);
  for (size_t i = 0; i < nest.n; i++) {
    const node *read = nest.at[i];
    if (!reads_placed_array(read)) continue;
    for (size_t k = 0; k < stage_n_ranges(stage); k++) {
      const node *range = stage_range(stage)[k];
      if (is_sunk(c, read, range) &&
          choice_take(c, law_sink(&c->laws, c->sink, read->src[0], range)))
        return true;
    }
  }
  return false;
}

void choose_sink_folds(choice *c) {
  for (uint32_t i = 0; i < c->sink->n_src; i++)
    while (sink_one(c, c->sink->src[i]->src[c->sink->src[i]->n_src - 1])) {}
}
