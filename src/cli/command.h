/* One use of the command: what a verb is, and what all verbs share. */
#ifndef TENON_CLI_COMMAND_H
#define TENON_CLI_COMMAND_H

#include "base/arena.h"
#include "cli/option.h"
#include "cli/progress.h"

#include <tenon/tenon.h>

/** What the command's exit status says. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_MISUSED = 2 };

typedef struct command command;

/** A row of the table of verbs. */
typedef struct verb {
  const char *name, *summary;
  const char *operand; /* "MODEL", in brackets if it may be left out; NULL: it takes none */
  const char *about;   /* paragraphs for its help, after the options */
  const option *options;
  const char *letters; /* of options that -x stands for, their names' first; NULL: none */
  size_t n_options, options_bytes; /* rows, and the size of the struct that they fill */
  int (*act)(command *c);          /* an exit status; may raise through c->diag */
} verb;

extern const verb verb_run, verb_bench, verb_explain, verb_inspect, verb_devices, verb_cache,
    verb_version, verb_help;

struct command {
  diag diag;
  arena arena;      /* of all that lives as long as the command */
  const verb *verb; /* NULL: not known yet */
  const char *operand;
  void *options;
  int status;          /* the exit status where a raise ends the command */
  tn_context *context; /* NULL: none opened; closed at the end */
  progress progress;
};

/** All verbs, in the order of the help. */
const verb *const *command_verbs(size_t *n);

/** The verb of a name. Raises as command_misuse if there is none. */
const verb *command_verb(command *c, const char *name);

/** Opens c->context, on a device (NULL: the default) with so many threads (0: the default); a bar
    on a terminal shows long work, warnings go to standard error. Raises where that fails. */
void command_open(command *c, const char *device, int64_t threads);

/** The compiler that the environment names, as contexts are opened; NULL: none. */
const char *command_compiler(void);

/** Raises where the context could not be opened as its environment asks. */
void command_check_open(command *c);

/** Raises with a context's or a binding's message if `s` is a failure. */
void command_check(command *c, tn_status s);
void command_check_binding(command *c, tn_status s, const tn_binding *b);

/** Raises TN_ERR_ARGUMENT; the command ends with EXIT_MISUSED and says where its help is. */
_Noreturn void command_misuse(command *c, const char *format, ...) BASE_PRINTF(2, 3);

/** A remark on standard error. */
void command_note(command *c, const char *format, ...) BASE_PRINTF(2, 3);

/** "usage: tenon run MODEL [--input NAME=VALUE]…", of the whole command if verb is NULL. In the
    arena. */
const char *command_usage(command *c, const verb *v);

/** Prints the help of a verb, or of the whole command if it is NULL. */
void command_help(command *c, const verb *v);

#endif
