/* Host step of regular expressions, which tells of strings whether they match a pattern. */
#ifndef TENON_FORMATS_HOST_REGEX_STEP_H
#define TENON_FORMATS_HOST_REGEX_STEP_H

#include "formats/host/host_steps.h"

/** True (a bool) for each string that matches the pattern, a `regex`. */
tn_status regex_match_all(const void *pattern, string_table *t, const host_arrays *a,
                          tn_failure *f);

/** Closes the pattern. */
void regex_step_close(const void *pattern);

#endif
