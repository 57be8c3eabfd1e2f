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

/** Begins a fixture of a test: opens its arena and fills it by `prepare`; 0 on success. */
static inline int temporary_set_up(arena *a, diag *d, void (*prepare)(void *fixture),
                                   void *fixture) {
  arena_init(a, &mem_system, d);
  return (int)diag_catch(d, prepare, fixture);
}

/** Ends a fixture from calloc: removes its folder, frees its arena and itself; 0 on success. */
static inline int temporary_tear_down(arena *a, const char *folder, void *fixture) {
  int status = temporary_remove(a, folder);
  arena_free(a);
  free(fixture);
  return status;
}

#endif
