/* Unrolls the ops of a tensor graph of which an element depends on many of another tensor, so that
   shape arithmetic may look at single elements: reductions, running results and updates become
   elementwise ops on slices of one element along an axis. */
#ifndef TENON_FORMATS_ONNX_IMPORTER_UNROLL_OPS_H
#define TENON_FORMATS_ONNX_IMPORTER_UNROLL_OPS_H

#include "tensor/ops/expressions.h"

/** The result of a REDUCE, SCAN or SCATTER `n` as elementwise ops on the copies `src` of its
    sources; NULL if it is large, or of open size. Builds in b->ir. */
const node *unroll_op(builder *b, const node *n, const node *const src[]);

#endif
