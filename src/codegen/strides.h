/* Addresses of a lowered graph's LOADs and STOREs, and their marks. */
#ifndef TENON_CODEGEN_STRIDES_H
#define TENON_CODEGEN_STRIDES_H

#include "ir/ir.h"

/** The address of a LOAD or STORE, where it has one. */
const node *access_address(const node *access);

/** What is added to an address from one index of a range to the next; 0: that is not always the
    same. Where it is a minimum, the last block overlaps the one before. */
int64_t stride_along(const node *address, const node *range);

/** The same LOAD or STORE with a mark (ops.def). */
const node *access_marked(ir *g, const node *access, int64_t mark);

#endif
