/* Shape arithmetic: elements of shape tensors, known before the model runs, as index expressions or
   constants. */
#ifndef TENON_FORMATS_ONNX_IMPORTER_SHAPE_TENSORS_H
#define TENON_FORMATS_ONNX_IMPORTER_SHAPE_TENSORS_H

#include "formats/onnx/importer/importer.h"

/** The elements of an integer tensor of rank 0 or 1 as index nodes of the import's ir, in its
   arena; NULL if they depend on data, or are more than a shape has. */
const node *const *shape_tensor_elements(import *m, value v, size_t *n);

/** As shape_tensor_elements, but elements that depend on data become ITEMs, sizes that a run
   computes, from `min` to `most`; so do, if `may_vary`, those that depend on inputs whose values
   vary. NULL also if a run can give the value to another import, or a loop computes it. */
const node *const *computed_tensor_elements(import *m, value v, int64_t min, const node *most,
                                            bool may_vary, size_t *n);

/** The elements of a tensor of rank 0 or 1 as constants of its type; NULL if some are not constant.
 */
const node *const *constant_tensor_elements(import *m, value v, size_t *n);

#endif
