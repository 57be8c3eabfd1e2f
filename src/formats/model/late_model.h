/* Models whose graph depends on elements of inputs, or fits no open sizes: their plan is late
   (tensor/plan/plan_values.h), and each run's values or sizes import the file again. */
#ifndef TENON_FORMATS_MODEL_LATE_MODEL_H
#define TENON_FORMATS_MODEL_LATE_MODEL_H

#include "formats/model/model.h"

/** Keeps the caller's constraints of sizes, which later imports apply, and describes the outputs as
    the file declares them. */
tn_status late_model_open(tn_model *m, const tn_model_size *sizes, size_t n, diag *d);

/** Makes the late plan of a model, which does not need the model. */
tn_status late_model_make_plan(tn_model *m, diag *d, tn_plan **out);

#endif
