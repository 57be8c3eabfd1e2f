/* Boxes: what reductions read under conditions on its indices, as a window does beyond an image's
   edges, is copied once with what stands for the rest of it; then it is read without conditions, by
   all tiles whose windows have it in common. */
#include "codegen/choice.h"
#include "ir/topo.h"
#include "ir/weigh.h"
#include "schedule/hardware.h"

#include "base/map.h"

enum {
  REUSED = 2,     /* times that an element is read for a box to pay */
  MOST_INNER = 16 /* ranges that one is read along */
};

typedef struct box {
  const node *what; /* WHERE(condition, INDEX, constant) */
  const node *inner[MOST_INNER];
  size_t n;
} box;

static bool is_gated(const node *n) {
  return n->op == OP_WHERE && n->src[1]->op == OP_INDEX && n->src[1]->src[0]->op == OP_PARAM &&
         n->src[2]->op == OP_CONST && n->dtype != DT_INDEX;
}

/** The ranges that something is read along inside of what is around its stage, but for the
    outermost `outside` of the stage's own loops; false: too many. */
static bool find_inner(box *b, const node *stage, size_t outside) {
  b->n = 0;
  for (uint32_t i = 0; i < b->what->free->n; i++) {
    const node *r = b->what->free->at[i];
    bool is_outside = node_is_free_in(r, stage);
    for (size_t k = 0; k < outside; k++) is_outside |= stage_range(stage)[k] == r;
    if (is_outside) continue;
    if (b->n == MOST_INNER) return false;
    b->inner[b->n++] = r;
  }
  return b->n > 0;
}

/** The range that what is read goes in lanes along; NULL: it is one for all of them. */
static const node *lanes_of(const node *what) {
  for (uint32_t i = 0; i < what->free->n; i++)
    if (range_kind_of(what->free->at[i]) == KIND_VECTOR) return what->free->at[i];
  return NULL;
}

static double elements_of(const node *stage) {
  double n = 1;
  for (size_t k = 0; k < stage_rank(stage, 0); k++) n *= (double)stage_extents(stage, 0)[k]->hi;
  return n;
}

/** How often it is read in a nest, for each time that its box is made. */
static double reads_of(const box *b, const node *stage, size_t outside) {
  double times = 1;
  for (size_t i = 0; i < b->n; i++) times *= weigh_indices(b->inner[i]);
  for (size_t i = outside; i < stage_ranges(stage); i++) {
    const node *r = stage_range(stage)[i];
    if (range_kind_of(r) == KIND_LOOP && !node_is_free_in(r, b->what)) times *= weigh_indices(r);
  }
  return times;
}

/** The largest box of a stage's loops that is not too large, and pays. */
static bool find_box(const choice *c, const node *stage, box *b) {
  double most = (double)hardware_known(&c->target->hardware).l2_bytes / 2;
  double room = ((double)c->target->scratch - choice_bytes_of_arrays(c)) / 2;
  laws l = {.g = c->laws.g};
  const node *element;
  if (c->target->scratch && room < most) most = room;
  for (size_t outside = 0; outside <= stage_ranges(stage); outside++) {
    if (outside && !node_is_free_in(stage_range(stage)[outside - 1], b->what)) continue;
    if (!find_inner(b, stage, outside)) return false;
    if (!law_data(&l, b->what, b->what, b->inner, b->n, lanes_of(b->what), &element)) continue;
    double n = elements_of(element->src[0]);
    if (n * (double)dtype_bytes((dtype)b->what->dtype) > most) continue;
    return reads_of(b, stage, outside) >= REUSED * n;
  }
  return false;
}

void choice_boxed(const choice *c, const node *stage, map *gone) {
  arena *a = ir_arena(c->laws.g);
  node_list nest = weigh_nest(a, stage);
  for (size_t i = 0; i < nest.n; i++) {
    box b = {.what = nest.at[i]};
    if (!is_gated(b.what) || !weigh_is_in_fold(&nest, b.what) || !find_box(c, stage, &b)) continue;
    node_list condition = topo_sort(a, b.what->src, 1, NULL, NULL);
    map_set(a, gone, b.what, (void *)b.what);
    for (size_t k = 0; k < condition.n; k++) map_set(a, gone, condition.at[k], (void *)b.what);
  }
}

/** The copy goes in vectors where the box's last dimension is consecutive in what is copied, and no
    condition changes along it. */
static void copy_in_vectors(choice *c, const node *box, const node *what) {
  const node *last = stage_range(box)[stage_ranges(box) - 1];
  const node *value = stage_value(box, 0);
  int64_t lanes = c->target->vector_bytes / (int64_t)dtype_bytes((dtype)what->dtype);
  if (lanes < 2 || value->op != OP_WHERE || node_is_free_in(last, value->src[0])) return;
  if (ix_coefficient(value->src[1]->src[value->src[1]->n_src - 1], last) == 1)
    choice_cover(c, last, lanes);
}

static bool make_box(choice *c, const node *stage, const node *what) {
  box b = {.what = what};
  const node *element;
  if (!find_box(c, stage, &b)) return false;
  const node *made = law_data(&c->laws, c->sink, what, b.inner, b.n, lanes_of(b.what), &element);
  if (!made) return false;
  c->sink = made;
  choice_put_outside(c, law_binder(&c->laws, made, stage_range(stage)[0]), element->src[0], 0);
  copy_in_vectors(c, element->src[0], what);
  return true;
}

/** The first element of a nest's reductions that is to be read from a box. */
static const node *next_gated(choice *c, const node *stage, const map *refused) {
  node_list nest = weigh_nest(ir_arena(c->laws.g), stage);
  for (size_t i = 0; i < nest.n; i++)
    if (is_gated(nest.at[i]) && !map_has(refused, nest.at[i]) &&
        weigh_is_in_fold(&nest, nest.at[i]))
      return nest.at[i];
  return NULL;
}

void choose_boxes(choice *c) {
  map refused = {0};
  node_list binders = choice_binders(c);
  for (size_t i = 0; i < binders.n; i++) {
    const node *b = binders.at[i];
    const node *first = b->op == OP_STAGE && stage_ranges(b) ? stage_range(b)[0] : NULL;
    while (first && (b = law_binder(&c->laws, c->sink, first))) {
      const node *what = next_gated(c, b, &refused);
      if (!what) break;
      if (!make_box(c, b, what)) map_set(ir_arena(c->laws.g), &refused, what, (void *)what);
    }
  }
}
