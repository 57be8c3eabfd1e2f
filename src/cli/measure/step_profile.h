/* Profiles the runs of a binding: times and rates of each step, as a table and as JSON. */
#ifndef TENON_CLI_MEASURE_STEP_PROFILE_H
#define TENON_CLI_MEASURE_STEP_PROFILE_H

#include "cli/core/command.h"

#include <jansson.h>

/** An interval in nanoseconds of clock_now_ns(). */
typedef struct time_interval {
  int64_t begin, end;
} time_interval;

/** A phase of the command before its runs. */
typedef struct profile_phase {
  const char *name;
  time_interval time;
} profile_phase;

typedef struct profile_run {
  time_interval time;
  const time_interval *steps; /* of each step, relative to the start of the first */
} profile_run;

typedef struct profile_step {
  tn_step facts;        /* of the last run */
  double ms;            /* in the run of median length */
  double gflops, gbps;  /* NAN: unknown */
  double share;         /* of the time of all steps; a loop's is without its body */
  double peak_fraction; /* of the nearer peak; NAN: unknown */
  bool is_memory;       /* the nearer peak is the memory bandwidth */
} profile_step;

typedef struct profile {
  command *c;
  tn_binding *binding;
  tn_context_info used; /* device and target; set by profile_summarise */
  VEC(profile_phase) phases;
  VEC(profile_run) runs;
  VEC(profile_step) steps;       /* set by profile_summarise */
  double ms, steps_ms;           /* of the run of median length, and of its steps together */
  double peak_gflops, peak_gbps; /* of this machine; NAN: unknown */
  const char *no_peak;           /* why no step is compared with them; NULL: they are */
} profile;

/** Adds a phase from `begin` until now. */
void profile_add_phase(profile *p, const char *name, int64_t begin);

/** Sets the binding and turns the timing of its steps on or off. */
void profile_start(profile *p, tn_binding *b, bool steps);

/** Runs the binding once. */
void profile_run_once(profile *p);

/** Runs the binding up to ten more times, for about a second at most. */
void profile_run_more(profile *p);

/** Measures this machine's peaks and summarises the runs. Leaves out the first run, which is
   slower, if there are more. */
void profile_summarise(profile *p);

/** The fraction of the nearer peak as text: "62 % memory"; "-" if unknown. In the arena. */
const char *profile_peak_text(arena *a, const profile_step *s);

void profile_print(const profile *p);
json_t *profile_json(const profile *p);

#endif
