#include "ir/dtype.h"

#include <tenon/dtype.h>

const char *tn_dtype_name(tn_dtype type) {
  if (type == TN_UNDEFINED) return "undefined";
  if (type == TN_STRING) return "string";
  return type > 0 && type < (tn_dtype)DT_VOID && dtype_get((int)type)->name
             ? dtype_get((int)type)->name
             : "unknown";
}

size_t tn_dtype_size(tn_dtype type) {
  bool known = type > 0 && type < (tn_dtype)DT_VOID && dtype_get((int)type)->name;
  return known ? dtype_get((int)type)->bytes : 0;
}
