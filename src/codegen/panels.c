/* Panels: what the lanes of a tile read at scattered addresses is copied once, side by side, for
   all tiles that read it. The loops that it does not depend on come to stand inside of the others.
 */
#include "codegen/choice.h"
#include "ir/address.h"
#include "ir/weigh.h"
#include "schedule/hardware.h"

#include "base/map.h"

enum {
  REUSED = 2,        /* times that a panel is read for it to pay */
  WORTH_COPYING = 8, /* the same, times that, of what is only on many pages */
  PAGES = 64,
  MOST_INNER = 8 /* ranges that one is read along */
};

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

static double bytes_of(const node *stage) {
  double bytes = 0;
  for (size_t i = 0; i < stage_values(stage); i++) {
    double size = (double)dtype_bytes((dtype)stage_value(stage, i)->dtype);
    for (size_t k = 0; k < stage_rank(stage, i); k++)
      size *= (double)stage_extents(stage, i)[k]->hi;
    bytes += size;
  }
  return bytes;
}

/** What the arrays of a nest take, and those that the whole kernel has. */
double choice_bytes_beside(const choice *c, const node *stage) {
  node_list nest = weigh_nest(ir_arena(c->laws.g), stage), all = choice_binders(c);
  double bytes = 0;
  for (size_t i = 0; i < nest.n; i++)
    if (nest.at[i]->op == OP_STAGE && nest.at[i]->free->n) bytes += bytes_of(nest.at[i]);
  for (size_t i = 0; i < all.n; i++)
    if (all.at[i]->op == OP_STAGE && !all.at[i]->free->n && !choice_is_out(c, all.at[i]))
      bytes += bytes_of(all.at[i]);
  return bytes;
}

/** How often the stage's loops read the same. */
static double reuse_of(const node *stage, const node *index) {
  double times = 1;
  for (size_t i = 0; i < stage_ranges(stage); i++) {
    const node *r = stage_range(stage)[i];
    if (range_kind_of(r) == KIND_LOOP && !node_is_free_in(r, index)) times *= weigh_indices(r);
  }
  return times;
}

/** How often a nest runs for each time that what an index reads changes around it. */
static double runs_alike(const node *stage, const node *index) {
  double times = 1;
  for (uint32_t i = 0; i < stage->free->n; i++)
    if (!node_is_free_in(stage->free->at[i], index)) times *= weigh_indices(stage->free->at[i]);
  return times;
}

/** Bytes that a panel may have: it is to stay in the second cache, beside all else. */
static double most_bytes(const choice *c) {
  return (double)hardware_known(&c->target->hardware).l2_bytes / 8;
}

/** Bytes that all panels may have, and the arrays beside them. */
static double most_of_all(const choice *c) {
  return (double)hardware_scratch(&c->target->hardware, c->target->scratch);
}

/** The panel that an INDEX would be read from; NULL: none of a size for it. */
static const node *panel_for(const choice *c, const node *stage, const node *index) {
  const node *inner[MOST_INNER], *element;
  laws l = {.g = c->laws.g};
  size_t n = inner_ranges(stage, index, inner, MOST_INNER);
  if (n == MOST_INNER || !law_data(&l, index, index, inner, n, weigh_vector(stage), &element))
    return NULL;
  return bytes_of(element->src[0]) <= most_bytes(c) ? element : NULL;
}

/** Bytes of the panels for all of a stage's loops. */
static double bytes_of_all(const node *stage, const node *index, const node *panel) {
  double bytes = bytes_of(panel);
  for (size_t i = 0; i < stage_ranges(stage); i++)
    if (node_is_free_in(stage_range(stage)[i], index) && is_loop_of(stage, stage_range(stage)[i]))
      bytes *= weigh_indices(stage_range(stage)[i]);
  return bytes;
}

/** Whether the panels of all loops are to be made at once, outside of what the stage is inside of
    and they do not depend on. */
static bool is_made_once(const choice *c, const node *stage, const node *index, const node *panel) {
  return runs_alike(stage, index) >= REUSED &&
         choice_bytes_beside(c, stage) + bytes_of_all(stage, index, panel) <= most_of_all(c);
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

/** Whether arrays in a nest are built in loops that would come to stand inside of a panel's. */
static bool builds_again(ir *g, const node *stage, const node *index) {
  node_list nest = weigh_nest(ir_arena(g), stage);
  for (size_t i = 0; i < nest.n; i++)
    for (size_t k = 0; k < stage_ranges(stage) && nest.at[i]->op == OP_STAGE; k++)
      if (node_is_free_in(stage_range(stage)[k], nest.at[i]) &&
          !node_is_free_in(stage_range(stage)[k], index))
        return true;
  return false;
}

bool choice_is_panel(const choice *c, const node *stage, const node *index, double cut) {
  const node *lanes = weigh_vector(stage), *element;
  if (!lanes || index->src[0]->op != OP_PARAM || !node_is_free_in(lanes, index)) return false;
  bool streamed = weigh_reads_streamed(c->laws.g, lanes, index);
  if (streamed && (!is_far(c, stage, index) || builds_again(c->laws.g, stage, index))) return false;
  element = panel_for(c, stage, index);
  if (!element) return false;
  double times = reuse_of(stage, index) / cut / (streamed ? WORTH_COPYING : 1);
  if (is_made_once(c, stage, index, element->src[0])) times *= runs_alike(stage, index);
  return times >= REUSED;
}

/** Builds a panel of a stage's loops for all their indices at once. */
static void make_once(choice *c, const node *lanes, const node *panel) {
  const node *stage = law_binder(&c->laws, c->sink, lanes), *own, *before = c->sink;
  for (size_t i = stage_ranges(stage); i-- > 0;) {
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

static bool make_panel(choice *c, const node *stage, const node *index) {
  const node *lanes = weigh_vector(stage), *element = panel_for(c, stage, index);
  if (!element) return false;
  bool once = is_made_once(c, stage, index, element->src[0]);
  double bytes = once ? bytes_of_all(stage, index, element->src[0]) : bytes_of(element->src[0]);
  if (choice_bytes_beside(c, stage) + bytes > most_of_all(c)) return false;
  const node *inner[MOST_INNER];
  size_t n = inner_ranges(stage, index, inner, MOST_INNER);
  const node *made = law_data(&c->laws, c->sink, index, inner, n, lanes, &element);
  if (!made) return false;
  c->sink = made;
  choice_put_outside(c, law_binder(&c->laws, c->sink, lanes), index);
  if (once) make_once(c, lanes, element->src[0]);
  return true;
}

/** The first operand of a nest's reductions that is to be a panel. */
static const node *operand_of(choice *c, const node *stage, const map *refused) {
  node_list nest = weigh_nest(ir_arena(c->laws.g), stage);
  for (size_t i = 0; i < nest.n; i++) {
    const node *n = nest.at[i];
    if (n->op == OP_INDEX && !map_has(refused, n) && choice_is_panel(c, stage, n, 1) &&
        weigh_is_in_fold(&nest, n))
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
      if (!make_panel(c, b, index)) map_set(ir_arena(c->laws.g), &refused, index, (void *)index);
    }
  }
}
