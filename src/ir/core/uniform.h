/* Tells values that are equal for all workers of a group from others. */
#ifndef TENON_IR_CORE_UNIFORM_H
#define TENON_IR_CORE_UNIFORM_H

#include "base/map.h"
#include "ir/core/ir.h"

/** Nodes that are known to be uniform or not, in memory of `a`. */
typedef struct uniformity {
  arena *a;
  map known;
} uniformity;

/** True if a size of a linear program is the same for all workers of a group: it does not depend on
    the worker's number, nor on a worker's own memory. */
bool uniform_size(uniformity *u, const node *size);

#endif
