/* Draws a progress bar on standard error, on terminals only, and prints lines of text in its
   place. */
#ifndef TENON_CLI_CORE_PROGRESS_BAR_H
#define TENON_CLI_CORE_PROGRESS_BAR_H

#include "base/thread.h"

#include <tenon/context.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
  mutex lock;    /* of the fields below and of standard error's last line */
  bool drawn;    /* the bar is on the terminal */
  int64_t last;  /* time of the last drawing, in ns */
  char what[32]; /* unit of the work at hand: "kernels" */
} progress;

void progress_init(progress *p);
void progress_free(progress *p);

/** The callback that draws the bar, which must outlive the context; absent where standard error is
    no terminal. */
tn_progress progress_callback(progress *p);

/** Removes the bar before anything else is written. */
void progress_clear(progress *p);

/** Writes "tenon VERB: TEXT" and a newline to standard error, where the bar was. From any thread.
 */
void progress_print_line(progress *p, const char *verb, const char *text);

#endif
