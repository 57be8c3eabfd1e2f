/* Writes a profile as a trace file that Perfetto and chrome://tracing show (`run --trace`). */
#ifndef TENON_CLI_REPORT_CHROME_TRACE_H
#define TENON_CLI_REPORT_CHROME_TRACE_H

#include "cli/measure/step_profile.h"

/** Writes all phases and runs of a profile to a file. Raises TN_ERR_IO if it cannot be written. */
void chrome_trace_write(const profile *p, const char *path);

#endif
