/* Finds superseded lines: one pass from the end finds what follows each line, one from the
   beginning decides. A line FASTER makes those of the kernel's other schedules before it void, so
   it is superseded by a line that tells its end only if no line FASTER of the kernel stays before
   it. A line KEPT may name a schedule, name a library, and end a library's use: it is superseded
   when later ones do all that it does. */
#include "compile/tuned_compaction.h"

/** The lines behind a line. */
typedef struct later_lines {
  bool has_same, has_faster;      /* about the same schedule: any, and FASTER */
  bool has_schedule, has_library; /* KEPT, of the kernel: one that says which schedule it has, and
                                     one that says whether a library is called */
} later_lines;

static bool is_kept(const tuned_line *l) { return l->verdict == TUNED_KEPT; }

/** True for a line that says which schedule a kernel has. */
static bool decides_schedule(const tuned_line *l) {
  return is_kept(l) && !tuned_library_of(l->decisions);
}

/** True for a line that says whether a kernel is a call of a library. */
static bool decides_library(const tuned_line *l) {
  return is_kept(l) &&
         (tuned_library_of(l->decisions) || tuned_ends_library(l->decisions, l->other));
}

static const char *schedule_key(arena *a, const tuned_line *l) {
  return arena_printf(a, "%s %s", l->key, l->decisions);
}

static later_lines *find_later(arena *a, const tuned_line lines[], size_t n) {
  later_lines *later = arena_calloc(a, n + 1, sizeof *later);
  string_map same = {0}, faster = {0}, schedules = {0}, libraries = {0};
  for (size_t i = n; i-- > 0;) {
    const tuned_line *l = &lines[i];
    if (!l->key) continue;
    const char *schedule = schedule_key(a, l);
    later[i] = (later_lines){.has_same = string_map_get(&same, schedule) != NULL,
                             .has_faster = string_map_get(&faster, schedule) != NULL,
                             .has_schedule = string_map_get(&schedules, l->key) != NULL,
                             .has_library = string_map_get(&libraries, l->key) != NULL};
    if (decides_schedule(l)) string_map_set(a, &schedules, l->key, later);
    if (decides_library(l)) string_map_set(a, &libraries, l->key, later);
    if (l->is_foreign) continue;
    string_map_set(a, &same, schedule, later);
    if (l->verdict == TUNED_FASTER) string_map_set(a, &faster, schedule, later);
  }
  return later;
}

/** `follows_faster`: a line FASTER of the kernel stays before it. */
static bool is_superseded(const tuned_line *l, const later_lines *later, bool follows_faster) {
  if (decides_schedule(l) && !later->has_schedule) return false;
  if (decides_library(l) && !later->has_library) return false;
  if (l->is_foreign) return true;
  if (!later->has_same) return false;
  return l->verdict != TUNED_FASTER || later->has_faster || !follows_faster;
}

void tuned_lines_find_superseded(arena *a, tuned_line lines[], size_t n) {
  const later_lines *later = find_later(a, lines, n);
  string_map faster = {0}; /* kernels with a line FASTER that stays */
  for (size_t i = 0; i < n; i++) {
    tuned_line *l = &lines[i];
    if (!l->key) continue;
    l->is_superseded = is_superseded(l, &later[i], string_map_get(&faster, l->key) != NULL);
    if (!l->is_superseded && !l->is_foreign && l->verdict == TUNED_FASTER)
      string_map_set(a, &faster, l->key, l);
  }
}
