/* Progress of compiling a variant of a plan, in several executables: what its caller sees of it,
   and the end of a compilation in the background. */
#ifndef TENON_TENSOR_PLAN_VARIANT_PROGRESS_H
#define TENON_TENSOR_PLAN_VARIANT_PROGRESS_H

#include "runtime/build_request.h"

typedef struct variant_progress {
  const tn_progress *caller;     /* its step NULL: there is none */
  const atomic_bool *background; /* set when a compilation in the background has to stop; NULL: the
                                    caller waits for it */
  size_t before;                 /* kernels of the executables before */
  bool goes_on;                  /* another executable follows */
  tn_progress step;              /* given to the build */
} variant_progress;

/** Has a build report to the caller the kernels of all executables as one count, or in the
    background to nobody; then it stops when the flag is set. `p` outlives the build. */
void variant_progress_attach(variant_progress *p, executable_request *r);

#endif
