/* Implements the search for sums of products in tiles. */
#include "ir/index/tile_match.h"

#include "ir/core/affine.h"
#include "ir/core/ir.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/row_major_address.h"

bool tile_match_address(ir *g, const node *address, const node *row, const node *column,
                        const node **first, int64_t *apart) {
  if (address->op == OP_WHERE || address->op == OP_INVALID) return false;
  *apart = ix_coefficient(address, row);
  if (ix_coefficient(address, column) != 1) return false;
  *first = ix_sub(g, ix_sub(g, address, column), ix_scale(g, row, *apart));
  return !node_is_free_in(row, *first) && !node_is_free_in(column, *first);
}

/** True if an operand's elements lie in rows along one range, of elements along another. */
static bool is_operand(ir *g, const node *x, const node *row, const node *column,
                       const node *other) {
  const node *of = x->op == OP_INDEX ? x->src[0] : NULL, *first;
  int64_t apart;
  if (!of || (of->op != OP_PARAM && of->op != OP_STAGE) || node_is_free_in(other, x)) return false;
  bool is_param = of->op == OP_PARAM;
  size_t component = (size_t)x->ints[0];
  const node *address = row_major_address(
      g, x->n_src - 1u, is_param ? of->dims : stage_extents(of, component), x->src + 1);
  return node_is_free_in(row, x) && tile_match_address(g, address, row, column, &first, &apart);
}

static bool has_extent(const node *range, int extent) {
  return node_is_bits(range_extent(range), (uint64_t)extent);
}

static bool is_zero(const node *n) {
  return n->op == OP_CONST && scalar_to_double((dtype)n->dtype, (uint64_t)node_int(n)) == 0;
}

/** True for the sum of a scalar from 0. */
static bool is_sum(const node *f) {
  return f->op == OP_FOLD && fold_n_states(f) == 1 && !fold_n_emits(f) && fold_op(f, 0) == OP_ADD &&
         is_zero(fold_init(f, 0));
}

/** The array's last two coordinates are i and j, and no other one depends on them. */
static bool has_tile_last(const node *stage, const node *const r[TILE_SIDES]) {
  size_t rank = stage_rank(stage, 0);
  const node *const *at = stage_coords(stage, 0), *const *extent = stage_extents(stage, 0);
  if (rank < 2 || at[rank - 2] != r[TILE_M] || at[rank - 1] != r[TILE_N]) return false;
  if (extent[rank - 2] != range_extent(r[TILE_M]) || extent[rank - 1] != range_extent(r[TILE_N]))
    return false;
  for (size_t i = 0; i + 2 < rank; i++)
    if (node_is_free_in(r[TILE_M], at[i]) || node_is_free_in(r[TILE_N], at[i])) return false;
  return true;
}

/** The tile of the words' op that has the ranges' extents; NULL: there is none. */
static const tensor_tile *find_tile(const node *product, const tile_match *m) {
  for (size_t i = 0; i < TENSOR_TILES; i++) {
    const tensor_tile *t = &tensor_tiles[i];
    if (t->workers == 1 && tensor_rows[t->row].op == product->op &&
        has_extent(m->range[TILE_M], t->m) && has_extent(m->range[TILE_N], t->n) &&
        has_extent(m->range[TILE_K], t->k))
      return t;
  }
  return NULL;
}

bool tile_match_sum(const node *fold, const node *range[TILE_SIDES], const node **product) {
  const node *stage = is_sum(fold) && fold_component(fold, 0) >= 0 ? fold_step(fold, 0) : NULL;
  if (!stage || stage_n_values(stage) != 1 || stage_n_ranges(stage) < 2) return false;
  size_t n = stage_n_ranges(stage);
  const node *v = stage_value(stage, 0), *terms = v->op == OP_INDEX ? v->src[0] : NULL;
  if (!terms || !is_sum(terms) || fold_component(terms, 0) >= 0 || fold_n_ranges(terms) != 1)
    return false;
  range[TILE_M] = stage_range(stage)[n - 2];
  range[TILE_N] = stage_range(stage)[n - 1];
  range[TILE_K] = fold_range(terms)[0];
  for (int i = 0; i < TILE_SIDES; i++)
    if (!range_is_tile(range[i], (tile_side)i)) return false;
  *product = fold_step(terms, 0);
  bool is_row = tensor_row_of((op)(*product)->op) != NULL;
  return is_row && is_zero((*product)->src[0]) && has_tile_last(stage, range);
}

bool tile_match_fold(ir *g, const node *fold, tile_match *m) {
  const node *product;
  *m = (tile_match){0};
  if (!tile_match_sum(fold, m->range, &product)) return false;
  m->tile = find_tile(product, m);
  if (!m->tile) return false;
  const node *const *r = m->range;
  m->x = product->src[1];
  m->y = product->src[2];
  return is_operand(g, m->x, r[TILE_M], r[TILE_K], r[TILE_N]) &&
         is_operand(g, m->y, r[TILE_K], r[TILE_N], r[TILE_M]);
}
