/* Reads the addresses of LOADs and STOREs in a lowered graph, without their masks. */
#ifndef TENON_CODEGEN_LOWER_MEMORY_ACCESS_H
#define TENON_CODEGEN_LOWER_MEMORY_ACCESS_H

#include "ir/core/ir.h"

/** Splits a masked address, WHERE(mask, address, INVALID), in its two; *mask is NULL without one.
 */
const node *memory_access_unmask(const node *address, const node **mask);

/** The address of a LOAD or STORE without its mask. */
const node *memory_access_address(const node *access);

#endif
