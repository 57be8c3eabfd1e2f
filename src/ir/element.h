/* One element of a tensor value. */
#ifndef TENON_IR_ELEMENT_H
#define TENON_IR_ELEMENT_H

#include "base/map.h"
#include "ir/ir.h"

/** The element of a tensor value at given coordinates, as an expression over elements
    INDEX(tensor, coordinates) of PARAMs and of values. `known` gives the tensor that a value is
    read as; `tensor` itself is entered even if it is one. */
const node *element_of(ir *g, const map *known, const node *tensor, size_t rank,
                       const node *const coords[]);

/** The coordinates in x of element `coords` of a chain of movements that ends at x. */
void element_through(ir *g, const node *view, const node *x, const node *const coords[],
                     const node *into[]);

#endif
