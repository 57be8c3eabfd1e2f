/* Axes and shapes that are arguments of ONNX nodes: attributes in older operator versions, inputs
   in newer ones. Inputs may be computed by the model (shape_tensors.c). */
#include "formats/onnx/ops/axis_arguments.h"

#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "tensor/ops/operators.h"

tn_axes axes_from_list(onnx_call *c, const int64_t *list, size_t n) {
  tn_axes axes = {0};
  if (n > TN_MAX_RANK)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "the node lists %zu axes; at most %d are supported", n,
              TN_MAX_RANK);
  for (size_t i = 0; i < n; i++) {
    if (list[i] < -SIZES_MAX_RANK || list[i] > SIZES_MAX_RANK)
      onnx_fail(c, TN_ERR_SHAPE, "axis %lld is out of range", (long long)list[i]);
    axes.axis[axes.count++] = (int32_t)list[i];
  }
  return axes;
}

bool axes_argument(onnx_call *c, int64_t since, tn_axes *axes) {
  if (c->version < since) {
    const onnx_ints *l = onnx_ints_attribute(c, "axes");
    if (l) *axes = axes_from_list(c, l->at, l->n);
    return l != NULL;
  }
  if (!onnx_has_input(c, 1)) return false;
  size_t n;
  const int64_t *list = onnx_static_ints(c, 1, &n);
  *axes = axes_from_list(c, list, n);
  return true;
}

/** The sizes that elements of an input are. */
static sizes sizes_of_elements(onnx_call *c, const node *const *e, size_t n) {
  sizes s = {.rank = n};
  if (s.rank > SIZES_MAX_RANK)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "the shape has %zu dimensions; at most %d are supported",
              s.rank, SIZES_MAX_RANK);
  for (size_t i = 0; i < s.rank; i++) s.at[i] = e[i];
  return s;
}

sizes shape_argument(onnx_call *c, size_t input) {
  size_t n;
  const node *const *e = onnx_size_elements(c, input, &n);
  return sizes_of_elements(c, e, n);
}

sizes target_shape_argument(onnx_call *c, size_t input) {
  size_t n;
  const node *const *e = onnx_target_elements(c, input, &n);
  return sizes_of_elements(c, e, n);
}

void shape_argument_check_size(onnx_call *c, const sizes *s, size_t i) {
  builder *b = onnx_builder(c);
  const node *n = s->at[i];
  if (n->lo >= 0 || ix_prove_nonnegative(b->ir, n)) return;
  onnx_fail(c, TN_ERR_SHAPE, "size %zu of the shape, %s, %s negative", i, size_text(b, n),
            n->hi < 0 ? "is" : "may be");
}
