/* Places in sorted elements (searchsorted), by bisection: each step reads one element, and the
   number of steps follows from the most elements that there can be. Elements are compared as
   integer keys (order_keys.h). */
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/order_keys.h"
#include "tensor/ops/type_promotion.h"

static void check_shapes(builder *b, const node *sorted, const node *values) {
  sizes s = sizes_of(sorted), v = sizes_of(values);
  bool fits = s.rank == 1 || (s.rank && s.rank == v.rank);
  for (size_t i = 0; fits && i + 1 < s.rank; i++) fits = s.at[i] == v.at[i];
  if (!fits)
    diag_raise(
        b->diag, TN_ERR_SHAPE,
        "the sorted elements have shape %s and the values %s; the former must have one axis, or "
        "all axes of the values but the last before their own",
        sizes_text(b, &s), sizes_text(b, &v));
}

/** The keys of sorted elements at positions (i64) of the values' shape. */
static const node *keys_at(builder *b, const node *key, const node *at) {
  const node *index[SIZES_MAX_RANK];
  sizes s = sizes_of(at);
  for (size_t i = 0; i + 1 < key->rank; i++) index[i] = ex_iota(b, DT_I64, &s, i);
  index[key->rank - 1] = at;
  return ir_gather(b->ir, key, index);
}

value build_searchsorted(builder *b, value sorted, value values, bool right) {
  value both[2] = {sorted, values};
  dtype t = values_promoted_dtype(b, both, 2);
  const node *x = type_convert(b, sorted, t), *v = type_convert(b, values, t);
  check_shapes(b, x, v);
  const node *size = x->dims[x->rank - 1], *key = node_order_keys(b, x, false, false);
  const node *own = node_order_keys(b, v, false, false);
  sizes s = sizes_of(v);
  const node *at = ex_fill(b, ir_const_int(b->ir, DT_I64, 0), &s);
  const node *n = ex_fill(b, ex_size(b, size, DT_I64), &s);
  int64_t step = 1;
  while (step <= size->hi / 2) step *= 2;
  for (; step; step /= 2) {
    const node *next = ex_binary(b, OP_ADD, at, ex_int(b, at, step));
    const node *other = keys_at(b, key, ex_binary(b, OP_SUB, next, ex_int(b, at, 1)));
    const node *is_outside = ex_binary(b, OP_LT, n, next);
    const node *is_after = right ? ex_binary(b, OP_LT, own, other)
                                 : ex_binary(b, OP_XOR, ex_binary(b, OP_LT, other, own),
                                             ex_fill(b, ir_const_bits(b->ir, DT_BOOL, 1), &s));
    at = ex_where(b, ex_binary(b, OP_OR, is_outside, is_after), at, next);
  }
  return value_of(at);
}

/* ---- Public function ---- */

static value call_searchsorted(builder *b, const value in[], size_t n, const void *options) {
  (void)n;
  return build_searchsorted(b, in[0], in[1], *(const bool *)options);
}

tn_tensor *tn_searchsorted(tn_tensor *sorted, tn_tensor *values, bool right) {
  return op_call("searchsorted", (tn_tensor *[]){sorted, values}, 2, 0, call_searchsorted, &right);
}
