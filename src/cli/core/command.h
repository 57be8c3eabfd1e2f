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
  const char *operand; /* "MODEL", in brackets if it may be left out; NULL: the verb takes none */
  const char *about;   /* paragraphs of its help, after the options */
  void (*print_more)(void); /* prints more of these paragraphs; NULL: there are none */
  const option *options;
  const char *letters; /* "o": -o abbreviates the first option that begins with o; NULL: none */
  size_t n_options, options_bytes; /* rows, and the size of the struct that they fill */
  int (*act)(command *c);          /* returns an exit status; may raise through c->diag */
} verb;

struct command {
  diag diag;
  arena arena;      /* of everything that lives as long as the command */
  const verb *verb; /* NULL: not known yet */
  const char *operand;
  void *options;
  tn_log_level log_level; /* the most detailed remarks of the library that are shown */
  int status;             /* the exit status where a raise ends the command */
  tn_context *context;    /* NULL: none is open; closed at the end */
  progress progress;
};

/** Opens c->context on a device (NULL: the default) with so many threads (0: the default) and a
    cache folder (NULL: the default; "off": none). A progress bar on a terminal shows compilations,
    remarks of the library go to standard error. Raises without memory; other failures come with the
    first use of the context. */
void command_open_context(command *c, const char *device, int64_t threads, const char *cache_dir);

/** Prints remarks of the library up to c->log_level as lines on standard error. */
tn_logger command_logger(command *c);

/** Describes the context. Raises where it could not be opened as its environment asks. */
tn_context_info command_check_context(command *c);

/** Raises with the message of the context or the binding if `s` is a failure. */
void command_check_status(command *c, tn_status s);
void command_check_binding(command *c, tn_status s, const tn_binding *b);

/** Raises TN_ERR_ARGUMENT; the command ends with EXIT_USAGE_ERROR and points to its help. */
_Noreturn void command_usage_error(command *c, const char *format, ...) BASE_PRINTF(2, 3);

/** Prints a remark of the command on standard error. */
void command_print_note(command *c, const char *format, ...) BASE_PRINTF(2, 3);

#endif
