/* Public data types: names, sizes and kinds, from the table in ir/core/dtypes.def; and elements of
   host arrays as numbers. */
#include "ir/core/dtype.h"

#include <string.h>
#include <tenon/dtype.h>

const char *tn_dtype_name(tn_dtype type) {
  if (type == TN_UNDEFINED) return "undefined";
  if (type == TN_STRING) return "string";
  return dtype_is_data((dtype)type) ? dtype_name((dtype)type) : "unknown";
}

size_t tn_dtype_size(tn_dtype type) {
  return dtype_is_data((dtype)type) ? dtype_bytes((dtype)type) : 0;
}

tn_dtype_kind tn_dtype_kind_of(tn_dtype type) {
  if (!dtype_is_data((dtype)type)) return TN_KIND_NONE;
  switch (dtype_facts_of((int)type)->values) {
  case DC_BOOL: return TN_KIND_BOOL;
  case DC_UINT: return TN_KIND_UNSIGNED;
  case DC_INT: return TN_KIND_SIGNED;
  case DC_FLOAT: return TN_KIND_FLOAT;
  default: return TN_KIND_NONE;
  }
}

double tn_element_get(tn_dtype type, const void *element) {
  dtype t = (dtype)type;
  double value;
  if (!dtype_is_data(t)) return 0;
  if (dtype_has_floats(t)) return scalar_to_double(t, scalar_load(t, element));
  uint64_t bits = scalar_cast(DT_F64, t, scalar_load(t, element));
  memcpy(&value, &bits, sizeof value);
  return value;
}

void tn_element_set(tn_dtype type, void *element, double value) {
  uint64_t bits;
  if (!dtype_is_data((dtype)type)) return;
  memcpy(&bits, &value, sizeof bits);
  scalar_store((dtype)type, element, scalar_cast((dtype)type, DT_F64, bits));
}
