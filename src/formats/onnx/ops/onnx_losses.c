/* ONNX losses of classification: NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. The score
   of the target's class is gathered along axis 1 and weighted by the class; targets that are
   ignored count neither in the sum nor in the mean's weights. */
#include "formats/onnx/ops/onnx_builders.h"
#include "tensor/ops/operators.h"
#include "tensor/ops/type_promotion.h"

#include <string.h>

typedef struct loss {
  onnx_call *c;
  builder *b;
  value target;  /* classes; 0 where ignored */
  value ignored; /* no node: none is */
  value weight;  /* of each target; no node: all are 1 */
} loss;

static loss read_targets(onnx_call *c) {
  builder *b = onnx_builder(c);
  loss l = {.c = c, .b = b, .target = onnx_input(c, 1)};
  if (!dtype_is_int((dtype)l.target.node->dtype))
    onnx_fail(c, TN_ERR_DTYPE, "the targets are %s, not integers",
              dtype_name((dtype)l.target.node->dtype));
  l.target = build_cast(b, l.target, DT_I64);
  if (onnx_has_attribute(c, "ignore_index")) {
    l.ignored = build_eq(b, l.target, build_int(b, onnx_int_attribute(c, "ignore_index", 0)));
    l.target = build_where(b, l.ignored, build_int(b, 0), l.target);
  }
  if (onnx_has_input(c, 2)) {
    l.weight = build_take(b, value_widen(b, onnx_input(c, 2)), l.target, 0);
    if (l.ignored.node) l.weight = build_where(b, l.ignored, build_int(b, 0), l.weight);
  }
  return l;
}

/** The mean of losses by their weights. */
static value weighted_mean(const loss *l, value losses) {
  builder *b = l->b;
  value weight = l->weight;
  if (!weight.node && !l->ignored.node) return build_mean(b, losses, TN_ALL, false);
  if (!weight.node)
    weight = build_cast(b, build_logical_not(b, l->ignored), (dtype)losses.node->dtype);
  return build_div(b, build_sum(b, losses, TN_ALL, false), build_sum(b, weight, TN_ALL, false));
}

/** The loss of logarithms of probabilities, along axis 1. */
static value build_nll(onnx_call *c, value log_probabilities) {
  builder *b = onnx_builder(c);
  tn_axes classes = {.count = 1, .axis = {1}};
  const node *x = log_probabilities.node;
  if (x->rank < 2)
    onnx_fail(c, TN_ERR_SHAPE, "the scores have %u dimensions, expected 2 or more", x->rank);
  if (onnx_input(c, 1).node->rank != x->rank - 1)
    onnx_fail(c, TN_ERR_SHAPE, "the targets have %u dimensions, expected %u",
              onnx_input(c, 1).node->rank, x->rank - 1);
  loss l = read_targets(c);
  value index = build_unsqueeze(b, l.target, classes);
  value of_target = build_gather_elements(b, value_widen(b, log_probabilities), index, 1);
  value losses = build_neg(b, build_squeeze(b, of_target, classes));
  if (l.weight.node) losses = build_mul(b, losses, l.weight);
  if (l.ignored.node) losses = build_where(b, l.ignored, build_int(b, 0), losses);
  const char *reduction = onnx_string_attribute(c, "reduction", "mean");
  if (!strcmp(reduction, "sum"))
    losses = build_sum(b, losses, TN_ALL, false);
  else if (!strcmp(reduction, "mean"))
    losses = weighted_mean(&l, losses);
  else if (strcmp(reduction, "none"))
    onnx_fail(c, TN_ERR_FORMAT, "reduction is '%.50s', not none, sum or mean", reduction);
  return build_cast(b, losses, (dtype)onnx_input(c, 0).node->dtype);
}

void onnx_NegativeLogLikelihoodLoss(onnx_call *c) {
  c->outputs[0] = build_nll(c, onnx_input(c, 0));
}

void onnx_SoftmaxCrossEntropyLoss(onnx_call *c) {
  builder *b = onnx_builder(c);
  value log_probabilities = build_log_softmax(b, value_widen(b, onnx_input(c, 0)), 1);
  c->outputs[0] = build_nll(c, log_probabilities);
  if (onnx_wants_output(c, 1))
    c->outputs[1] = build_cast(b, log_probabilities, (dtype)onnx_input(c, 0).node->dtype);
}
