/* Runs the command-line tool `tenon`: finds the verb, runs it, and reports the failure that ended
   it. */
#include "cli/core/command.h"
#include "cli/core/interrupt.h"
#include "cli/core/parse_arguments.h"
#include "cli/core/text_format.h"
#include "cli/verbs/verb_help.h"
#include "cli/verbs/verb_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct invocation {
  command c;
  int argc;
  char **argv;
} invocation;

static void run_verb(void *arg) {
  invocation *u = arg;
  command *c = &u->c;
  const char *name = u->argc > 1 ? u->argv[1] : NULL;
  if (!name) command_usage_error(c, "missing command");
  if (!strcmp(name, "-h") || !strcmp(name, "--help")) name = "help";
  if (!strcmp(name, "--version")) name = "version";
  if (name[0] == '-')
    command_usage_error(c, "unknown option %s; options of a command follow it", name);
  c->verb = verb_find(c, name);
  if (arguments_parse(c, u->argc - 2, u->argv + 2))
    c->status = c->verb->act(c);
  else
    help_print(c, c->verb);
}

static bool uses_colour(void) {
  const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
  bool is_allowed = !no_colour || !*no_colour;
  return isatty(STDERR_FILENO) && is_allowed && terminal && strcmp(terminal, "dumb");
}

/** Prints how to avoid a failure, behind it. */
static void print_hint(const command *c) {
  if (c->hint) fprintf(stderr, "tenon %s: hint: %s\n", c->verb->name, c->hint);
}

/** Prints the failure that ended the command and sets its exit status. */
static void report_failure(void *arg) {
  command *c = arg;
  c->status = c->status ? c->status : EXIT_FAILED;
  bool is_usage = c->status == EXIT_USAGE_ERROR;
  const char *gap = c->verb ? " " : "", *verb = c->verb ? c->verb->name : "";
  const char *format =
      uses_colour() ? "tenon%s%s: \x1b[1;31merror:\x1b[0m %s\n" : "tenon%s%s: error: %s\n";
  char *text = c->diag.text;
  for (size_t n = strlen(text); n && text[n - 1] == '\n'; n--) text[n - 1] = 0;
  fflush(stdout); /* earlier output comes first */
  progress_clear(&c->progress);
  fprintf(stderr, format, gap, verb,
          is_usage ? text_escape(&c->arena, text) : text_escape_keep_newlines(&c->arena, text));
  const char *limit = c->diag.status == TN_ERR_MEMORY ? getenv("TENON_MEMORY") : NULL;
  if (limit && *limit)
    fprintf(stderr, "tenon%s%s: hint: TENON_MEMORY=%s is too little; raise or unset it\n", gap,
            verb, text_escape(&c->arena, limit));
  if (!is_usage) print_hint(c);
  if (is_usage) fprintf(stderr, "Try 'tenon help%s%s' for more information.\n", gap, verb);
}

/** Reports a failure, frees everything and returns the exit status, also of a failure to write. */
static int end_command(command *c, tn_status raised) {
  diag copy = c->diag;
  if (raised && diag_catch(&c->diag, report_failure, c)) { /* out of memory for escaping */
    fprintf(stderr, "tenon: error: %s\n", copy.text);
    c->status = EXIT_FAILED;
  }
  if (!raised && c->status) fflush(stdout), print_hint(c); /* standard output has the failure */
  tn_close(c->context);
  progress_free(&c->progress);
  arena_free(&c->arena);
  if (fflush(stdout) == 0 && !ferror(stdout)) return c->status;
  fprintf(stderr, "tenon: error: cannot write to standard output: %s\n", strerror(errno));
  return c->status ? c->status : EXIT_FAILED;
}

int main(int argc, char **argv) {
  invocation u = {
      .c.log_level = TN_LOG_WARNING, .c.math = TN_MATH_DEFAULT, .argc = argc, .argv = argv};
  arena_init(&u.c.arena, &mem_system, &u.c.diag);
  progress_init(&u.c.progress);
  interrupt_start();
  tn_status raised = diag_catch(&u.c.diag, run_verb, &u);
  interrupt_wait_if_pending();
  return end_command(&u.c, raised);
}
