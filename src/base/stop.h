/* Ends long work before it is done: because another thread asks for it, or because its time is
   over. The diag of an operation knows the condition, and whatever may take long checks it. */
#ifndef TENON_BASE_STOP_H
#define TENON_BASE_STOP_H

#include "base/diag.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct stop_condition {
  const atomic_bool *cancelled; /* set by another thread; NULL: nobody asks */
  int64_t deadline;             /* by clock_now_ns(); 0: none */
  double seconds;               /* that there were until the deadline, for the message */
} stop_condition;

/** A condition that holds once `seconds` from now are over; 0: never. */
stop_condition stop_after(double seconds);

/** The condition's failure, which is left in `d`: TN_ERR_CANCELLED or TN_ERR_TIMEOUT; TN_OK while
    it does not hold, and for NULL. */
tn_status stop_reason(const stop_condition *s, diag *d);

/** Raises the failure of the diag's own condition, where that holds. */
void stop_check(diag *d);

/** True for failures that stop an operation as a whole, so that no other way of doing it is tried:
    lack of memory, and those of conditions. */
static inline bool stops_work(tn_status s) {
  return s == TN_ERR_MEMORY || s == TN_ERR_CANCELLED || s == TN_ERR_TIMEOUT;
}

#endif
