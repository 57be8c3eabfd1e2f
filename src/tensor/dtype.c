#include "ir/dtype.h"

#include <tenon/dtype.h>

const char *tn_dtype_name(tn_dtype type) {
  if (type == TN_UNDEFINED) return "undefined";
  if (type == TN_STRING) return "string";
  return dtype_is_data((dtype)type) ? dtype_name((dtype)type) : "unknown";
}

size_t tn_dtype_size(tn_dtype type) {
  return dtype_is_data((dtype)type) ? dtype_bytes((dtype)type) : 0;
}
