/* Sizes of a model's inputs: constants, or variables for dynamic dimensions, which the caller may
   fix, bound or equate. */
#ifndef TENON_FORMATS_ONNX_IMPORTER_INPUT_SIZES_H
#define TENON_FORMATS_ONNX_IMPORTER_INPUT_SIZES_H

#include "formats/onnx/importer/importer.h"

/** True if dimensions of the inputs have a name in common. */
bool input_sizes_share_names(import *m);

/** Reads the sizes of all inputs and applies the caller's constraints. Raises TN_ERR_ARGUMENT for a
    constraint that names no size, or contradicts the file or another constraint. */
void input_sizes_read(import *m);

/** The size of an input's axis: a constant or a variable. An unnamed dimension is named after its
    input and axis ("x:0"). */
const node *input_sizes_axis(import *m, const onnx_value *v, size_t axis);

/** Raises the minimum of a varying size for the next import of the graph. False, with no effect, if
    the caller gave one, if no value remains, or after many calls. */
bool input_sizes_raise_minimum(import *m, const node *var, int64_t least);

/** Lowers the maximum likewise. */
bool input_sizes_lower_maximum(import *m, const node *var, int64_t most);

/** Forgets the bounds that operators need. */
void input_sizes_forget_bounds(import *m);

#endif
