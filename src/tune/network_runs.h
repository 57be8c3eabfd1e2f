/* Runs of a whole plan for the tuner: an execution of a variant of its own with a binding's inputs,
   timed as a whole or by kernel. */
#ifndef TENON_TUNE_NETWORK_RUNS_H
#define TENON_TUNE_NETWORK_RUNS_H

#include "tensor/plan/binding.h"

typedef struct network {
  plan_variant *variant; /* owned */
  execution *execution;
} network;

/** Opens an execution of a variant, which it takes over, also on failure, with the inputs of a
    binding's last run. */
tn_status network_open(network *n, tn_binding *b, plan_variant *v);
void network_close(network *n); /* one of zeros is allowed */

/** Runs once; *ns is the time. */
tn_status network_run(network *n, int64_t *ns, diag *d);

/** The bytes of all memory that a run uses. */
tn_status network_bytes(network *n, uint64_t *bytes, diag *d);

/** The part of a kernel in runs of a network. */
typedef struct kernel_share {
  int64_t ns;  /* of all its steps together; 0: no step runs it */
  size_t step; /* the one that takes longest */
  int64_t step_ns;
  uint64_t calls; /* of the kernel in a run */
} kernel_share;

/** Runs several times, and finds the shares of all kernels in the shortest times of their steps. */
tn_status network_profile(network *n, int runs, kernel_share shares[], diag *d);

/** Times of two networks that ran alternately. */
typedef struct network_times {
  double before_ns, after_ns; /* medians of a run */
  bool is_faster; /* `after`, in 8 of 10 rounds and at the median: by chance, one in 18 that are
                     equally fast is */
} network_times;
tn_status network_compare(network *before, network *after, network_times *t, diag *d);

/** True if the outputs of the last runs agree. */
tn_status network_agree(network *a, network *b, bool *agree, diag *d);

#endif
