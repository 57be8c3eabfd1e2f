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

/* The functions below raise through the diag, or that of the arena. */

/** Runs once, and returns the time. */
int64_t network_run(network *n, diag *d);

/** The bytes of all memory that a run uses. */
uint64_t network_bytes(network *n, diag *d);

/** The part of a kernel in runs of a network. */
typedef struct kernel_share {
  int64_t ns;  /* of all its steps together; 0: no step runs it */
  size_t step; /* the one that takes longest */
  int64_t step_ns;
  uint64_t calls; /* of the kernel in a run */
} kernel_share;

/** Runs several times, and finds the shares of all kernels, in the arena, in the shortest times of
    their steps. */
kernel_share *network_profile(network *n, int runs, arena *a);

/** Times of two networks that ran alternately. */
typedef struct network_times {
  double before_ns, after_ns; /* medians of the rounds' shortest runs */
  bool is_faster; /* `after`, in 8 of 10 rounds and at the median: by chance, one in 18 that are
                     equally fast is */
} network_times;
network_times network_compare(network *before, network *after, diag *d);

/** True if the outputs of the last runs agree. */
bool network_agree(network *a, network *b, arena *scratch);

#endif
