/* Builds tensor ops: movement, reduction, gather and creation. A builder makes the node as given
   and rewrites nothing; more dimensions than IR_MAX_RANK raise TN_ERR_SHAPE. */
#ifndef TENON_IR_INDEX_BUILD_TENSOR_H
#define TENON_IR_INDEX_BUILD_TENSOR_H

#include "ir/core/ir.h"

/* Sizes, starts and lows are index nodes, one for each axis. */
const node *ir_reshape(ir *g, const node *x, size_t rank, const node *const dims[]);
const node *ir_expand(ir *g, const node *x, const node *const dims[]); /* to x->rank sizes */
const node *ir_permute(ir *g, const node *x, const int64_t axes[]);
const node *ir_slice(ir *g, const node *x, const node *const starts[], const node *const sizes[],
                     const int64_t steps[]);
const node *ir_pad(ir *g, const node *x, const node *value, const node *const lows[],
                   const node *const sizes[]);
const node *ir_reduce(ir *g, const node *x, op o, size_t n_axes, const int64_t axes[]);
const node *ir_gather(ir *g, const node *x, const node *const indices[]); /* one for each axis */
const node *ir_iota(ir *g, dtype t, size_t rank, const node *const dims[], int64_t axis);
/** A tensor with `scalar` in every element. */
const node *ir_fill(ir *g, const node *scalar, size_t rank, const node *const dims[]);
/** The number of elements of x, an index expression. */
const node *ir_element_count(ir *g, const node *x);

/** SCATTER: writes values at indices (i64, of their shape, one for each axis of x; outside: none),
    combined with what is there by an op, or, for o < 0, the last one in row-major order. */
const node *ir_scatter(ir *g, const node *x, const node *values, const node *const index[],
                       int64_t o);
/** SCATTER of values of which no two are written to one element: they may be in any order. */
const node *ir_scatter_distinct(ir *g, const node *x, const node *values, const node *const index[],
                                int64_t o);

/** SCAN: op(result before it, element) along an axis, in order. */
const node *ir_scan(ir *g, op o, const node *x, size_t axis);

/** SCAN by classes (i64, of x's shape): op(result of the last element before of the same class,
    element); of a class other than 0 … n − 1, as of the first element of one. */
const node *ir_scan_classes(ir *g, op o, const node *x, size_t axis, const node *classes,
                            int64_t n);

/** ITEM: a size, the element of x at some coordinates; from `min` to `most`, as is checked when it
   is read. */
const node *ir_item(ir *g, const node *x, const node *const at[], int64_t min, const node *most);

/** PICK: a where c, an index from 0 to 1, is 1, else b, of the same type and rank. */
const node *ir_pick(ir *g, const node *c, const node *a, const node *b);

/** The element of an ITEM, an i64 of rank 0; 0 outside of the tensor. */
const node *ir_item_element(ir *g, const node *item);

#endif
