/* Opening and destroying contexts. */
#ifndef TENON_TENSOR_OPEN_H
#define TENON_TENSOR_OPEN_H

#include "tensor/context.h"

/** Frees a context that nobody uses, or one that was opened in part. */
void context_destroy(tn_context *c);

#endif
