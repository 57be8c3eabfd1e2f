/* Keys that keep the order. A float's bits, read as a signed integer, are in order where the sign
   is not set, and in reverse where it is: the other bits are flipped there. An unsigned integer is
   in order once its highest bit is flipped. */
#include "tensor/ops/order_keys.h"

#include "tensor/ops/expressions.h"
#include "tensor/ops/type_promotion.h"

/** The signed integer type of as many bytes. */
static dtype signed_of(dtype t) {
  static const dtype of_bytes[] = {[1] = DT_I8, [2] = DT_I16, [4] = DT_I32, [8] = DT_I64};
  return of_bytes[dtype_bytes(t)];
}

static int64_t least_of(dtype t) { return INT64_MIN >> (64 - 8 * dtype_bytes(t)); }
static int64_t most_of(dtype t) { return INT64_MAX >> (64 - 8 * dtype_bytes(t)); }

/** The bits of infinity. */
static int64_t infinity_of(dtype t) {
  switch (t) {
  case DT_F16: return 0x7c00;
  case DT_BF16: return 0x7f80;
  case DT_F64: return INT64_C(0x7ff0000000000000);
  default: return 0x7f800000;
  }
}

/** Flips all bits but the sign of negative numbers: from bits of floats to integers, and back. */
static const node *flip_negative(builder *b, const node *bits, dtype t) {
  const node *is_negative = ex_binary(b, OP_LT, bits, ex_int(b, bits, 0));
  const node *flipped = ex_binary(b, OP_XOR, bits, ex_int(b, bits, most_of(t)));
  return ex_where(b, is_negative, flipped, bits);
}

static const node *keys_of_floats(builder *b, const node *x, bool is_exact) {
  dtype t = (dtype)x->dtype, of = signed_of(t);
  const node *bits = value_typed(b, build_bitcast(b, value_of(x), of)).node;
  const node *least = ex_int(b, bits, least_of(of)), *most = ex_int(b, bits, most_of(of));
  const node *key = flip_negative(b, bits, of);
  if (!is_exact) key = ex_where(b, ex_binary(b, OP_EQ, bits, least), ex_int(b, bits, 0), key);
  const node *size = ex_binary(b, OP_AND, bits, most);
  return ex_where(b, ex_binary(b, OP_LT, ex_int(b, bits, infinity_of(t)), size), most, key);
}

const node *node_order_keys(builder *b, const node *x, bool descending, bool is_exact) {
  dtype t = (dtype)x->dtype;
  if (dtype_is_storage(t)) x = ex_cast(b, x, t = storage_compute_type(t));
  const node *key = x;
  if (dtype_is_float(t)) {
    key = keys_of_floats(b, x, is_exact);
  } else if (t == DT_BOOL) {
    key = ex_cast(b, x, DT_I8);
  } else if (!dtype_is_signed(t)) {
    key = build_bitcast(b, value_of(x), signed_of(t)).node;
    key = ex_binary(b, OP_XOR, key, ex_int(b, key, least_of((dtype)key->dtype)));
  }
  return descending ? ex_binary(b, OP_XOR, key, ex_int(b, key, -1)) : key;
}

const node *node_of_order_keys(builder *b, const node *key, bool descending, dtype t) {
  dtype of = dtype_is_storage(t) ? storage_compute_type(t) : t;
  const node *x = descending ? ex_binary(b, OP_XOR, key, ex_int(b, key, -1)) : key;
  if (dtype_is_float(of)) {
    x = build_bitcast(b, value_of(flip_negative(b, x, (dtype)x->dtype)), of).node;
  } else if (of != DT_BOOL && !dtype_is_signed(of)) {
    x = ex_binary(b, OP_XOR, x, ex_int(b, x, least_of((dtype)x->dtype)));
    x = build_bitcast(b, value_of(x), of).node;
  }
  return ex_cast(b, x, t);
}
