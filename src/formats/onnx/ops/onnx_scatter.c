/* ONNX Scatter, ScatterElements and ScatterND: writes by index tensors, with an optional reduction,
   by the scatters of tensor/ops. */
#include "formats/onnx/ops/onnx_builders.h"
#include "tensor/ops/operators.h"

#include <string.h>

/** Reads attribute reduction: the operation that combines an update with the current element. */
static op read_reduction(const onnx_call *c) {
  static const struct {
    const char *name;
    op o;
  } reductions[] = {
      {"none", OP_SET}, {"add", OP_ADD}, {"mul", OP_MUL}, {"max", OP_MAX}, {"min", OP_MIN}};
  const char *name = onnx_string_attribute(c, "reduction", "none");
  for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
    if (!strcmp(name, reductions[i].name)) return reductions[i].o;
  onnx_fail(c, TN_ERR_FORMAT, "reduction is '%.50s', not none, add, mul, max or min", name);
}

static void check_updates(const onnx_call *c, op o) {
  dtype t = (dtype)onnx_input(c, 0).node->dtype, other = (dtype)onnx_input(c, 2).node->dtype;
  if (t != other)
    onnx_fail(c, TN_ERR_DTYPE, "the updates are %s, expected %s", dtype_name(other), dtype_name(t));
  if (t == DT_BOOL && o != OP_SET)
    onnx_fail(c, TN_ERR_DTYPE, "a reduction of bool is not supported");
}

void onnx_ScatterElements(onnx_call *c) {
  op o = read_reduction(c);
  check_updates(c, o);
  c->outputs[0] = build_scatter_elements(onnx_builder(c), onnx_input(c, 0), onnx_input(c, 1),
                                         onnx_input(c, 2), onnx_int_attribute(c, "axis", 0), o);
}

/** Scatter, of which ScatterElements without a reduction took the place. */
void onnx_Scatter(onnx_call *c) {
  check_updates(c, OP_SET);
  c->outputs[0] =
      build_scatter_elements(onnx_builder(c), onnx_input(c, 0), onnx_input(c, 1), onnx_input(c, 2),
                             onnx_int_attribute(c, "axis", 0), OP_SET);
}

void onnx_ScatterND(onnx_call *c) {
  op o = read_reduction(c);
  check_updates(c, o);
  c->outputs[0] =
      build_scatter_nd(onnx_builder(c), onnx_input(c, 0), onnx_input(c, 1), onnx_input(c, 2), o);
}
