/* ONNX Constant, ConstantOfShape and Identity: constant tensors from attributes. */
#include "formats/onnx/ops/axis_arguments.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "tensor/ops/operators.h"

void onnx_Identity(onnx_call *c) { c->outputs[0] = onnx_any_input(c, 0); }

/** A vector of the elements of an attribute. They are copied: a plan refers to weights by tensors
    of the file, and the attribute is none. */
static value constant_vector(onnx_call *c, dtype t, const void *data, size_t n) {
  return onnx_computed_tensor(c, t, data, n, 0);
}

static value string_vector(onnx_call *c, const char *name) {
  value v = onnx_string_vector(c, name);
  return v.node ? v : constant_vector(c, DT_I64, "", 0);
}

void onnx_Constant(onnx_call *c) {
  builder *b = onnx_builder(c);
  const onnx_attribute *a = c->node->attributes.at;
  if (c->node->attributes.n != 1 || *a->ref_name)
    onnx_fail(c, TN_ERR_FORMAT, "the node has %zu attributes, expected exactly one, the value",
              c->node->attributes.n);
  switch (a->type) {
  case ONNX_ATTRIBUTE_SPARSE_TENSOR:
  case ONNX_ATTRIBUTE_TENSOR: c->outputs[0] = onnx_constant_tensor(c, a->t); break;
  case ONNX_ATTRIBUTE_INT: c->outputs[0] = value_of(ir_const_int(b->ir, DT_I64, a->i)); break;
  case ONNX_ATTRIBUTE_FLOAT: c->outputs[0] = value_of(ir_const(b->ir, DT_F32, (double)a->f)); break;
  case ONNX_ATTRIBUTE_INTS:
    c->outputs[0] = constant_vector(c, DT_I64, a->ints.at, a->ints.n);
    break;
  case ONNX_ATTRIBUTE_FLOATS:
    c->outputs[0] = constant_vector(c, DT_F32, a->floats.at, a->floats.n);
    break;
  case ONNX_ATTRIBUTE_STRINGS: c->outputs[0] = onnx_strings(c, string_vector(c, a->name)); break;
  case ONNX_ATTRIBUTE_STRING:
    c->outputs[0] =
        onnx_strings(c, value_of(ir_const_int(b->ir, DT_I64, importer_string_number(c->m, &a->s))));
    break;
  default: onnx_fail(c, TN_ERR_UNSUPPORTED, "attribute '%s' is not supported", a->name);
  }
}

void onnx_ConstantOfShape(onnx_call *c) {
  builder *b = onnx_builder(c);
  const onnx_tensor *t = onnx_tensor_attribute(c, "value");
  sizes s = shape_argument(c, 0);
  if (t && t->elements != 1)
    onnx_fail(c, TN_ERR_FORMAT, "attribute 'value' has %zu elements, expected 1", t->elements);
  if (t && t->dtype == ONNX_STRING)
    onnx_fail(c, TN_ERR_DTYPE, "attribute 'value' is a tensor of strings");
  for (size_t i = 0; i < s.rank; i++) shape_argument_check_size(c, &s, i);
  value fill = value_of(ir_const(b->ir, DT_F32, 0));
  if (t) {
    onnx_tensor scalar = *t;
    scalar.dims.n = 0;
    fill = onnx_constant_tensor(c, &scalar);
  }
  c->outputs[0] = build_expand(b, fill, &s);
}
