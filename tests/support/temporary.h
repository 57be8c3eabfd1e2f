/* Creates temporary folders and files for tests, and removes them. */
#ifndef TENON_TESTS_TEMPORARY_H
#define TENON_TESTS_TEMPORARY_H

#include "base/arena.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/** Makes a folder in $TMPDIR or /tmp and returns its path, allocated in the arena; NULL on failure.
    Removed by temporary_remove. */
static inline char *temporary_folder(arena *a) {
  const char *under = getenv("TMPDIR");
  return mkdtemp(arena_printf(a, "%s/tenon-XXXXXX", under && *under ? under : "/tmp"));
}

/** Removes a temporary folder with everything in it; 0 on success. */
static inline int temporary_remove(arena *a, const char *folder) {
  return system(arena_printf(a, "rm -rf '%s'", folder));
}

/** Overwrites a file, or creates it with this mode; true on success. */
static inline bool temporary_write(const char *path, int mode, const void *data, size_t bytes) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
  bool is_written = fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes;
  close(fd);
  return is_written;
}

#endif
