/* ONNX Gather, GatherElements, GatherND and ReverseSequence: reads by index tensors, by the gathers
   of tensor/ops. */
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/operators.h"

void onnx_Gather(onnx_call *c) {
  value x = onnx_input(c, 0), index = onnx_input(c, 1);
  c->outputs[0] = build_take(onnx_builder(c), x, index, onnx_int_attribute(c, "axis", 0));
}

void onnx_GatherElements(onnx_call *c) {
  value x = onnx_input(c, 0), index = onnx_input(c, 1);
  c->outputs[0] =
      build_gather_elements(onnx_builder(c), x, index, onnx_int_attribute(c, "axis", 0));
}

void onnx_GatherND(onnx_call *c) {
  int64_t batch = onnx_int_attribute(c, "batch_dims", 0);
  if (batch < 0 || batch > SIZES_MAX_RANK)
    onnx_fail(c, TN_ERR_SHAPE, "batch_dims is %lld, not in 0 … %d", (long long)batch,
              SIZES_MAX_RANK);
  c->outputs[0] =
      build_gather_nd(onnx_builder(c), onnx_input(c, 0), onnx_input(c, 1), (size_t)batch);
}

/** Reverses the first entries of each sequence, as many as its length. */
void onnx_ReverseSequence(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0), length = build_cast(b, onnx_input(c, 1), DT_I64);
  int64_t time = onnx_int_attribute(c, "time_axis", 0),
          batch = onnx_int_attribute(c, "batch_axis", 1);
  sizes s = sizes_of(x.node);
  if (s.rank < 2 || time == batch || time < 0 || time > 1 || batch < 0 || batch > 1)
    onnx_fail(c, TN_ERR_SHAPE, "axes %lld and %lld are not the first two of %zu", (long long)time,
              (long long)batch, s.rank);
  if (length.node->rank != 1 || length.node->dims[0] != s.at[batch])
    onnx_fail(c, TN_ERR_SHAPE, "there is not one length for each sequence");
  value at = build_arange(b, ix_const(b->ir, 0), s.at[time], 1, DT_I64);
  tn_axes behind = {.count = 1, .axis = {1}};
  if (batch) at = build_unsqueeze(b, at, behind);
  if (!batch) length = build_unsqueeze(b, length, behind);
  value back = build_sub(b, build_sub(b, length, build_int(b, 1)), at);
  value index = build_where(b, build_lt(b, at, length), back, at);
  sizes column = sizes_of(index.node);
  while (column.rank < s.rank) column.at[column.rank++] = ix_const(b->ir, 1);
  index = build_expand(b, build_reshape(b, index, &column), &s);
  c->outputs[0] = build_gather_elements(b, x, index, time);
}
