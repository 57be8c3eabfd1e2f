#include "cli/command.h"

#include "cli/text.h"
#include "device/device.h"
#include "device/null/null.h"
#include "tensor/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Failing. */

void command_misuse(command *c, const char *format, ...) {
  va_list list;
  va_start(list, format);
  c->status = EXIT_MISUSED;
  diag_set_list(&c->diag, TN_ERR_ARGUMENT, format, list);
  va_end(list);
  diag_rethrow(&c->diag);
}

void command_note(command *c, const char *format, ...) {
  char text[1024];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  progress_say(&c->progress, c->verb->name, text_safe(&c->arena, text));
}

void command_check(command *c, tn_status s) {
  progress_clear(&c->progress);
  if (s == TN_OK) return;
  const char *text = tn_message(c->context);
  diag_raise(&c->diag, s, "%s", *text ? text : tn_status_text(s));
}

void command_check_binding(command *c, tn_status s, const tn_binding *b) {
  progress_clear(&c->progress);
  if (s == TN_OK) return;
  const char *text = tn_binding_message(b);
  diag_raise(&c->diag, s, "%s", *text ? text : tn_status_text(s));
}

/* The context. */

/** May come from any thread. */
static void remark(void *user, tn_log_level level, const char *text) {
  command *c = user;
  if (level > TN_LOG_WARNING) return;
  char line[1024];
  snprintf(line, sizeof line, "%s", text);
  for (char *at = line; *at; at++)
    if ((unsigned char)*at < 0x20 || *at == 0x7f) *at = '?';
  progress_say(&c->progress, c->verb->name, line);
}

void command_open(command *c, const char *device, int64_t threads) {
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  desc.device = device;
  desc.threads = (int32_t)threads;
  desc.logger = (tn_logger){remark, c, NULL};
  desc.progress = progress_start(&c->progress);
  c->context = tn_open(&desc);
  if (!c->context) diag_raise(&c->diag, TN_ERR_MEMORY, "out of memory");
  const tn_device *opened = c->context->device;
  if (opened && opened->backend == &null_backend)
    command_note(c, "the device %s computes nothing: results mean nothing, nor do times",
                 opened->name);
}

const char *command_compiler(void) {
  const char *own = getenv("TENON_CC"), *name = own && *own ? own : getenv("CC");
  return name && *name ? name : NULL;
}

void command_check_open(command *c) {
  const failure *f = c->context->broken;
  if (f) diag_raise(&c->diag, f->status, "%s", f->text);
}

/* Help. */

static void add_option(str *s, const option *o) {
  if (o->kind == OPTION_FLAG)
    str_addf(s, " [--%s]", o->name);
  else
    str_addf(s, " [--%s %s]%s", o->name, o->value, o->kind == OPTION_LIST ? "…" : "");
}

const char *command_usage(command *c, const verb *v) {
  str s = str_new(&c->arena);
  if (!v) return "usage: tenon VERB …";
  str_addf(&s, "usage: tenon %s", v->name);
  if (v->operand) str_addf(&s, " %s", v->operand);
  for (size_t i = 0; i < v->n_options; i++) add_option(&s, &v->options[i]);
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

static void help_all(command *c) {
  size_t n;
  const verb *const *verbs = command_verbs(&n);
  printf("%s\n\nTenon compiles and runs machine-learning models.\n\nverbs:\n",
         command_usage(c, NULL));
  for (size_t i = 0; i < n; i++) print_row(verbs[i]->name, verbs[i]->summary);
  puts(
      "\ntenon help VERB tells more; tenon --version is tenon version.\n\n"
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

void command_help(command *c, const verb *v) {
  if (!v) {
    help_all(c);
    return;
  }
  printf("%s\n\n%s.\n", command_usage(c, v), v->summary);
  if (v->n_options) puts("\noptions:");
  for (size_t i = 0; i < v->n_options; i++) {
    const option *o = &v->options[i];
    bool flag = o->kind == OPTION_FLAG;
    print_row(arena_printf(&c->arena, "--%s%s%s", o->name, flag ? "" : " ", flag ? "" : o->value),
              o->about);
  }
  if (v->about) printf("\n%s\n", v->about);
}
