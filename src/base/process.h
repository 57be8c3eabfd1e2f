/* Runs child processes, such as the C compiler: finds a program on $PATH and starts it by
   posix_spawn, without a shell, with input and output in memory and a time limit. A program is
   killed when the process that started it ends, however that ends, and its standard streams leave
   no file behind. */
#ifndef TENON_BASE_PROCESS_H
#define TENON_BASE_PROCESS_H

#include "base/vec.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/** A program to run. Its standard input, and its file of output, are memfds: they have no name in
    any folder, and vanish with the processes that hold them. */
typedef struct process_request {
  const char *const *argv; /* ends with NULL; argv[0] is a path */
  const char *const *set;  /* "NAME=value" up to NULL, added to its environment; NULL: nothing */
  const char *input;       /* standard input, of input_bytes bytes */
  size_t input_bytes;
  bool stdout_is_file; /* standard output is a file, returned in the result, that argv may name as
                          PROCESS_STDOUT_PATH */
  int64_t limit_ns;    /* time after which the program's process group is killed */
  const atomic_bool *cancel; /* it is killed, too, once this is set; or NULL */
} process_request;

/** A path of standard output, for programs that take the name of an output file. */
#define PROCESS_STDOUT_PATH "/proc/self/fd/1"

typedef struct process_result {
  int exit_code;       /* −1: ended by a signal or by the time limit, or unknown */
  bool timed_out;      /* or cancelled */
  bool exit_code_lost; /* it ended, but the host ignores SIGCHLD, or waited for all its children */
  char *output; /* standard error, and standard output unless that is a file, in the order written;
                   cut at 64 KiB; in the arena */
  const unsigned char *file; /* contents of the file, in the arena; NULL if it is empty */
  size_t file_bytes;
} process_result;

/** Lists all executables of a name on $PATH, in its order, in the arena. */
typedef VEC(char *) process_paths;
process_paths process_find_all(arena *a, const char *name);

/** Returns the path of an executable, in the arena: `name` itself if it has a slash, else the first
    on $PATH; NULL if there is none. */
char *process_find(arena *a, const char *name);

/** Runs a program and waits for it. Its PATH is the one that process_find searches. TN_ERR_IO if
   the program cannot be started or its file not be read; TN_ERR_MEMORY. Any exit code is TN_OK. */
tn_status process_run(const process_request *request, arena *a, process_result *r, diag *d);

#endif
