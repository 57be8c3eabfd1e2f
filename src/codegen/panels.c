/* Panels: what the lanes of a tile read at scattered addresses, or again and again from beyond the
   second cache, is copied once, side by side, for all tiles that read it. The loops that it does
   not depend on come to stand inside of the others; and inside of these again several panels, which
   take turns, so that what else a tile reads is in the first cache for all but one of them. */
#include "codegen/choice.h"
#include "ir/address.h"
#include "ir/weigh.h"
#include "schedule/hardware.h"

#include "base/map.h"

enum {
  REUSED = 2,        /* times that a panel is read for it to pay */
  WORTH_COPYING = 8, /* the same, times that, of what is only far apart, or away */
  PAGES = 64,
  MOST_INNER = 8,    /* ranges that one is read along */
  LEAST_BLOCKS = 16, /* of panels that take turns: there are threads to share them */
  IN_TIME = 12       /* vector operations in whose time a line comes from beyond the second cache */
};

/* What the second cache keeps of what goes through it again and again. */
static const double KEPT = 0.875;

/** Whether a range is one of the stage's own loops. */
static bool is_loop_of(const node *stage, const node *range) {
  for (size_t i = 0; i < stage_ranges(stage); i++)
    if (stage_range(stage)[i] == range) return range_kind_of(range) == KIND_LOOP;
  return false;
}

/** The ranges that something is read along inside of the stage's loops. */
static size_t inner_ranges(const node *stage, const node *index, const node *inner[], size_t most) {
  size_t n = 0;
  for (uint32_t i = 0; i < index->free->n && n < most; i++)
    if (!is_loop_of(stage, index->free->at[i]) &&
        !node_is_free_in(index->free->at[i], stage)) /* not one of what is around the stage */
      inner[n++] = index->free->at[i];
  return n;
}

/** At most: those that are not alive at once share memory. */
double choice_bytes_of_arrays(const choice *c) {
  node_list all = choice_binders(c);
  double bytes = 0;
  for (size_t i = 0; i < all.n; i++)
    if (all.at[i]->op == OP_STAGE && !choice_is_out(c, all.at[i])) bytes += weigh_bytes(all.at[i]);
  return bytes;
}

/** Whether a STAGE's arrays are copies of what lies elsewhere, as boxes and panels are. */
static bool is_copy(const node *stage) {
  for (size_t i = 0; i < stage_values(stage); i++) {
    const node *v = stage_value(stage, i);
    if (v->op == OP_WHERE) v = v->src[1];
    if (v->op != OP_INDEX || v->src[0]->op != OP_PARAM) return false;
  }
  return true;
}

/** How many of a stage's ranges there are up to the last loop that arrays of its nest are built
    for: what came to stand between these would build some of them again. Copies may be, for what
    else is read at scattered addresses. */
static size_t kept_ranges(ir *g, const node *stage, const node *index) {
  node_list nest = weigh_nest(ir_arena(g), stage);
  bool scattered = !weigh_reads_streamed(g, weigh_vector(stage), index);
  size_t kept = 0;
  for (size_t i = 0; i < nest.n; i++) {
    const node *n = nest.at[i];
    if (n->op != OP_STAGE || (scattered && is_copy(n))) continue;
    for (size_t k = kept; k < stage_ranges(stage); k++)
      if (is_loop_of(stage, stage_range(stage)[k]) && node_is_free_in(stage_range(stage)[k], n))
        kept = k + 1;
  }
  return kept;
}

/** How often a stage's loops, those with positions from `first` to `end`, read the same. */
static double reuse_in(const node *stage, const node *index, size_t first, size_t end) {
  double times = 1;
  for (size_t i = first; i < end; i++) {
    const node *r = stage_range(stage)[i];
    if (range_kind_of(r) == KIND_LOOP && !node_is_free_in(r, index)) times *= weigh_indices(r);
  }
  return times;
}

/** How often what a panel is made for is read in the loops inside of those that are kept. */
static double reuse_of(ir *g, const node *stage, const node *index) {
  return reuse_in(stage, index, kept_ranges(g, stage, index), stage_ranges(stage));
}

/** How often a nest runs for each time that what an index reads changes around it. */
static double runs_around(const node *stage, const node *index) {
  double times = 1;
  for (uint32_t i = 0; i < stage->free->n; i++)
    if (!node_is_free_in(stage->free->at[i], index)) times *= weigh_indices(stage->free->at[i]);
  return times;
}

/** The same, of what is inside of the loops that are kept. */
static double runs_alike(ir *g, const node *stage, const node *index) {
  return runs_around(stage, index) * reuse_in(stage, index, 0, kept_ranges(g, stage, index));
}

/** The first of a stage's ranges outside of which panels that are made once are: what they do not
    depend on is around the stage, or the loop before. */
static size_t first_of_once(const node *stage, const node *index) {
  size_t first = 0;
  if (runs_around(stage, index) >= REUSED) return 0;
  while (first < stage_ranges(stage) && node_is_free_in(stage_range(stage)[first], index)) first++;
  return first;
}

/** Bytes that all panels may have, and the arrays beside them: they are to stay in the second
    cache, beside what goes through it. */
static double most_of_all(const choice *c) {
  double half = (double)hardware_known(&c->target->hardware).l2_bytes / 2;
  double most = (double)c->target->scratch;
  return most && most < half ? most : half;
}

/** The panel that an INDEX would be read from; NULL: none of a size for it. */
static const node *panel_for(const choice *c, const node *stage, const node *index) {
  const node *inner[MOST_INNER], *element;
  laws l = {.g = c->laws.g};
  size_t n = inner_ranges(stage, index, inner, MOST_INNER);
  if (n == MOST_INNER || !law_data(&l, index, index, inner, n, weigh_vector(stage), &element))
    return NULL;
  return weigh_bytes(element->src[0]) <= most_of_all(c) ? element : NULL;
}

/** Bytes of the panels that are made once for a stage's loops. */
static double bytes_of_all(const node *stage, const node *index, const node *panel) {
  double bytes = weigh_bytes(panel);
  for (size_t i = first_of_once(stage, index); i < stage_ranges(stage); i++)
    if (node_is_free_in(stage_range(stage)[i], index) && is_loop_of(stage, stage_range(stage)[i]))
      bytes *= weigh_indices(stage_range(stage)[i]);
  return bytes;
}

/** Whether the panels of all loops are to be made at once, outside of what they are inside of, or
    arrays are built in, and they do not depend on. */
static bool is_made_once(const choice *c, const node *stage, const node *index, const node *panel) {
  return runs_alike(c->laws.g, stage, index) >= REUSED &&
         choice_bytes_of_arrays(c) + bytes_of_all(stage, index, panel) <= most_of_all(c);
}

/** Whether what is read one after the other in a reduction is each on another page of memory. */
static bool is_far(const choice *c, const node *stage, const node *index) {
  ir *g = c->laws.g;
  const node *param = index->src[0], *inner[MOST_INNER];
  int64_t page = hardware_known(&c->target->hardware).page_bytes;
  const node *a = address_of(g, param->rank, param->dims, index->src + 1);
  int64_t bytes = (int64_t)dtype_bytes((dtype)index->dtype);
  size_t n = inner_ranges(stage, index, inner, MOST_INNER);
  if (a->op == OP_WHERE) return false;
  for (size_t i = 0; i < n; i++)
    if (range_extent(inner[i])->hi >= PAGES && ix_coefficient(a, inner[i]) * bytes >= page)
      return true;
  return false;
}

/** Bytes of the caches that what is read along ranges takes, as it lies: elements that are a power
    of two apart compete for some of their places, up to a page. */
static double bytes_as_it_lies(const choice *c, const node *index, const node *const along[],
                               size_t n) {
  const node *param = index->src[0];
  const node *a = address_of(c->laws.g, param->rank, param->dims, index->src + 1);
  int64_t page = hardware_known(&c->target->hardware).page_bytes;
  double size = (double)dtype_bytes((dtype)index->dtype), bytes = size;
  for (size_t i = 0; i < n; i++) bytes *= weigh_indices(along[i]);
  for (size_t i = 0; i < n; i++) {
    int64_t apart = ix_coefficient(a, along[i]) * (int64_t)size, slot = apart & -apart;
    double all = (double)(slot < page ? slot : page) * weigh_indices(along[i]);
    if (all > bytes) bytes = all;
  }
  return bytes;
}

/** Whether what a tile reads would be in the first cache when it is read again, beside what else
    there is, but for its rows, which compete for the same places. */
static bool is_crowded(const choice *c, const node *stage, const node *index) {
  const node *inner[MOST_INNER];
  size_t n = inner_ranges(stage, index, inner, MOST_INNER);
  tn_hardware hardware = hardware_known(&c->target->hardware);
  double bytes = (double)dtype_bytes((dtype)index->dtype);
  for (size_t i = 0; i < n; i++) bytes *= weigh_indices(inner[i]);
  return bytes <= hardware_first_keeps(&hardware) &&
         bytes_as_it_lies(c, index, inner, n) > (double)hardware.l1_bytes;
}

/** Vector operations of a tile for each line of what it reads. */
static double work_for_line(const choice *c, const node *stage, const node *index) {
  double bytes = (double)dtype_bytes((dtype)index->dtype), work = 1;
  for (size_t i = 0; i < stage_ranges(stage); i++) {
    const node *r = stage_range(stage)[i];
    if (range_kind_of(r) == KIND_VECTOR) bytes *= weigh_indices(r);
    if (range_is_copies(r) && !node_is_free_in(r, index)) work *= weigh_indices(r);
  }
  double line = (double)hardware_known(&c->target->hardware).line_bytes;
  return bytes < line ? work * line / bytes : work;
}

/** Bytes that an INDEX reads in a stage's loops before it reads the same again; 0: it never does.
 */
static double bytes_before_again(const choice *c, const node *stage, const node *index) {
  const node *along[2 * MOST_INNER];
  size_t n = inner_ranges(stage, index, along, MOST_INNER);
  bool again = false;
  for (size_t i = 0; i < stage_ranges(stage) && n < 2 * MOST_INNER; i++) {
    const node *r = stage_range(stage)[i];
    if (range_kind_of(r) != KIND_LOOP) continue;
    if (!node_is_free_in(r, index))
      again |= weigh_indices(r) > 1;
    else if (again)
      along[n++] = r;
  }
  return again ? bytes_as_it_lies(c, index, along, n) : 0;
}

/** Whether more is read before the same is read again than the second cache keeps, by all that the
    lanes read, and too fast for what comes from beyond it. */
static bool is_swept(const choice *c, const node *stage, const node *index) {
  const node *lanes = weigh_vector(stage);
  node_list nest = weigh_nest(ir_arena(c->laws.g), stage);
  double bytes = bytes_before_again(c, stage, index);
  if (!bytes || work_for_line(c, stage, index) > IN_TIME) return false;
  for (size_t i = 0; i < nest.n; i++) {
    const node *n = nest.at[i];
    if (n != index && n->op == OP_INDEX && n->src[0]->op == OP_PARAM && node_is_free_in(lanes, n))
      bytes += bytes_before_again(c, stage, n);
  }
  return bytes > KEPT * (double)hardware_known(&c->target->hardware).l2_bytes;
}

/** Whether what a nest's lanes read is scattered, or far away when it is read again. */
static bool is_scattered_or_far(const choice *c, const node *stage, const node *index) {
  const node *lanes = weigh_vector(stage);
  if (!lanes || index->src[0]->op != OP_PARAM || !node_is_free_in(lanes, index)) return false;
  if (!weigh_reads_streamed(c->laws.g, lanes, index)) return true;
  return is_far(c, stage, index) || is_swept(c, stage, index) || is_crowded(c, stage, index);
}

/** Times that it is read, in those that are worth copying it. */
static double worth_of(const choice *c, const node *stage, const node *index, double cut) {
  bool streamed = weigh_reads_streamed(c->laws.g, weigh_vector(stage), index);
  return reuse_of(c->laws.g, stage, index) / cut / (REUSED * (streamed ? WORTH_COPYING : 1));
}

bool choice_is_panel(const choice *c, const node *stage, const node *index, double cut) {
  if (!is_scattered_or_far(c, stage, index)) return false;
  const node *element = panel_for(c, stage, index);
  if (!element) return false;
  double worth = worth_of(c, stage, index, cut);
  if (is_made_once(c, stage, index, element->src[0])) worth *= runs_alike(c->laws.g, stage, index);
  return worth >= 1;
}

/** Builds a panel of a stage's loops for all indices at once of those from a position on. */
static void make_once(choice *c, const node *lanes, const node *panel, size_t first) {
  const node *stage = law_binder(&c->laws, c->sink, lanes), *own, *before = c->sink;
  for (size_t i = stage_ranges(stage); i-- > first;) {
    const node *r = stage_range(stage)[i];
    if (!node_is_free_in(r, panel)) continue;
    const node *made = law_hoist(&c->laws, c->sink, panel, r, &own);
    if (!made) {
      c->sink = before;
      return;
    }
    c->sink = made;
    panel = law_binder(&c->laws, made, own);
    stage = law_binder(&c->laws, made, lanes);
  }
}

/** How many panels of a loop take turns. */
static int64_t panels_at_once(const choice *c, const node *range, const node *panel) {
  double bytes = weigh_bytes(panel), room = most_of_all(c) - choice_bytes_of_arrays(c);
  const node *extent = range_extent(range);
  int64_t most = extent->lo / LEAST_BLOCKS;
  if ((double)most * bytes > room + bytes) most = (int64_t)(room / bytes) + 1;
  return ix_block(extent, most);
}

/** Makes the panels of some indices of a nest's innermost loop along which there are several at
    once, and these the innermost loop of all. */
static void take_turns(choice *c, const node *lanes, const node *panel, size_t kept) {
  laws *l = &c->laws;
  const node *stage = law_binder(l, c->sink, lanes), *range = NULL, *blocks, *turns, *own;
  size_t last = 0, n = stage_ranges(stage);
  for (size_t i = kept; i < n && range_kind_of(stage_range(stage)[i]) == KIND_LOOP; i++) {
    if (node_is_free_in(stage_range(stage)[i], panel)) range = stage_range(stage)[i];
    last = i;
  }
  if (!range || stage_range(stage)[last] == range) return;
  int64_t at_once = panels_at_once(c, range, panel);
  const node *made = at_once > 1 ? law_overlap(l, c->sink, range, at_once, &blocks, &turns) : NULL;
  if (made) made = law_order(l, made, turns, last + 1);
  if (!made) return;
  panel = law_binder(l, made, stage_range(panel)[0]);
  made = law_hoist(l, made, panel, turns, &own);
  if (made) made = law_order(l, made, own, stage_ranges(panel) - 1);
  if (made) c->sink = made;
}

/** What is gathered for lanes goes element by element: as many of them in a row, without a loop. */
static void gather_in_rows(choice *c, const node *panel, int64_t lanes) {
  const node *outer, *inner, *copies, *last = stage_range(panel)[stage_ranges(panel) - 1];
  const node *made = law_split(&c->laws, c->sink, last, lanes, &outer, &inner);
  if (made) made = law_kind(&c->laws, made, inner, KIND_UNROLL, &copies);
  if (made) c->sink = made;
}

static bool make_panel(choice *c, const node *stage, const node *index) {
  const node *lanes = weigh_vector(stage), *element = panel_for(c, stage, index);
  if (!element) return false;
  bool once = is_made_once(c, stage, index, element->src[0]);
  double bytes = once ? bytes_of_all(stage, index, element->src[0]) : weigh_bytes(element->src[0]);
  if (choice_bytes_of_arrays(c) + bytes > most_of_all(c)) return false;
  const node *inner[MOST_INNER];
  size_t n = inner_ranges(stage, index, inner, MOST_INNER);
  size_t kept = kept_ranges(c->laws.g, stage, index), first = first_of_once(stage, index);
  bool scattered = !weigh_reads_streamed(c->laws.g, lanes, index);
  const node *made = law_data(&c->laws, c->sink, index, inner, n, lanes, &element);
  if (!made) return false;
  c->sink = made;
  const node *panel = element->src[0], *row = stage_range(panel)[0];
  if (scattered && stage_ranges(panel) > 1) gather_in_rows(c, panel, (int64_t)weigh_indices(lanes));
  choice_put_outside(c, law_binder(&c->laws, c->sink, lanes), index, kept);
  panel = law_binder(&c->laws, c->sink, row);
  if (once)
    make_once(c, lanes, panel, first);
  else
    take_turns(c, lanes, panel, kept);
  return true;
}

/** Whether what is read is to stay in the second cache as it lies. */
static bool is_to_stay(const choice *c, const node *stage, const node *index) {
  const node *lanes = weigh_vector(stage);
  return is_scattered_or_far(c, stage, index) && weigh_reads_streamed(c->laws.g, lanes, index) &&
         is_swept(c, stage, index) && worth_of(c, stage, index, 1) >= 1;
}

/** The first operand of a nest's reductions that is to be a panel, or to stay. */
static const node *operand_of(choice *c, const node *stage, const map *refused) {
  node_list nest = weigh_nest(ir_arena(c->laws.g), stage);
  for (size_t i = 0; i < nest.n; i++) {
    const node *n = nest.at[i];
    if (n->op == OP_INDEX && !map_has(refused, n) && weigh_is_in_fold(&nest, n) &&
        (choice_is_panel(c, stage, n, 1) || is_to_stay(c, stage, n)))
      return n;
  }
  return NULL;
}

void choose_panels(choice *c) {
  map refused = {0};
  node_list binders = choice_binders(c);
  for (size_t i = 0; i < binders.n; i++) {
    const node *b = binders.at[i], *lanes = b->op == OP_STAGE ? weigh_vector(b) : NULL;
    while (lanes && (b = law_binder(&c->laws, c->sink, lanes))) {
      const node *index = operand_of(c, b, &refused);
      if (!index) break;
      bool made = make_panel(c, b, index);
      if (!made && is_to_stay(c, b, index))
        choice_put_outside(c, b, index, kept_ranges(c->laws.g, b, index));
      if (!made) map_set(ir_arena(c->laws.g), &refused, index, (void *)index);
    }
  }
}
