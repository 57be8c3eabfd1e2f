/* What is known of a node from its specification: shape, bounds, free ranges. */
#ifndef TENON_IR_INFER_H
#define TENON_IR_INFER_H

#include "ir/ir.h"

/** Where a node's dimensions come from: an array that exists already, or (PERMUTE, REDUCE) one to
    be written into room for `rank` pointers in the node. */
typedef struct shape_rule {
  uint16_t rank;
  bool own;            /* dimensions are written by infer_own_dims */
  size_t first_source; /* if !own: they are sources from here on, or */
  const node *like;    /* those of this node */
} shape_rule;

shape_rule infer_shape(const node_spec *s);
void infer_own_dims(const node_spec *s, const node **dims);

/** Bounds of an index or integer node. */
void infer_bounds(const node_spec *s, int64_t *lo, int64_t *hi);

/** Arithmetic on bounds: saturates at BOUND_LOW and BOUND_HIGH, which absorb. */
int64_t bound_add(int64_t a, int64_t b);
int64_t bound_mul(int64_t a, int64_t b);

/** Division rounding towards −∞; the divisor is not 0. */
int64_t floor_div(int64_t a, int64_t b);
int64_t floor_mod(int64_t a, int64_t b);

#endif
