/* Chooses tiles for products of words (tensor_rows.def), where the target has instructions for
   them: a nest in vectors of as many lanes as a tile has columns, whose reduction multiplies words
   that do not depend on the lanes by vectors of words. A block of tiles is cut from the rows and
   the loop over vectors, and the innermost range of the reduction into the terms of a tile:

     i, j …, lanes { FOLD[q] add op(0, x(i, q), y(q, j, lanes)) }
       →   i', j' …, rows, i₁, j₁, lanes { FOLD[q'] add FOLD[terms] add op(0, x, y) }

   unroll_and_jam.c then moves rows, copies and lanes inside of the sums over q', and the lowering
   makes one instruction of rows, lanes and terms (ir/index/tile_match.h). What is left of rows and
   vectors behind the last block is a nest of its own, for register tiles. */
#include "codegen/choose/choice.h"
#include "codegen/choose/nest_analysis.h"
#include "ir/core/affine.h"
#include "ir/core/tensor_rows.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/tile_match.h"
#include "ir/transform/substitute.h"
#include "target/kernel_estimates.h"
#include "target/machine.h"

enum { MOST_OUTER = 10 }; /* copies and lanes around a FOLD: a bound of arrays here */

/** A nest that may be computed in tiles. */
typedef struct tiling {
  const tensor_tile *tile;
  const node *rows, *vectors; /* loops; vectors is NULL where there is but one vector */
  const node *terms;
} tiling;

/* Finding a nest. */

static const tensor_tile *tile_of_row(const choice *c, op o) {
  for (size_t i = 0; i < TENSOR_TILES; i++)
    if (tensor_rows[tensor_tiles[i].row].op == o && tensor_tiles[i].workers == 1 &&
        !rule_target_lacks_op(&c->target->rules, tensor_tiles[i].op))
      return &tensor_tiles[i];
  return NULL;
}

/** An operand's element, without the condition that padded tiles will remove; NULL: none. */
static const node *element_of(const node *x, const map *padded) {
  if (x->op == OP_WHERE && map_has(padded, x)) x = x->src[1];
  return x->op == OP_INDEX && nest_is_array_read(x) ? x : NULL;
}

static bool is_loop(const node *stage, size_t i) {
  return range_kind_of(stage_range(stage)[i]) == KIND_LOOP;
}

/** The stage's innermost loop of at least `least` indices along which one operand lies in its
   array, and on which the other does not depend; NULL: there is none. */
static const node *loop_of(const node *stage, const node *x, const node *other, int64_t least) {
  for (size_t i = stage_n_ranges(stage); i-- > 0;) {
    const node *r = stage_range(stage)[i];
    if (is_loop(stage, i) && range_extent(r)->lo >= least && node_is_free_in(r, x) &&
        !node_is_free_in(r, x->src[0]) && !node_is_free_in(r, other))
      return r;
  }
  return NULL;
}

/** The range of a FOLD that is cut into the terms of tiles: one along which words of x lie side by
    side; NULL: there is none. */
static const node *terms_of(const choice *c, const node *fold, const node *x, int64_t k) {
  for (size_t i = 0; i < fold_n_ranges(fold); i++) {
    const node *r = fold_range(fold)[i], *extent = range_extent(r);
    if (!node_is_const(extent) || node_int(extent) % k) continue;
    bool has_more = node_int(extent) > k || fold_n_ranges(fold) > 1;
    if (range_kind_of(r) == KIND_LOOP && has_more && read_is_unit_stride(c->laws.g, r, x)) return r;
  }
  return NULL;
}

/** The tile of a FOLD's terms; NULL: it sums something else. */
static const tensor_tile *tile_of_fold(const choice *c, const node *fold) {
  if (fold->op != OP_FOLD || fold_n_states(fold) != 1 || fold_n_emits(fold)) return NULL;
  if (!fold_has_scalar_states(fold) || fold_op(fold, 0) != OP_ADD) return NULL;
  return tile_of_row(c, (op)fold_step(fold, 0)->op);
}

static bool find_in_fold(const choice *c, const node *stage, const node *fold, const map *padded,
                         tiling *t) {
  const node *lanes = nest_vector_range(stage), *product = fold_step(fold, 0);
  *t = (tiling){.tile = tile_of_fold(c, fold)};
  if (!t->tile || !node_is_bits(range_extent(lanes), (uint64_t)t->tile->n)) return false;
  const node *x = element_of(product->src[1], padded), *y = element_of(product->src[2], padded);
  if (!x || !y || node_is_free_in(lanes, x) || !node_is_free_in(lanes, y)) return false;
  t->rows = loop_of(stage, x, y, t->tile->m);
  t->vectors = loop_of(stage, y, x, 2);
  t->terms = terms_of(c, fold, x, t->tile->k);
  return t->rows && t->terms;
}

static bool find_tiling(choice *c, const node *stage, tiling *t) {
  node_list nest = nest_nodes(ir_arena(c->laws.g), stage);
  map padded = {0};
  bool has_tile = false;
  for (size_t i = 0; i < nest.n; i++) has_tile |= tile_of_fold(c, nest.at[i]) != NULL;
  if (has_tile) choice_padded_conditions(c, stage, &padded);
  for (size_t i = 0; i < nest.n && has_tile; i++)
    if (nest.at[i]->op == OP_FOLD && find_in_fold(c, stage, nest.at[i], &padded, t)) return true;
  return false;
}

/* Cutting tiles. */

/** The largest number of tiles of a side that a range holds. */
static int64_t tiles_along(const node *range, int64_t each) {
  int64_t most = range_extent(range)->lo / each;
  return most < MACHINE_TILES_SIDE ? most : MACHINE_TILES_SIDE;
}

/** Cuts a range into blocks, which overlap where that is legal and leave a nest else; NULL:
 * refused.
 */
static const node *cut_range(choice *c, const node *range, int64_t block) {
  const node *whole = range, *rest, *outer, *inner;
  if (!law_may_overlap(&c->laws, c->sink, range, block) &&
      !choice_split_remainder(c, range, block, &whole, &rest))
    return NULL;
  const node *made = law_overlap(&c->laws, c->sink, whole, block, &outer, &inner);
  if (!made) made = law_split(&c->laws, c->sink, whole, block, &outer, &inner);
  if (!made) return NULL;
  c->sink = made;
  return inner;
}

/** Moves a range just inside of all loops and makes it copies; NULL: refused. */
static const node *unroll(choice *c, const node *range) {
  const node *const *ranges, *copies;
  size_t n = binder_ranges(law_find_binder(&c->laws, c->sink, range), &ranges), at = n;
  while (at > 0 && range_kind_of(ranges[at - 1]) != KIND_LOOP) at--;
  const node *made = law_order(&c->laws, c->sink, range, at ? at - 1 : 0);
  if (made) made = law_kind(&c->laws, made, range, KIND_UNROLL, &copies);
  choice_take(c, made);
  return made ? copies : NULL;
}

/** Cuts the terms of a tile out of the reduction. */
static bool cut_terms(choice *c, const tiling *t) {
  laws *l = &c->laws;
  const node *outer, *inner = t->terms, *terms, *made = c->sink;
  if (!node_is_bits(range_extent(t->terms), (uint64_t)t->tile->k))
    made = law_split(l, made, t->terms, t->tile->k, &outer, &inner);
  if (!made) return false;
  const node *const *ranges;
  size_t n = binder_ranges(law_find_binder(l, made, inner), &ranges);
  if (ranges[n - 1] != inner) made = law_order(l, made, inner, n - 1);
  if (!made) return false;
  binder_ranges(law_find_binder(l, made, inner), &ranges);
  made = law_nest(l, made, ranges[n - 2]);
  if (made) made = law_kind_on_axis(l, made, inner, KIND_TILE, TILE_K, &terms);
  return choice_take(c, made);
}

/** Cuts the copies of tiles; the last ones are innermost. */
static bool cut_sums(choice *c, const tiling *t) {
  const node *rows = t->rows, *vectors = t->vectors, *outer, *inner;
  int64_t along = tiles_along(rows, t->tile->m);
  if (!(rows = cut_range(c, rows, along * t->tile->m))) return false;
  const node *several = NULL;
  if (along > 1) {
    const node *made = law_split(&c->laws, c->sink, rows, t->tile->m, &outer, &inner);
    if (!made) return false;
    c->sink = made;
    several = outer;
    rows = inner;
  }
  if (vectors && !(vectors = cut_range(c, vectors, tiles_along(vectors, 1)))) return false;
  if (vectors && !unroll(c, vectors)) return false;
  if (several && !unroll(c, several)) return false;
  return unroll(c, rows);
}

static void cut_tiles(choice *c, const tiling *t) {
  const node *before = c->sink;
  if (!cut_terms(c, t) || !cut_sums(c, t)) c->sink = before;
}

void choose_tensor_tiles(choice *c) {
  node_list binders = choice_binders(c);
  for (size_t i = 0; i < binders.n && !choice_at_node_limit(c); i++) {
    const node *b = binders.at[i];
    tiling t;
    if (b->op != OP_STAGE || !stage_n_ranges(b)) continue;
    b = law_find_binder(&c->laws, c->sink, stage_range(b)[0]);
    if (!b || b->op != OP_STAGE || !nest_vector_range(b) || nest_is_unrolled(b)) continue;
    if (find_tiling(c, b, &t) && !choice_decide(c, DECISION_TILE, 2)) cut_tiles(c, &t);
  }
}

/* Kernels that bring a schedule along. */

const node *choice_loops_for_tiles(ir *g, const node *sink, const rule_target *t) {
  arena *a = ir_arena(g);
  node_list order = topo_sort(a, &sink, 1, NULL, NULL);
  map with = {0};
  for (size_t i = 0; i < order.n; i++) {
    tile_match m;
    if (order.at[i]->op != OP_FOLD || !tile_match_fold(g, order.at[i], &m)) continue;
    if (!rule_target_lacks_op(t, m.tile->op)) continue;
    for (int k = 0; k < TILE_SIDES; k++) {
      const node *r = m.range[k];
      map_set(a, &with, r, (void *)range_with(g, r, range_extent(r), KIND_LOOP));
    }
  }
  return with.n ? subst(g, sink, &with) : sink;
}

/* Jamming. */

bool choice_is_tile_terms(const node *fold) {
  return fold->op == OP_FOLD && range_is_tile(fold_innermost_range(fold), TILE_K);
}

const node *choice_tile_rows(const choice *c, const node *fold) {
  node_list nest = nest_nodes(ir_arena(c->laws.g), fold);
  for (size_t i = 0; i < nest.n; i++) {
    const node *f = nest.at[i];
    if (!choice_is_tile_terms(f)) continue;
    const node *product = fold_step(f, 0), *terms = fold_innermost_range(f);
    const tensor_tile *t = tile_of_row(c, (op)product->op);
    for (uint32_t k = 0; t && k < f->free->n; k++) {
      const node *r = f->free->at[k];
      if (r != terms && range_is_unrolled(r) && node_is_bits(range_extent(r), (uint64_t)t->m) &&
          node_is_free_in(r, product->src[1]) && !node_is_free_in(r, product->src[2]))
        return r;
    }
  }
  return NULL;
}

/** Makes an own range of the sums a side of the tile. */
static bool make_side(choice *c, const node *own, tile_side side) {
  const node *changed;
  return choice_take(c,
                     law_kind_on_axis(&c->laws, c->sink, own, KIND_TILE, (int64_t)side, &changed));
}

/** True if a FOLD sums the terms of tiles, not sums of such sums. */
static bool is_innermost_sum(const node *fold) {
  const node *step = fold_step(fold, 0);
  return step->op == OP_INDEX && choice_is_tile_terms(step->src[0]);
}

bool choice_jam_tile(choice *c, const node *fold, const node *rows) {
  const node *outer[MOST_OUTER], *own[MOST_OUTER], *lanes = node_vector_range(fold), *changed;
  size_t n = 0;
  for (uint32_t i = 0; i < fold->free->n && n + 2 < MOST_OUTER; i++) {
    const node *r = fold->free->at[i];
    if (range_is_unrolled(r) && r != rows) outer[n++] = r;
  }
  if (!lanes) return false;
  outer[n++] = rows;
  outer[n++] = lanes;
  const node *made = law_interchange(&c->laws, c->sink, fold_range(fold)[0], outer, n, own);
  if (!made) return false;
  c->sink = made;
  if (is_innermost_sum(fold) &&
      (!make_side(c, own[n - 2], TILE_M) || !make_side(c, own[n - 1], TILE_N)))
    return true;
  choice_take(c, law_kind(&c->laws, c->sink, rows, KIND_LOOP, &changed));
  return true;
}
