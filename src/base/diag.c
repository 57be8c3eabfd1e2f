/* Implements diagnostics: formats a failure's message into a diag, and unwinds by longjmp to the
   innermost diag_catch. */
#include "base/diag.h"

#include <stdio.h>
#include <string.h>

tn_status failure_set_va(tn_failure *f, tn_status status, const char *format, va_list list) {
  char text[sizeof f->text]; /* the arguments may point into f->text */
  vsnprintf(text, sizeof text, format, list);
  memcpy(f->text, text, strlen(text) + 1);
  return f->status = status;
}

void diag_clear(diag *d) {
  d->status = TN_OK;
  d->text[0] = 0;
}

tn_status diag_set(diag *d, tn_status status, const char *format, ...) {
  va_list list;
  va_start(list, format);
  failure_set_va(&d->failure, status, format, list);
  va_end(list);
  return status;
}

tn_status diag_prefix(diag *d, const char *format, ...) {
  char text[DIAG_TEXT_BYTES];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return diag_set(d, d->status, "%s: %s", text, d->text);
}

tn_status failure_complete(tn_failure *f, tn_status status) {
  if (status && !f->text[0]) return tn_fail(f, status, "%s", tn_status_text(status));
  return f->status = status;
}

tn_status diag_complete(diag *d, tn_status status) { return failure_complete(&d->failure, status); }

void diag_rethrow(diag *d) { longjmp(*d->at, 1); }

void diag_raise(diag *d, tn_status status, const char *format, ...) {
  va_list list;
  va_start(list, format);
  failure_set_va(&d->failure, status, format, list);
  va_end(list);
  diag_rethrow(d);
}

tn_status diag_catch(diag *d, void (*body)(void *arg), void *arg) {
  jmp_buf here, *outer = d->at;
  d->at = &here;
  tn_status status = TN_OK;
  if (setjmp(here) == 0)
    body(arg);
  else
    status = d->status;
  d->at = outer;
  return status;
}
