/* Formats lines of the log and passes them to the logger that the user gave to tn_open. */
#ifndef TENON_BASE_LOG_H
#define TENON_BASE_LOG_H

#include "base/diag.h"
#include "base/thread.h"

#include <tenon/context.h>

/** Formats one line as printf does, replaces control characters by spaces, cuts it at 511 bytes and
    passes it to the logger. Does nothing if `l` or l->log is NULL. Holds `reports`, if not NULL,
    during the call, so that calls of the logger do not overlap. */
void log_line(const tn_logger *l, mutex *reports, tn_log_level level, const char *format, ...)
    BASE_PRINTF(4, 5);
void log_line_va(const tn_logger *l, mutex *reports, tn_log_level level, const char *format,
                 va_list list);

#endif
