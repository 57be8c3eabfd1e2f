/* Jobs in the background: one at a time, on a thread of the context, of the lowest priority, which
   starts with the first job. */
#ifndef TENON_TENSOR_PLAN_BACKGROUND_JOBS_H
#define TENON_TENSOR_PLAN_BACKGROUND_JOBS_H

#include "tensor/context/context.h"

typedef struct background_job background_job;
struct background_job {
  /** Does all that there is to do, and returns early once the flag is set. */
  void (*run)(background_job *job, const atomic_bool *is_cancelled);
  /* Of the list, under its lock; zero at first: */
  background_job *next;
  bool is_waiting;
};

/** Has a job run, once more if it is running. Without memory or a thread nothing happens. Any
    thread. */
void background_jobs_add(tn_context *c, background_job *job);

/** Forgets a job, and returns when it does not run any more. */
void background_jobs_cancel(tn_context *c, background_job *job);

/** Ends the thread, when no job is left. */
void background_jobs_close(tn_context *c);

#endif
