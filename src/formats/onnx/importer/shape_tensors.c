/* Shape arithmetic. A model computes sizes with ordinary operators (Shape, Gather, Concat, Mul …),
   which are imported as ordinary tensors. Where an operator needs the elements of such a tensor,
   each is queried at a constant index: the tensor graph becomes one scalar expression of that
   element, rules fold it, and the remaining integer arithmetic is converted to index arithmetic
   over sizes, or found to depend on data. No operator therefore needs a second, symbolic
   implementation. */
#include "formats/onnx/importer/shape_tensors.h"

#include "formats/onnx/importer/unroll_ops.h"
#include "ir/core/binder.h"
#include "ir/core/var_names.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "ir/transform/copy_graph.h"
#include "ir/transform/element_expression.h"
#include "ir/transform/substitute.h"
#include "rules/rule_sets.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/operators.h"

#include <stdlib.h>
#include <string.h>

/** Limit of a queried tensor; shapes are far smaller. */
enum { MAX_ELEMENTS = ONNX_ELEMENTS_MAX };

/** A query for the elements of a tensor. */
typedef struct element_query {
  import *m;
  value v;
  ir *g;                 /* scratch graph of this query */
  node_list params;      /* nodes of the import whose elements are unknown, by PARAM slot */
  node_list items;       /* ITEMs of the import, which are variables here, by number */
  const node **elements; /* in the import's ir; NULL: an unknown one */
  size_t n;
  bool is_counted;      /* the number of elements is known, */
  bool is_known;        /* and all of them are */
  bool may_be_computed; /* the other elements are of use if one is unknown */
  bool as_constant;     /* elements are constants of the tensor's type, not index expressions */
} element_query;

/** Creates the PARAM that stands for a node whose elements are loaded from a weight, or unknown. */
static const node *add_param(element_query *q, const node *n, const node *const dims[],
                             size_t rank) {
  int64_t slot = (int64_t)q->params.n;
  vec_push(ir_arena(q->g), &q->params, n);
  return ir_node(q->g, OP_PARAM, (dtype)n->dtype, dims, rank, &slot, 1);
}

/** The variable that stands for an ITEM, so that index arithmetic leaves it as it is. */
static const node *var_of_item(element_query *q, const node *item) {
  const int64_t bounds[] = {item->lo, item->hi};
  size_t number = 0;
  while (number < q->items.n && q->items.at[number] != item) number++;
  if (number == q->items.n) vec_push(ir_arena(q->g), &q->items, item);
  const char *text = arena_printf(ir_arena(q->g), VAR_LATE_PREFIX "%zu", number);
  return ir_make(q->g, &(node_spec){.op = OP_VAR,
                                    .dtype = DT_INDEX,
                                    .ints = bounds,
                                    .n_int = 2,
                                    .text = text,
                                    .n_text = strlen(text)});
}

static const node *replace_item(void *user, const node *n, const node *const src[]) {
  (void)src;
  return n->op == OP_ITEM ? var_of_item(user, n) : NULL;
}

static const node *item_of_var(void *user, const node *n, const node *const src[]) {
  const element_query *q = user;
  (void)src;
  if (n->op != OP_VAR || !var_is_late(n->text)) return NULL;
  return q->items.at[strtoul(n->text + sizeof VAR_LATE_PREFIX - 1, NULL, 10)];
}

/** Unrolls an op that is no elementwise one; the elements of a large result are unknown. */
static const node *unroll(element_query *q, const node *n, const node *const src[]) {
  builder b = q->m->b;
  b.ir = q->g;
  const node *made = unroll_op(&b, n, src);
  if (made) return made;
  node_list dims = {0};
  for (size_t i = 0; i < n->rank; i++) {
    const node *dim;
    ir_copy(q->g, ir_arena(q->g), &n->dims[i], 1, replace_item, q, &dim);
    vec_push(ir_arena(q->g), &dims, dim);
  }
  return add_param(q, n, dims.at, dims.n);
}

static const node *copy_to_scratch(void *user, const node *n, const node *const src[]) {
  element_query *q = user;
  if (n->op == OP_ITEM) return var_of_item(q, n);
  if (n->op == OP_REDUCE || n->op == OP_SCAN || n->op == OP_SCATTER) return unroll(q, n, src);
  if (n->op == OP_CARRY || n->op == OP_RESULT) return add_param(q, n, src + 1, n->n_src - 1);
  if (n->op == OP_CUSTOM) return add_param(q, n, src + n->ints[2], n->rank);
  if (n->op == OP_PICK) return add_param(q, n, src + 3, n->n_src - 3);
  return n->op == OP_BUFFER ? add_param(q, n, src, n->n_src) : NULL;
}

/** Loads the element that INDEX(PARAM; constants) reads from a weight; NULL if there is none. */
static const node *load_weight_element(const element_query *q, const node *n) {
  const onnx_tensor *t = map_get(&q->m->weights, q->params.at[n->src[0]->ints[0]]);
  size_t offset = 0;
  if (!t || !t->data) return NULL;
  for (size_t i = 0; i < t->dims.n; i++) {
    const node *index = n->src[1 + i];
    if (index->op != OP_CONST || node_int(index) < 0 || node_int(index) >= t->dims.at[i])
      return NULL;
    offset = offset * (size_t)t->dims.at[i] + (size_t)node_int(index);
  }
  dtype type = (dtype)n->dtype;
  const char *data = t->data;
  importer_load_tensor(q->m, t);
  return ir_const_bits(q->g, type, scalar_load(type, data + offset * dtype_bytes(type)));
}

static const node *substitute_weights(element_query *q, const node *e) {
  arena *a = ir_arena(q->g);
  node_list order = topo_sort(a, &e, 1, NULL, NULL);
  map constants = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (n->op != OP_INDEX || n->src[0]->op != OP_PARAM) continue;
    const node *c = load_weight_element(q, n);
    if (c) map_set(a, &constants, n, (void *)c);
  }
  return subst(q->g, e, &constants);
}

/* Conversion of integer arithmetic to index arithmetic, node by node. Comparisons that the bounds
   of sizes decide become constants. NULL: the node depends on data. */

static const node *bool_const(ir *g, bool is_true) { return ir_const_bits(g, DT_BOOL, is_true); }

static const node *const_or_null(const node *n) { return n->op == OP_CONST ? n : NULL; }

/** Decides x = y (or x ≠ y, if `result` is false) for all values of sizes. */
static const node *decide_equality(ir *g, const node *x, const node *y, bool result) {
  const node *below = ix_lt(g, x, y), *above = ix_lt(g, y, x);
  if (x == y) return bool_const(g, result);
  return node_is_bits(below, 1) || node_is_bits(above, 1) ? bool_const(g, !result) : NULL;
}

static const node *decide_condition(ir *g, const node *n, const node *x, const node *y) {
  bool of_bools = n->n_src && n->src[0]->dtype == DT_BOOL;
  bool x_is_true = x && x->op == OP_CONST && node_int(x),
       y_is_true = y && y->op == OP_CONST && node_int(y);
  if (n->op == OP_AND && ((x && !x_is_true) || (y && !y_is_true))) return bool_const(g, false);
  if (n->op == OP_OR && (x_is_true || y_is_true)) return bool_const(g, true);
  if (!x || (n->n_src > 1 && !y)) return NULL;
  switch (n->op) {
  case OP_AND: return bool_const(g, x_is_true && y_is_true);
  case OP_OR: return bool_const(g, x_is_true || y_is_true);
  case OP_NOT: return bool_const(g, !x_is_true);
  case OP_NE:
    return of_bools ? bool_const(g, x_is_true != y_is_true) : decide_equality(g, x, y, false);
  case OP_EQ:
    return of_bools ? bool_const(g, x_is_true == y_is_true) : decide_equality(g, x, y, true);
  case OP_LT: return of_bools ? NULL : const_or_null(ix_lt(g, x, y));
  case OP_LE: return of_bools ? NULL : const_or_null(ix_le(g, x, y));
  default: return NULL;
  }
}

/** Converts a shift by a constant, or an AND with a mask of low bits: rules create both from powers
    of two. */
static const node *convert_bitwise(ir *g, op o, const node *x, const node *y) {
  if (o == OP_AND) {
    bool is_mask = y->op == OP_CONST && node_int(y) >= 0 && node_int(y) < INT64_MAX &&
                   !(node_int(y) & (node_int(y) + 1));
    return is_mask ? ix_mod(g, x, ix_add_const(g, y, 1)) : NULL;
  }
  if (y->op != OP_CONST || node_int(y) < 0 || node_int(y) >= 62) return NULL;
  const node *power = ix_const(g, (int64_t)1 << node_int(y));
  return o == OP_SHL ? ix_mul(g, x, power) : ix_floordiv(g, x, power);
}

static const node *convert_floordiv(ir *g, const node *x, const node *y) {
  if (y->hi < 0) return ix_floordiv(g, ix_scale(g, x, -1), ix_scale(g, y, -1));
  return y->lo > 0 ? ix_floordiv(g, x, y) : NULL;
}

/** Converts a node; `converted` holds its sources' index expressions. */
static const node *convert_node(ir *g, const node *n, const map *converted) {
  const node *s[3] = {NULL, NULL, NULL};
  for (uint32_t i = 0; i < n->n_src && i < 3; i++) s[i] = map_get(converted, n->src[i]);
  if (n->dtype == DT_BOOL) return n->op == OP_CONST ? n : decide_condition(g, n, s[0], s[1]);
  if (n->op == OP_CONST && dtype_is_int((dtype)n->dtype)) return ix_const(g, node_int(n));
  if (n->dtype == DT_INDEX) return n;
  if (n->op == OP_WHERE) return s[0] ? s[node_int(s[0]) ? 1 : 2] : NULL;
  for (uint32_t i = 0; i < n->n_src && i < 3; i++)
    if (!s[i] || n->src[i]->dtype == DT_BOOL) return NULL;
  bool may_wrap = dtype_bytes((dtype)n->dtype) < 4; /* sizes exceed 8 and 16 bits */
  if (!dtype_is_int((dtype)n->dtype) || may_wrap) return NULL;
  switch (n->op) {
  case OP_CAST: return s[0];
  case OP_NEG: return ix_scale(g, s[0], -1);
  case OP_ADD: return ix_add(g, s[0], s[1]);
  case OP_SUB: return ix_sub(g, s[0], s[1]);
  case OP_MUL: return ix_mul(g, s[0], s[1]);
  case OP_MIN: return ix_min(g, s[0], s[1]);
  case OP_MAX: return ix_max(g, s[0], s[1]);
  case OP_FLOORDIV: return convert_floordiv(g, s[0], s[1]);
  case OP_MOD: return s[1]->lo > 0 ? ix_mod(g, s[0], s[1]) : NULL;
  case OP_SHL:
  case OP_SHR:
  case OP_AND: return convert_bitwise(g, n->op, s[0], s[1]);
  default: return NULL;
  }
}

/** Converts a scalar expression. Unsigned nodes must be provably nonnegative: they wrap below 0,
    which index arithmetic does not. */
static const node *convert_to_index(ir *g, const node *e) {
  node_list order = topo_sort(ir_arena(g), &e, 1, NULL, NULL);
  map converted = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i], *form = convert_node(g, n, &converted);
    bool is_unsigned = dtype_is_int((dtype)n->dtype) && !dtype_is_signed((dtype)n->dtype);
    if (form && (!is_unsigned || ix_prove_nonnegative(g, form)))
      map_set(ir_arena(g), &converted, n, (void *)form);
  }
  return map_get(&converted, e);
}

/** The element of a scratch tensor at an index; NULL if it depends on data. */
static const node *element_at(element_query *q, const node *tensor, const node *index) {
  static const map no_known_values = {0};
  const node *e = tensor->op == OP_PARAM
                      ? index_make(q->g, (dtype)tensor->dtype, tensor, 0, tensor->rank, &index)
                      : element_expression(q->g, &no_known_values, tensor, tensor->rank, &index);
  rewriter rw = {.ir = q->g, .math = MATH_EXACT};
  for (int pass = 0; pass < 2; pass++) { /* the first may turn indices into constants */
    e = substitute_weights(q, e);
    rewrite(&rw, rules_simplify_kernel, RULES_SIMPLIFY_KERNEL, &e, 1);
  }
  return q->as_constant ? const_or_null(e) : convert_to_index(q->g, e);
}

static void query_body(void *arg) {
  element_query *q = arg;
  const node *x;
  ir_copy(q->g, ir_arena(q->g), &q->v.node, 1, copy_to_scratch, q, &x);
  q->n = 1;
  if (x->rank) {
    if (!node_is_const(x->dims[0]) || node_int(x->dims[0]) > MAX_ELEMENTS) return;
    q->n = (size_t)node_int(x->dims[0]);
  }
  q->elements = arena_calloc(q->m->b.arena, q->n + 1, sizeof *q->elements);
  q->is_counted = q->is_known = true;
  for (size_t i = 0; i < q->n; i++) {
    const node *e = element_at(q, x, ix_const(q->g, (int64_t)i));
    if (e) ir_copy(q->m->b.ir, ir_arena(q->g), &e, 1, item_of_var, q, &q->elements[i]);
    q->is_known &= e != NULL;
    if (!e && !q->may_be_computed) return;
  }
}

/* Inputs whose elements a run may give to another import. */

/** True if an input has few elements: a shape has one axis, whose length may be open. */
static bool may_be_given(const node *input) {
  int64_t count = 1;
  for (size_t i = 0; i < input->rank; i++) {
    if (!node_is_const(input->dims[i])) return input->rank == 1;
    if (node_int(input->dims[i]) > ONNX_ELEMENTS_MAX) return false;
    count *= node_int(input->dims[i]);
    if (count > ONNX_ELEMENTS_MAX) return false;
  }
  return true;
}

/** True if a node computes with floats: what follows from that is data, and not a shape that a
   caller gives. */
static bool computes_floats(const node *x) {
  bool has_floats = dtype_is_float((dtype)x->dtype) && x->op != OP_BUFFER && x->op != OP_CONST;
  for (uint32_t i = 0; i < x->n_src; i++) has_floats |= dtype_is_float((dtype)x->src[i]->dtype);
  return has_floats && x->op != OP_CAST && !op_is_movement(x->op);
}

/** True if a node is a sum, or another reduction, or a scan along an axis of its operand. */
static bool reduces_axis(const node *x, size_t axis) {
  return x->op == OP_REDUCE ? reduce_has_axis(x, axis)
                            : x->op == OP_SCAN && x->ints[1] == (int64_t)axis;
}

/** True for a sum or a scan of any number of elements, as of a mask: they are data too. */
static bool reduces_open_axis(const node *x) {
  bool is_open = false;
  if (x->op != OP_REDUCE && x->op != OP_SCAN) return false;
  for (size_t i = 0; i < x->src[0]->rank; i++)
    is_open |= reduces_axis(x, i) && !node_is_const(x->src[0]->dims[i]);
  return is_open;
}

static const char *name_of_input(const import *m, const node *n) {
  for (size_t i = 0; i < m->inputs.n; i++)
    if (m->inputs.at[i].node == n) return m->inputs.at[i].port->name;
  return NULL;
}

static bool varies(const import *m, const char *input) {
  for (size_t i = 0; i < m->n_varying; i++)
    if (!strcmp(m->varying[i], input)) return true;
  return false;
}

/** Lists the inputs below a value whose elements are unknown. Returns whether it depends on them
    alone, so that a run may give it to another import; `has_varying`: some of them vary. No
    value of an input makes a constant of an element that differs from step to step of a loop. */
static bool add_deciding_inputs(import *m, const node *n, bool *has_varying) {
  node_list order = topo_sort(m->b.arena, &n, 1, NULL, NULL);
  bool uses_data = build_depends_on_loop(&m->b, n), has_inputs = false;
  for (size_t i = 0; i < order.n; i++) {
    const node *x = order.at[i];
    const char *input = x->op == OP_BUFFER ? name_of_input(m, x) : NULL;
    uses_data |= x->op == OP_CUSTOM || x->op == OP_CARRY || x->op == OP_RESULT ||
                 computes_floats(x) || reduces_open_axis(x) ||
                 (input && (m->is_body || !may_be_given(x)));
    if (input) vec_push(m->b.arena, &m->deciding, input);
    has_inputs |= input != NULL;
    *has_varying |= input && varies(m, input);
  }
  m->uses_data |= uses_data;
  return has_inputs && !uses_data;
}

/** Makes ITEMs of the unknown elements of a query. */
static void compute_elements(element_query *q, int64_t min, const node *most) {
  ir *g = q->m->b.ir;
  for (size_t i = 0; i < q->n; i++) {
    const node *at = ix_const(g, (int64_t)i);
    if (!q->elements[i]) q->elements[i] = ir_item(g, q->v.node, &at, min, most);
  }
}

/** The elements that are known before a run; with bounds, `min` and `most`, a run computes the
   others, unless it can give the value to another import, and that one does not vary. */
static const node *const *query_elements(import *m, value v, bool as_constant, int64_t min,
                                         const node *most, bool may_vary, size_t *n) {
  element_query q = {.m = m, .v = v, .as_constant = as_constant, .may_be_computed = most != NULL};
  *n = 0;
  if (v.node->rank > 1 || !(as_constant || dtype_is_int((dtype)v.node->dtype))) return NULL;
  q.g = ir_new(ir_mem(m->b.ir), m->b.diag, false);
  if (!q.g) diag_raise(m->b.diag, TN_ERR_MEMORY, "out of memory");
  tn_status s = diag_catch(m->b.diag, query_body, &q);
  ir_free(q.g);
  if (s != TN_OK) diag_rethrow(m->b.diag);
  *n = q.n;
  if (q.is_known) return q.elements;
  bool has_varying = false, is_given = add_deciding_inputs(m, v.node, &has_varying);
  if (has_varying && may_vary) is_given = false;
  if (!most || is_given || !q.is_counted || build_depends_on_loop(&m->b, v.node)) return NULL;
  compute_elements(&q, min, most);
  return q.elements;
}

const node *const *shape_tensor_elements(import *m, value v, size_t *n) {
  return query_elements(m, v, false, 0, NULL, false, n);
}

const node *const *computed_tensor_elements(import *m, value v, int64_t min, const node *most,
                                            bool may_vary, size_t *n) {
  return query_elements(m, v, false, min, most, may_vary, n);
}

const node *const *constant_tensor_elements(import *m, value v, size_t *n) {
  return query_elements(m, v, true, 0, NULL, false, n);
}
