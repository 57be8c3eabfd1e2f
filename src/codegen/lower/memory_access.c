/* Reads the addresses of LOADs and STOREs in a lowered graph. */
#include "codegen/lower/memory_access.h"

const node *memory_access_unmask(const node *address, const node **mask) {
  bool is_masked = address->op == OP_WHERE && address->src[2]->op == OP_INVALID;
  *mask = is_masked ? address->src[0] : NULL;
  return is_masked ? address->src[1] : address;
}

const node *memory_access_address(const node *access) {
  const node *mask;
  return memory_access_unmask(access->src[1], &mask);
}
