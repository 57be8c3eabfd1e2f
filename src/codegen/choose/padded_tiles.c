/* Copies windows of operands with their padding (padded tiles): reductions that read under bounds
   checks on their indices, as a convolution's window does beyond an image's edges, read the copy
   instead, without checks and shared by all tiles whose windows overlap. The copy is made as far
   outside as the second cache and free scratch memory allow, where each element is read often
   enough; inside of a loop whose windows overlap it is made for a block of the loop's indices. */
#include "codegen/choose/choice.h"
#include "codegen/choose/nest_analysis.h"
#include "ir/core/topo_sort.h"
#include "target/hardware.h"
#include "target/machine.h"

#include "base/map.h"
#include "ir/core/affine.h"
#include "ir/index/index_arithmetic.h"

enum { MOST_INNER = 16 }; /* ranges that a padded tile is read along: a bound of its list */

typedef struct padded_tile {
  const node *what;              /* WHERE(condition, INDEX, constant) */
  const node *inner[MOST_INNER]; /* ranges inside of the place of the copy */
  size_t n;
} padded_tile;

static bool is_masked_read(const node *n) {
  return n->op == OP_WHERE && n->src[1]->op == OP_INDEX && n->src[1]->src[0]->op == OP_PARAM &&
         n->src[2]->op == OP_CONST && n->dtype != DT_INDEX;
}

/** Lists the ranges of a read inside of its stage, but for the outermost `outside` of the stage's
   own loops; false: none, or too many. */
static bool find_inner(padded_tile *b, const node *stage, size_t outside) {
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

static double elements_of(const node *stage) {
  double n = 1;
  for (size_t k = 0; k < stage_rank(stage, 0); k++) n *= (double)stage_extents(stage, 0)[k]->hi;
  return n;
}

/** Reads of the tile for each time that it is copied. */
static double reads_per_copy(const padded_tile *b, const node *stage, size_t outside) {
  double times = 1;
  for (size_t i = 0; i < b->n; i++) times *= range_likely_trips(b->inner[i]);
  for (size_t i = outside; i < stage_n_ranges(stage); i++) {
    const node *r = stage_range(stage)[i];
    if (range_kind_of(r) == KIND_LOOP && !node_is_free_in(r, b->what))
      times *= range_likely_trips(r);
  }
  return times;
}

/** Bytes that a copy may take. */
static double most_tile_bytes(const choice *c) {
  double most =
      MACHINE_L2_OPERAND_SHARE * (double)hardware_with_defaults(&c->target->hardware).l2_bytes;
  double free_bytes =
      MACHINE_PADDED_TILE_SCRATCH_SHARE * ((double)c->target->scratch - choice_array_bytes(c));
  return c->target->scratch && free_bytes < most ? free_bytes : most;
}

/** Elements of a copy made inside of the outermost `outside` loops; < 0: the law refuses. */
static double elements_inside(const choice *c, const node *stage, size_t outside, padded_tile *b) {
  laws l = {.g = c->laws.g};
  const node *element;
  if (!find_inner(b, stage, outside)) return -1;
  bool made = law_data(&l, b->what, b->what, b->inner, b->n, node_vector_range(b->what), &element);
  return made ? elements_of(element->src[0]) : -1;
}

/** Finds the outermost place for a copy that fits and pays: inside of `*place` loops. False: there
    is none. */
static bool find_tile(const choice *c, const node *stage, padded_tile *b, size_t *place) {
  double most = most_tile_bytes(c);
  for (size_t outside = 0; outside <= stage_n_ranges(stage); outside++) {
    if (outside && !node_is_free_in(stage_range(stage)[outside - 1], b->what)) continue;
    double n = elements_inside(c, stage, outside, b);
    if (!b->n) return false;
    if (n < 0 || n * (double)dtype_bytes((dtype)b->what->dtype) > most) continue;
    *place = outside;
    return reads_per_copy(b, stage, outside) >= MACHINE_COPY_REUSE * n;
  }
  return false;
}

/** The most indices of the loop around a copy for which one copy would fit, if one for several
    indices copies far fewer elements, as windows overlap; else 1. */
static int64_t indices_per_copy(const choice *c, const node *stage, const node *what,
                                size_t place) {
  padded_tile b = {.what = what};
  const node *loop = place ? stage_range(stage)[place - 1] : NULL;
  if (!loop || range_kind_of(loop) != KIND_LOOP || !node_is_const(range_extent(loop))) return 1;
  double extent = (double)range_extent(loop)->lo;
  double one = elements_inside(c, stage, place, &b), all = elements_inside(c, stage, place - 1, &b);
  double most = most_tile_bytes(c) / (double)dtype_bytes((dtype)what->dtype);
  if (one < 0 || all <= one || all > MACHINE_OVERLAPPING_COPIES * one * extent) return 1;
  return 1 + (int64_t)((most - one) * (extent - 1) / (all - one));
}

/** Splits the loop around a copy in blocks that share one, unless the search prefers a copy for
    each index; the ranges that take its place are added to `blocked`. Returns its block loop; NULL:
    it stays. */
static const node *block_loop_of_copy(choice *c, const node *stage, const node *what,
                                      map *blocked) {
  padded_tile b = {.what = what};
  const node *outer, *inner;
  size_t place;
  if (!find_tile(c, stage, &b, &place)) return NULL;
  int64_t most = indices_per_copy(c, stage, what, place);
  if (most < 2 || map_has(blocked, stage_range(stage)[place - 1])) return NULL;
  const node *loop = stage_range(stage)[place - 1];
  map_set(ir_arena(c->laws.g), blocked, loop, NULL);
  int64_t block = ix_block_size(range_extent(loop), most);
  if (block < 2 || choice_decide(c, DECISION_PADDED_BLOCK, 2)) return NULL;
  const node *made = law_overlap(&c->laws, c->sink, loop, block, &outer, &inner);
  if (!made) return NULL;
  c->sink = made;
  map_set(ir_arena(c->laws.g), blocked, outer, NULL);
  return outer;
}

/** Moves a loop that the windows vary along outermost, as the search prefers, where no copy for the
    whole nest fits: a copy for rows of an image, or for some of its channels. */
static void order_loops_of_copy(choice *c, const node *stage, const node *what) {
  padded_tile b = {.what = what};
  node_list loops = {0};
  size_t place;
  if (!find_tile(c, stage, &b, &place) || !place) return;
  for (size_t i = 1; i < nest_count_loops(stage); i++)
    if (node_is_free_in(stage_range(stage)[i], what))
      vec_push(ir_arena(c->laws.g), &loops, stage_range(stage)[i]);
  if (!loops.n) return;
  size_t taken = choice_decide(c, DECISION_OUTERMOST, loops.n + 1);
  if (taken) choice_take(c, law_order(&c->laws, c->sink, loops.at[taken - 1], 0));
}

void choice_padded_conditions(const choice *c, const node *stage, map *gone) {
  arena *a = ir_arena(c->laws.g);
  node_list nest = nest_nodes(a, stage);
  for (size_t i = 0; i < nest.n; i++) {
    padded_tile b = {.what = nest.at[i]};
    size_t place;
    if (!is_masked_read(b.what) || !nest_varies_in_fold(&nest, b.what) ||
        choice_scanned_range(c, stage) || !find_tile(c, stage, &b, &place))
      continue;
    node_list condition = topo_sort(a, b.what->src, 1, NULL, NULL);
    map_set(a, gone, b.what, (void *)b.what);
    for (size_t k = 0; k < condition.n; k++) map_set(a, gone, condition.at[k], (void *)b.what);
  }
}

/** Vectorises the copy where its last dimension is consecutive in the buffer and no bounds check
    depends on it. */
static void vectorise_copy(choice *c, const node *tile, const node *what) {
  const node *last = stage_range(tile)[stage_n_ranges(tile) - 1];
  const node *value = stage_value(tile, 0);
  int64_t lanes = target_lanes(c->target, c->target->vector_bytes, dtype_bytes((dtype)what->dtype));
  if (lanes < 2 || value->op != OP_WHERE || node_is_free_in(last, value->src[0])) return;
  if (ix_coefficient(value->src[1]->src[value->src[1]->n_src - 1], last) == 1)
    choice_vectorise_range(c, last, lanes);
}

static bool pad_read(choice *c, const node *stage, const node *what) {
  padded_tile b = {.what = what};
  const node *element;
  size_t place;
  if (!find_tile(c, stage, &b, &place)) return false;
  const node *made =
      law_data(&c->laws, c->sink, what, b.inner, b.n, node_vector_range(b.what), &element);
  if (!made) return false;
  c->sink = made;
  choice_interchange_outward(c, law_find_binder(&c->laws, made, stage_range(stage)[0]),
                             element->src[0], 0);
  vectorise_copy(c, element->src[0], what);
  return true;
}

/** The first masked read in a nest's reductions that was not refused. */
static const node *next_masked_read(choice *c, const node *stage, const map *refused) {
  node_list nest = nest_nodes(ir_arena(c->laws.g), stage);
  for (size_t i = 0; i < nest.n; i++)
    if (is_masked_read(nest.at[i]) && !map_has(refused, nest.at[i]) &&
        nest_varies_in_fold(&nest, nest.at[i]) && !choice_scanned_range(c, stage))
      return nest.at[i];
  return NULL;
}

void choose_padded_tiles(choice *c) {
  map refused = {0}, blocked = {0}, ordered = {0};
  node_list binders = choice_binders(c);
  for (size_t i = 0; i < binders.n; i++) {
    const node *b = binders.at[i];
    const node *first = b->op == OP_STAGE && stage_n_ranges(b) ? stage_range(b)[0] : NULL;
    while (first && (b = law_find_binder(&c->laws, c->sink, first))) {
      const node *what = next_masked_read(c, b, &refused);
      if (!what) break;
      if (!map_has(&ordered, binders.at[i])) {
        map_set(ir_arena(c->laws.g), &ordered, binders.at[i], NULL);
        order_loops_of_copy(c, b, what);
        continue;
      }
      const node *loop = block_loop_of_copy(c, b, what, &blocked);
      if (loop) first = loop;
      if (loop) continue;
      if (!pad_read(c, b, what)) map_set(ir_arena(c->laws.g), &refused, what, (void *)what);
    }
  }
}
