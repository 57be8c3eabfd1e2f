/* Lines for a caller's logger. */
#ifndef TENON_BASE_LOG_H
#define TENON_BASE_LOG_H

#include "base/diag.h"
#include "base/thread.h"

#include <tenon/context.h>

/** Logs one line, made as by printf: what names in it hold beside text is a space. `l` may be NULL
    or absent; one call at a time where there are `reports`. */
void log_line(const tn_logger *l, mutex *reports, tn_log_level level, const char *format, ...)
    BASE_PRINTF(4, 5);
void log_list(const tn_logger *l, mutex *reports, tn_log_level level, const char *format,
              va_list list);

#endif
