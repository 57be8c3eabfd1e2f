/* Converts failure records between tn_failure, the public struct that backends fill in, and the
   diag that the library's own functions use. */
#ifndef TENON_DEVICE_CORE_FAILURE_H
#define TENON_DEVICE_CORE_FAILURE_H

#include "base/diag.h"

#include <tenon/unstable/queue.h>

/** An empty failure, without clearing all of its text. */
static inline void failure_clear(tn_failure *f) {
  f->status = TN_OK;
  f->text[0] = 0;
}

/** Records in `d` the failure `f` of a call that returned `status`; returns `status`. Without a
   text, the message is the status's name. */
tn_status failure_to_diag(diag *d, tn_status status, const tn_failure *f);

/** Copies a diag's failure into `f`, which may be NULL; returns its status. */
tn_status failure_from_diag(tn_failure *f, const diag *d);

#endif
