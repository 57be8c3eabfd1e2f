/* Creates temporary folders for files that tests write. */
#ifndef TENON_TESTS_TEMPORARY_H
#define TENON_TESTS_TEMPORARY_H

#include "base/arena.h"

#include <stdlib.h>
#include <unistd.h>

/** Makes a folder in $TMPDIR or /tmp and returns its path, allocated in the arena; NULL on failure.
    The caller removes it. */
static inline char *temporary_folder(arena *a) {
  const char *under = getenv("TMPDIR");
  return mkdtemp(arena_printf(a, "%s/tenon-XXXXXX", under && *under ? under : "/tmp"));
}

#endif
