/* Implements the well-formedness check of one node: checks the numbers of sources and integers,
   types, lanes and shapes by the columns of ops.def, then runs the rule of the op (check_op.h). */
#include "ir/core/check_node.h"

#include "ir/core/build.h"
#include "ir/core/check_op.h"
#include "ir/core/node_device.h"
#include "ir/core/tensor_rows.h"

const char check_too_many_dims[] = "more than 31 dimensions";
_Static_assert(IR_MAX_RANK == 31, "check_too_many_dims names the limit");

bool check_is_value(const node *n) {
  return n->dtype != DT_VOID && n->op != OP_STATE && n->op != OP_ALLOC && n->op != OP_AFTER;
}

bool check_is_scalar(const node *n) { return check_is_value(n) && !n->rank && n->lanes == 1; }
bool check_is_index(const node *n) { return check_is_scalar(n) && n->dtype == DT_INDEX; }

bool check_is_address(const node *n) {
  return check_is_scalar(n) && (n->dtype == DT_INDEX || dtype_is_int((dtype)n->dtype));
}

bool check_is_size(const node *n) { return check_is_index(n) && n->hi >= 0; }

bool check_all(bool (*is)(const node *n), const node *const *src, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!is(src[i])) return false;
  return true;
}

bool check_is_range(const node *n) { return n->op == OP_RANGE; }

bool check_reduces(int64_t o, dtype t) {
  uint64_t start;
  return o >= 0 && o < OP_LIMIT && (op_facts_of((op)o)->facts & FACT_ASSOCIATIVE) &&
         op_takes((op)o, t) && op_identity((op)o, t, &start);
}

const char *check_sizes(const node *const *dims, size_t rank) {
  if (rank > IR_MAX_RANK) return check_too_many_dims;
  return check_all(check_is_size, dims, rank) ? NULL : "a size that is no index, or is negative";
}

static const char *(*const rules[OP_LIMIT])(const node_spec *s) = {
    [OP_RESHAPE] = check_op_reshape, [OP_EXPAND] = check_op_expand,
    [OP_PERMUTE] = check_op_permute, [OP_SLICE] = check_op_slice,
    [OP_PAD] = check_op_pad,         [OP_GATHER] = check_op_gather,
    [OP_REDUCE] = check_op_reduce,   [OP_SET] = check_op_set,
    [OP_SCATTER] = check_op_scatter, [OP_SCAN] = check_op_scan,
    [OP_ITEM] = check_op_item,       [OP_CUSTOM] = check_op_custom,
    [OP_PICK] = check_op_pick,       [OP_KERNEL] = check_op_kernel,
    [OP_LOOP] = check_op_loop,       [OP_CARRY] = check_op_carry,
    [OP_RESULT] = check_op_result,   [OP_CONST] = check_op_const,
    [OP_VAR] = check_op_var,         [OP_IOTA] = check_op_iota,
    [OP_BUFFER] = check_op_buffer,   [OP_PARAM] = check_op_buffer,
    [OP_RANGE] = check_op_range,     [OP_STAGE] = check_op_stage,
    [OP_FOLD] = check_op_fold,       [OP_STATE] = check_op_state,
    [OP_INDEX] = check_op_index,     [OP_OUT] = check_op_out,
    [OP_AFFINE] = check_op_affine,   [OP_DISTINCT] = check_op_distinct,
    [OP_ALLOC] = check_op_alloc,     [OP_LOAD] = check_op_load,
    [OP_STORE] = check_op_store,     [OP_PREFETCH] = check_op_prefetch,
    [OP_AFTER] = check_op_after,     [OP_END] = check_op_end,
    [OP_SPECIAL] = check_op_special, [OP_BARRIER] = check_op_barrier,
    [OP_DEVICE] = check_op_device,   [OP_PROGRAM] = check_op_program,
    [OP_TO] = check_op_to,           [OP_WAIT] = check_op_wait};

static const char *check_numbers(const node_spec *s) {
  if ((unsigned)s->op >= OP_LIMIT) return "no such op";
  if (!dtype_facts_of(s->dtype)->name) return "no such type";
  const op_facts *f = op_facts_of(s->op);
  if (s->n_src < f->least) return "too few sources";
  if (s->n_src > (f->most == OP_UNLIMITED_SOURCES ? (size_t)CHECK_MAX_SOURCES : f->most))
    return "too many sources";
  argument_layout form = argument_layout_of(s->op);
  if (s->n_int < form.named - form.optional || (!form.list && s->n_int > form.named))
    return "wrong number of integers";
  if (s->n_int > CHECK_MAX_SOURCES) return "too many integers";
  return s->n_text && !form.text ? "the op takes no text" : NULL;
}

static const char *check_operands(const node_spec *s, size_t first, int type) {
  if (!op_takes(s->op, (dtype)type)) return "the op does not take this type";
  for (size_t i = first; i < s->n_src; i++)
    if (s->src[i]->dtype != type) return "operands of different types";
  return NULL;
}

static const char *check_conversion(const node_spec *s) {
  dtype from = (dtype)s->src[0]->dtype;
  if (!op_takes(s->op, from)) return "the op does not take this type";
  if (s->op == OP_BITCAST && dtype_bytes(from) != dtype_bytes(s->dtype))
    return "bitcast between types of different widths";
  return NULL;
}

static const char *check_types(const node_spec *s) {
  switch (op_facts_of(s->op)->type) {
  case TYPE_SAME:
  case TYPE_SHIFT: return check_operands(s, 0, s->dtype);
  case TYPE_COMPARE:
    if (s->dtype != DT_BOOL) return "a comparison is a bool";
    return check_operands(s, 0, s->src[0]->dtype);
  case TYPE_SELECT:
    if (s->src[0]->dtype != DT_BOOL) return "a condition is a bool";
    return check_operands(s, 1, s->dtype);
  case TYPE_INDEX: return s->dtype == DT_INDEX ? NULL : "the op makes an index";
  case TYPE_VOID: return s->dtype == DT_VOID ? NULL : "the op has no value";
  case TYPE_FIRST:
    return s->dtype == s->src[0]->dtype ? check_operands(s, s->n_src, s->dtype)
                                        : "the op has the type of its first source";
  default: break;
  }
  if (!op_takes(s->op, s->dtype)) return "the op does not make this type";
  return s->op == OP_CAST || s->op == OP_BITCAST ? check_conversion(s) : NULL;
}

static const char *check_tile_lanes(const node_spec *s, const tensor_tile *t) {
  bool fits = s->lanes == s->src[0]->lanes;
  for (int i = 0; i < TENSOR_OPERANDS; i++)
    fits &= s->src[i]->lanes == tensor_tile_words(t, (tensor_operand)i);
  return fits ? NULL : "a tile has the words of its row of tensor_rows.def";
}

static const char *check_lanes(const node_spec *s) {
  unsigned lanes = s->lanes ? s->lanes : 1;
  switch (s->op) {
  case OP_CONST:
  case OP_LOAD:
  case OP_ALLOC: return NULL;
  case OP_AFTER: return lanes == 1 || lanes == s->src[0]->lanes ? NULL : "after has other lanes";
  case OP_VECTORIZE:
    if (lanes != s->n_src) return "vectorize needs a scalar for each lane";
    return check_all(check_is_scalar, s->src, s->n_src) ? NULL : "lanes are made of scalars";
  case OP_SPLAT: return check_is_scalar(s->src[0]) ? NULL : "splat repeats a scalar";
  case OP_EXTRACT:
    if (s->ints[0] < 0 || s->ints[0] >= s->src[0]->lanes) return "no such lane";
    return lanes == 1 ? NULL : "extract makes a scalar";
  default: break;
  }
  if (!op_is_elementwise(s->op) || s->op == OP_AFFINE)
    return lanes == 1 ? NULL : "the op has no lanes";
  const tensor_tile *t = tensor_tile_of(s->op);
  if (t) return check_tile_lanes(s, t);
  for (size_t i = 0; i < s->n_src; i++)
    if (s->src[i]->lanes != lanes) return "operands differ in lanes";
  return NULL;
}

static const char *check_shapes(const node_spec *s) {
  if (op_is_movement(s->op) || s->op == OP_REDUCE)
    return check_is_value(s->src[0]) && s->src[0]->lanes == 1 ? NULL : "the op takes a tensor";
  if (!op_is_elementwise(s->op) || s->op == OP_AFFINE) return NULL;
  if (!check_all(check_is_value, s->src, s->n_src)) return "the op takes values, not storage";
  for (size_t i = 1; i < s->n_src; i++)
    if (!ir_same_shape(s->src[0], s->src[i])) return "operands differ in shape";
  return NULL;
}

static const char *check_devices(const node_spec *s) {
  return node_device_is_one(s) ? NULL : "operands are on different devices";
}

const char *ir_check_spec(const node_spec *spec) {
  static const char *(*const steps[])(const node_spec *s) = {
      check_numbers, check_types, check_lanes, check_shapes, check_devices};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    const char *why = steps[i](spec);
    if (why) return why;
  }
  return rules[spec->op] ? rules[spec->op](spec) : NULL;
}
