/* Builds a PARAM, the array argument of a graph or kernel, from the type and sizes of an array. A
   slot number says which array it is. */
#ifndef TENON_SCHEDULE_CORE_PARAM_LIKE_H
#define TENON_SCHEDULE_CORE_PARAM_LIKE_H

#include "ir/core/build.h"
#include "ir/core/node_device.h"

/** A PARAM of the type, rank and device of an array, with a slot; `dims`: its sizes as nodes of
 * `g`. */
static inline const node *param_like(ir *g, const node *array, const node *const dims[],
                                     size_t slot) {
  int64_t ints[2] = {(int64_t)slot};
  size_t n = 1 + node_device_argument_in(g, array->device, ints + 1);
  return ir_node(g, OP_PARAM, (dtype)array->dtype, dims, array->rank, ints, n);
}

#endif
