/* Runs the host steps of a plan: calls the host function of a CUSTOM node with host pointers to its
   buffers. Buffers that the host cannot address are copied before and after the call. */
#ifndef TENON_RUNTIME_CUSTOM_CALL_H
#define TENON_RUNTIME_CUSTOM_CALL_H

#include "runtime/executable.h"

/** One STEP_CUSTOM of an execution; `data` and `bytes` are filled anew in each run. */
typedef struct custom_call {
  const executable *p;
  const executable_step *step;
  const executable_host *host;
  const tn_span *spans; /* memory of each of the executable's buffers */
  void **data;          /* host pointers: inputs, then the result; NULL: taken as a span */
  tn_span *own;         /* spans of these */
  uint64_t *bytes;
  bool *is_copied; /* buffers that the host does not see, and of which the call gets copies */
  bool is_done;    /* succeeded in the last run */
} custom_call;

/** A call for a step over `spans`, which stay where they are; its lists are in the arena. */
custom_call custom_call_open(arena *a, const executable *p, const executable_step *step,
                             const executable_host *host, const tn_span *spans);

/** Runs a custom_call: a callback for command_list_call. */
tn_status custom_call_run(void *call, tn_failure *failure);

#endif
