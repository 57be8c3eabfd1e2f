#include "ir/address.h"

#include "ir/build.h"

const node *address_size(ir *g, size_t rank, const node *const extents[]) {
  const node *size = ix_const(g, 1);
  for (size_t i = 0; i < rank; i++) size = ix_mul(g, size, extents[i]);
  return size;
}

static bool is_true(const node *n) { return node_is_bits(n, 1); }

static const node *both(ir *g, const node *a, const node *b) {
  if (!a || is_true(a)) return b;
  return is_true(b) ? a : ir_op2(g, OP_AND, a, b);
}

const node *address_of(ir *g, size_t rank, const node *const extents[],
                       const node *const coords[]) {
  const node *address = ix_const(g, 0), *inside = NULL;
  for (size_t i = 0; i < rank; i++) {
    address = ix_add(g, ix_mul(g, address, extents[i]), coords[i]);
    inside = both(g, inside, ix_le(g, ix_const(g, 0), coords[i]));
    inside = both(g, inside, ix_lt(g, coords[i], extents[i]));
  }
  if (!inside || is_true(inside)) return address;
  const node *invalid = ir_node(g, OP_INVALID, DT_INDEX, NULL, 0, NULL, 0);
  return ir_op3(g, OP_WHERE, inside, address, invalid);
}
