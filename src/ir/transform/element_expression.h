/* Derives the scalar expression that computes one element of a tensor value, by which kernels
   inline elementwise ops; movements (reshape, permute, slice, …) become index arithmetic. */
#ifndef TENON_IR_TRANSFORM_ELEMENT_EXPRESSION_H
#define TENON_IR_TRANSFORM_ELEMENT_EXPRESSION_H

#include "base/map.h"
#include "ir/core/ir.h"

/** The element of `tensor` at `coords`, as an expression over INDEXes of PARAMs and of the keys of
    `known`, which are read as their values there. `tensor` itself is expanded even if it is a
    key. */
const node *element_expression(ir *g, const map *known, const node *tensor, size_t rank,
                               const node *const coords[]);

/** Writes the coordinates in x of element `coords` of `view`, a chain of movements of x. */
void element_source_coordinates(ir *g, const node *view, const node *x, const node *const coords[],
                                const node *into[]);

/** A user's index (i64) as a coordinate: −1 where it is outside of an axis of a size. */
const node *element_coordinate(ir *g, const node *index, const node *dim);

/** True for a tensor that is computed from no other one: a constant, an iota. */
bool element_is_of_leaf(const node *x);

/** True for a TO of a constant or an iota: its elements are computed where they are needed, and an
    array of its operand is not read. */
bool element_is_computed_anew(const node *n);

#endif
