/* Other programs: found on the PATH, started without a shell, stopped when they take too long. */
#ifndef TENON_BASE_PROCESS_H
#define TENON_BASE_PROCESS_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct process_result {
  int exit_code; /* −1: ended by a signal or by the time limit */
  bool timed_out;
  char *output; /* what it wrote to standard output and standard error, at most 64 KiB; in the arena
                 */
} process_result;

/** The path of an executable: `name` itself if it holds a slash, else found on $PATH; NULL if there
    is none. In the arena. */
char *process_find(arena *a, const char *name);

/** Runs argv[0] with the arguments up to NULL, standard input empty, and waits for it. After
    `limit_ns` nanoseconds it is killed. Fails only if it cannot be started. */
tn_status process_run(const char *const argv[], int64_t limit_ns, arena *a, process_result *r,
                      diag *d);

#endif
