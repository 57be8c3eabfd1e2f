/* Recognises kernels that are a product of two stored matrices and nothing else, so that a library
   may compute them. */
#ifndef TENON_COMPILE_MATCH_PRODUCT_H
#define TENON_COMPILE_MATCH_PRODUCT_H

#include "ir/core/node.h"

#include <tenon/unstable/backend.h>

/** Writes the product that a SINK (stage K) is, of f32 or f64 elements and fixed sizes, with or
    without a batch, each matrix with contiguous rows or columns; false if it is anything else, or
    if the math mode fixes how its sums are rounded. */
bool match_product(const node *sink, int math, tn_product *p);

#endif
