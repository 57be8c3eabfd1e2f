/* ONNX Constant, ConstantOfShape and Identity: constant tensors from attributes. */
#include "formats/onnx/ops/axis_arguments.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "tensor/ops/op_helpers.h"

void onnx_Identity(onnx_call *c) { c->outputs[0] = onnx_input(c, 0); }

/** A constant over the numbers of an attribute, which live as long as the model. */
static value constant_from_list(onnx_call *c, onnx_dtype t, const void *at, size_t n, size_t size) {
  onnx_tensor list = {.name = "", .dtype = t, .elements = n, .bytes = n * size, .data = at};
  vec_push(onnx_builder(c)->arena, &list.dims, (int64_t)n);
  return onnx_constant_tensor(c, arena_copy(onnx_builder(c)->arena, &list, sizeof list));
}

void onnx_Constant(onnx_call *c) {
  builder *b = onnx_builder(c);
  const onnx_attribute *a = c->node->attributes.at;
  if (c->node->attributes.n != 1 || *a->ref_name)
    onnx_fail(c, TN_ERR_FORMAT, "it has %zu attributes, where one value belongs",
              c->node->attributes.n);
  switch (a->type) {
  case ONNX_ATTRIBUTE_TENSOR: c->outputs[0] = onnx_constant_tensor(c, a->t); break;
  case ONNX_ATTRIBUTE_INT: c->outputs[0] = value_of(ir_const_int(b->ir, DT_I64, a->i)); break;
  case ONNX_ATTRIBUTE_FLOAT: c->outputs[0] = value_of(ir_const(b->ir, DT_F32, (double)a->f)); break;
  case ONNX_ATTRIBUTE_INTS:
    c->outputs[0] = constant_from_list(c, ONNX_I64, a->ints.at, a->ints.n, sizeof *a->ints.at);
    break;
  case ONNX_ATTRIBUTE_FLOATS:
    c->outputs[0] =
        constant_from_list(c, ONNX_F32, a->floats.at, a->floats.n, sizeof *a->floats.at);
    break;
  default: onnx_fail(c, TN_ERR_UNSUPPORTED, "%s is not supported", a->name);
  }
}

/** The one element of a tensor. */
static value scalar(onnx_call *c, const onnx_tensor *t) {
  onnx_tensor one = *t;
  one.dims.n = 0;
  return onnx_constant_tensor(c, &one);
}

void onnx_ConstantOfShape(onnx_call *c) {
  builder *b = onnx_builder(c);
  const onnx_tensor *t = onnx_tensor_attribute(c, "value");
  sizes s = shape_argument(c, 0);
  if (t && t->elements != 1)
    onnx_fail(c, TN_ERR_FORMAT, "value has %zu elements, where one belongs", t->elements);
  for (size_t i = 0; i < s.rank; i++) shape_argument_check_size(c, &s, i);
  value fill = t ? scalar(c, t) : value_of(ir_const(b->ir, DT_F32, 0));
  c->outputs[0] = build_expand(b, fill, &s);
}
