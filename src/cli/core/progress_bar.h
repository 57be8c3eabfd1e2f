/* Draws a progress bar on standard error, on terminals only, and prints lines of text in its
   place. */
#ifndef TENON_CLI_CORE_PROGRESS_BAR_H
#define TENON_CLI_CORE_PROGRESS_BAR_H

#include "base/thread.h"

#include <tenon/context.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
  mutex lock;    /* protects the fields below and standard error's last line */
  bool drawn;    /* the bar is on the terminal */
  int64_t last;  /* time of the last drawing, in ns */
  char what[32]; /* unit of progress: "kernels" */
} progress;

void progress_init(progress *p);
void progress_free(progress *p);

/** The callback that draws the bar; none if standard error is not a terminal. The bar must outlive
   the context. */
tn_progress progress_callback(progress *p);

/** True if standard error is a terminal that shows the bar. */
bool progress_has_terminal(void);

/** Shows a line of text in place of the bar, on terminals only. */
void progress_show(progress *p, const char *text);

/** Erases the bar before other output. */
void progress_clear(progress *p);

/** Writes "tenon VERB: TEXT" and a newline to standard error, in place of the bar. Thread-safe. */
void progress_print_line(progress *p, const char *verb, const char *text);

#endif
