/* Interleaves memory streams for the hardware prefetchers, which run ahead within a page and start
   again with the next one. A memory-bound nest therefore alternates between two streams of several
   pages, some lines of each at a time, so that one is always being fetched. More than two would not
   pay: each stream whose stores do not begin at a line has a partial line, and write-combining
   buffers are few. */
#include "codegen/choose/choice.h"
#include "codegen/choose/nest_analysis.h"
#include "ir/index/index_arithmetic.h"
#include "target/hardware.h"
#include "target/kernel_estimates.h"

/** True if a node is read at unit stride along a range, or computed elementwise from such reads. */
static bool is_streamed(ir *g, const node *n, const node *range) {
  if (n->op == OP_INDEX) return n->src[0]->op == OP_PARAM && read_is_unit_stride(g, range, n);
  bool of_indices = n->n_src && n->src[0]->dtype == DT_INDEX;
  return n->dtype == DT_INDEX || (op_is_elementwise((op)n->op) && !of_indices);
}

/** True if a nest only loads, computes and stores elementwise along a range, all at unit stride. */
static bool only_streams(ir *g, const node *stage, const node_list *nest, const node *range) {
  for (size_t i = 0; i < nest->n; i++)
    if (node_is_free_in(range, nest->at[i]) && !is_streamed(g, nest->at[i], range)) return false;
  for (size_t i = 0; i < stage_n_values(stage); i++)
    if (!coordinates_are_unit_stride(g, range, stage_rank(stage, i), stage_extents(stage, i),
                                     stage_coords(stage, i)))
      return false;
  return true;
}

/** Bytes of the widest element in memory that is loaded along a range, or stored. */
static size_t widest_in_memory(const node *stage, const node_list *nest, const node *range) {
  size_t widest = 1;
  for (size_t i = 0; i < nest->n + stage_n_values(stage); i++) {
    bool written = i >= nest->n;
    const node *n = written ? stage_value(stage, i - nest->n) : nest->at[i];
    if (!written && (n->op != OP_INDEX || !node_is_free_in(range, n))) continue;
    size_t bytes = dtype_bytes((dtype)n->dtype);
    if (bytes > widest) widest = bytes;
  }
  return widest;
}

/** Splits a range in blocks; the last may overlap the one before, where there are many. */
static const node *split_blocks(choice *c, const node *range, int64_t size, const node **blocks,
                                const node **block) {
  laws *l = &c->laws;
  const node *extent = range_extent(range);
  if (node_is_bits(ix_mod(l->g, extent, ix_const(l->g, size)), 0))
    return law_split(l, c->sink, range, size, blocks, block);
  bool many = extent->lo >= MACHINE_OVERLAPPED_STREAMS_LEAST * size;
  return many ? law_overlap(l, c->sink, range, size, blocks, block) : NULL;
}

/** Splits a range in blocks of streams and these in turns, with the streams inside of the turns. */
static bool alternate_streams(choice *c, const node *range, int64_t length, int64_t turn) {
  laws *l = &c->laws;
  const node *blocks, *block, *streams, *stream, *turns, *of_turn, *const *ranges;
  const node *made = split_blocks(c, range, MACHINE_INTERLEAVED_STREAMS * length, &blocks, &block);
  if (made) made = law_split(l, made, block, length, &streams, &stream);
  if (made) made = law_split(l, made, stream, turn, &turns, &of_turn);
  size_t n = made ? binder_ranges(law_find_binder(l, made, of_turn), &ranges) : 0;
  if (made) made = law_order(l, made, streams, n - 2);
  return choice_take(c, made);
}

/** The innermost range of a nest that only streams, bound by memory; NULL: none. */
static const node *memory_bound_range(const choice *c, const node *stage, const node_list *nest) {
  size_t n = stage_n_ranges(stage);
  const node *last = n ? stage_range(stage)[n - 1] : NULL;
  bool streams = last && only_streams(c->laws.g, stage, nest, last);
  return streams && choice_is_memory_bound(c, nest, last) ? last : NULL;
}

static void interleave_nest(choice *c, const node *stage) {
  node_list nest = nest_nodes(ir_arena(c->laws.g), stage);
  const node *range = memory_bound_range(c, stage, &nest);
  if (!range) return;
  size_t widest = widest_in_memory(stage, &nest, range);
  int64_t page = (int64_t)(hardware_with_defaults(&c->target->hardware).page_bytes / widest);
  for (int64_t n = MACHINE_STREAM_PAGES; n > 0; n /= 2)
    if (alternate_streams(c, range, n * page, page / MACHINE_STREAM_TURNS_PER_PAGE)) return;
}

void choose_interleaved_streams(choice *c) {
  node_list binders = choice_binders(c);
  for (size_t i = 0; i < binders.n; i++)
    if (binders.at[i]->op == OP_STAGE && choice_is_out(c, binders.at[i]))
      interleave_nest(c, binders.at[i]);
}
