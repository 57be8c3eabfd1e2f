/* Tiles transposes for the cache: a nest that is contiguous in its stores along one range and in
   its loads along another would touch a line of memory once for each of the line's elements. Both
   ranges are split in blocks of a line's elements, and each square tile is copied as it is read, so
   that a line is loaded once whatever shares its cache set. */
#include "codegen/choose/choice.h"
#include "codegen/choose/nest_analysis.h"
#include "ir/index/row_major_address.h"
#include "target/hardware.h"
#include "target/kernel_estimates.h"

/** Coefficient of a range in the address of an array's element, in elements. */
static int64_t stride_along(ir *g, const node *range, size_t rank, const node *const extents[],
                            const node *const coords[]) {
  return ix_coefficient(row_major_address(g, rank, extents, coords), range);
}

/** The range along which all of a stage's stores have unit stride; NULL: none. */
static const node *store_range(ir *g, const node *stage) {
  for (size_t k = stage_n_ranges(stage); k-- > 0;) {
    const node *r = stage_range(stage)[k];
    bool all = true;
    for (size_t i = 0; i < stage_n_values(stage) && all; i++)
      all = stride_along(g, r, stage_rank(stage, i), stage_extents(stage, i),
                         stage_coords(stage, i)) == 1;
    if (all) return r;
  }
  return NULL;
}

/** A read of unit stride along `read` that touches another line for each index of `written`; NULL:
    none. */
static const node *transposed_read(ir *g, const node_list *nest, const node *read,
                                   const node *written, int64_t line) {
  for (size_t i = 0; i < nest->n; i++) {
    const node *n = nest->at[i];
    if (n->op != OP_INDEX || n->src[0]->op != OP_PARAM) continue;
    const node *p = n->src[0];
    int64_t bytes = (int64_t)dtype_bytes((dtype)n->dtype);
    if (stride_along(g, read, p->rank, p->dims, n->src + 1) == 1 &&
        stride_along(g, written, p->rank, p->dims, n->src + 1) * bytes >= line)
      return n;
  }
  return NULL;
}

static bool builds_arrays(const node_list *nest) {
  for (size_t i = 0; i < nest->n; i++)
    if (nest->at[i]->op == OP_STAGE || nest->at[i]->op == OP_FOLD) return true;
  return false;
}

/** True if a range is a loop long enough for tiles of that side. */
static bool is_tileable(const node *range, int64_t side) {
  return range_kind_of(range) == KIND_LOOP &&
         range_likely_trips(range) >= (double)(MACHINE_TRANSPOSE_TILES_LEAST * side);
}

/** Splits both ranges in blocks and moves the inner ranges innermost, the stores' last. */
static bool split_tiles(choice *c, const node **read, const node **written, int64_t side) {
  const node *const *ranges;
  const node *made = choice_tile_range(c, c->sink, *written, side, written);
  if (made) made = choice_tile_range(c, made, *read, side, read);
  size_t n = made ? binder_ranges(law_find_binder(&c->laws, made, *read), &ranges) : 0;
  if (made) made = law_order(&c->laws, made, *written, n - 1);
  if (made) made = law_order(&c->laws, made, *read, n - 2);
  return choice_take(c, made);
}

/** True if the kernel may have that many bytes more of scratch memory. */
static bool scratch_fits(const choice *c, int64_t bytes) {
  double free_bytes = (double)c->target->scratch - choice_array_bytes(c);
  return !c->target->scratch || (double)bytes <= free_bytes;
}

/** Copies the tile of the transposed read in the nest that binds a range. */
static void copy_tile(choice *c, const node *read, const node *written, int64_t line) {
  const node *stage = law_find_binder(&c->laws, c->sink, read), *inner[] = {written, read},
             *element;
  node_list nest = nest_nodes(ir_arena(c->laws.g), stage);
  const node *index = transposed_read(c->laws.g, &nest, read, written, line);
  if (!index || !scratch_fits(c, line * line)) return; /* no element is less than a byte */
  choice_take(c, law_data(&c->laws, c->sink, index, inner, 2, NULL, &element));
}

static void tile_transpose(choice *c, const node *stage) {
  ir *g = c->laws.g;
  node_list nest = nest_nodes(ir_arena(g), stage);
  const node *written = builds_arrays(&nest) ? NULL : store_range(g, stage), *before = c->sink;
  int64_t line = hardware_with_defaults(&c->target->hardware).line_bytes;
  int64_t side = line / (int64_t)estimate_widest_element(&nest, NULL);
  if (!written || side < 2 || !is_tileable(written, side)) return;
  for (size_t k = 0; k < stage_n_ranges(stage) && c->sink == before; k++) {
    const node *read = stage_range(stage)[k];
    if (read == written || !is_tileable(read, side)) continue;
    if (transposed_read(g, &nest, read, written, line) && split_tiles(c, &read, &written, side))
      copy_tile(c, read, written, line);
  }
}

void choose_transpose_tiles(choice *c) {
  node_list binders = choice_binders(c);
  for (size_t i = 0; i < binders.n; i++)
    if (binders.at[i]->op == OP_STAGE && choice_is_out(c, binders.at[i]))
      tile_transpose(c, binders.at[i]);
}
