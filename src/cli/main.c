/* The command: a table of verbs, and how a use of one begins and ends. */
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const verb *const verbs[] = {&verb_run,     &verb_bench, &verb_explain, &verb_inspect,
                                    &verb_devices, &verb_cache, &verb_version, &verb_help};
enum { VERBS = sizeof verbs / sizeof *verbs };

const verb *const *command_verbs(size_t *n) {
  *n = VERBS;
  return verbs;
}

const verb *command_verb(command *c, const char *name) {
  const char *names[VERBS];
  for (size_t i = 0; i < VERBS; i++) {
    names[i] = verbs[i]->name;
    if (!strcmp(name, names[i])) return verbs[i];
  }
  command_misuse(c, "there is no verb \"%s\"%s", name,
                 text_suggestion(&c->arena, text_nearest(name, names, VERBS)));
}

/* The verb help. */

static int act_help(command *c) {
  command_help(c, c->operand ? command_verb(c, c->operand) : NULL);
  return EXIT_DONE;
}

const verb verb_help = {.name = "help",
                        .summary = "Tells how the command, or a verb, is used",
                        .operand = "[VERB]",
                        .act = act_help};

/* A use of the command. */

typedef struct use {
  command c;
  int argc;
  char **argv;
} use;

static void begin(void *arg) {
  use *u = arg;
  command *c = &u->c;
  const char *first = u->argc > 1 ? u->argv[1] : NULL;
  if (!first) command_misuse(c, "a verb is missing");
  if (!strcmp(first, "-h") || !strcmp(first, "--help")) first = "help";
  if (!strcmp(first, "--version")) first = "version";
  if (first[0] == '-') command_misuse(c, "there is no option %s before the verb", first);
  c->verb = command_verb(c, first);
  if (option_read(c, u->argc - 2, u->argv + 2))
    c->status = c->verb->act(c);
  else
    command_help(c, c->verb);
}

static bool in_colour(void) {
  const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");
  return isatty(STDERR_FILENO) && (!no || !*no) && terminal && strcmp(terminal, "dumb");
}

static void drop_last_newlines(char *text) {
  for (size_t n = strlen(text); n && text[n - 1] == '\n'; n--) text[n - 1] = 0;
}

/** Tells of the failure that ended the command. */
static int tell(command *c) {
  int status = c->status ? c->status : EXIT_FAILED;
  const char *gap = c->verb ? " " : "", *verb = c->verb ? c->verb->name : "";
  const char *format =
      in_colour() ? "tenon%s%s: \x1b[1;31merror:\x1b[0m %s\n" : "tenon%s%s: error: %s\n";
  const char *text = c->diag.text;
  drop_last_newlines(c->diag.text);
  fflush(stdout); /* what was told before comes before */
  progress_clear(&c->progress);
  fprintf(stderr, format, gap, verb,
          status == EXIT_MISUSED ? text_safe(&c->arena, text) : text_safe_lines(&c->arena, text));
  if (status == EXIT_MISUSED) fprintf(stderr, "(tenon help%s%s tells more)\n", gap, verb);
  return status;
}

static void tell_raised(void *arg) {
  command *c = arg;
  c->status = tell(c);
}

static int end(command *c, tn_status raised) {
  diag copy = c->diag;
  if (raised && diag_catch(&c->diag, tell_raised, c)) {
    fprintf(stderr, "tenon: error: %s\n", copy.text);
    c->status = EXIT_FAILED;
  }
  tn_close(c->context);
  progress_free(&c->progress);
  arena_free(&c->arena);
  if (fflush(stdout) == 0 && !ferror(stdout)) return c->status;
  fprintf(stderr, "tenon: error: the output cannot be written: %s\n", strerror(errno));
  return c->status ? c->status : EXIT_FAILED;
}

int main(int argc, char **argv) {
  use u = {.argc = argc, .argv = argv};
  arena_init(&u.c.arena, &mem_system, &u.c.diag);
  progress_init(&u.c.progress);
  interrupt_watch();
  tn_status raised = diag_catch(&u.c.diag, begin, &u);
  interrupt_before_end();
  return end(&u.c, raised);
}
