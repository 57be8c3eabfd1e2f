/* Models whose graph is late (late_graph.h). */
#ifndef TENON_FORMATS_MODEL_LATE_MODEL_H
#define TENON_FORMATS_MODEL_LATE_MODEL_H

#include "formats/model/model.h"

/** Keeps the caller's constraints of sizes, which later imports apply, and describes the outputs as
    the file declares them. */
tn_status late_model_open(tn_model *m, const tn_model_size *sizes, size_t n, diag *d);

#endif
