/* ONNX operators that search or sort an axis: ArgMax, ArgMin and TopK. */
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/operators.h"
#include "tensor/ops/reduction.h"

typedef value (*arg_builder)(builder *b, value x, int64_t axis, bool keepdims);

/** Builds the index of the extreme along an axis; select_last_index flips the axis. */
static void build_arg_extreme(onnx_call *c, arg_builder build) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  size_t axis = onnx_normalise_axis(c, onnx_int_attribute(c, "axis", 0), x.node->rank);
  bool keepdims = onnx_int_attribute(c, "keepdims", 1) != 0,
       last = onnx_int_attribute(c, "select_last_index", 0) != 0;
  axis_list l = axes_from(axis, axis + 1);
  x = value_of(axes_not_empty(b, value_typed(b, x).node, &l));
  const node *size = x.node->dims[axis];
  if (last) x = build_flip(b, x, (tn_axes){.count = 1, .axis = {(int32_t)axis}});
  value index = build(b, x, (int64_t)axis, keepdims);
  value end = value_of(ir_cast(b->ir, ix_add_const(b->ir, size, -1), DT_I64));
  c->outputs[0] = last ? build_sub(b, end, index) : index;
}

void onnx_ArgMax(onnx_call *c) { build_arg_extreme(c, build_argmax); }
void onnx_ArgMin(onnx_call *c) { build_arg_extreme(c, build_argmin); }

/** The number of elements, from an attribute or an input by version; `size`: of the axis. */
static const node *read_k(onnx_call *c, const node *size) {
  if (c->version < 10) return ix_const(onnx_builder(c)->ir, onnx_int_attribute(c, "k", 0));
  return onnx_bounded_size(c, 1, size);
}

void onnx_TopK(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  size_t axis = onnx_normalise_axis(c, onnx_int_attribute(c, "axis", -1), x.node->rank);
  const node *k = read_k(c, x.node->dims[axis]);
  build_topk(b, x, k, (int64_t)axis, onnx_int_attribute(c, "largest", 1) != 0, c->outputs);
}
