/* Versioned public structs, which begin with their size and grow at their end. The struct of a
   caller that was built with an older or a newer header ends earlier or later than the library's
   own. */
#ifndef TENON_TENSOR_CONTEXT_DESCRIPTOR_H
#define TENON_TENSOR_CONTEXT_DESCRIPTOR_H

#include "base/diag.h"

#include <stddef.h>

/** Copies the known fields of a caller's descriptor over `into`, which holds its INIT and has
    `bytes` bytes. NULL leaves the INIT; fields beyond the end of `from` keep theirs.
    TN_ERR_ARGUMENT, naming `type`, if `from` is smaller than version 1 of its type, or if an
    unknown field at its end is not zero: `into` holds the known fields even then, so that payloads
    can be destroyed. */
tn_status descriptor_read(diag *d, void *into, const void *from, size_t bytes, const char *type);

/** Copies a description of `bytes` bytes into a caller's struct as far as its size goes and zeroes
    the rest of it; the caller's size stays. TN_ERR_ARGUMENT, without writing, if `to` is NULL or
    smaller than version 1 of its type. */
tn_status descriptor_write(diag *d, void *to, const void *from, size_t bytes, const char *type);

#endif
