/* The tuner of one binding: chooses the kernels whose schedules are varied, measures, and keeps
   what makes whole runs faster. */
#ifndef TENON_TUNE_TUNER_H
#define TENON_TUNE_TUNER_H

#include "tensor/plan/binding.h"

#include <tenon/tune.h>

/** Tunes an entered binding. `info` is its state all the while, also on failure. Failures are set
   in the binding's diag. */
tn_status tuner_run(tn_binding *b, const tn_tune_desc *desc, tn_tuning *info);

#endif
