/* Matrix products with broadcast batch axes, as NumPy's matmul: both operands are expanded to
   (…, M, N, K), converted to the type of the sums, multiplied elementwise and summed over K, in f32
   for results of f16 and bf16. */
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/computed_sizes.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/reduction.h"
#include "tensor/ops/type_promotion.h"

/** The batch axes: all but the last two. */
static sizes batch_of(const node *x) {
  sizes s = sizes_of(x);
  s.rank -= 2;
  return s;
}

/** Multiplies (…, M, K) by (…, K, N). */
static const node *multiply_matrices(builder *b, const node *x, const node *y) {
  axis_list l = axes_from(0, y->rank);
  l.at[y->rank - 2] = y->rank - 1;
  l.at[y->rank - 1] = y->rank - 2;
  y = shape_permute(b, y, l.at); /* (…, N, K) */
  sizes all = sizes_broadcast(b, (sizes[]){batch_of(x), batch_of(y)}, 2);
  all = sizes_insert(b, all, all.rank, x->dims[x->rank - 2]);
  all = sizes_insert(b, all, all.rank, y->dims[y->rank - 2]);
  all = sizes_insert(b, all, all.rank, x->dims[x->rank - 1]);
  x = shape_broadcast(b, shape_unsqueeze(b, x, x->rank - 1u), &all);
  y = shape_broadcast(b, shape_unsqueeze(b, y, y->rank - 2u), &all);
  axis_list over = axes_from(all.rank - 1, all.rank);
  return node_reduce(b, OP_ADD, ex_binary(b, OP_MUL, x, y), &over, false);
}

value build_matmul(builder *b, value x, value y) {
  return build_matmul_as(b, x, y, values_promoted_dtype(b, (value[]){x, y}, 2));
}

value build_matmul_as(builder *b, value x, value y, dtype t) {
  const node *m = type_convert(b, x, accumulation_type(t)),
             *n = type_convert(b, y, accumulation_type(t));
  bool row = m->rank == 1, column = n->rank == 1;
  check_operand_type(b, RULE_NUMBER, t);
  if (!m->rank || !n->rank)
    diag_raise(b->diag, TN_ERR_SHAPE, "%s is a scalar: multiply by it with mul",
               m->rank ? "b" : "a");
  const node *k = m->dims[m->rank - 1], *other = n->dims[column ? 0 : n->rank - 2];
  sizes left = sizes_of(m), right = sizes_of(n);
  const node *agreed = size_agreed(b, k, other);
  if (!agreed)
    diag_raise(b->diag, TN_ERR_SHAPE, "inner sizes differ (a is %s, b is %s): %s is not %s",
               sizes_text(b, &left), sizes_text(b, &right), size_text(b, k), size_text(b, other));
  m = shape_agreed(b, m, m->rank - 1u, agreed);
  n = shape_agreed(b, n, column ? 0 : n->rank - 2u, agreed);
  if (row) m = shape_unsqueeze(b, m, 0);
  if (column) n = shape_unsqueeze(b, n, 1);
  const node *p = multiply_matrices(b, m, n);
  sizes s = sizes_of(p);
  rank_check(b, s.rank);
  if (column) s = sizes_remove(s, s.rank - 1);
  if (row) s = sizes_remove(s, s.rank - (column ? 1 : 2));
  return value_of(ex_cast(b, shape_reshape(b, p, &s), t));
}

static value call_matmul(builder *b, const value in[], size_t n, const void *options) {
  (void)n;
  (void)options;
  return build_matmul(b, in[0], in[1]);
}

static value call_matmul_as(builder *b, const value in[], size_t n, const void *options) {
  (void)n;
  dtype t = (dtype) * (const tn_dtype *)options;
  if (!tn_dtype_size((tn_dtype)t) || t == DT_BOOL)
    diag_raise(
        b->diag, TN_ERR_DTYPE,
        "the result cannot have type %s (%d): it is of an integer or float type, as i32 or f32, "
        "to which operands of any type are converted",
        tn_dtype_name((tn_dtype)t), (int)t);
  return build_matmul_as(b, in[0], in[1], t);
}

tn_tensor *tn_matmul_as(tn_tensor *a, tn_tensor *b, tn_dtype dtype) {
  return op_call("matmul_as", (tn_tensor *[]){a, b}, 2, 0, call_matmul_as, &dtype);
}

tn_tensor *tn_matmul(tn_tensor *a, tn_tensor *b) {
  return op_call("matmul", (tn_tensor *[]){a, b}, 2, 0, call_matmul, NULL);
}
