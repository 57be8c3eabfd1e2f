/* Elements of tensors that are known before the model runs. */
#ifndef TENON_FORMATS_ONNX_ELEMENTS_H
#define TENON_FORMATS_ONNX_ELEMENTS_H

#include "formats/onnx/import.h"

/** The elements of an integer tensor of rank 0 or 1 as index nodes of the import's ir, in the
    import's arena; NULL where they depend on data, or there are too many to be a shape. */
const node *const *elements_of(import *m, value v, size_t *n);

/** Those of a tensor of any type as constants of it; NULL where some are none. */
const node *const *elements_constant(import *m, value v, size_t *n);

#endif
