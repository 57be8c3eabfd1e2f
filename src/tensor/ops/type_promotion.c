/* Type promotion: the least type that holds the values of all operands (the table in dtype.h),
   derived from kind, sign and width as in NumPy. Weak scalars (tn_int, tn_num) adopt the type of
   the tensors, as Python's numbers do in PyTorch. Also the type rules of ops.h, and the type to
   compute in: f32 for f16 and bf16, f32 or 8 bits for storage types. */
#include "tensor/ops/type_promotion.h"

#include "ir/index/build_tensor.h"
#include "ir/interp/interp.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"

/* ---- Promotion ---- */

int type_kind(dtype t) { return dtype_has_floats(t) ? 2 : t != DT_BOOL; }

static dtype wider(dtype a, dtype b) { return dtype_bits(a) >= dtype_bits(b) ? a : b; }

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
  if (dtype_is_storage(x) || dtype_is_storage(y)) return TN_UNDEFINED;
  if (type_kind(x) != type_kind(y)) return type_kind(x) > type_kind(y) ? a : b;
  if (!dtype_is_float(x)) return (tn_dtype)promote_integers(x, y);
  return dtype_bits(x) == dtype_bits(y) ? TN_F32 : (tn_dtype)wider(x, y);
}

static _Noreturn void refuse_promotion(builder *b, dtype t, dtype u) {
  diag_raise(b->diag, TN_ERR_DTYPE, "%s and %s do not meet in a type: cast the operands first",
             dtype_name(t), dtype_name(u));
}

promoted_type promote_operands(builder *b, const value v[], size_t n) {
  promoted_type p = {DT_BOOL, WEAK_NO};
  weakness weak = WEAK_NO;
  int highest = -1; /* kind of the typed operands; those of lower kinds do not count */
  for (size_t i = 0; i < n; i++) {
    if (!v[i].node) continue;
    if (v[i].weak > weak) weak = v[i].weak;
    if (v[i].weak) continue;
    dtype t = (dtype)v[i].node->dtype;
    bool is_stored = dtype_is_storage(t) || dtype_is_storage(p.dtype);
    if (highest >= 0 && t != p.dtype && is_stored) refuse_promotion(b, p.dtype, t);
    if (type_kind(t) > highest) p.dtype = t;
    if (type_kind(t) == highest) p.dtype = (dtype)tn_promote((tn_dtype)p.dtype, (tn_dtype)t);
    if (type_kind(t) > highest) highest = type_kind(t);
  }
  if (highest < 0) return (promoted_type){weak == WEAK_NUM ? DT_F64 : DT_I64, weak};
  if (weak == WEAK_NUM && !dtype_has_floats(p.dtype)) p.dtype = DT_F32;
  if (weak == WEAK_INT && p.dtype == DT_BOOL) p.dtype = DT_I64;
  return p;
}

dtype values_promoted_dtype(builder *b, const value v[], size_t n) {
  promoted_type p = promote_operands(b, v, n);
  return p.weak == WEAK_NUM ? DT_F32 : p.dtype;
}

/* ---- Rules ---- */

void check_operand_type(builder *b, rule r, dtype t) {
  const char *supported = NULL;
  if (r == RULE_NUMBER && t == DT_BOOL) supported = "integers and floats";
  if (r == RULE_BITS && dtype_has_floats(t)) supported = "bools and integers";
  if (r == RULE_SHIFT && !dtype_has_ints(t)) supported = "integers";
  if (supported)
    diag_raise(b->diag, TN_ERR_DTYPE, "type %s is not supported, only %s: cast the operands first",
               dtype_name(t), supported);
}

promoted_type float_result_type(promoted_type p) {
  if (dtype_has_floats(p.dtype)) return p;
  return p.weak ? (promoted_type){DT_F64, WEAK_NUM} : (promoted_type){DT_F32, WEAK_NO};
}

dtype accumulation_type(dtype t) {
  if (dtype_is_storage(t)) return storage_compute_type(t);
  return t == DT_F16 || t == DT_BF16 ? DT_F32 : t;
}

value value_widen(builder *b, value x) {
  return build_cast(b, x, accumulation_type((dtype)x.node->dtype));
}

dtype sum_type(dtype t) {
  if (dtype_has_floats(t)) return t;
  return dtype_facts_of(t)->values == DC_UINT ? DT_U64 : DT_I64;
}

/* ---- Conversion ---- */

value value_of(const node *n) { return (value){.node = n, .weak = WEAK_NO}; }

const node *constant_convert(builder *b, const node *n, dtype to) {
  return ir_const_bits(b->ir, to, scalar_cast(to, (dtype)n->dtype, (uint64_t)node_int(n)));
}

const node *type_convert(builder *b, value v, dtype to) {
  if (!v.weak) return ex_cast(b, v.node, to);
  const node *n = constant_convert(b, v.node, to);
  if (v.weak == WEAK_INT && dtype_has_ints(to)) {
    int64_t number = node_int(v.node);
    bool negative = number < 0 && !dtype_has_signs(to);
    int64_t held = (int64_t)scalar_cast(DT_I64, to, (uint64_t)node_int(n));
    if (negative || held != number)
      diag_raise(b->diag, TN_ERR_DTYPE,
                 "the scalar %lld is out of the range of %s: cast the tensor to a wider type",
                 (long long)number, dtype_name(to));
  }
  return n;
}

value value_typed(builder *b, value v) {
  if (!v.weak) return v;
  return value_of(constant_convert(b, v.node, v.weak == WEAK_NUM ? DT_F32 : DT_I64));
}

/* ---- Elementwise operands ---- */

operands operands_promote(builder *b, rule r, const value v[], size_t n) {
  operands o = {.result = promote_operands(b, v, n)};
  sizes s[MOST_OPERANDS];
  check_operand_type(b, r, o.result.dtype);
  if (r == RULE_FLOAT) o.result = float_result_type(o.result);
  bool is_stored = dtype_is_storage(o.result.dtype);
  dtype wide = accumulation_type(o.result.dtype);
  dtype t = r == RULE_FLOAT ? wide : o.result.dtype;
  for (size_t i = 0; i < n; i++) s[i] = sizes_of(v[i].node);
  sizes all = sizes_broadcast(b, s, n);
  for (size_t i = 0; i < n; i++) {
    bool is_exact = is_stored && v[i].weak && dtype_has_floats(o.result.dtype); /* no saturation */
    const node *x = type_convert(b, v[i], is_exact ? wide : t);
    o.at[i] = shape_broadcast(b, is_stored ? ex_cast(b, x, wide) : x, &all);
  }
  return o;
}

/** Folds an expression of weak scalars to a constant, whose value decides which types it fits. */
static const node *fold_weak(builder *b, const node *n) {
  interp_env none = {0};
  interp_array result;
  if (interp_tensor(&none, &n, 1, &result, b->arena) != TN_OK) diag_rethrow(b->arena->diag);
  return ir_const_bits(b->ir, (dtype)n->dtype, scalar_load((dtype)n->dtype, result.data));
}

value operands_result(builder *b, const operands *o, const node *n) {
  bool compares = n->dtype == DT_BOOL;
  if (!compares) n = ex_cast(b, n, o->result.dtype);
  if (compares || !o->result.weak) return value_of(n);
  return (value){.node = fold_weak(b, n), .weak = o->result.weak};
}

float_operand float_operand_of(builder *b, value x) {
  x = value_typed(b, x);
  promoted_type p = float_result_type((promoted_type){(dtype)x.node->dtype, WEAK_NO});
  return (float_operand){.x = ex_cast(b, x.node, accumulation_type(p.dtype)), .result = p.dtype};
}
