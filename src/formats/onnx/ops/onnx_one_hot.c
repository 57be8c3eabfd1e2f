/* ONNX OneHot: compares indices with positions along a new axis, and selects one of two values. The
   depth may be a size that the run computes. */
#include "formats/onnx/importer/shape_tensors.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "tensor/ops/operators.h"

/** Reshapes a tensor of one element to a scalar. */
static value reshape_to_scalar(builder *b, value v) {
  sizes none = {0};
  return build_reshape(b, v, &none);
}

void onnx_OneHot(onnx_call *c) {
  builder *b = onnx_builder(c);
  value index = onnx_input(c, 0), values = onnx_input(c, 2);
  size_t n, rank = index.node->rank;
  const node *const *depth =
      computed_tensor_elements(c->m, build_cast(b, onnx_scalar_input(c, 1), DT_I64), 0,
                               ix_const(b->ir, ONNX_SIZE_MAX), true, &n);
  if (!depth)
    onnx_fail(c, TN_ERR_UNSUPPORTED,
              "the depth is known only when the model runs; " ONNX_STATIC_HINT);
  if (values.node->rank != 1 || !node_is_bits(values.node->dims[0], 2))
    onnx_fail(c, TN_ERR_SHAPE, "input 2 must have two elements");
  if (!ix_prove_nonnegative(b->ir, depth[0]))
    onnx_fail(c, TN_ERR_SHAPE, "the depth may be negative");
  size_t axis = onnx_normalise_axis(c, onnx_int_attribute(c, "axis", -1), rank + 1);
  if (dtype_is_float((dtype)index.node->dtype)) index = build_cast(b, index, DT_I64);
  value hot = build_one_hot(b, index, depth[0], DT_BOOL);
  tn_axes order = {.count = (int32_t)rank + 1};
  for (size_t i = 0; i <= rank; i++)
    order.axis[i] = (int32_t)(i < axis ? i : i == axis ? rank : i - 1);
  value off =
      reshape_to_scalar(b, build_slice(b, values, 0, ix_const(b->ir, 0), ix_const(b->ir, 1), 1));
  value on = reshape_to_scalar(b, build_slice(b, values, 0, ix_const(b->ir, 1), NULL, 1));
  c->outputs[0] = build_where(b, build_permute(b, hot, order), on, off);
}
