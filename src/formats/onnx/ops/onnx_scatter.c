/* ONNX Scatter, ScatterElements and ScatterND: writes by index tensors, with an optional reduction,
   by the scatters of tensor/ops; and TensorScatter, which writes a run of entries. */
#include "formats/onnx/ops/enum_attribute.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/gather.h"
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

static void check_updates(const onnx_call *c) {
  dtype t = (dtype)onnx_input(c, 0).node->dtype, other = (dtype)onnx_input(c, 2).node->dtype;
  if (t != other)
    onnx_fail(c, TN_ERR_DTYPE, "the updates are %s, expected %s", dtype_name(other), dtype_name(t));
}

/** An operand of a scatter: bools that are combined are bytes. */
static value read_operand(onnx_call *c, size_t input, op o) {
  value x = onnx_input(c, input);
  return o != OP_SET && x.node->dtype == DT_BOOL ? build_cast(onnx_builder(c), x, DT_U8) : x;
}

/** The operation by which bytes that are 0 or 1 are combined as bools: sums are "or", as in NumPy.
 */
static op combine_bytes(const onnx_call *c, op o) {
  if (onnx_input(c, 0).node->dtype != DT_BOOL) return o;
  return o == OP_ADD ? OP_MAX : o == OP_MUL ? OP_MIN : o;
}

static void set_output(onnx_call *c, value y) {
  c->outputs[0] = build_cast(onnx_builder(c), y, (dtype)onnx_input(c, 0).node->dtype);
}

void onnx_ScatterElements(onnx_call *c) {
  op o = read_reduction(c);
  check_updates(c);
  set_output(c, build_scatter_elements(onnx_builder(c), read_operand(c, 0, o), onnx_input(c, 1),
                                       read_operand(c, 2, o), onnx_int_attribute(c, "axis", 0),
                                       combine_bytes(c, o)));
}

/** Scatter, of which ScatterElements without a reduction took the place. */
void onnx_Scatter(onnx_call *c) {
  check_updates(c);
  c->outputs[0] =
      build_scatter_elements(onnx_builder(c), onnx_input(c, 0), onnx_input(c, 1), onnx_input(c, 2),
                             onnx_int_attribute(c, "axis", 0), OP_SET);
}

void onnx_ScatterND(onnx_call *c) {
  op o = read_reduction(c);
  check_updates(c);
  set_output(c, build_scatter_nd(onnx_builder(c), read_operand(c, 0, o), onnx_input(c, 1),
                                 read_operand(c, 2, o), combine_bytes(c, o)));
}

/** Writes entries of an axis one after another, from a place of each batch entry on: each place of
    the result reads the entry that is written there, if one is. */
void onnx_TensorScatter(onnx_call *c) {
  static const char *const modes[] = {"linear", "circular"};
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0), update = onnx_input(c, 1);
  bool is_circular = ENUM_ATTRIBUTE(c, "mode", modes) == 1;
  sizes s = sizes_of(x.node), t = sizes_of(update.node);
  size_t axis = onnx_normalise_axis(c, onnx_int_attribute(c, "axis", -2), s.rank);
  sizes same = t.rank == s.rank ? sizes_with(t, axis, s.at[axis]) : t;
  if (!sizes_equal(&s, &same) || !axis)
    onnx_fail(c, TN_ERR_SHAPE,
              "the shapes are %s and %s, which have to be equal but for an axis after "
              "the first",
              sizes_text(b, &s), sizes_text(b, &t));
  if (update.node->dtype != x.node->dtype)
    onnx_fail(c, TN_ERR_DTYPE, "the update is %s, expected %s",
              dtype_name((dtype)update.node->dtype), dtype_name((dtype)x.node->dtype));
  value entry = value_of(ex_iota(b, DT_I64, &s, axis)), zero = build_int(b, 0);
  if (onnx_has_input(c, 2)) {
    value first = onnx_input(c, 2);
    if (first.node->rank != 1 || first.node->dims[0] != s.at[0])
      onnx_fail(c, TN_ERR_SHAPE, "there is not one index for each batch entry");
    sizes column = {1, {s.at[0]}};
    while (column.rank < s.rank) column.at[column.rank++] = ix_const(b->ir, 1);
    entry = build_sub(b, entry, build_reshape(b, build_cast(b, first, DT_I64), &column));
  }
  if (is_circular) entry = build_mod(b, entry, value_of(ex_size(b, s.at[axis], DT_I64)));
  value size = value_of(ex_size(b, t.at[axis], DT_I64));
  value is_written = build_logical_and(b, build_ge(b, entry, zero), build_lt(b, entry, size));
  value index = build_where(b, is_written, entry, zero);
  value written = value_of(node_gather(b, update.node, axis, index.node));
  c->outputs[0] = build_where(b, is_written, written, x);
}
