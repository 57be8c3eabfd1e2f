/* ONNX's LinearRegressor and LinearClassifier, what all predictors do with scores, and ZipMap,
   which names them. */
#include "formats/onnx/ops/enum_attribute.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "formats/onnx/ops/onnx_ml_attributes.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"

typedef enum transform { TRANSFORM_NONE, TRANSFORM_SOFTMAX, TRANSFORM_LOGISTIC } transform;

static const char *const transforms[] = {"NONE", "SOFTMAX", "LOGISTIC"};

value onnx_ml_post_transform(onnx_call *c, value scores) {
  builder *b = onnx_builder(c);
  switch ((transform)ENUM_ATTRIBUTE(c, "post_transform", transforms)) {
  case TRANSFORM_SOFTMAX: return build_softmax(b, scores, -1);
  case TRANSFORM_LOGISTIC: return build_sigmoid(b, scores);
  default: return scores;
  }
}

/** x · coefficientsᵀ + intercepts, for `outputs` rows of coefficients. */
static value linear_scores(onnx_call *c, int64_t outputs) {
  builder *b = onnx_builder(c);
  value x = onnx_ml_features(c, 0), w = onnx_ml_floats(c, "coefficients"),
        bias = onnx_ml_floats(c, "intercepts");
  if (x.node->rank == 1) x = build_unsqueeze(b, x, (tn_axes){.count = 1});
  if (x.node->rank != 2)
    onnx_fail(c, TN_ERR_SHAPE, "the input has %u dimensions, expected 1 or 2", x.node->rank);
  if (!w.node || outputs < 1 || node_int(w.node->dims[0]) % outputs)
    onnx_fail(c, TN_ERR_FORMAT, "the coefficients are not rows for %lld results",
              (long long)outputs);
  sizes s = {2, {ix_const(b->ir, outputs), ix_const(b->ir, node_int(w.node->dims[0]) / outputs)}};
  if (s.at[1] != x.node->dims[1])
    onnx_fail(c, TN_ERR_SHAPE, "there are %s coefficients for %s features", size_text(b, s.at[1]),
              size_text(b, x.node->dims[1]));
  w = build_cast(b, build_transpose(b, build_reshape(b, w, &s)), (dtype)x.node->dtype);
  value y = build_matmul(b, x, w);
  if (!bias.node) return y;
  if (!node_is_bits(bias.node->dims[0], (uint64_t)outputs) && !node_is_bits(bias.node->dims[0], 1))
    onnx_fail(c, TN_ERR_FORMAT, "there is not one intercept for each result");
  return build_add(b, y, build_cast(b, bias, (dtype)x.node->dtype));
}

void onnx_ml_LinearRegressor(onnx_call *c) {
  value y = linear_scores(c, onnx_int_attribute(c, "targets", 1));
  c->outputs[0] = build_cast(onnx_builder(c), onnx_ml_post_transform(c, y), DT_F32);
}

/** Two classes of one row of coefficients have scores of both signs; runtimes disagree about these
    without a function that makes probabilities of them, which is refused. */
void onnx_ml_LinearClassifier(onnx_call *c) {
  builder *b = onnx_builder(c);
  bool are_strings;
  value labels = onnx_ml_class_labels(c, "classlabels_ints", &are_strings),
        w = onnx_ml_floats(c, "coefficients");
  const node *x = onnx_input(c, 0).node;
  if (!labels.node) onnx_fail(c, TN_ERR_FORMAT, "there are no labels of classes");
  if (!x->rank || !node_is_const(x->dims[x->rank - 1u]) || node_int(x->dims[x->rank - 1u]) < 1 ||
      !w.node)
    onnx_fail(c, TN_ERR_SHAPE, "the number of features, or the coefficients, are not known");
  int64_t n = node_int(labels.node->dims[0]),
          rows = node_int(w.node->dims[0]) / node_int(x->dims[x->rank - 1u]);
  bool is_logistic = ENUM_ATTRIBUTE(c, "post_transform", transforms) == TRANSFORM_LOGISTIC;
  if (rows != n || n < 2) {
    if (rows != 1 || n != 2)
      onnx_fail(c, TN_ERR_FORMAT, "there are %lld rows of coefficients for %lld classes",
                (long long)rows, (long long)n);
    if (!is_logistic)
      onnx_fail(c, TN_ERR_UNSUPPORTED,
                "two classes of one row of coefficients are supported with LOGISTIC alone");
  }
  value y = linear_scores(c, rows);
  if (rows != n) y = build_concat(b, (value[]){build_neg(b, y), y}, 2, 1);
  y = build_cast(b, onnx_ml_post_transform(c, y), DT_F32);
  value label = build_take(b, labels, build_argmax(b, y, 1, false), 0);
  c->outputs[0] = are_strings ? onnx_strings(c, label) : label;
  c->outputs[1] = y;
}

/** A sequence of maps with the same keys is the matrix of their values: a row for each map, columns
    in the order of the keys. */
void onnx_ml_ZipMap(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = build_cast(b, onnx_input(c, 0), DT_F32);
  const onnx_ints *ints = onnx_ints_attribute(c, "classlabels_int64s");
  const onnx_attribute *texts =
      onnx_find_attribute(c, "classlabels_strings", ONNX_ATTRIBUTE_STRINGS);
  size_t keys = ints && ints->n ? ints->n : texts ? texts->strings.n : 0;
  if (x.node->rank == 1) x = build_unsqueeze(b, x, (tn_axes){.count = 1});
  if (x.node->rank != 2 || x.node->dims[1] != ix_const(b->ir, (int64_t)keys))
    onnx_fail(c, TN_ERR_SHAPE, "the input is not rows of %zu values, one for each key", keys);
  c->outputs[0] = x;
}
