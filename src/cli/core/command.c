/* Implements what the verbs of the tool share: reporting failures, and opening the library's
   context. The library prints nothing: its log lines and its progress come through callbacks, on
   any thread, and go to standard error through the progress bar. */
#include "cli/core/command.h"

#include "cli/core/text_format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Failures. */

void command_usage_error(command *c, const char *format, ...) {
  va_list list;
  va_start(list, format);
  c->status = EXIT_USAGE_ERROR;
  failure_set_va(&c->diag.failure, TN_ERR_ARGUMENT, format, list);
  va_end(list);
  diag_rethrow(&c->diag);
}

void command_print_note(command *c, const char *format, ...) {
  char text[1024];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  progress_print_line(&c->progress, c->verb->name, text_escape(&c->arena, text));
}

void command_check_status(command *c, tn_status s) {
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

/* Context. */

/** Prints a line of the library's log. Called on any thread, so the line is escaped without the
    arena, which belongs to the main thread. */
static void print_log_line(void *user, tn_log_level level, const char *text) {
  command *c = user;
  if (level > c->log_level) return;
  char line[1024];
  snprintf(line, sizeof line, "%s", text);
  for (char *s = line; *s; s++)
    if ((unsigned char)*s < 0x20 || *s == 0x7f) *s = '?';
  progress_print_line(&c->progress, c->verb->name, line);
}

tn_logger command_logger(command *c) { return (tn_logger){print_log_line, c, NULL}; }

void command_open_context(command *c, const char *device, int64_t threads, const char *cache_dir) {
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  desc.device = device;
  desc.threads = threads > 0 ? (int32_t)threads : 0;
  if (threads >= 0) unsetenv("TENON_THREADS"); /* the library would read it for 0 */
  desc.cache_dir = cache_dir;
  desc.math = c->math;
  desc.tuned = c->tuned;
  desc.backends = c->backends;
  desc.logger = command_logger(c);
  desc.progress = progress_callback(&c->progress);
  desc.tracer = c->tracer;
  c->context = tn_open(&desc);
  if (!c->context) diag_raise(&c->diag, TN_ERR_MEMORY, "out of memory");
  tn_context_info info = TN_CONTEXT_INFO_INIT;
  if (tn_context_get(c->context, &info) != TN_OK) return;
  if (!info.computes)
    command_print_note(c, "device %s computes nothing; results and times are meaningless",
                       info.device);
  if (threads > 0 && !command_is_processor(&info))
    command_print_note(c, "--threads counts for CPU; %s decides on its own threads", info.device);
}

bool command_is_processor(const tn_context_info *used) {
  static const char name[] = "CPU:";
  return !strncmp(used->device, name, sizeof name - 1);
}

tn_context_info command_check_context(command *c) {
  tn_context_info info = TN_CONTEXT_INFO_INIT;
  command_check_status(c, tn_context_get(c->context, &info));
  return info;
}
