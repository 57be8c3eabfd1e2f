/* Steps that the host does: CUSTOM nodes. */
#ifndef TENON_RUNTIME_HOST_STEP_H
#define TENON_RUNTIME_HOST_STEP_H

#include "runtime/inside.h"

/** What a step's call gets, made anew in every run from the spans. */
typedef struct host_step {
  const executable *p;
  const executable_step *step;
  const executable_host *host;
  const tn_span *spans; /* where each of the executable's buffers is */
  void **data;
  uint64_t *bytes;
  bool is_done; /* in the last run */
} host_step;

/** A step over `spans`, which stay where they are, as `host` does. Its lists are in the arena. */
host_step host_step_open(arena *a, const executable *p, const executable_step *step,
                         const executable_host *host, const tn_span *spans);

/** Runs it: a commands_call with a host_step. */
tn_status host_step_call(void *step, tn_failure *failure);

#endif
