/* The profile of an execution's last run: the sizes it had, the operations and bytes of each step,
   and when each step began and ended if profiling was on. Counts are evaluated only on request. */
#ifndef TENON_RUNTIME_RUN_PROFILE_H
#define TENON_RUNTIME_RUN_PROFILE_H

#include "runtime/executable.h"

/** A step as a report shows it. */
typedef struct execution_step {
  const char *name; /* lives as long as the executable */
  size_t kernel; /* index among the distinct kernels; SIZE_MAX: a copy, a host function or a loop */
  kernel_counts work; /* of all its trips in the last run; 0 if unknown */
  size_t n_steps;     /* of a loop: steps of its body; else 0 */
  uint64_t times; /* runs in the last run: one a trip inside a loop, 0 where its guard skipped it;
                     1 before any run */
  int64_t begin, end; /* ns since the last run's first step began, if profiled; else 0. Steps of a
                         loop appear as if each ran all its trips before the next one began */
  const char *device;
  const char *library; /* that its kernel is a call of; NULL: none */
} execution_step;

/** Times of each step, in ns of clock_now_ns, to which `shift` brings those of a stream's clock. */
typedef struct step_times {
  int64_t *stamps; /* begin and end of the last trip, by the queue's clock; NULL: never profiled */
  int64_t *seen;   /* when the host found that they were past */
  int64_t *shift;  /* of each queue: the least difference of the two in the run */
  int64_t *first;  /* begin of the first trip; until the run ends, by the queue's clock */
  int64_t *busy;   /* sum over all trips */
  int64_t *count;  /* trips */
} step_times;

/** Sizes of the last run, evaluated on request. */
typedef struct profile_sizes {
  bool is_evaluated;
  int64_t *elements, *count_sizes; /* the executable's `sizes` and `count_sizes` */
  launch_terms terms, count_terms; /* of these */
} profile_sizes;

typedef struct run_profile {
  const executable *p;
  bool is_profiled; /* runs take timestamps */
  bool has_times;   /* `times` are those of the last run */
  bool has_run;
  int64_t *vars; /* values of the variables in the last run */
  step_times times;
  profile_sizes sizes;
  const int64_t *trips_run; /* of each loop that a state ends, in its last run */
} run_profile;

/** A profile of no run, in an arena. Raises when memory is short, like run_profile_open_timestamps.
 */
run_profile run_profile_open(arena *a, const executable *p);

/** Allocates `times`, at the first call. */
void run_profile_open_timestamps(run_profile *r, arena *a);

/** A run begins. */
void run_profile_begin(run_profile *r);

/** The run ends with these values of the variables, those that it computed included; `succeeded`
    makes its times valid. */
void run_profile_end(run_profile *r, const int64_t vars[], bool succeeded);

/** Adds one trip of a step from its time stamps, and one of a loop by the host's clock. */
void run_profile_add_step(run_profile *r, size_t step);
void run_profile_add_loop(run_profile *r, size_t step, int64_t begin, int64_t end);

/** How far the clock of a step's queue is behind the host's, as far as the run has told. */
int64_t run_profile_shift(const run_profile *r, size_t step);

/** The i-th step, which must exist. */
execution_step run_profile_step(run_profile *r, size_t i);

#endif
