/* Lines of the store of tuned schedules that later ones supersede. */
#ifndef TENON_COMPILE_TUNED_COMPACTION_H
#define TENON_COMPILE_TUNED_COMPACTION_H

#include "compile/tuned_store.h"

/** A line in a list of all of a store, in order. */
typedef struct tuned_line {
  const char *key;               /* NULL: no valid line; it stays */
  const char *decisions, *other; /* `other`: of the schedule that it was compared with */
  tuned_verdict verdict;
  bool is_foreign;
  bool is_superseded; /* the result */
} tuned_line;

/** Finds the lines without which the others mean the same: to lookups (tuned_kept.h), and to a
   tuning by this build, which measures no schedule again, and begins with the last that was faster
   unless a later line tells what became of it. Of other builds, only what they kept counts. In the
   arena. */
void tuned_lines_find_superseded(arena *a, tuned_line lines[], size_t n);

#endif
