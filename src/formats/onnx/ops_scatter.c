/* Operators that write by index. */
#include "formats/onnx/ops.h"
#include "tensor/build.h"

#include <string.h>

/** How updates are combined with what is there. */
static op reduction_of(const onnx_call *c) {
  static const struct {
    const char *name;
    op o;
  } all[] = {{"none", OP_SET}, {"add", OP_ADD}, {"mul", OP_MUL}, {"max", OP_MAX}, {"min", OP_MIN}};
  const char *name = onnx_string(c, "reduction", "none");
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (!strcmp(name, all[i].name)) return all[i].o;
  onnx_fail(c, TN_ERR_FORMAT, "reduction is '%.50s', not none, add, mul, max or min", name);
}

static void check_updates(const onnx_call *c, op o) {
  dtype t = (dtype)onnx_input(c, 0).node->dtype, other = (dtype)onnx_input(c, 2).node->dtype;
  if (t != other)
    onnx_fail(c, TN_ERR_DTYPE, "updates have type %s, where %s belongs", dtype_name(other),
              dtype_name(t));
  if (t == DT_BOOL && o != OP_SET) onnx_fail(c, TN_ERR_DTYPE, "bools are not reduced");
}

void onnx_ScatterElements(onnx_call *c) {
  op o = reduction_of(c);
  check_updates(c, o);
  c->outputs[0] = build_scatter_elements(onnx_builder(c), onnx_input(c, 0), onnx_input(c, 1),
                                         onnx_input(c, 2), onnx_int(c, "axis", 0), o);
}

void onnx_ScatterND(onnx_call *c) {
  op o = reduction_of(c);
  check_updates(c, o);
  c->outputs[0] =
      build_scatter_nd(onnx_builder(c), onnx_input(c, 0), onnx_input(c, 1), onnx_input(c, 2), o);
}
