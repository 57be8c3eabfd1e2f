/* Formats log lines for the user's logger, and replaces control characters by spaces: names from
   files may hold line breaks or escape sequences, which must not forge lines or reach a
   terminal. */
#include "base/log.h"

#include <stdio.h>

void log_line_va(const tn_logger *l, mutex *reports, tn_log_level level, const char *format,
                 va_list list) {
  if (!l || !l->log) return;
  char text[512];
  vsnprintf(text, sizeof text, format, list);
  for (char *at = text; *at; at++)
    if ((unsigned char)*at < 0x20 || *at == 0x7f) *at = ' ';
  if (reports) mutex_lock(reports);
  l->log(l->user, level, text);
  if (reports) mutex_unlock(reports);
}

void log_line(const tn_logger *l, mutex *reports, tn_log_level level, const char *format, ...) {
  va_list list;
  va_start(list, format);
  log_line_va(l, reports, level, format, list);
  va_end(list);
}
