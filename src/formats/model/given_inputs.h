/* Inputs of a parsed file that the caller of a load settles: values of inputs, and how many tensors
   those have that are no tensors. */
#ifndef TENON_FORMATS_MODEL_GIVEN_INPUTS_H
#define TENON_FORMATS_MODEL_GIVEN_INPUTS_H

#include "formats/onnx/file/onnx_file.h"

#include <tenon/model.h>

/** Makes inputs with a value initializers, and inputs that are sequences or optional values the
    tensors that the descriptor says, from which nodes make the sequence. Values are copied to `a`.
    TN_ERR_ARGUMENT for what is no such input; TN_ERR_DTYPE for a value of another type. */
tn_status given_inputs_settle(onnx_model *m, const tn_model_desc *desc, arena *a, diag *d);

#endif
