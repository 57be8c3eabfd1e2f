/* Lays the rows of a kernel's arrays a line farther apart where they would lie a multiple of a
   large power of two apart. Such rows compete for few sets of the first cache: columns of a padded
   tile, which a convolution reads side by side, then evict each other. */
#include "codegen/choose/choice.h"
#include "ir/core/affine.h"
#include "target/hardware.h"
#include "target/kernel_estimates.h"

/** Elements by which the rows of an array should be farther apart. */
static int64_t row_pitch(const choice *c, const node *stage) {
  size_t rank = stage_rank(stage, 0);
  const node *last = rank > 1 ? stage_extents(stage, 0)[rank - 1] : NULL;
  if (!last || !node_is_const(last)) return 0;
  tn_hardware h = hardware_with_defaults(&c->target->hardware);
  int64_t size = (int64_t)dtype_bytes((dtype)stage_value(stage, 0)->dtype);
  int64_t row = node_int(last) * size, line = (int64_t)h.line_bytes;
  bool competes = row > 0 && row % ((int64_t)h.page_bytes / MACHINE_COMPETING_ROWS) == 0 &&
                  estimate_stage_bytes(stage) > (double)h.page_bytes;
  return competes ? line / size : 0;
}

/** True if an element's place in its row is the remainder of a division: a loop runs through rows
    that lie side by side. */
static bool is_flattened(size_t rank, const node *const coords[]) {
  const node *last = coords[rank - 1];
  if (last->op == OP_MOD) return true;
  for (size_t i = 0; i < ix_terms(last); i++)
    if (ix_atom(last, i)->op == OP_MOD) return true;
  return false;
}

/** True if rows of an array are stored or read by such loops. */
static bool has_flattened_rows(const choice *c, const node *stage) {
  size_t rank = stage_rank(stage, 0);
  node_list order = law_index_of(&c->laws, c->sink).nodes;
  bool flattened = is_flattened(rank, stage_coords(stage, 0));
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_INDEX && order.at[i]->src[0] == stage)
      flattened |= is_flattened(rank, order.at[i]->src + 1);
  return flattened;
}

/** True if the kernel's arrays leave room for a line more for each row of one of them. */
static bool has_room(const choice *c, const node *stage) {
  size_t rank = stage_rank(stage, 0);
  double rows = 1, line = (double)hardware_with_defaults(&c->target->hardware).line_bytes;
  for (size_t i = 0; i + 1 < rank; i++) rows *= (double)stage_extents(stage, 0)[i]->hi;
  return !c->target->scratch || choice_array_bytes(c) + rows * line <= (double)c->target->scratch;
}

void choose_row_pitch(choice *c) {
  node_list binders = choice_binders(c);
  for (size_t i = 0; i < binders.n; i++) {
    const node *b = binders.at[i];
    if (b->op != OP_STAGE || !stage_n_ranges(b) || choice_is_out(c, b)) continue;
    b = law_find_binder(&c->laws, c->sink, stage_range(b)[0]);
    int64_t elements = !stage_is_in_registers(b) && stage_n_values(b) == 1 ? row_pitch(c, b) : 0;
    if (elements && (has_flattened_rows(c, b) || !has_room(c, b))) continue;
    if (elements) choice_take(c, law_pitch(&c->laws, c->sink, b, elements));
  }
}
