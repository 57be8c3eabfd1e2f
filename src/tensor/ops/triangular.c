/* Triangles of matrices: tril and triu, as in NumPy. Elements outside of the triangle are selected
   to be 0 by their coordinates; the diagonal k may vary. */
#include "tensor/context/symbolic_dims.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"

/** x where column ≤ row + k (lower) or row + k ≤ column (upper), else 0. */
static value triangle(builder *b, value x, const node *k, bool lower) {
  const node *n = value_typed(b, x).node;
  sizes s = sizes_of(n);
  if (n->rank < 2)
    diag_raise(b->diag, TN_ERR_SHAPE, "x has shape %s; its rank must be 2 or more",
               sizes_text_of_ranks(b, &s));
  const node *row = ex_iota(b, DT_I64, &s, s.rank - 2);
  const node *column = ex_iota(b, DT_I64, &s, s.rank - 1);
  if (!size_equals(k, 0)) row = ex_binary(b, OP_ADD, row, ex_fill(b, ex_size(b, k, DT_I64), &s));
  const node *is_kept = lower ? ex_binary(b, OP_LE, column, row) : ex_binary(b, OP_LE, row, column);
  return value_of(ex_where(b, is_kept, n, ex_int(b, n, 0)));
}

value build_tril(builder *b, value x, const node *k) { return triangle(b, x, k, true); }
value build_triu(builder *b, value x, const node *k) { return triangle(b, x, k, false); }

/* ---- Public functions ---- */

typedef struct triangle_call {
  value (*build)(builder *b, value x, const node *k);
  tn_dim k;
} triangle_call;

static value call_triangle(builder *b, const value in[], size_t n, const void *options) {
  const triangle_call *c = options;
  (void)n;
  return c->build(b, in[0], dim_to_node(b, c->k));
}

tn_tensor *tn_tril(tn_tensor *x, tn_dim k) {
  return op_call("tril", &x, 1, 0, call_triangle, &(triangle_call){build_tril, k});
}

tn_tensor *tn_triu(tn_tensor *x, tn_dim k) {
  return op_call("triu", &x, 1, 0, call_triangle, &(triangle_call){build_triu, k});
}
