/* Panels: what the lanes of a tile read at scattered addresses is copied once, side by side, for
   all tiles that read it. The loops that it does not depend on come to stand inside of the others.
 */
#include "codegen/choice.h"
#include "codegen/weigh.h"

#include "base/map.h"

enum {
  REUSED = 2,           /* times that a panel is read for it to pay */
  MOST_BYTES = 32 << 10 /* of a panel */
};

static const node *vector_of(const node *stage) {
  for (size_t i = 0; i < stage_ranges(stage); i++)
    if (range_kind_of(stage_range(stage)[i]) == KIND_VECTOR) return stage_range(stage)[i];
  return NULL;
}

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

static double bytes_of(const node *index, const node *const inner[], size_t n) {
  double bytes = (double)dtype_bytes((dtype)index->dtype);
  for (size_t i = 0; i < n; i++) bytes *= (double)range_extent(inner[i])->hi;
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

bool choice_is_panel(ir *g, const node *stage, const node *index, double cut) {
  enum { MOST = 8 };
  const node *inner[MOST], *lanes = vector_of(stage);
  if (!lanes || index->src[0]->op != OP_PARAM || !node_is_free_in(lanes, index)) return false;
  if (weigh_reads_streamed(g, lanes, index)) return false;
  size_t n = inner_ranges(stage, index, inner, MOST);
  return n < MOST && reuse_of(stage, index) >= REUSED * cut &&
         bytes_of(index, inner, n) <= MOST_BYTES;
}

/** The stage's loops that a panel depends on, and after them the others. */
static void put_outside(choice *c, const node *stage, const node *index) {
  size_t n = stage_ranges(stage), at = 0;
  const node *const *ranges = stage_range(stage);
  for (size_t i = 0; i < n; i++) {
    if (range_kind_of(ranges[i]) != KIND_LOOP || !node_is_free_in(ranges[i], index)) continue;
    const node *made = law_order(&c->laws, c->sink, ranges[i], at);
    if (!made) return;
    c->sink = made;
    at++;
  }
}

static bool make_panel(choice *c, const node *stage, const node *index) {
  enum { MOST = 8 };
  const node *inner[MOST];
  size_t n = inner_ranges(stage, index, inner, MOST);
  const node *made = law_data(&c->laws, c->sink, index, inner, n, vector_of(stage));
  if (!made) return false;
  c->sink = made;
  put_outside(c, law_binder(&c->laws, made, vector_of(stage)), index);
  return true;
}

/** The first of a nest's reductions' operands that is to be a panel. */
static const node *panel_of(choice *c, const node *stage, const map *refused) {
  node_list nest = weigh_nest(ir_arena(c->laws.g), stage);
  for (size_t i = 0; i < nest.n; i++) {
    const node *n = nest.at[i], *inner[2];
    if (n->op != OP_INDEX || map_has(refused, n)) continue;
    if (!choice_is_panel(c->laws.g, stage, n, 1)) continue;
    if (inner_ranges(stage, n, inner, 2) == 2) return n; /* read along a reduction too */
  }
  return NULL;
}

void choose_panels(choice *c) {
  map refused = {0};
  node_list binders = choice_binders(c);
  for (size_t i = 0; i < binders.n; i++) {
    const node *b = binders.at[i], *lanes = b->op == OP_STAGE ? vector_of(b) : NULL;
    while (lanes && (b = law_binder(&c->laws, c->sink, lanes))) {
      const node *index = panel_of(c, b, &refused);
      if (!index) break;
      if (!make_panel(c, b, index)) map_set(ir_arena(c->laws.g), &refused, index, (void *)index);
    }
  }
}
