/* The sizes of a model's inputs: numbers, and variables where they are left open. A caller may know
   more of these: that they are equal, their bounds. */
#ifndef TENON_FORMATS_ONNX_SIZES_H
#define TENON_FORMATS_ONNX_SIZES_H

#include "formats/onnx/import.h"

/** Reads the sizes of all inputs, and what `m->said` says of them. Raises TN_ERR_ARGUMENT for what
    names no size, or contradicts the file or another. */
void sizes_read(import *m);

/** A size of an input: a number or a variable; one without a name is called after its input and
    axis ("x:0"). */
const node *sizes_axis(import *m, const onnx_value *v, size_t axis);

#endif
