/* Operators that read and write by index. */
#include "formats/onnx/elements.h"
#include "formats/onnx/ops.h"
#include "tensor/build.h"

#include <string.h>

void onnx_Gather(onnx_call *c) {
  value x = onnx_input(c, 0), index = onnx_input(c, 1);
  c->outputs[0] = build_take(onnx_builder(c), x, index, onnx_int(c, "axis", 0));
}

void onnx_GatherElements(onnx_call *c) {
  value x = onnx_input(c, 0), index = onnx_input(c, 1);
  c->outputs[0] = build_gather_elements(onnx_builder(c), x, index, onnx_int(c, "axis", 0));
}

void onnx_GatherND(onnx_call *c) {
  int64_t batch = onnx_int(c, "batch_dims", 0);
  if (batch < 0 || batch > SIZES_RANK)
    onnx_fail(c, TN_ERR_SHAPE, "batch_dims is %lld", (long long)batch);
  c->outputs[0] =
      build_gather_nd(onnx_builder(c), onnx_input(c, 0), onnx_input(c, 1), (size_t)batch);
}

/** The one element of a tensor of rank 0 or 1, as a scalar. */
static value scalar_of(builder *b, value v) {
  sizes none = {0};
  return build_reshape(b, v, &none);
}

void onnx_OneHot(onnx_call *c) {
  builder *b = onnx_builder(c);
  value index = onnx_input(c, 0), values = onnx_input(c, 2);
  size_t n, rank = index.node->rank;
  const node *const *depth = elements_of(c->m, build_cast(b, onnx_scalar(c, 1), DT_I64), &n);
  if (!depth) onnx_fail(c, TN_ERR_UNSUPPORTED, "the depth is known only when the model runs");
  if (values.node->rank != 1 || !node_is_bits(values.node->dims[0], 2))
    onnx_fail(c, TN_ERR_SHAPE, "two values belong to input 2");
  if (depth[0]->lo < 0) onnx_fail(c, TN_ERR_SHAPE, "the depth is negative, or may be");
  size_t axis = onnx_axis(c, onnx_int(c, "axis", -1), rank + 1);
  if (dtype_is_float((dtype)index.node->dtype)) index = build_cast(b, index, DT_I64);
  value hot = build_one_hot(b, index, depth[0], DT_BOOL);
  tn_axes order = {.count = (int32_t)rank + 1};
  for (size_t i = 0; i <= rank; i++)
    order.axis[i] = (int32_t)(i < axis ? i : i == axis ? rank : i - 1);
  value off = scalar_of(b, build_slice(b, values, 0, ix_const(b->ir, 0), ix_const(b->ir, 1), 1));
  value on = scalar_of(b, build_slice(b, values, 0, ix_const(b->ir, 1), NULL, 1));
  c->outputs[0] = build_where(b, build_permute(b, hot, order), on, off);
}

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
    onnx_fail(c, TN_ERR_DTYPE, "updates of type %s, where %s belongs", dtype_name(other),
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
