/* Pages by turns: a processor fetches ahead by itself what a page goes on with, and begins anew
   with each. A nest that waits for memory goes through two stretches of pages by turns, some lines
   of each: then there is always something under way. Not through more: where what is written does
   not begin with a line, each stretch has one that is written in part, and processors can keep few
   such lines on their way past the caches. */
#include "codegen/choice.h"
#include "ir/weigh.h"
#include "schedule/hardware.h"

enum {
  STRETCHES = 2,     /* by turns */
  MOST_PAGES = 8,    /* of a stretch */
  TURNS_OF_PAGE = 8, /* lines in a turn: those of a page in so many turns */
  LEAST_BLOCKS = 64  /* in a range that they do not divide: the last one is partly done twice */
};

/** Whether a node along a range is read at consecutive addresses, or computed from such alone. */
static bool is_stream(ir *g, const node *n, const node *range) {
  if (n->op == OP_INDEX) return n->src[0]->op == OP_PARAM && weigh_reads_streamed(g, range, n);
  bool of_indices = n->n_src && n->src[0]->dtype == DT_INDEX;
  return n->dtype == DT_INDEX || (op_is_elementwise((op)n->op) && !of_indices);
}

/** Whether a nest does nothing along a range but to read, compute and write element by element. */
static bool only_streams(ir *g, const node *stage, const node_list *nest, const node *range) {
  for (size_t i = 0; i < nest->n; i++)
    if (node_is_free_in(range, nest->at[i]) && !is_stream(g, nest->at[i], range)) return false;
  for (size_t i = 0; i < stage_values(stage); i++)
    if (!weigh_streamed(g, range, stage_rank(stage, i), stage_extents(stage, i),
                        stage_coords(stage, i)))
      return false;
  return true;
}

/** Bytes of the widest element that is read along a range, or written. */
static size_t widest_in_memory(const node *stage, const node_list *nest, const node *range) {
  size_t widest = 1;
  for (size_t i = 0; i < nest->n + stage_values(stage); i++) {
    bool written = i >= nest->n;
    const node *n = written ? stage_value(stage, i - nest->n) : nest->at[i];
    if (!written && (n->op != OP_INDEX || !node_is_free_in(range, n))) continue;
    size_t bytes = dtype_bytes((dtype)n->dtype);
    if (bytes > widest) widest = bytes;
  }
  return widest;
}

/** A range in blocks of so many elements, the last of which may overlap the one before. */
static const node *in_many_blocks(choice *c, const node *range, int64_t size, const node **blocks,
                                  const node **block) {
  laws *l = &c->laws;
  const node *extent = range_extent(range);
  if (node_is_bits(ix_mod(l->g, extent, ix_const(l->g, size)), 0))
    return law_split(l, c->sink, range, size, blocks, block);
  bool many = extent->lo >= LEAST_BLOCKS * size;
  return many ? law_overlap(l, c->sink, range, size, blocks, block) : NULL;
}

/** A range in blocks of stretches, and the turns outside of the stretches. */
static bool take_turns(choice *c, const node *range, int64_t stretch, int64_t turn) {
  laws *l = &c->laws;
  const node *blocks, *block, *stretches, *of_stretch, *turns, *of_turn, *const *ranges;
  const node *made = in_many_blocks(c, range, STRETCHES * stretch, &blocks, &block);
  if (made) made = law_split(l, made, block, stretch, &stretches, &of_stretch);
  if (made) made = law_split(l, made, of_stretch, turn, &turns, &of_turn);
  size_t n = made ? binder_ranges(law_binder(l, made, of_turn), &ranges) : 0;
  if (made) made = law_order(l, made, stretches, n - 2);
  if (made) c->sink = made;
  return made;
}

/** The range of an output's nest that goes through memory, and that alone; NULL: none does. */
static const node *stream_of(const choice *c, const node *stage, const node_list *nest) {
  size_t n = stage_ranges(stage);
  const node *last = n ? stage_range(stage)[n - 1] : NULL;
  bool is_stream = last && only_streams(c->laws.g, stage, nest, last);
  return is_stream && choice_waits_for_memory(c, nest, last) ? last : NULL;
}

static void choose_for(choice *c, const node *stage) {
  node_list nest = weigh_nest(ir_arena(c->laws.g), stage);
  const node *range = stream_of(c, stage, &nest);
  if (!range) return;
  size_t widest = widest_in_memory(stage, &nest, range);
  int64_t page = (int64_t)(hardware_known(&c->target->hardware).page_bytes / widest);
  for (int64_t n = MOST_PAGES; n > 0; n /= 2)
    if (take_turns(c, range, n * page, page / TURNS_OF_PAGE)) return;
}

void choose_pages(choice *c) {
  node_list binders = choice_binders(c);
  for (size_t i = 0; i < binders.n; i++)
    if (binders.at[i]->op == OP_STAGE && choice_is_out(c, binders.at[i]))
      choose_for(c, binders.at[i]);
}
