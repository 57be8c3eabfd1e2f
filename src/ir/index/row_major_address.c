/* Computes row-major addresses from coordinates by Horner's scheme over the extents; drops the
   bounds check where the coordinates are proved to be inside. */
#include "ir/index/row_major_address.h"

#include "ir/core/build.h"

const node *row_major_size(ir *g, size_t rank, const node *const extents[]) {
  const node *size = ix_const(g, 1);
  for (size_t i = 0; i < rank; i++) size = ix_mul(g, size, extents[i]);
  return size;
}

const node *row_major_address(ir *g, size_t rank, const node *const extents[],
                              const node *const coords[]) {
  const node *address = ix_const(g, 0), *inside = ix_in_bounds(g, rank, coords, extents);
  for (size_t i = 0; i < rank; i++) address = ix_add(g, ix_mul(g, address, extents[i]), coords[i]);
  if (node_is_bits(inside, 1)) return address;
  const node *invalid = ir_node(g, OP_INVALID, DT_INDEX, NULL, 0, NULL, 0);
  return ir_op3(g, OP_WHERE, inside, address, invalid);
}
