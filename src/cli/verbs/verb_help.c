/* Implements `tenon help`, which prints how the command, or a verb, is used, from the tables of
   verbs and options. */
#include "cli/verbs/verb_help.h"

#include "base/str.h"
#include "cli/verbs/verb_table.h"

#include <stdio.h>
#include <string.h>

/** "usage: tenon run MODEL [--input NAME=VALUE]…". In the arena. */
static const char *usage_text(command *c, const verb *v) {
  str s = str_new(&c->arena);
  str_addf(&s, "usage: tenon %s", v->name);
  if (v->operand) str_addf(&s, " %s", v->operand);
  for (size_t i = 0; i < v->n_options; i++) {
    const option *o = &v->options[i];
    if (o->kind == OPTION_FLAG)
      str_addf(&s, " [--%s]", o->name);
    else
      str_addf(&s, " [--%s %s]%s", o->name, o->value, o->kind == OPTION_LIST ? "…" : "");
  }
  return str_text(&s);
}

enum { HELP_COLUMN = 24 };

/** A name in the left column and lines of text in the right one. */
static void print_row(const char *name, const char *text) {
  printf("  %-*s", HELP_COLUMN - 2, name);
  if (strlen(name) > HELP_COLUMN - 3) printf("\n%*s", HELP_COLUMN, "");
  for (size_t n; (n = strcspn(text, "\n")), text[n]; text += n + 1)
    printf("%.*s\n%*s", (int)n, text, HELP_COLUMN, "");
  printf("%s\n", text);
}

static void print_command_help(void) {
  puts("usage: tenon VERB …\n\nTenon compiles and runs machine-learning models.\n\nverbs:");
  for (size_t i = 0; i < VERBS; i++) print_row(verb_table[i]->name, verb_table[i]->summary);
  puts(
      "\ntenon help VERB tells more; tenon --version is tenon version. With every verb, -v shows\n"
      "the library's decisions on standard error, and -vv also each kernel and plan.\n\n"
      "Data goes to standard output, all else to standard error. The exit status is 0 when all is\n"
      "done, 1 when something failed, 2 when the command line is wrong.\n\n"
      "environment: TENON_DEVICE, TENON_THREADS, TENON_PAIR, TENON_CPU (x86-64, x86-64-v2,\n"
      "x86-64-v3, x86-64-v4: use no more than this), TENON_MATH (exact, contract, sum, default,\n"
      "fast), TENON_DUMP=DIR:after:PASS (* for PASS is every pass, a wrong one lists them all),\n"
      "TENON_CC or else CC (the compiler of kernels; else cc, gcc or clang), TENON_CACHE (folder "
      "of\n"
      "the cache on disk, or off) or else XDG_CACHE_HOME or HOME, PATH (where compilers are "
      "found),\n"
      "NO_COLOR and TERM (whether there are colours).");
}

static void print_verb_help(command *c, const verb *v) {
  printf("%s\n\n%s.\n", usage_text(c, v), v->summary);
  if (v->n_options) puts("\noptions:");
  for (size_t i = 0; i < v->n_options; i++) {
    const option *o = &v->options[i];
    bool is_flag = o->kind == OPTION_FLAG;
    print_row(
        arena_printf(&c->arena, "--%s%s%s", o->name, is_flag ? "" : " ", is_flag ? "" : o->value),
        o->about);
  }
  if (v->about) printf("\n%s", v->about);
  if (v->print_more) v->print_more();
  if (v->about) puts("");
}

void help_print(command *c, const verb *v) {
  if (v)
    print_verb_help(c, v);
  else
    print_command_help();
}

static int act(command *c) {
  help_print(c, c->operand ? verb_find(c, c->operand) : NULL);
  return EXIT_DONE;
}

const verb verb_help = {.name = "help",
                        .summary = "Tells how the command, or a verb, is used",
                        .operand = "[VERB]",
                        .act = act};
