/* Where a program's own arrays lie. */
#ifndef TENON_CODEGEN_SCRATCH_H
#define TENON_CODEGEN_SCRATCH_H

#include "base/map.h"
#include "ir/node.h"

/** The memory of the arrays (ALLOCs that are no registers) of a program. */
typedef struct scratch_plan {
  map offsets; /* of each that is read, as a number + 1 */
  uint64_t bytes;
} scratch_plan;

/** Gives the arrays of a LINEAR their places: those that are never alive at once may share theirs.
    Raises TN_ERR_UNSUPPORTED where an array has no bounded size. */
scratch_plan scratch_place(arena *a, const node *linear);

/** The offset of an array that is read: a multiple of MEMORY_ALIGN. */
int64_t scratch_offset(const scratch_plan *p, const node *alloc);

#endif
