/* Helpers of operator builders: promotion of operand types (weak scalars adopt the type of
   tensors), the types that rules accept, and constructors of expressions. */
#include "tensor/ops/op_helpers.h"

#include "base/str.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/interp/interp.h"

#include <string.h>

/* ---- Types ---- */

value value_of(const node *n) { return (value){.node = n, .weak = WEAK_NO}; }

static bool is_half(dtype t) { return t == DT_F16 || t == DT_BF16; }

/** The least upper bound of those of the highest kind. */
static bool meet_typed(const value v[], size_t n, dtype *meet) {
  int highest = -1;
  for (size_t i = 0; i < n; i++) {
    if (!v[i].node || v[i].weak) continue;
    dtype t = (dtype)v[i].node->dtype;
    if (type_kind(t) > highest) *meet = t;
    if (type_kind(t) == highest) *meet = (dtype)tn_promote((tn_dtype)*meet, (tn_dtype)t);
    if (type_kind(t) > highest) highest = type_kind(t);
  }
  return highest >= 0;
}

meeting promote_operands(const value v[], size_t n) {
  meeting m = {DT_BOOL, WEAK_NO};
  weakness weak = WEAK_NO;
  for (size_t i = 0; i < n; i++)
    if (v[i].node && v[i].weak > weak) weak = v[i].weak;
  if (!meet_typed(v, n, &m.dtype)) return (meeting){weak == WEAK_NUM ? DT_F64 : DT_I64, weak};
  if (weak == WEAK_NUM && !dtype_is_float(m.dtype)) m.dtype = DT_F32;
  if (weak == WEAK_INT && m.dtype == DT_BOOL) m.dtype = DT_I64;
  return m;
}

dtype values_promoted_dtype(const value v[], size_t n) {
  meeting m = promote_operands(v, n);
  return m.weak == WEAK_NUM ? DT_F32 : m.dtype;
}

static bool rule_accepts(rule r, dtype t) {
  switch (r) {
  case RULE_NUMBER: return t != DT_BOOL;
  case RULE_BITS: return !dtype_is_float(t);
  case RULE_SHIFT: return dtype_is_int(t);
  default: return true;
  }
}

void check_operand_type(builder *b, rule r, dtype t) {
  static const char *const takes[] = {[RULE_NUMBER] = "integers and floats",
                                      [RULE_BITS] = "bools and integers",
                                      [RULE_SHIFT] = "integers"};
  if (!rule_accepts(r, t))
    diag_raise(b->diag, TN_ERR_DTYPE, "takes %s, not %s", takes[r], dtype_name(t));
}

meeting floating_result_type(meeting m) {
  if (dtype_is_float(m.dtype)) return m;
  return m.weak ? (meeting){DT_F64, WEAK_NUM} : (meeting){DT_F32, WEAK_NO};
}

dtype accumulation_type(dtype t) { return is_half(t) ? DT_F32 : t; }

static const node *convert_constant(builder *b, const node *n, dtype to) {
  return ir_const_bits(b->ir, to, scalar_cast(to, (dtype)n->dtype, (uint64_t)node_int(n)));
}

const node *type_convert(builder *b, value v, dtype to) {
  if (!v.weak) return ir_cast(b->ir, v.node, to);
  const node *n = convert_constant(b, v.node, to);
  if (v.weak == WEAK_INT && dtype_is_int(to)) {
    int64_t number = node_int(v.node);
    bool negative = number < 0 && !dtype_is_signed(to);
    if (negative || node_int(n) != number)
      diag_raise(b->diag, TN_ERR_DTYPE, "%lld does not fit %s", (long long)number, dtype_name(to));
  }
  return n;
}

value value_typed(builder *b, value v) {
  if (!v.weak) return v;
  return value_of(convert_constant(b, v.node, v.weak == WEAK_NUM ? DT_F32 : DT_I64));
}

operands operands_promote(builder *b, rule r, const value v[], size_t n) {
  operands o = {.result = promote_operands(v, n)};
  sizes s[MOST_OPERANDS];
  check_operand_type(b, r, o.result.dtype);
  if (r == RULE_FLOAT) o.result = floating_result_type(o.result);
  dtype t = r == RULE_FLOAT ? accumulation_type(o.result.dtype) : o.result.dtype;
  for (size_t i = 0; i < n; i++) s[i] = sizes_of(v[i].node);
  sizes all = sizes_broadcast(b, s, n);
  for (size_t i = 0; i < n; i++) o.at[i] = shape_broadcast(b, type_convert(b, v[i], t), &all);
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
  if (!compares) n = ir_cast(b->ir, n, o->result.dtype);
  if (compares || !o->result.weak) return value_of(n);
  return (value){.node = fold_weak(b, n), .weak = o->result.weak};
}

floating floating_operand(builder *b, value x) {
  x = value_typed(b, x);
  meeting m = floating_result_type((meeting){(dtype)x.node->dtype, WEAK_NO});
  return (floating){.x = ir_cast(b->ir, x.node, accumulation_type(m.dtype)), .result = m.dtype};
}

/* ---- Expressions ---- */

const node *ex_unary(builder *b, op o, const node *x) { return ir_op1(b->ir, o, x); }
const node *ex_binary(builder *b, op o, const node *x, const node *y) {
  return ir_op2(b->ir, o, x, y);
}

const node *ex_where(builder *b, const node *c, const node *x, const node *y) {
  return ir_op3(b->ir, OP_WHERE, c, x, y);
}

const node *ex_num(builder *b, const node *like, double v) {
  dtype t = (dtype)like->dtype;
  const node *n = dtype_is_float(t) ? ir_const(b->ir, t, v) : ir_const_int(b->ir, t, (int64_t)v);
  return ir_fill(b->ir, n, like->rank, like->dims);
}

const node *ex_int(builder *b, const node *like, int64_t v) {
  return ir_fill(b->ir, ir_const_int(b->ir, (dtype)like->dtype, v), like->rank, like->dims);
}

const node *ex_binary_num(builder *b, op o, const node *x, double v) {
  return ex_binary(b, o, x, ex_num(b, x, v));
}

const node *ex_iota(builder *b, dtype t, const sizes *shape, size_t axis) {
  return ir_iota(b->ir, t, shape->rank, shape->at, (int64_t)axis);
}

const node *ex_size(builder *b, const node *size, dtype t) {
  return size->op == OP_CONST ? convert_constant(b, size, t) : ir_cast(b->ir, size, t);
}

const node *ex_fill(builder *b, const node *scalar, const sizes *shape) {
  return ir_fill(b->ir, scalar, shape->rank, shape->at);
}

const node *ex_reduce(builder *b, op o, const node *x, const axis_list *axes, bool keepdims) {
  dtype t = (dtype)x->dtype;
  sizes kept = sizes_of(x);
  for (size_t i = 0; i < axes->n; i++)
    kept = sizes_with(kept, (size_t)axes->at[i], ix_const(b->ir, 1));
  if (axes->n) {
    if (o == OP_ADD || o == OP_MUL) x = ir_cast(b->ir, x, accumulation_type(t));
    x = ir_cast(b->ir, ir_reduce(b->ir, x, o, axes->n, axes->at), t);
  }
  return keepdims ? shape_reshape(b, x, &kept) : x;
}
