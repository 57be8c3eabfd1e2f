/* How functions that give tensors are carried out. */
#ifndef TENON_TENSOR_CALL_H
#define TENON_TENSOR_CALL_H

#include "tensor/handle.h"

/** The context of the operands; NULL where none of them is there. */
tn_context *call_context(tn_tensor *const in[], size_t n);

/** What a builder gives where context_take refuses it: NULL without a context; else the tensor that
    says that another call had it. */
tn_tensor *call_refused(tn_context *c);

/** Why a call is refused before it begins: the context is broken, an operand is freed, of another
    context, invalid (the oldest failure), or NULL and not `optional` (a set of bits); or the list
    of operands is. It is told, and held for the caller; NULL: go on. */
failure *call_check(tn_context *c, const char *op, tn_tensor *const in[], size_t n,
                    uint64_t optional);

/** Runs body(arg) under the context's catch. A failure is told and held for the caller. */
failure *call_try(tn_context *c, const char *op, tn_tensor *const in[], size_t n,
                  void (*body)(void *arg), void *arg);

/** A new handle that carries a failure, which the caller no longer holds. */
tn_tensor *call_invalid(tn_context *c, failure *f);

#endif
