#include "tensor/desc.h"

#include <string.h>

tn_status desc_read(diag *d, void *into, const void *from, size_t bytes, const char *type) {
  size_t given;
  if (!from) return TN_OK;
  memcpy(&given, from, sizeof given);
  if (given < bytes)
    return diag_set(d, TN_ERR_ARGUMENT, "%s.size is %zu, not %zu: begin with its INIT", type, given,
                    bytes);
  for (size_t i = bytes; i < given; i++)
    if (((const unsigned char *)from)[i])
      return diag_set(d, TN_ERR_ARGUMENT, "%s has a field that this library does not know", type);
  memcpy(into, from, bytes);
  return TN_OK;
}
