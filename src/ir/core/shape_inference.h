/* Infers the shape and the value bounds of a node from its specification, before the node
   exists. */
#ifndef TENON_IR_CORE_SHAPE_INFERENCE_H
#define TENON_IR_CORE_SHAPE_INFERENCE_H

#include "ir/core/interval.h"

/** Source of a node's dimensions: sources of the node, the dimensions of another node, or, for
    PERMUTE and REDUCE, an array of `rank` pointers inside the node. */
typedef struct inferred_shape {
  size_t rank;
  bool own;            /* infer_computed_dims writes them into the node */
  const node *like;    /* otherwise: the node whose dimensions they are; NULL: */
  size_t first_source; /* they are the sources from this one on */
} inferred_shape;

inferred_shape infer_shape(const node_spec *s);

/** Writes the dimensions of a PERMUTE or REDUCE. */
void infer_computed_dims(const node_spec *s, const node **dims);

/** Bounds of an index or integer node; those of the type where the result may wrap. */
interval infer_bounds(const node_spec *s);

/** Bounds of offset + Σ factorᵢ·atomᵢ. */
interval infer_affine_bounds(int64_t offset, size_t n, const node *const atoms[],
                             const int64_t factors[]);

/** True if the exact result of an integer op always fits the type of the node. */
bool infer_never_wraps(const node *n);

#endif
