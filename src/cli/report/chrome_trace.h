/* Writes a profile as a trace file that Perfetto and chrome://tracing show (`run --trace`). */
#ifndef TENON_CLI_REPORT_CHROME_TRACE_H
#define TENON_CLI_REPORT_CHROME_TRACE_H

#include "cli/measure/step_profile.h"

/** A span that the library told of, with strings of its own. */
typedef struct chrome_trace_span {
  tn_trace_span span;
  size_t track; /* of its device and queue, from 0 */
} chrome_trace_span;

/** The steps of runs and when each began and ended. */
typedef struct chrome_trace {
  command *c;
  VEC(chrome_trace_span) spans;
  VEC(const char *) tracks; /* "CPU:0 compute" */
} chrome_trace;

/** A tracer that adds to a trace, on the command's own thread. */
tn_tracer chrome_trace_tracer(chrome_trace *t);

/** Writes all phases and runs of a profile, and the spans of a trace, to a file. Raises TN_ERR_IO
    if it cannot be written. */
void chrome_trace_write(const chrome_trace *t, const profile *p, const char *path);

#endif
