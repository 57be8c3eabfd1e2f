/* Structs of callers that begin with their size and may grow: a caller's, built with an older or a
   newer header, ends earlier or later than the library's own. */
#ifndef TENON_TENSOR_DESC_H
#define TENON_TENSOR_DESC_H

#include "base/diag.h"

#include <stddef.h>

/** Copies what is known of a caller's descriptor over `into`, which holds its INIT and has `bytes`
    bytes; NULL leaves the INIT, as its end does the fields that come after it. TN_ERR_ARGUMENT,
    naming `type`, where it is smaller than version 1 of its type, or where its tail is unknown and
    not zero: `into` then holds what is known all the same, for payloads to be destroyed. */
tn_status desc_read(diag *d, void *into, const void *from, size_t bytes, const char *type);

/** Copies a description of `bytes` bytes to a caller's struct as far as that goes and sets the rest
    of it to zero; its size stays. TN_ERR_ARGUMENT, and nothing is written, where it is NULL or
    smaller than version 1 of its type. */
tn_status desc_give(diag *d, void *to, const void *from, size_t bytes, const char *type);

#endif
