/* Diagnostics: a failure's status and message, and exceptions by setjmp and longjmp.

   A function fails in one of two ways. `return diag_set(d, TN_ERR_X, "...")` returns the failure to
   its caller. Code below a diag_catch may instead call diag_raise, which unwinds to the catch: such
   code keeps its memory in arenas and holds no lock, file or block across a call that may raise. */
#ifndef TENON_BASE_DIAG_H
#define TENON_BASE_DIAG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <tenon/unstable/failure.h>

#if defined(__GNUC__)
#define BASE_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define BASE_PRINTF(text, first)
#endif

enum { DIAG_TEXT_BYTES = sizeof((tn_failure *)0)->text };

/** The last failure, and the place to which diag_raise unwinds. The text is a member, so that a
    lack of memory can be reported. Backends, and callers of the API, are given `failure` alone. */
typedef struct diag {
  union {
    tn_failure failure;
    struct { /* the members of `failure` */
      tn_status status;
      char text[DIAG_TEXT_BYTES];
    };
  };
  jmp_buf *at;                       /* the innermost diag_catch */
  const struct stop_condition *stop; /* on which the operation ends (base/stop.h); NULL: none */
} diag;

_Static_assert(offsetof(diag, text) == offsetof(tn_failure, text), "the members of `failure`");

/** Resets to TN_OK and an empty message. */
void diag_clear(diag *d);

/** Records a failure and returns its status. A text too long for the buffer is cut. */
tn_status diag_set(diag *d, tn_status status, const char *format, ...) BASE_PRINTF(3, 4);
tn_status failure_set_va(tn_failure *f, tn_status status, const char *format, va_list list);

/** Puts "prefix: " before the recorded message; returns the recorded status. */
tn_status diag_prefix(diag *d, const char *format, ...) BASE_PRINTF(2, 3);

/** Records the status that a backend returned, which was given the failure with an empty text, as
    after diag_clear; the message of a failure that the backend does not explain is its status's
    text. Returns the status. */
tn_status failure_complete(tn_failure *f, tn_status status);
tn_status diag_complete(diag *d, tn_status status);

/** Records a failure and unwinds to the innermost diag_catch of `d`. */
_Noreturn void diag_raise(diag *d, tn_status status, const char *format, ...) BASE_PRINTF(3, 4);

/** Unwinds with the failure that `d` already records. */
_Noreturn void diag_rethrow(diag *d);

/** Unwinds with the failure that `d` records, if this status, of the call that recorded it, is
    one. */
static inline void diag_require(diag *d, tn_status s) {
  if (s != TN_OK) diag_rethrow(d);
}

/** Runs body(arg); returns TN_OK, or the status that it raised. Catches nest. */
tn_status diag_catch(diag *d, void (*body)(void *arg), void *arg);

#endif
