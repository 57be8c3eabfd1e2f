/* Host steps on strings, whose arrays hold their numbers (string_table.h). A number that no string
   has fails the step with TN_ERR_ARGUMENT. */
#ifndef TENON_FORMATS_HOST_STRING_STEPS_H
#define TENON_FORMATS_HOST_STRING_STEPS_H

#include "formats/host/host_steps.h"

#include <stdbool.h>

/** Each string of the first input, followed by that of the second. */
tn_status string_concat(const void *none, string_table *t, const host_arrays *a, tn_failure *f);

/** How strings are split: at each delimiter, or, without one, at stretches of white space, which
    delimit nothing at the ends. */
typedef struct split_options {
  const char *delimiter;
  size_t n;     /* bytes; 0: none */
  int64_t most; /* splits of a string; -1: any number */
} split_options;

/** The number of parts of each string. */
tn_status string_count_parts(const void *split_options, string_table *t, const host_arrays *a,
                             tn_failure *f);
/** The parts of each string, as many as the result has for each, the last ones empty. */
tn_status string_split(const void *split_options, string_table *t, const host_arrays *a,
                       tn_failure *f);

typedef enum case_change { CASE_KEEP, CASE_LOWER, CASE_UPPER } case_change;

/** How strings are normalised: stop words are left out, then the case is changed. */
typedef struct normal_options {
  case_change change;
  bool is_case_sensitive; /* else stop words are compared in lower case */
  const int64_t *stops;   /* numbers of stop words, in lower case where that is compared */
  size_t n_stops;
  void *locale; /* of string_locale_open */
} normal_options;

/** How many strings stay; 1 if none does, for an empty one. */
tn_status string_count_kept(const void *normal_options, string_table *t, const host_arrays *a,
                            tn_failure *f);
tn_status string_normalise(const void *normal_options, string_table *t, const host_arrays *a,
                           tn_failure *f);

/** The rules of case of a locale, "en_US", or of no language in particular where it is not
    installed; NULL: those of ASCII. To be closed. */
void *string_locale_open(const char *name);
void string_locale_close(void *locale);

/** The number of a string in another case, code point by code point; -1 without memory. */
int64_t string_change_case(string_table *t, int64_t number, case_change change, void *locale);

#endif
