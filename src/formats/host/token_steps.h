/* Host steps that take strings apart into tokens, by regular expressions. */
#ifndef TENON_FORMATS_HOST_TOKEN_STEPS_H
#define TENON_FORMATS_HOST_TOKEN_STEPS_H

#include "formats/host/host_steps.h"
#include "formats/host/regex.h"

#include <stdbool.h>

/** How strings are taken apart: `patterns` are what tokens match, or what is between them; the
    second pattern takes apart what the first one left, and so on. A match of no bytes takes the
   code point behind it. Tokens of fewer code points than `least` are left out. */
typedef struct token_options {
  regex **patterns;
  size_t n;        /* of patterns; at least 1 */
  bool are_tokens; /* the pattern, one, is what tokens match */
  int64_t least;   /* code points */
  bool has_marks;  /* the numbers of `begin` and `end` are put around the tokens of a string */
  int64_t begin, end;
  int64_t padding; /* its number follows, where other strings have more */
} token_options;

/** The greatest number of tokens and marks of a string; 0 if none has a token. */
tn_status token_count_most(const void *token_options, string_table *t, const host_arrays *a,
                           tn_failure *f);
/** The tokens of each string, as many as the result has for each. */
tn_status token_split(const void *token_options, string_table *t, const host_arrays *a,
                      tn_failure *f);

/** Closes the patterns. */
void token_close(const void *token_options);

#endif
