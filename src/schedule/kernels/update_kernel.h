/* Builds the kernels of values that a FOLD computes (value_updates): writes at indices, and scans.
   The FOLD runs inside of the coordinates along which elements are apart, and binds the others in
   row-major order. Its state or its emitted array lies in the output (codegen/lower). */
#ifndef TENON_SCHEDULE_KERNELS_UPDATE_KERNEL_H
#define TENON_SCHEDULE_KERNELS_UPDATE_KERNEL_H

#include "schedule/values/value.h"

typedef struct update_kernel {
  ir *g;
  arena *a;
  const value *v;
  const node *body;          /* over loads and the ranges of the nest */
  const node *const *index;  /* of each coordinate of the value: a RANGE of the nest, or 0 */
  const node *param;         /* the output */
  const node *const *ranges; /* of the nest, from outer to inner */
  size_t n_ranges;
} update_kernel;

/** The SINK. */
const node *update_kernel_make(const update_kernel *k);

#endif
