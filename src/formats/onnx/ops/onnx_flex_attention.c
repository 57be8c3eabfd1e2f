/* FlexAttention of ONNX's preview: attention whose scores and probabilities graphs of the node
   change. */
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/type_promotion.h"

#include <math.h>

/** The result of a graph of one input and output, of the input's shape and type; the input if the
    node has no such graph. */
static value change(onnx_call *c, const char *name, value x) {
  if (!onnx_has_attribute(c, name)) return x;
  const onnx_graph *g = onnx_graph_attribute(c, name);
  value y;
  if (g->inputs.n != 1 || g->outputs.n != 1)
    onnx_fail(c, TN_ERR_FORMAT, "graph '%s' has %zu inputs and %zu outputs, expected 1 and 1", name,
              g->inputs.n, g->outputs.n);
  onnx_import_body(c, g, &x, &y);
  sizes before = sizes_of(x.node), after = sizes_of(y.node);
  if (!sizes_equal(&before, &after))
    onnx_fail(c, TN_ERR_SHAPE, "graph '%s' makes shape %s of %s", name,
              sizes_text(onnx_builder(c), &after), sizes_text(onnx_builder(c), &before));
  return build_cast(onnx_builder(c), y, (dtype)x.node->dtype);
}

/** Keys or values for each head of the queries. */
static value repeat_heads(onnx_call *c, value x, const node *heads) {
  builder *b = onnx_builder(c);
  const node *own = x.node->dims[1];
  if (own == heads) return x;
  if (!node_is_const(own) || !node_is_const(heads) || node_int(own) < 1 ||
      node_int(heads) % node_int(own))
    onnx_fail(c, TN_ERR_SHAPE, "%s heads of queries are no multiple of %s heads",
              size_text(b, heads), size_text(b, own));
  return build_repeat(b, x, 1, ix_const(b->ir, node_int(heads) / node_int(own)));
}

static double read_scale(onnx_call *c, const node *size) {
  if (onnx_has_attribute(c, "scale")) return (double)onnx_float_attribute(c, "scale", 1);
  if (!node_is_const(size))
    onnx_fail_varying_size(c, size, "the size of heads varies, and there is no scale");
  return 1 / sqrt((double)node_int(size));
}

void onnx_preview_FlexAttention(onnx_call *c) {
  builder *b = onnx_builder(c);
  onnx_require_same_types(c);
  value q = onnx_input(c, 0), k = onnx_input(c, 1), v = onnx_input(c, 2);
  dtype t = (dtype)q.node->dtype,
        in = onnx_dtype_attribute(c, "softmax_precision", accumulation_type(t));
  for (size_t i = 0; i < 3; i++)
    if (onnx_input(c, i).node->rank != 4)
      onnx_fail(c, TN_ERR_SHAPE, "input %zu has %u dimensions, expected 4", i,
                onnx_input(c, i).node->rank);
  if (!dtype_is_float(t) || !dtype_is_float(in))
    onnx_fail(c, TN_ERR_DTYPE, "attention of other types than floats is not supported");
  value root = build_num(b, (double)sqrtf((float)read_scale(c, q.node->dims[3])));
  k = build_mul(b, repeat_heads(c, k, q.node->dims[1]), root);
  value scores = build_matmul(b, build_mul(b, q, root), build_swapaxes(b, k, 2, 3));
  scores = change(c, "score_mod", build_cast(b, scores, in));
  value p = change(c, "prob_mod", build_softmax(b, scores, 3));
  v = build_cast(b, repeat_heads(c, v, q.node->dims[1]), in);
  c->outputs[0] = build_cast(b, build_matmul(b, p, v), t);
}
