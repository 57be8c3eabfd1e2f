/* Between a backend's tn_failure and the library's diag. */
#ifndef TENON_DEVICE_FAILURE_H
#define TENON_DEVICE_FAILURE_H

#include "base/diag.h"

#include <tenon/unstable/queue.h>

/** An empty failure, without clearing all of its text. */
static inline void failure_clear(tn_failure *f) {
  f->status = TN_OK;
  f->text[0] = 0;
}

/** Records in `d` what a call that returned `status` left in `f`; returns `status`. */
tn_status failure_tell(diag *d, tn_status status, const tn_failure *f);

/** Copies a diag's failure into `f`, which may be NULL; returns its status. */
tn_status failure_take(tn_failure *f, const diag *d);

#endif
