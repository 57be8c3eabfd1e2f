/* Descriptors of callers: structs that begin with their size and may have grown since. */
#ifndef TENON_TENSOR_DESC_H
#define TENON_TENSOR_DESC_H

#include "base/diag.h"

#include <stddef.h>

/** Copies a caller's descriptor over `into`, which holds its INIT and has `bytes` bytes; NULL
   leaves the INIT. TN_ERR_ARGUMENT, naming `type`, where it is too small or has a tail that is not
   zero. */
tn_status desc_read(diag *d, void *into, const void *from, size_t bytes, const char *type);

#endif
