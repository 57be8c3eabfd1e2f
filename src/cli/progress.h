/* A bar for long work, on terminals only, and lines of text in its place. */
#ifndef TENON_CLI_PROGRESS_H
#define TENON_CLI_PROGRESS_H

#include "base/thread.h"

#include <tenon/context.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
  mutex lock;    /* of what follows and of standard error's line: a context calls on any thread */
  bool drawn;    /* there is a bar to take away */
  int64_t last;  /* when it was last drawn */
  char what[32]; /* that the work at hand is counted in */
} progress;

void progress_init(progress *p);
void progress_free(progress *p);

/** The callback of a context, and the bar behind it, which must outlive the context; none where
    standard error is no terminal. */
tn_progress progress_start(progress *p);

/** Takes the bar away before anything else is written. */
void progress_clear(progress *p);

/** Writes "tenon VERB: TEXT" and a newline to standard error, where the bar was. From any thread.
 */
void progress_say(progress *p, const char *verb, const char *text);

#endif
