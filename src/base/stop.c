/* Implements conditions on which long work ends. */
#include "base/stop.h"

#include "base/thread.h"

stop_condition stop_after(double seconds) {
  if (!(seconds > 0)) return (stop_condition){0};
  return (stop_condition){.deadline = clock_now_ns() + (int64_t)(seconds * 1e9),
                          .seconds = seconds};
}

tn_status stop_reason(const stop_condition *s, diag *d) {
  if (s && s->cancelled && atomic_load(s->cancelled))
    return diag_set(d, TN_ERR_CANCELLED, "it was cancelled");
  if (s && s->deadline && clock_now_ns() >= s->deadline)
    return diag_set(d, TN_ERR_TIMEOUT,
                    "it takes longer than %g s (compile_seconds or TENON_COMPILE_SECONDS; 0: no "
                    "limit)",
                    s->seconds);
  return TN_OK;
}

void stop_check(diag *d) {
  if (d->stop && stop_reason(d->stop, d) != TN_OK) diag_rethrow(d);
}
