/* Operators that make tensors of sizes and numbers alone. */
#include "formats/onnx/elements.h"
#include "formats/onnx/ops.h"
#include "tensor/ops_common.h"

/** ⌈(limit − start) / delta⌉, at least 0: floats in f64, integers exactly. */
static value count_of(builder *b, value start, value limit, value delta) {
  value way = build_sub(b, limit, start);
  if (dtype_is_float((dtype)way.node->dtype)) {
    way = build_sub(b, build_cast(b, limit, DT_F64), build_cast(b, start, DT_F64));
    way = build_ceil(b, build_div(b, way, build_cast(b, delta, DT_F64)));
    return build_maximum(b, build_cast(b, way, DT_I64), build_int(b, 0));
  }
  value count = build_neg(b, build_floordiv(b, build_neg(b, way), delta));
  return build_maximum(b, count, build_int(b, 0));
}

void onnx_Range(onnx_call *c) {
  builder *b = onnx_builder(c);
  onnx_same_types(c);
  value in[3];
  dtype t = (dtype)onnx_input(c, 0).node->dtype;
  bool is_short = t == DT_F16 || t == DT_BF16;
  bool in_f32 = is_short && onnx_int(c, "stash_type", ONNX_F32) == ONNX_F32;
  for (size_t i = 0; i < 3; i++) {
    in[i] = onnx_scalar(c, i);
    if (in_f32) in[i] = build_cast(b, in[i], DT_F32);
  }
  if (in[2].node->op == OP_CONST && !node_int(in[2].node))
    onnx_fail(c, TN_ERR_FORMAT, "a step of 0");
  size_t n;
  const node *const *count = elements_of(c->m, count_of(b, in[0], in[1], in[2]), &n);
  if (!count)
    onnx_fail(c, TN_ERR_UNSUPPORTED,
              "how many numbers these are is known only when the model runs");
  value i = build_arange(b, ix_const(b->ir, 0), count[0], 1, DT_I64);
  i = build_cast(b, i, (dtype)in[0].node->dtype);
  c->outputs[0] = build_cast(b, build_add(b, in[0], build_mul(b, i, in[2])), t);
}

void onnx_EyeLike(onnx_call *c) {
  builder *b = onnx_builder(c);
  const node *x = onnx_input(c, 0).node;
  int64_t t = onnx_int(c, "dtype", x->dtype), k = onnx_int(c, "k", 0);
  if (x->rank != 2)
    onnx_fail(c, TN_ERR_SHAPE, "an input of %u dimensions, where 2 belong", x->rank);
  if (t < 0 || t >= DT_VOID || !dtype_is_data((dtype)t))
    onnx_fail(c, TN_ERR_UNSUPPORTED, "elements of type %s",
              t > 0 && t < DT_VOID && onnx_dtype_name((int)t) ? onnx_dtype_name((int)t) : "?");
  sizes s = sizes_of(x);
  const node *row = ex_iota(b, DT_I64, &s, 0), *column = ex_iota(b, DT_I64, &s, 1);
  const node *on = ex2(b, OP_EQ, ex2(b, OP_ADD, row, ex_int(b, row, k)), column);
  c->outputs[0] = value_of(ir_cast(b->ir, on, (dtype)t));
}

void onnx_Size(onnx_call *c) {
  builder *b = onnx_builder(c);
  c->outputs[0] = value_of(ex_size(b, ir_size(b->ir, onnx_input(c, 0).node), DT_I64));
}
