/* How functions that give tensors are carried out. */
#ifndef TENON_TENSOR_CALL_H
#define TENON_TENSOR_CALL_H

#include "tensor/handle.h"

/** The context of the operands, taken. NULL, with nothing touched, where an operand is NULL that
    may not be, all are, or another call has the context. */
tn_context *call_take(tn_tensor *const in[], size_t n, uint64_t optional);

/** Why a call is refused before it begins: the context is broken, an operand is freed, of another
    context or invalid (the oldest failure). It is told, and held for the caller; NULL: go on. */
failure *call_check(tn_context *c, const char *op, tn_tensor *const in[], size_t n);

/** Runs body(arg) under the context's catch. A failure is told and held for the caller. */
failure *call_try(tn_context *c, const char *op, tn_tensor *const in[], size_t n,
                  void (*body)(void *arg), void *arg);

/** A new handle that carries a failure, which the caller no longer holds. */
tn_tensor *call_invalid(tn_context *c, failure *f);

#endif
