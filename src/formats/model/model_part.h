/* Parts of a model: the graph of a parsed file between values that a caller names. */
#ifndef TENON_FORMATS_MODEL_MODEL_PART_H
#define TENON_FORMATS_MODEL_MODEL_PART_H

#include "formats/onnx/file/onnx_file.h"

#include <tenon/model.h>

/** Calls `add` for each name that a node reads, also in its nested graphs, where names of their own
    are left out. */
void onnx_node_for_names(arena *a, const onnx_node *n, void (*add)(void *user, const char *name),
                         void *user);

/** Makes the named values the outputs of the file's graph, and those of `inputs` inputs of it, and
    drops the nodes that these outputs do not need. Without values in the descriptor nothing
   changes. TN_ERR_ARGUMENT for a name that the graph does not have, or has as a constant. */
tn_status onnx_take_part(onnx_model *m, const tn_model_desc *desc, arena *a, diag *d);

#endif
