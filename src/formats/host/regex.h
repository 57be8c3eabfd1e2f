/* Regular expressions by PCRE2, which is opened at run time: a pattern is compiled once, and any
   threads search with it. */
#ifndef TENON_FORMATS_HOST_REGEX_H
#define TENON_FORMATS_HOST_REGEX_H

#include "base/diag.h"
#include "base/mem.h"

#include <stdbool.h>

/** A compiled pattern. */
typedef struct regex regex;

/** Compiles a pattern of n bytes; `is_whole`: it has to match all of a text. TN_ERR_UNSUPPORTED
    where PCRE2 is missing, TN_ERR_FORMAT for a pattern that is none. To be closed; `m` outlives
    it. */
tn_status regex_open(const mem *m, const char *pattern, size_t n, bool is_whole, regex **out,
                     diag *d);
void regex_close(regex *r); /* NULL is allowed */

/** The memory of one thread's searches, for any pattern opened before; NULL without memory. */
void *regex_scratch_open(const regex *r);
void regex_scratch_close(const regex *r, void *scratch);

/** A text that is searched, and the bytes of the last match. */
typedef struct regex_text {
  const char *at;
  size_t n;
  size_t start, end;
  bool is_checked; /* its bytes are UTF-8 */
} regex_text;

/** Finds the first match from byte `from` on: 1, 0 if there is none, or a negative error of PCRE2.
 */
int regex_find(const regex *r, void *scratch, regex_text *t, size_t from);

/** Fails for an error of regex_find in string `i`. */
tn_status regex_fail(const regex *r, int error, size_t i, tn_failure *f);

#endif
