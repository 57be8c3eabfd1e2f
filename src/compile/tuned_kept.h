/* Lines of a store of tuned schedules that were kept, by kernel: the newest schedule and the newest
   library, side by side. A schedule ends the use of a library only where it was measured against
   one, so a tuning without libraries leaves a library's line as it is, and a library leaves the
   schedule for runs that may not call it. */
#ifndef TENON_COMPILE_TUNED_KEPT_H
#define TENON_COMPILE_TUNED_KEPT_H

#include "base/arena.h"

typedef struct tuned_kept {
  const char *schedule; /* decisions; "-": the search's; NULL: no line */
  const char *library;  /* decisions that stand for a library; NULL: none is called */
} tuned_kept;

/** Decisions that stand for a call of a library, in an arena; and the name of the library that
    decisions stand for a call of, NULL for those of a schedule. */
const char *tuned_library_decisions(arena *a, const char *library);
const char *tuned_library_of(const char *decisions);

/** True if decisions that are kept end the use of a library: those of a schedule that was measured
    against one, whose decisions `other` are. */
bool tuned_ends_library(const char *decisions, const char *other);

/** Takes a line that was kept, of decisions measured against `other`; `decisions` is not copied. */
void tuned_kept_add(tuned_kept *k, const char *decisions, const char *other);

/** The decisions for a kernel; NULL: none. */
const char *tuned_kept_find(const tuned_kept *k, bool may_call);

#endif
