/* Squares: a nest that writes along one range what it reads along another comes back to a line of
   memory for each of its elements. It goes through the two in squares that are as wide as lines
   are, and copies each square as it is read: so a line is read once, whatever else it shares its
   place in a cache with. */
#include "codegen/choice.h"
#include "ir/address.h"
#include "ir/weigh.h"
#include "schedule/hardware.h"

enum { LEAST_SQUARES = 2 }; /* in each direction, for them to be worth the loops */

/** How far an element is from the next one along a range, where that is always as far; else 0. */
static int64_t step_of(ir *g, const node *range, size_t rank, const node *const extents[],
                       const node *const coords[]) {
  return ix_coefficient(address_of(g, rank, extents, coords), range);
}

/** The range along which all of a stage's values are written one by one; NULL: there is none. */
static const node *written_along(ir *g, const node *stage) {
  for (size_t k = stage_ranges(stage); k-- > 0;) {
    const node *r = stage_range(stage)[k];
    bool all = true;
    for (size_t i = 0; i < stage_values(stage) && all; i++)
      all =
          step_of(g, r, stage_rank(stage, i), stage_extents(stage, i), stage_coords(stage, i)) == 1;
    if (all) return r;
  }
  return NULL;
}

/** What a nest reads one by one along `read`, and on another line for each index of `written`;
   NULL: nothing. */
static const node *read_across(ir *g, const node_list *nest, const node *read, const node *written,
                               int64_t line) {
  for (size_t i = 0; i < nest->n; i++) {
    const node *n = nest->at[i];
    if (n->op != OP_INDEX || n->src[0]->op != OP_PARAM) continue;
    const node *p = n->src[0];
    int64_t bytes = (int64_t)dtype_bytes((dtype)n->dtype);
    if (step_of(g, read, p->rank, p->dims, n->src + 1) == 1 &&
        step_of(g, written, p->rank, p->dims, n->src + 1) * bytes >= line)
      return n;
  }
  return NULL;
}

static bool builds_arrays(const node_list *nest) {
  for (size_t i = 0; i < nest->n; i++)
    if (nest->at[i]->op == OP_STAGE || nest->at[i]->op == OP_FOLD) return true;
  return false;
}

static bool has_squares(const node *range, int64_t side) {
  return range_kind_of(range) == KIND_LOOP && range_extent(range)->lo >= LEAST_SQUARES * side;
}

/** The two ranges in blocks, within which they come last, that of what is written innermost. */
static bool make_squares(choice *c, const node **read, const node **written, int64_t side) {
  const node *const *ranges;
  const node *made = choice_blocks(c, c->sink, *written, side, written);
  if (made) made = choice_blocks(c, made, *read, side, read);
  size_t n = made ? binder_ranges(law_binder(&c->laws, made, *read), &ranges) : 0;
  if (made) made = law_order(&c->laws, made, *written, n - 1);
  if (made) made = law_order(&c->laws, made, *read, n - 2);
  if (made) c->sink = made;
  return made;
}

/** Whether a kernel's own arrays may take as many bytes more. */
static bool has_room(const choice *c, int64_t bytes) {
  double room = (double)c->target->scratch - choice_bytes_of_arrays(c);
  return !c->target->scratch || (double)bytes <= room;
}

/** Copies what is read across in the nest that binds a range. */
static void copy_squares(choice *c, const node *read, const node *written, int64_t line) {
  const node *stage = law_binder(&c->laws, c->sink, read), *inner[] = {written, read}, *element;
  node_list nest = weigh_nest(ir_arena(c->laws.g), stage);
  const node *index = read_across(c->laws.g, &nest, read, written, line);
  if (!index || !has_room(c, line * line)) return; /* no element is less than a byte */
  const node *made = law_data(&c->laws, c->sink, index, inner, 2, NULL, &element);
  if (made) c->sink = made;
}

static void choose_for(choice *c, const node *stage) {
  ir *g = c->laws.g;
  node_list nest = weigh_nest(ir_arena(g), stage);
  const node *written = builds_arrays(&nest) ? NULL : written_along(g, stage), *before = c->sink;
  int64_t line = hardware_known(&c->target->hardware).line_bytes;
  int64_t side = line / (int64_t)weigh_widest(&nest, NULL);
  if (!written || side < 2 || !has_squares(written, side)) return;
  for (size_t k = 0; k < stage_ranges(stage) && c->sink == before; k++) {
    const node *read = stage_range(stage)[k];
    if (read == written || !has_squares(read, side)) continue;
    if (read_across(g, &nest, read, written, line) && make_squares(c, &read, &written, side))
      copy_squares(c, read, written, line);
  }
}

void choose_squares(choice *c) {
  node_list binders = choice_binders(c);
  for (size_t i = 0; i < binders.n; i++)
    if (binders.at[i]->op == OP_STAGE && choice_is_out(c, binders.at[i]))
      choose_for(c, binders.at[i]);
}
