/* Host step of regular expressions, by PCRE2, which is opened at run time. */
#ifndef TENON_FORMATS_HOST_REGEX_STEP_H
#define TENON_FORMATS_HOST_REGEX_STEP_H

#include "formats/host/host_steps.h"

/** A pattern that all of a string has to match. TN_ERR_UNSUPPORTED where PCRE2 is missing,
    TN_ERR_FORMAT for a pattern that is none. To be closed. */
tn_status regex_open(const char *pattern, size_t n, void **out, diag *d);
void regex_close(const void *pattern);

/** True (a bool) for each string that matches the pattern. */
tn_status regex_match_all(const void *pattern, string_table *t, const host_arrays *a,
                          tn_failure *f);

#endif
