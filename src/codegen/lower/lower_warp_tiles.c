/* Lowers sums in tiles that a warp computes together (laws/warp_tile.h). A worker's own words of
   the operands, and its part of the sums, become vectors, which one op takes:

     sums = op(VECTORIZE(sums), VECTORIZE(words of x), VECTORIZE(words of y))

   The sums are stored one by one, so that the array of them can lie in registers. */
#include "codegen/lower/lowering.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"

static const node *make_vector(lowering *l, op o, dtype t, size_t lanes, const node *const src[],
                               size_t n) {
  return ir_make(
      l->g, &(node_spec){.op = o, .dtype = t, .lanes = (uint16_t)lanes, .src = src, .n_src = n});
}

static const node *lane_of(lowering *l, const node *vector, int64_t lane) {
  return ir_make(l->g, &(node_spec){.op = OP_EXTRACT,
                                    .dtype = (dtype)vector->dtype,
                                    .src = &vector,
                                    .n_src = 1,
                                    .ints = &lane,
                                    .n_int = 1});
}

/** A coordinate over ranges that are lowered. */
static const node *lower_coordinate(lowering *l, const node *x) {
  map with = {0};
  for (uint32_t i = 0; i < x->free->n; i++)
    map_set(l->a, &with, x->free->at[i], (void *)lower_node(l, x->free->at[i]));
  return subst_ranges(l->g, x, &with);
}

/** A worker's words of an operand. */
static const node *load_words(lowering *l, const warp_tile *m, tensor_operand o) {
  size_t n = (size_t)tensor_tile_words(m->tile, o);
  const node **words = arena_alloc(l->a, n * sizeof *words), *x;
  for (size_t i = 0; i < n; i++) {
    const node **at = warp_tile_coordinates(l->g, m, o, (int)i, &x);
    for (uint32_t k = 0; k + 1 < x->n_src; k++) at[k] = lower_coordinate(l, at[k]);
    words[i] = lower_index_at(l, x, at);
  }
  return make_vector(l, OP_VECTORIZE, (dtype)x->dtype, n, words, n);
}

/** The addresses of a worker's sums of a tile, in the order of their numbers. */
static const node **find_sums(lowering *l, const warp_tile *m, const node *step, const home *to) {
  size_t n = (size_t)tensor_tile_words(m->tile, TENSOR_SUM);
  const node **coords = lower_nodes(l, stage_coords(step, 0), to->rank);
  const node **address = arena_alloc(l->a, n * sizeof *address);
  for (size_t i = 0; i < n; i++) {
    int row, column;
    tensor_tile_place(TENSOR_SUM, (int)i, 0, 0, &row, &column);
    coords[to->rank - 2] = ix_const(l->g, row / TENSOR_WARP_ROWS);
    coords[to->rank - 1] = ix_const(l->g, column);
    address[i] = lower_address(l, to, coords);
  }
  return address;
}

const node *lower_warp_tile(lowering *l, const warp_tile *m, const node *step, const home *to) {
  size_t n = (size_t)tensor_tile_words(m->tile, TENSOR_SUM);
  dtype t = (dtype)to->storage->dtype;
  const node **address = find_sums(l, m, step, to), **own = arena_alloc(l->a, n * sizeof *own);
  node_list stores = {0};
  for (size_t i = 0; i < n; i++) own[i] = lower_load(l, t, to->storage, address[i]);
  const node *src[TENSOR_OPERANDS];
  src[TENSOR_SUM] = make_vector(l, OP_VECTORIZE, t, n, own, n);
  for (int o = TENSOR_X; o < TENSOR_OPERANDS; o++) src[o] = load_words(l, m, (tensor_operand)o);
  const node *sums = make_vector(l, m->tile->op, t, n, src, TENSOR_OPERANDS);
  for (size_t i = 0; i < n; i++)
    vec_push(l->a, &stores, lower_store(l, to->storage, address[i], lane_of(l, sums, (int64_t)i)));
  return lower_group(l, &stores);
}
