/* Converts failure records between tn_failure, which backends and callers fill in, and the
   library's diag. */
#include "device/core/failure.h"

#include <stdio.h>
#include <string.h>

tn_status tn_fail(tn_failure *f, tn_status status, const char *format, ...) {
  if (!f) return status;
  char text[sizeof f->text]; /* the arguments may point into f->text */
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  memcpy(f->text, text, strlen(text) + 1);
  return f->status = status;
}

tn_status failure_to_diag(diag *d, tn_status status, const tn_failure *f) {
  if (!status) return status;
  return diag_set(d, status, "%s", f->text[0] ? f->text : tn_status_text(status));
}

tn_status failure_from_diag(tn_failure *f, const diag *d) {
  return d->status ? tn_fail(f, d->status, "%s", d->text) : TN_OK;
}
