/* Implements what lines that were kept mean for a kernel: one rule for lookups and for compaction,
   which must not drop a line that the rule needs. */
#include "compile/tuned_kept.h"

#include <string.h>

static const char library_prefix[] = "library:";

const char *tuned_library_decisions(arena *a, const char *library) {
  return arena_printf(a, "%s%s", library_prefix, library);
}

const char *tuned_library_of(const char *decisions) {
  size_t n = sizeof library_prefix - 1;
  return decisions && !strncmp(decisions, library_prefix, n) && decisions[n] ? decisions + n : NULL;
}

bool tuned_ends_library(const char *decisions, const char *other) {
  return !tuned_library_of(decisions) && tuned_library_of(other);
}

void tuned_kept_add(tuned_kept *k, const char *decisions, const char *other) {
  if (tuned_library_of(decisions))
    k->library = decisions;
  else
    k->schedule = decisions;
  if (tuned_ends_library(decisions, other)) k->library = NULL;
}

const char *tuned_kept_find(const tuned_kept *k, bool may_call) {
  return may_call && k->library ? k->library : k->schedule;
}
