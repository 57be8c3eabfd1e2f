/* Sliding windows of convolution and pooling (sliding_window_view in NumPy, unfold in PyTorch): a
   view of movements whose index expressions are sums of coordinates, without a copy (im2col).

   An axis of size i is repeated without end and cut into K rows of i + d: row k starts d elements
   further round than the row before, at element k·d. Of each row, every s-th element is taken, as
   far as the windows go; element o of row k is then x[k·d + o·s]. The place of an element in the
   repeated axis is k·(i + d) + o·s, and k·i of it vanish modulo i. */
#include "tensor/ops/sliding_windows.h"

#include "ir/core/shape_inference.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "tensor/ops/axes_and_broadcasting.h"

void window_check(builder *b, const char *option, size_t axis, int64_t v, int64_t least,
                  int64_t most) {
  if (v < least || v > most)
    diag_raise(b->diag, TN_ERR_ARGUMENT, "%s[%zu] is %lld, which is not from %lld to %lld", option,
               axis, (long long)v, (long long)least, (long long)most);
}

void window_check_fits(builder *b, int64_t window, const node *size, const node *rest) {
  if (ix_prove_nonnegative(b->ir, rest)) return;
  b->needed = rest;
  diag_raise(b->diag, TN_ERR_SHAPE, "a window of %lld %s larger than its padded axis, of size %s",
             (long long)window, rest->hi < 0 ? "is" : "may be", size_text(b, size));
}

/** The windows of one axis: (…, D, …) gives (…, K, O, …). */
static const node *windows_of_axis(builder *b, const node *x, size_t axis, int64_t kernel,
                                   int64_t stride, int64_t dilation, const node *output) {
  ir *g = b->ir;
  if (size_equals(output, 1)) stride = 1;
  if (kernel == 1)
    return shape_slice(b, shape_unsqueeze(b, x, axis), axis + 1, ix_const(g, 0), output, stride);
  const node *size = x->dims[axis], *row = ix_add_const(g, size, dilation);
  const node *all = ix_scale(g, row, kernel);
  sizes s = sizes_of(x);
  /* K·(D + d) ≤ (K + 2)·D where the last of K windows is inside, as then (K − 1)·d < D */
  int64_t repeats = kernel + 2;
  if (size->op == OP_CONST) repeats = floor_div(node_int(all) - 1, node_int(size)) + 1;
  sizes wide = sizes_insert(b, s, axis, ix_const(g, repeats));
  sizes flat = sizes_with(s, axis, ix_scale(g, size, repeats));
  x = shape_expand(b, shape_unsqueeze(b, x, axis), &wide);
  x = shape_slice(b, shape_reshape(b, x, &flat), axis, ix_const(g, 0), all, 1);
  sizes rows = sizes_insert(b, sizes_with(s, axis, row), axis, ix_const(g, kernel));
  x = shape_reshape(b, x, &rows);
  return shape_slice(b, x, axis + 1, ix_const(g, 0), output, stride);
}

const node *node_windows(builder *b, const node *x, size_t n, const int64_t kernel[],
                         const int64_t stride[], const int64_t dilation[],
                         const node *const output[]) {
  size_t lead = x->rank - n;
  for (size_t i = n; i-- > 0;)
    x = windows_of_axis(b, x, lead + i, kernel[i], stride[i], dilation[i], output[i]);
  int64_t axes[SIZES_MAX_RANK];
  for (size_t i = 0; i < lead; i++) axes[i] = (int64_t)i;
  for (size_t i = 0; i < n; i++) {
    axes[lead + i] = (int64_t)(lead + 2 * i + 1);
    axes[lead + n + i] = (int64_t)(lead + 2 * i);
  }
  return shape_permute(b, x, axes);
}
