/* Parts of a model: the graph of a parsed file between values that a caller names. */
#ifndef TENON_FORMATS_MODEL_MODEL_PART_H
#define TENON_FORMATS_MODEL_MODEL_PART_H

#include "formats/onnx/file/onnx_file.h"

#include <tenon/model.h>

/** Makes the named values the outputs of the file's graph, and those of `inputs` inputs of it, and
    drops the nodes that these outputs do not need. Without values in the descriptor nothing
   changes. TN_ERR_ARGUMENT for a name that the graph does not have, or has as a constant. */
tn_status onnx_take_part(onnx_model *m, const tn_model_desc *desc, arena *a, diag *d);

#endif
