/* Creates temporary folders for files that tests write. */
#ifndef TENON_TESTS_TEMPORARY_H
#define TENON_TESTS_TEMPORARY_H

#include "base/arena.h"

#include <stdlib.h>
#include <unistd.h>

/** A new folder under the system's place for temporary files; NULL where there can be none. In the
    arena. */
static inline char *temporary_folder(arena *a) {
  const char *under = getenv("TMPDIR");
  return mkdtemp(arena_printf(a, "%s/tenon-XXXXXX", under && *under ? under : "/tmp"));
}

#endif
