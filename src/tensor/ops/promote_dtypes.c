/* Type promotion: the least type that holds the values of two types (the table in dtype.h), derived
   from kind, sign and width. */
#include "tensor/ops/op_helpers.h"

int type_kind(dtype t) { return dtype_is_float(t) ? 2 : t != DT_BOOL; }

static dtype wider(dtype a, dtype b) { return dtype_bits(a) >= dtype_bits(b) ? a : b; }

static dtype promote_floats(dtype a, dtype b) {
  return dtype_bits(a) == dtype_bits(b) ? DT_F32 : wider(a, b);
}

/** The narrowest signed type that holds both; f64 if there is none. */
static dtype promote_integers(dtype a, dtype b) {
  if (dtype_is_signed(a) == dtype_is_signed(b)) return wider(a, b);
  dtype s = dtype_is_signed(a) ? a : b, u = dtype_is_signed(a) ? b : a;
  if (dtype_bits(s) > dtype_bits(u)) return s;
  switch (dtype_bits(u)) {
  case 8: return DT_I16;
  case 16: return DT_I32;
  case 32: return DT_I64;
  default: return DT_F64;
  }
}

tn_dtype tn_promote(tn_dtype a, tn_dtype b) {
  if (!tn_dtype_size(a) || !tn_dtype_size(b)) return TN_UNDEFINED;
  dtype x = (dtype)a, y = (dtype)b;
  if (x == y) return a;
  if (type_kind(x) != type_kind(y)) return type_kind(x) > type_kind(y) ? a : b;
  return (tn_dtype)(dtype_is_float(x) ? promote_floats(x, y) : promote_integers(x, y));
}
