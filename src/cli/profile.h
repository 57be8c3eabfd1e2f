/* Profiles: what the steps of a binding's runs do and how long they take, as a table, as JSON and
   as a trace. */
#ifndef TENON_CLI_PROFILE_H
#define TENON_CLI_PROFILE_H

#include "cli/command.h"

#include <jansson.h>

/** A stretch of time, in nanoseconds of clock_now(). */
typedef struct span_of_time {
  int64_t begin, end;
} span_of_time;

/** Something that the command did before its runs. */
typedef struct profile_phase {
  const char *name;
  span_of_time time;
} profile_phase;

typedef struct profile_run {
  span_of_time time;
  const span_of_time *steps; /* of each; since the first of them began */
} profile_run;

typedef struct profile_step {
  tn_step facts;       /* as of the last run */
  double ms;           /* the median of the runs that count */
  double gflops, gbps; /* NAN: not known */
  double share;        /* of a run's time in steps */
  double of_peak;      /* of the roof that it is nearest to; NAN: not known */
  bool is_memory;      /* which is that of memory */
} profile_step;

typedef struct profile {
  command *c;
  tn_binding *binding;
  VEC(profile_phase) phases;
  VEC(profile_run) runs;
  VEC(profile_step) steps; /* by profile_sum_up */
  double ms;               /* of a run: the median; and this much of it in steps */
  double steps_ms;
  double peak_gflops, peak_gbps; /* of this machine */
} profile;

/** Adds what was done from `begin` until now. */
void profile_add_phase(profile *p, const char *name, int64_t begin);

/** Sets what is run, and whether its steps are timed. */
void profile_begin(profile *p, tn_binding *b, bool steps);

/** Runs the binding. */
void profile_run_once(profile *p);

/** Runs it again, some times. */
void profile_run_more(profile *p);

/** Measures this machine's peaks and finds what the runs say; the first is left out where there
    are more, as it is slower. */
void profile_sum_up(profile *p);

/** "62 % memory"; "-" where it is not known. In the arena. */
const char *profile_peak_text(arena *a, const profile_step *s);

void profile_print(const profile *p);
json_t *profile_json(const profile *p);

/** Writes all phases and runs as trace events, which Perfetto and chrome://tracing show. */
void profile_write_trace(const profile *p, const char *path);

#endif
