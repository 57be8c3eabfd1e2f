/* Plans a program's scratch memory: offsets of its own arrays (ALLOC instructions), packed by live
   range. */
#ifndef TENON_CODEGEN_SCRATCH_PLAN_H
#define TENON_CODEGEN_SCRATCH_PLAN_H

#include "base/map.h"
#include "ir/core/node.h"

/** Scratch memory of one program. */
typedef struct scratch_plan {
  map offsets;                      /* ALLOC that is read → its offset + 1 */
  uint64_t bytes;                   /* of all arrays of a worker */
  uint64_t warp_bytes, group_bytes; /* of the arrays that a warp and a group share */
} scratch_plan;

/** Plans the scratch memory of a LINEAR list: arrays that are never live at once may share memory.
    Raises TN_ERR_UNSUPPORTED for an array without a bounded size. */
scratch_plan scratch_plan_make(arena *a, const node *linear);

/** The offset of an array that is read, a multiple of MEMORY_PLAN_ALIGN; −1 for one that is not. */
int64_t scratch_plan_offset(const scratch_plan *p, const node *alloc);

#endif
