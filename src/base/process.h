/* Other programs: found on the PATH, started without a shell, stopped when they take too long. */
#ifndef TENON_BASE_PROCESS_H
#define TENON_BASE_PROCESS_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

/** What to run. Standard input, and the file below, have no name in any folder: nothing is left of
    them when the process that asks is killed. */
typedef struct process_request {
  const char *const *argv; /* up to NULL; argv[0] is a path */
  const char *const *set;  /* "NAME=value" up to NULL, put into its environment; NULL: nothing */
  const char *input;       /* standard input, of input_bytes bytes */
  size_t input_bytes;
  bool makes_file;  /* standard output is a file: the result's; PROCESS_FILE names it to argv */
  int64_t limit_ns; /* then it is killed */
} process_request;

/** The file that a program with makes_file makes, for one that wants its name. */
#define PROCESS_FILE "/proc/self/fd/1"

typedef struct process_result {
  int exit_code; /* −1: ended by a signal or by the time limit, or not known */
  bool timed_out;
  bool is_lost; /* it ended, but who ignores or waits for SIGCHLD has taken the exit code */
  char *output; /* what it wrote to standard error, and output unless that is a file; at most 64
                   KiB; in the arena */
  const unsigned char *file; /* in the arena; NULL if it is empty */
  size_t file_bytes;
} process_result;

/** All executables of a name on $PATH, in its order. In the arena. */
typedef VEC(char *) process_paths;
process_paths process_find_all(arena *a, const char *name);

/** The path of an executable: `name` itself if it holds a slash, else found on $PATH; NULL if there
    is none. In the arena. */
char *process_find(arena *a, const char *name);

/** Runs a program and waits for it. It sees the PATH that process_find searches. Fails only if it
    cannot be started, or its file not be read. */
tn_status process_run(const process_request *request, arena *a, process_result *r, diag *d);

#endif
