/* Implements the node builders: infers the type and lanes of a node from its operands by the type
   rule of its op, and interns it by ir_make. */
#include "ir/core/build.h"

const node *ir_node(ir *g, op o, dtype t, const node *const src[], size_t n_src,
                    const int64_t ints[], size_t n_int) {
  uint16_t lanes = op_is_elementwise(o) && n_src && o != OP_AFFINE ? src[0]->lanes : 1;
  return ir_make(g, &(node_spec){.op = o,
                                 .dtype = t,
                                 .lanes = lanes,
                                 .src = src,
                                 .n_src = n_src,
                                 .ints = ints,
                                 .n_int = n_int});
}

static dtype result_type(op o, const node *const src[]) {
  switch (op_facts_of(o)->type) {
  case TYPE_COMPARE: return DT_BOOL;
  case TYPE_SELECT: return (dtype)src[1]->dtype;
  case TYPE_VOID: return DT_VOID;
  case TYPE_INDEX: return DT_INDEX;
  default: return (dtype)src[0]->dtype;
  }
}

const node *ir_op1(ir *g, op o, const node *a) {
  return ir_node(g, o, (dtype)a->dtype, &a, 1, NULL, 0);
}

const node *ir_op2(ir *g, op o, const node *a, const node *b) {
  const node *src[] = {a, b};
  return ir_node(g, o, result_type(o, src), src, 2, NULL, 0);
}

const node *ir_op3(ir *g, op o, const node *a, const node *b, const node *c) {
  const node *src[] = {a, b, c};
  return ir_node(g, o, result_type(o, src), src, 3, NULL, 0);
}

const node *ir_cast(ir *g, const node *a, dtype to) {
  return a->dtype == to ? a : ir_node(g, OP_CAST, to, &a, 1, NULL, 0);
}

const node *ir_bitcast(ir *g, const node *a, dtype to) {
  return a->dtype == to ? a : ir_node(g, OP_BITCAST, to, &a, 1, NULL, 0);
}

const node *ir_const_bits(ir *g, dtype t, uint64_t bits) {
  int64_t value = (int64_t)bits;
  return ir_node(g, OP_CONST, t, NULL, 0, &value, 1);
}

const node *ir_const(ir *g, dtype t, double value) {
  return ir_const_bits(g, t, scalar_from_double(t, value));
}

const node *ir_const_int(ir *g, dtype t, int64_t value) {
  return ir_const_bits(g, t, scalar_cast(t, DT_I64, (uint64_t)value));
}

bool reduce_has_axis(const node *reduce, size_t axis) {
  for (uint32_t k = 1; k < reduce->n_int; k++)
    if (reduce->ints[k] == (int64_t)axis) return true;
  return false;
}

bool ir_same_shape(const node *a, const node *b) {
  if (a->rank != b->rank) return false;
  if (a->dims == b->dims) return true;
  for (size_t i = 0; i < a->rank; i++)
    if (a->dims[i] != b->dims[i]) return false;
  return true;
}
