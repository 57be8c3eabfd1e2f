/* A bar for long work, on terminals only. */
#ifndef TENON_CLI_PROGRESS_H
#define TENON_CLI_PROGRESS_H

#include <tenon/context.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
  bool drawn;    /* there is a bar to take away */
  int64_t last;  /* when it was last drawn */
  char what[32]; /* that the work at hand is counted in */
} progress;

/** The callback of a context, and the bar behind it, which must outlive the context; none where
    standard error is no terminal. */
tn_progress progress_start(progress *p);

/** Takes the bar away before anything else is written. */
void progress_clear(progress *p);

#endif
