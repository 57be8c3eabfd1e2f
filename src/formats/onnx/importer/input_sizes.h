/* Sizes of a model's inputs: numbers, or variables for sizes that the file leaves open. The caller
   may fix, bound or equate them. */
#ifndef TENON_FORMATS_ONNX_IMPORTER_INPUT_SIZES_H
#define TENON_FORMATS_ONNX_IMPORTER_INPUT_SIZES_H

#include "formats/onnx/importer/importer.h"

/** Reads the sizes of all inputs, and what `m->said` says of them. Raises TN_ERR_ARGUMENT for what
    names no size, or contradicts the file or another. */
void input_sizes_read(import *m);

/** A size of an input: a number or a variable; one without a name is called after its input and
    axis ("x:0"). */
const node *input_sizes_axis(import *m, const onnx_value *v, size_t axis);

#endif
