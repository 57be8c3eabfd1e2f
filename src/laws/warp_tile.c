/* Implements the search for sums of products that a warp computes in tiles. */
#include "laws/warp_tile.h"

#include "ir/core/topo_sort.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"

int warp_tile_part(const tensor_tile *tile, tile_side side) {
  return side == TILE_M   ? tile->m / TENSOR_WARP_ROWS
         : side == TILE_N ? tile->n / TENSOR_WARP_COLUMNS
                          : tile->k;
}

static bool is_warp_digit(const node *r, int64_t axis, int extent) {
  return range_kind_of(r) == KIND_WARP && range_axis(r) == axis &&
         node_is_bits(range_extent(r), (uint64_t)extent);
}

/** The range of a digit that an operand depends on; NULL: none. */
static const node *digit_of(const node *x, int64_t axis, int extent) {
  for (uint32_t i = 0; i < x->free->n; i++)
    if (is_warp_digit(x->free->at[i], axis, extent)) return x->free->at[i];
  return NULL;
}

/** True if coordinates are sums of ranges and sizes, which may be computed for other workers. */
static bool is_computed(ir *g, const node *x) {
  node_list order = topo_sort(ir_arena(g), x->src + 1, x->n_src - 1u, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_INDEX || node_is_binder(order.at[i])) return false;
  return true;
}

/** True if each worker of a warp has an array of its own. */
static bool differs_in_warp(ir *g, const team_arrays *t, const node *of) {
  const node_list *open = map_get(&t->open, of);
  for (size_t i = 0; i < open->n; i++)
    if (range_kind_of(open->at[i]) == KIND_WARP && team_differs_along(g, of, open->at[i]))
      return true;
  return false;
}

/** True for an element of a buffer, or of an array of which all workers of a warp have the whole
    in common. */
static bool is_shared(ir *g, const team_arrays *t, const node *x) {
  const node *of = x->op == OP_INDEX ? x->src[0] : NULL;
  if (!of || !is_computed(g, x)) return false;
  if (of->op != OP_STAGE) return of->op == OP_PARAM;
  const team_array *a = team_arrays_find(t, of, (size_t)x->ints[0]);
  return a->widest == KIND_LOCAL && !a->dropped && !differs_in_warp(g, t, of);
}

/** True if the numbers of a warp are those of the digits g and t. */
static bool is_warp(const team_arrays *t, int workers) {
  static const struct {
    int64_t axis;
    int extent;
  } digits[] = {{WARP_COLUMNS, TENSOR_WARP_COLUMNS}, {WARP_ROWS, TENSOR_WARP_ROWS}};
  if (t->digits.warp != workers || t->digits.all.n < 2) return false;
  for (size_t i = 0; i < 2; i++) {
    const team_digit *d = &t->digits.all.at[i];
    if (d->kind != KIND_WARP || d->axis != digits[i].axis ||
        !node_is_bits(d->extent, (uint64_t)digits[i].extent))
      return false;
  }
  return true;
}

static bool has_parts(const tensor_tile *tile, const warp_tile *m) {
  for (int i = 0; i < TILE_SIDES; i++)
    if (!node_is_bits(range_extent(m->range[i]), (uint64_t)warp_tile_part(tile, (tile_side)i)))
      return false;
  return true;
}

static const tensor_tile *find_tile(op product, const warp_tile *m) {
  for (size_t i = 0; i < TENSOR_TILES; i++) {
    const tensor_tile *tile = &tensor_tiles[i];
    if (tile->workers > 1 && tensor_rows[tile->row].op == product && has_parts(tile, m))
      return tile;
  }
  return NULL;
}

/** Takes the operands in an order; false: they depend on what the other one's place is. */
static bool take_operands(warp_tile *m, const node *x, const node *y) {
  m->x = x, m->y = y;
  m->g = digit_of(x, WARP_ROWS, TENSOR_WARP_ROWS);
  m->t = digit_of(y, WARP_COLUMNS, TENSOR_WARP_COLUMNS);
  return m->g && m->t && !node_is_free_in(m->range[TILE_N], x) &&
         !node_is_free_in(m->range[TILE_M], y) && !digit_of(x, WARP_COLUMNS, TENSOR_WARP_COLUMNS) &&
         !digit_of(y, WARP_ROWS, TENSOR_WARP_ROWS);
}

bool warp_tile_match(ir *g, const team_arrays *t, const node *fold, warp_tile *m) {
  const node *product;
  *m = (warp_tile){0};
  if (!tile_match_sum(fold, m->range, &product)) return false;
  m->tile = find_tile((op)product->op, m);
  if (!m->tile || !is_warp(t, m->tile->workers)) return false;
  const tensor_row *row = &tensor_rows[m->tile->row];
  const node *x = product->src[1], *y = product->src[2];
  if (!is_shared(g, t, x) || !is_shared(g, t, y)) return false;
  return take_operands(m, x, y) || (row->x == row->y && take_operands(m, y, x));
}

/** The row or column of a worker's word, by the worker's digits. */
static const node *place_of(ir *g, const warp_tile *m, tensor_operand o, int word, bool is_column) {
  int at[2], by_row[2], by_column[2], own[2];
  tensor_tile_place(o, 0, 0, 0, &own[0], &own[1]);
  tensor_tile_place(o, word, 0, 0, &at[0], &at[1]);
  tensor_tile_place(o, 0, 1, 0, &by_row[0], &by_row[1]);
  tensor_tile_place(o, 0, 0, 1, &by_column[0], &by_column[1]);
  const node *x = ix_scale(g, m->g, by_row[is_column] - own[is_column]);
  x = ix_add(g, x, ix_scale(g, m->t, by_column[is_column] - own[is_column]));
  return ix_add_const(g, x, at[is_column]);
}

/** Gives a digit of the warp and a worker's own range the indices of which a row or column is. */
static void map_place(ir *g, map *with, const node *slow, const node *fast, const node *place) {
  map_set(ir_arena(g), with, slow, (void *)ix_floordiv(g, place, range_extent(fast)));
  map_set(ir_arena(g), with, fast, (void *)ix_mod(g, place, range_extent(fast)));
}

const node **warp_tile_coordinates(ir *g, const warp_tile *m, tensor_operand o, int word,
                                   const node **element) {
  const node *x = o == TENSOR_X ? m->x : m->y;
  const node **at = arena_alloc(ir_arena(g), x->n_src * sizeof *at);
  const node *row = place_of(g, m, o, word, false), *column = place_of(g, m, o, word, true);
  map with = {0};
  map_set(ir_arena(g), &with, m->range[TILE_K], (void *)(o == TENSOR_X ? column : row));
  if (o == TENSOR_X)
    map_place(g, &with, m->range[TILE_M], m->g, row);
  else
    map_place(g, &with, m->t, m->range[TILE_N], column);
  for (uint32_t i = 1; i < x->n_src; i++) at[i - 1] = subst_ranges(g, x->src[i], &with);
  *element = x;
  return at;
}
