/* What is known of a node from its specification: shape, bounds, free ranges. */
#ifndef TENON_IR_INFER_H
#define TENON_IR_INFER_H

#include "ir/interval.h"
#include "ir/ir.h"

/** Where a node's dimensions come from: an array that exists already, or (PERMUTE, REDUCE) one to
    be written into room for `rank` pointers in the node. */
typedef struct shape_rule {
  size_t rank;
  bool own;            /* dimensions are written by infer_own_dims */
  size_t first_source; /* if !own: they are sources from here on, or */
  const node *like;    /* those of this node */
} shape_rule;

shape_rule infer_shape(const node_spec *s);
void infer_own_dims(const node_spec *s, const node **dims);

/** Bounds of an index or integer node. */
interval infer_bounds(const node_spec *s);

/** Bounds of offset + Σ factorᵢ·atomᵢ. */
interval infer_affine(int64_t offset, size_t n, const node *const atoms[], const int64_t factors[]);

/** Whether the exact result of an integer node's op always fits its type. */
bool infer_never_wraps(const node *n);

#endif
