/* Internal header of the tool `tenon`: the state of one invocation (its verb, options and context)
   and the functions that its verbs share. Verbs raise failures through the diag; the raise ends the
   command with its exit status. */
#ifndef TENON_CLI_CORE_COMMAND_H
#define TENON_CLI_CORE_COMMAND_H

#include "base/arena.h"
#include "cli/core/option.h"
#include "cli/core/progress_bar.h"

#include <tenon/tenon.h>

/** Exit statuses. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE_ERROR = 2 };

typedef struct command command;

/** A row of the table of verbs. */
typedef struct verb {
  const char *name, *summary;
  const char *operand;      /* "MODEL", in brackets if optional; NULL: none */
  const char *examples;     /* command lines of its help, one a line */
  const char *about;        /* paragraphs of its help, after the examples */
  void (*print_more)(void); /* prints more paragraphs; NULL: none */
  const option *options;
  const char *letters; /* "o": -o abbreviates the first option that begins with o; NULL: none */
  size_t n_options, options_bytes; /* rows; size of the struct that they fill */
  int (*act)(command *c);          /* returns an exit status; may raise through c->diag */
} verb;

struct command {
  diag diag;
  arena arena;      /* lives as long as the command */
  const verb *verb; /* NULL: not parsed yet */
  const char *operand;
  void *options;
  tn_log_level log_level; /* the most detailed level of the library's log that is printed */
  int status;             /* the exit status if a raise ends the command */
  const char *hint;       /* printed behind the failure that ends the command; NULL: none */
  tn_math math;           /* of the context */
  const char *tuned;      /* file of tuned schedules; NULL: the default */
  const char *backends;   /* shared objects of backends, with colons between; NULL: the default */
  tn_tracer tracer;       /* of the context's runs; absent: none */
  tn_context *context;    /* NULL: none; closed at the end */
  progress progress;
};

/** Row of --threads for tables of options. */
#define THREADS_OPTION(type)                                                        \
  {                                                                                 \
    "threads", OPTION_NUMBER, offsetof(type, threads), "N",                         \
        "number of threads of CPU, and of compilations; 0: one for each physical\n" \
        "core; default: TENON_THREADS, else 0",                                     \
        0, TN_THREADS_MAX, -1                                                       \
  }

/** Opens c->context, with c->math and c->tuned, on a device (NULL: the default) with a number of
   threads (as THREADS_OPTION) and a cache folder (NULL: the default; "off": none). Compilation
   shows a progress bar on a terminal; the library's log goes to standard error. Raises if out of
   memory; the first use of the context reports other failures. */
void command_open_context(command *c, const char *device, int64_t threads, const char *cache_dir);

/** True for the device that is this process's processor. */
bool command_is_processor(const tn_context_info *used);

/** A logger that prints the library's log up to c->log_level on standard error. */
tn_logger command_logger(command *c);

/** Describes the context. Raises if opening it failed, for example by an invalid environment
 * variable.
 */
tn_context_info command_check_context(command *c);

/** Raises with the message of the context or the binding if `s` is a failure. */
void command_check_status(command *c, tn_status s);
void command_check_binding(command *c, tn_status s, const tn_binding *b);

/** Raises TN_ERR_ARGUMENT; the command ends with EXIT_USAGE_ERROR and a hint at its help. */
_Noreturn void command_usage_error(command *c, const char *format, ...) BASE_PRINTF(2, 3);

/** Prints a note on standard error. */
void command_print_note(command *c, const char *format, ...) BASE_PRINTF(2, 3);

#endif
