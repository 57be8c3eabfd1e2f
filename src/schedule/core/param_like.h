/* Builds a PARAM, the array argument of a graph or kernel, from the type and sizes of an array. A
   slot number says which array it is. */
#ifndef TENON_SCHEDULE_CORE_PARAM_LIKE_H
#define TENON_SCHEDULE_CORE_PARAM_LIKE_H

#include "ir/core/build.h"

/** A PARAM of the type and rank of an array, with a slot; `dims`: its sizes as nodes of `g`. */
static inline const node *param_like(ir *g, const node *array, const node *const dims[],
                                     size_t slot) {
  int64_t ints[] = {(int64_t)slot};
  return ir_node(g, OP_PARAM, (dtype)array->dtype, dims, array->rank, ints, 1);
}

#endif
