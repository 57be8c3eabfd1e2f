/* The failure of a call, as callers get it and backends explain it. Nothing under unstable/ is
   promised to stay. */
#ifndef TENON_UNSTABLE_FAILURE_H
#define TENON_UNSTABLE_FAILURE_H

#include <tenon/export.h>
#include <tenon/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Why something failed. */
typedef struct tn_failure {
  tn_status status;
  char text[2048]; /**< "" where there is nothing to add to the status: messages then have
                      the status's own text */
} tn_failure;

/** Sets a failure's message, as by printf, and returns `status`; `failure` may be NULL. */
TN_API tn_status tn_fail(tn_failure *failure, tn_status status, const char *format, ...);

#ifdef __cplusplus
}
#endif
#endif
