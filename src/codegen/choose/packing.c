/* Packs operands: one that the lanes of a register tile read at scattered addresses, or again and
   again from beyond the second cache, is copied once, contiguously, for all tiles that read it
   (Goto and van de Geijn 2008). Loops that the operand does not depend on move inside of the
   others. Inside of these, several packed blocks alternate, so that the tile's other operand stays
   in the first cache for all but one of them. An operand too large to pack keeps its place, and
   only its loops are exchanged; so does one in long runs, unless the search prefers to pack it. */
#include "codegen/choose/choice.h"
#include "codegen/choose/nest_analysis.h"
#include "ir/index/address_stride.h"
#include "ir/index/row_major_address.h"
#include "target/hardware.h"
#include "target/kernel_estimates.h"

#include "base/map.h"

enum { MOST_INNER = 8 }; /* ranges that a packed operand is read along: a bound of arrays here */

/** True if a range is one of the stage's own loops. */
static bool is_loop_of(const node *stage, const node *range) {
  for (size_t i = 0; i < stage_n_ranges(stage); i++)
    if (stage_range(stage)[i] == range) return range_kind_of(range) == KIND_LOOP;
  return false;
}

/** Lists the ranges inside of the stage's loops that an INDEX depends on; returns their number. */
static size_t inner_ranges(const node *stage, const node *index, const node *inner[], size_t most) {
  size_t n = 0;
  for (uint32_t i = 0; i < index->free->n && n < most; i++)
    if (!is_loop_of(stage, index->free->at[i]) &&
        !node_is_free_in(index->free->at[i], stage)) /* not one around the stage */
      inner[n++] = index->free->at[i];
  return n;
}

/** True if a STAGE's arrays are copies of buffers, as padded tiles and packed operands are. */
static bool is_copy(const node *stage) {
  for (size_t i = 0; i < stage_n_values(stage); i++) {
    const node *v = stage_value(stage, i);
    if (v->op == OP_WHERE) v = v->src[1];
    if (v->op != OP_INDEX || v->src[0]->op != OP_PARAM) return false;
  }
  return true;
}

/** Number of a stage's outermost ranges whose order is fixed: up to the last loop that arrays of
   its nest are built in, as a loop moved between these would build some of them again. Copies may
   be built again for the sake of an operand at scattered addresses. */
static size_t fixed_ranges(ir *g, const node *stage, const node *index) {
  node_list nest = nest_nodes(ir_arena(g), stage);
  bool scattered = !read_is_unit_stride(g, nest_vector_range(stage), index);
  size_t fixed = 0;
  for (size_t i = 0; i < nest.n; i++) {
    const node *n = nest.at[i];
    if (n->op != OP_STAGE || (scattered && is_copy(n))) continue;
    for (size_t k = fixed; k < stage_n_ranges(stage); k++)
      if (is_loop_of(stage, stage_range(stage)[k]) && node_is_free_in(stage_range(stage)[k], n))
        fixed = k + 1;
  }
  return fixed;
}

/** Times that the stage's loops at positions first … end − 1 read the same element. */
static double reuse_in(const node *stage, const node *index, size_t first, size_t end) {
  double times = 1;
  for (size_t i = first; i < end; i++) {
    const node *r = stage_range(stage)[i];
    if (range_kind_of(r) == KIND_LOOP && !node_is_free_in(r, index)) times *= range_likely_trips(r);
  }
  return times;
}

/** Times that a packed element is read in the loops inside of the fixed ones. */
static double reuse_per_pack(ir *g, const node *stage, const node *index) {
  return reuse_in(stage, index, fixed_ranges(g, stage, index), stage_n_ranges(stage));
}

/** Times that a nest runs, in the loops around it, with the same operand. */
static double reuse_around(const node *stage, const node *index) {
  double times = 1;
  for (uint32_t i = 0; i < stage->free->n; i++)
    if (!node_is_free_in(stage->free->at[i], index))
      times *= range_likely_trips(stage->free->at[i]);
  return times;
}

/** Times that the loops inside of the fixed ones run with the same operand. */
static double reuse_outside_pack(ir *g, const node *stage, const node *index) {
  return reuse_around(stage, index) * reuse_in(stage, index, 0, fixed_ranges(g, stage, index));
}

/** Position of the stage's range outside of which an operand is packed that is packed once for all
    loops: 0 if loops around the stage reuse it, else behind the ranges that it depends on. */
static size_t hoisted_position(const node *stage, const node *index) {
  size_t first = 0;
  if (reuse_around(stage, index) >= MACHINE_COPY_REUSE) return 0;
  while (first < stage_n_ranges(stage) && node_is_free_in(stage_range(stage)[first], index))
    first++;
  return first;
}

/** Limit of the bytes of all packed operands and arrays: they have to stay in the second cache
   beside the data that passes through it. */
static double most_packed_bytes(const choice *c) {
  double half =
      MACHINE_L2_OPERAND_SHARE * (double)hardware_with_defaults(&c->target->hardware).l2_bytes;
  double most = (double)c->target->scratch;
  return most && most < half ? most : half;
}

/** The element of the packed operand that would replace an INDEX; NULL: refused, or too large. */
static const node *packed_element(const choice *c, const node *stage, const node *index) {
  const node *inner[MOST_INNER], *element;
  laws l = {.g = c->laws.g};
  size_t n = inner_ranges(stage, index, inner, MOST_INNER);
  if (n == MOST_INNER || !law_data(&l, index, index, inner, n, nest_vector_range(stage), &element))
    return NULL;
  return estimate_stage_bytes(element->src[0]) <= most_packed_bytes(c) ? element : NULL;
}

/** Bytes of an operand that is packed once for all of a stage's loops. */
static double bytes_packed_once(const node *stage, const node *index, const node *packed) {
  double bytes = estimate_stage_bytes(packed);
  for (size_t i = hoisted_position(stage, index); i < stage_n_ranges(stage); i++)
    if (node_is_free_in(stage_range(stage)[i], index) && is_loop_of(stage, stage_range(stage)[i]))
      bytes *= range_likely_trips(stage_range(stage)[i]);
  return bytes;
}

/** True if an operand pays to be packed once, outside of all loops that it does not depend on. */
static bool is_made_once(const choice *c, const node *stage, const node *index,
                         const node *packed) {
  return reuse_outside_pack(c->laws.g, stage, index) >= MACHINE_COPY_REUSE &&
         choice_array_bytes(c) + bytes_packed_once(stage, index, packed) <= most_packed_bytes(c);
}

/** True if a reduction reads another page each time, and more pages than the TLB holds. */
static bool misses_tlb(const choice *c, const node *stage, const node *index) {
  ir *g = c->laws.g;
  const node *param = index->src[0], *inner[MOST_INNER];
  int64_t page = hardware_with_defaults(&c->target->hardware).page_bytes;
  const node *a = row_major_address(g, param->rank, param->dims, index->src + 1);
  int64_t bytes = (int64_t)dtype_bytes((dtype)index->dtype);
  size_t n = inner_ranges(stage, index, inner, MOST_INNER);
  if (a->op == OP_WHERE) return false;
  for (size_t i = 0; i < n; i++)
    if (range_likely_trips(inner[i]) >= MACHINE_TLB_PAGES &&
        address_likely_stride(a, inner[i]) * bytes >= page)
      return true;
  return false;
}

/** Bytes of cache that reads along ranges occupy in the operand's own layout, where rows about a
    multiple of a page apart compete for few of the sets. */
static double unpacked_cache_bytes(const choice *c, const node *index, const node *const along[],
                                   size_t n) {
  const node *param = index->src[0];
  const node *a = row_major_address(c->laws.g, param->rank, param->dims, index->src + 1);
  tn_hardware hardware = hardware_with_defaults(&c->target->hardware);
  int64_t size = (int64_t)dtype_bytes((dtype)index->dtype);
  double bytes = (double)size;
  for (size_t i = 0; i < n; i++) bytes *= range_likely_trips(along[i]);
  for (size_t i = 0; i < n; i++) {
    int64_t apart = address_likely_stride(a, along[i]) * size;
    double all = hardware_rows_bytes(&hardware, apart, range_likely_trips(along[i]));
    if (all > bytes) bytes = all;
  }
  return bytes;
}

/** True if a tile's operand would stay in the first cache but for conflicts of its rows in the same
    sets. */
static bool has_set_conflicts(const choice *c, const node *stage, const node *index) {
  const node *inner[MOST_INNER];
  size_t n = inner_ranges(stage, index, inner, MOST_INNER);
  tn_hardware hardware = hardware_with_defaults(&c->target->hardware);
  double bytes = (double)dtype_bytes((dtype)index->dtype);
  for (size_t i = 0; i < n; i++) bytes *= range_likely_trips(inner[i]);
  return bytes <= hardware_l1_resident_bytes(&hardware) &&
         unpacked_cache_bytes(c, index, inner, n) > (double)hardware.l1_bytes;
}

/** Vector operations of a tile for each line of an operand. */
static double operations_per_line(const choice *c, const node *stage, const node *index) {
  double bytes = (double)dtype_bytes((dtype)index->dtype), work = 1;
  for (size_t i = 0; i < stage_n_ranges(stage); i++) {
    const node *r = stage_range(stage)[i];
    if (range_kind_of(r) == KIND_VECTOR) bytes *= range_likely_trips(r);
    if (range_is_unrolled(r) && !node_is_free_in(r, index)) work *= range_likely_trips(r);
  }
  double line = (double)hardware_with_defaults(&c->target->hardware).line_bytes;
  return bytes < line ? work * line / bytes : work;
}

/** Reuse distance: bytes that an INDEX reads in a stage's loops between two reads of one element;
   0: every element is read once. */
static double reuse_distance(const choice *c, const node *stage, const node *index) {
  const node *along[2 * MOST_INNER];
  size_t n = inner_ranges(stage, index, along, MOST_INNER);
  bool is_reused = false;
  for (size_t i = 0; i < stage_n_ranges(stage) && n < 2 * MOST_INNER; i++) {
    const node *r = stage_range(stage)[i];
    if (range_kind_of(r) != KIND_LOOP) continue;
    if (!node_is_free_in(r, index))
      is_reused |= range_likely_trips(r) > 1;
    else if (is_reused)
      along[n++] = r;
  }
  return is_reused ? unpacked_cache_bytes(c, index, along, n) : 0;
}

/** True if an operand is evicted from the second cache between two reads, by all operands of the
   lanes together, and the tile is too fast for lines from beyond it. */
static bool is_evicted(const choice *c, const node *stage, const node *index) {
  const node *lanes = nest_vector_range(stage);
  node_list nest = nest_nodes(ir_arena(c->laws.g), stage);
  double bytes = reuse_distance(c, stage, index);
  if (!bytes || operations_per_line(c, stage, index) > MACHINE_L3_LINE_OPERATIONS) return false;
  for (size_t i = 0; i < nest.n; i++) {
    const node *n = nest.at[i];
    if (n != index && n->op == OP_INDEX && n->src[0]->op == OP_PARAM && node_is_free_in(lanes, n))
      bytes += reuse_distance(c, stage, n);
  }
  return bytes >
         MACHINE_L2_SWEPT_SHARE * (double)hardware_with_defaults(&c->target->hardware).l2_bytes;
}

/** True if the lanes read an operand at scattered addresses, or from far away at each reuse. */
static bool is_scattered_or_far(const choice *c, const node *stage, const node *index) {
  const node *lanes = nest_vector_range(stage);
  if (!lanes || index->src[0]->op != OP_PARAM || !node_is_free_in(lanes, index)) return false;
  if (!read_is_unit_stride(c->laws.g, lanes, index)) return true;
  return misses_tlb(c, stage, index) || is_evicted(c, stage, index) ||
         has_set_conflicts(c, stage, index);
}

/** Contiguous bytes that reads along the ranges inside of a stage's loops cover. */
static double contiguous_bytes(const choice *c, const node *stage, const node *index) {
  const node *param = index->src[0], *inner[MOST_INNER];
  const node *a = row_major_address(c->laws.g, param->rank, param->dims, index->src + 1);
  size_t n = inner_ranges(stage, index, inner, MOST_INNER);
  double run = 1, before = 0;
  while (run > before) {
    before = run;
    for (size_t i = 0; i < n; i++)
      if ((double)address_likely_stride(a, inner[i]) == run) run *= range_likely_trips(inner[i]);
  }
  return run * (double)dtype_bytes((dtype)index->dtype);
}

/** True if an operand is far away, but lies there in runs of a page or more, which prefetching
    brings near in time. */
static bool is_far_in_runs(const choice *c, const node *stage, const node *index) {
  double page = (double)hardware_with_defaults(&c->target->hardware).page_bytes;
  return read_is_unit_stride(c->laws.g, nest_vector_range(stage), index) &&
         contiguous_bytes(c, stage, index) >= page && !has_set_conflicts(c, stage, index);
}

/** Reuse divided by break-even reuse; at least 1 means pack. `cut`: indices that form a tile. */
static double packing_gain(const choice *c, const node *stage, const node *index, double cut) {
  bool is_consecutive = read_is_unit_stride(c->laws.g, nest_vector_range(stage), index);
  return reuse_per_pack(c->laws.g, stage, index) / cut /
         (MACHINE_COPY_REUSE * (is_consecutive ? MACHINE_CONSECUTIVE_COPY_REUSE : 1));
}

bool choice_is_packed(const choice *c, const node *stage, const node *index, double cut) {
  if (!is_scattered_or_far(c, stage, index)) return false;
  const node *element = packed_element(c, stage, index);
  if (!element) return false;
  double gain = packing_gain(c, stage, index, cut);
  if (is_made_once(c, stage, index, element->src[0]))
    gain *= reuse_outside_pack(c->laws.g, stage, index);
  return gain >= 1;
}

double choice_reuse_if_packed(const choice *c, const node *stage, const node *index,
                              int64_t lanes) {
  const node *inner[MOST_INNER];
  size_t n = inner_ranges(stage, index, inner, MOST_INNER);
  double bytes = (double)dtype_bytes((dtype)index->dtype) * (double)lanes;
  for (size_t i = 0; i < n; i++) bytes *= range_likely_trips(inner[i]);
  if (!n || n == MOST_INNER || index->src[0]->op != OP_PARAM || bytes > most_packed_bytes(c))
    return 0;
  double reuse = reuse_in(stage, index, 0, stage_n_ranges(stage));
  return reuse >= MACHINE_PACKED_LANES_REUSE ? reuse : 0;
}

/** Moves the packing of an operand outside of a stage's loops from a position on. */
static void hoist_packing(choice *c, const node *lanes, const node *packed, size_t first) {
  const node *stage = law_find_binder(&c->laws, c->sink, lanes), *own, *before = c->sink;
  for (size_t i = stage_n_ranges(stage); i-- > first;) {
    const node *r = stage_range(stage)[i];
    if (!node_is_free_in(r, packed)) continue;
    const node *made = law_hoist(&c->laws, c->sink, packed, r, &own);
    if (!made) {
      c->sink = before;
      return;
    }
    c->sink = made;
    packed = law_find_binder(&c->laws, made, own);
    stage = law_find_binder(&c->laws, made, lanes);
  }
}

/** Number of packed blocks along a loop that alternate. */
static int64_t alternating_blocks(const choice *c, const node *range, const node *packed) {
  double bytes = estimate_stage_bytes(packed),
         free_bytes = most_packed_bytes(c) - choice_array_bytes(c);
  const node *extent = range_extent(range);
  int64_t most = extent->lo / MACHINE_PARALLEL_UNITS;
  if ((double)most * bytes > free_bytes + bytes) most = (int64_t)(free_bytes / bytes) + 1;
  return ix_block_size(extent, most);
}

/** Position in a packed operand's copy of a loop over blocks: inside of all loops but those along a
    row in vectors, or the last one. */
static size_t position_of_blocks(const node *packed) {
  size_t n = stage_n_ranges(packed), first = 0;
  const node *at = stage_coords(packed, 0)[stage_rank(packed, 0) - 1];
  if (!nest_vector_range(packed)) return n - 1;
  while (first + 1 < n && !node_is_free_in(stage_range(packed)[first], at)) first++;
  return first;
}

/** True if a nest reads an array at elements that do not depend on a range. */
static bool reuses_along(ir *g, const node *stage, const node *range) {
  node_list nest = nest_nodes(ir_arena(g), stage);
  for (size_t i = 0; i < nest.n; i++)
    if (nest_is_array_read(nest.at[i]) && !node_is_free_in(range, nest.at[i])) return true;
  return false;
}

/** Packs several blocks along a nest's loop at once, where another operand is read again for each;
   the loop over these becomes the innermost. */
static void alternate_blocks(choice *c, const node *lanes, const node *packed, size_t fixed) {
  laws *l = &c->laws;
  const node *stage = law_find_binder(l, c->sink, lanes), *range = NULL, *blocks, *inner, *own;
  size_t last = 0, n = stage_n_ranges(stage);
  for (size_t i = fixed; i < n && range_kind_of(stage_range(stage)[i]) == KIND_LOOP; i++) {
    if (node_is_free_in(stage_range(stage)[i], packed)) range = stage_range(stage)[i];
    last = i;
  }
  if (!range || stage_range(stage)[last] == range || !reuses_along(c->laws.g, stage, range)) return;
  int64_t at_once = alternating_blocks(c, range, packed);
  const node *made = at_once > 1 ? law_overlap(l, c->sink, range, at_once, &blocks, &inner) : NULL;
  if (made) made = law_order(l, made, inner, last + 1);
  if (!made) return;
  packed = law_find_binder(l, made, stage_range(packed)[0]);
  made = law_hoist(l, made, packed, inner, &own);
  if (made) made = law_order(l, made, own, position_of_blocks(packed));
  choice_take(c, made);
}

/** Unrolls the packing loop of a scattered operand by the lanes: it copies single elements. */
static void unroll_packing(choice *c, const node *packed, int64_t lanes) {
  const node *outer, *inner, *copies, *last = stage_range(packed)[stage_n_ranges(packed) - 1];
  const node *made = law_split(&c->laws, c->sink, last, lanes, &outer, &inner);
  if (made) made = law_kind(&c->laws, made, inner, KIND_UNROLL, &copies);
  choice_take(c, made);
}

static bool pack_operand(choice *c, const node *stage, const node *index) {
  const node *lanes = nest_vector_range(stage), *element = packed_element(c, stage, index);
  if (!element) return false;
  bool once = is_made_once(c, stage, index, element->src[0]);
  double bytes = once ? bytes_packed_once(stage, index, element->src[0])
                      : estimate_stage_bytes(element->src[0]);
  if (choice_array_bytes(c) + bytes > most_packed_bytes(c)) return false;
  const node *inner[MOST_INNER];
  size_t n = inner_ranges(stage, index, inner, MOST_INNER);
  size_t fixed = fixed_ranges(c->laws.g, stage, index), first = hoisted_position(stage, index);
  bool scattered = !read_is_unit_stride(c->laws.g, lanes, index);
  const node *made = law_data(&c->laws, c->sink, index, inner, n, lanes, &element);
  if (!made) return false;
  c->sink = made;
  const node *packed = element->src[0], *row = stage_range(packed)[0];
  int64_t width = (int64_t)range_likely_trips(lanes);
  if (scattered && stage_n_ranges(packed) > 1) unroll_packing(c, packed, width);
  if (!scattered && stage_n_ranges(packed) > 1)
    choice_vectorise_range(c, stage_range(packed)[stage_n_ranges(packed) - 1], width);
  choice_interchange_outward(c, law_find_binder(&c->laws, c->sink, lanes), index, fixed);
  packed = law_find_binder(&c->laws, c->sink, row);
  if (once)
    hoist_packing(c, lanes, packed, first);
  else
    alternate_blocks(c, lanes, packed, fixed);
  return true;
}

/** True if an operand should stay in the second cache unpacked, by exchanging loops alone. */
static bool needs_interchange(const choice *c, const node *stage, const node *index) {
  const node *lanes = nest_vector_range(stage);
  return is_scattered_or_far(c, stage, index) && read_is_unit_stride(c->laws.g, lanes, index) &&
         is_evicted(c, stage, index) && packing_gain(c, stage, index, 1) >= 1;
}

/** The first operand of a nest's reductions to be packed, or kept in cache by exchanging loops. */
static const node *next_operand(choice *c, const node *stage, const map *refused) {
  node_list nest = nest_nodes(ir_arena(c->laws.g), stage);
  for (size_t i = 0; i < nest.n; i++) {
    const node *n = nest.at[i];
    if (n->op == OP_INDEX && !map_has(refused, n) && nest_varies_in_fold(&nest, n) &&
        (choice_is_packed(c, stage, n, 1) || needs_interchange(c, stage, n)))
      return n;
  }
  return NULL;
}

void choose_packing(choice *c) {
  map refused = {0};
  node_list binders = choice_binders(c);
  for (size_t i = 0; i < binders.n; i++) {
    const node *b = binders.at[i], *lanes = b->op == OP_STAGE ? nest_vector_range(b) : NULL;
    while (lanes && (b = law_find_binder(&c->laws, c->sink, lanes))) {
      const node *index = next_operand(c, b, &refused);
      if (!index) break;
      bool stays = is_far_in_runs(c, b, index) && !choice_decide(c, DECISION_PACKING, 2);
      bool made = !stays && pack_operand(c, b, index);
      if (!made && (stays || needs_interchange(c, b, index)))
        choice_interchange_outward(c, b, index, fixed_ranges(c->laws.g, b, index));
      if (!made) map_set(ir_arena(c->laws.g), &refused, index, (void *)index);
    }
  }
}
