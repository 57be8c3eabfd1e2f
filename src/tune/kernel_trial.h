/* Runs the kernel of a step alone, with any of its schedules: on operands of the sizes that the
   step has, floats filled with random numbers, others with their values in a run. Calls take turns
   with several copies of all operands, which together exceed the second-level cache, or have as
   many bytes as the network if that is less: what a step reads in the network mostly comes from
   farther than its nearest caches, but not from farther than the network is large. Each call of a
   kernel that changes its operands finds them as they were. */
#ifndef TENON_TUNE_KERNEL_TRIAL_H
#define TENON_TUNE_KERNEL_TRIAL_H

#include "runtime/execution.h"

typedef struct kernel_trial kernel_trial;

/** Opens the kernel of a step that the execution has run. `most`: bytes of all copies of the
    operands, if they exceed those of one. */
tn_status kernel_trial_open(kernel_trial **out, execution *e, size_t step, uint64_t most, diag *d);
void kernel_trial_close(kernel_trial *k); /* NULL is allowed */

/** A program of the kernel, and calls of it. */
typedef struct trial_program {
  tn_program *program;       /* borrowed */
  const tn_launch *launches; /* by copy of the operands; kernel_trial_prepare's */
} trial_program;

/* The functions below raise through the diag that the trial was opened with. */

/** Prepares calls of programs, each of which takes no other buffers and values than the step's
   does. Those that were prepared before must be prepared again. */
void kernel_trial_prepare(kernel_trial *k, trial_program programs[], size_t n);

/** True if the results of a call are those of the first program that this was asked about. */
bool kernel_trial_agrees(kernel_trial *k, const trial_program *p);

/** The time of `n` calls, in ns; results were compared before. */
double kernel_trial_time(kernel_trial *k, const trial_program *p, int64_t n);

/** The memory of the i-th operand in a copy, of which the last is not changed; false past the
    last. */
bool kernel_trial_operand(const kernel_trial *k, size_t copy, size_t i, tn_span *span);

#endif
