/* Checks and failures of public functions that return tensors: operands are checked before a call,
   and a call that fails returns an invalid tensor, which carries the failure to its readers. */
#ifndef TENON_TENSOR_CONTEXT_CALL_H
#define TENON_TENSOR_CONTEXT_CALL_H

#include "tensor/context/handle.h"

/** The context of the first operand that is not NULL; NULL if all are. */
tn_context *call_context(tn_tensor *const in[], size_t n);

/** The tensor that reports that another call held the context; NULL without a context. */
tn_tensor *call_busy_tensor(tn_context *c);

/** Checks operands before a call: refuses a broken context, a NULL list, and an operand that is
    freed, of another context, invalid (the oldest failure counts), or NULL unless bit i of
    `optional` is set. Returns NULL if the call may go on; else the failure, which is reported and
    retained for the caller. */
failure *call_check(tn_context *c, const char *op, tn_tensor *const in[], size_t n,
                    uint64_t optional);

/** Reports the failure of a call whose list of `n` operands or results (`of`) is NULL, and returns
    it, retained for the caller. */
failure *call_refuse_list(tn_context *c, const char *op, const char *of, size_t n);

/** TN_OK for a live, valid tensor of this context; else reports the failure with the operation's
    name and returns its status. */
tn_status handle_check(tn_context *c, tn_tensor *t, const char *op);

/** Runs body(arg) under the catch of the context's diag. Returns NULL, or the failure, which is
    reported and retained for the caller. */
failure *call_run(tn_context *c, const char *op, tn_tensor *const in[], size_t n,
                  void (*body)(void *arg), void *arg);

/** A new tensor that carries a failure, of which it takes the caller's reference. */
tn_tensor *call_failed_tensor(tn_context *c, failure *f);

#endif
