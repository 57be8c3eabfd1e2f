/* Interface of operator builders to the node being imported: inputs, attributes with defaults,
   constant elements of inputs, and errors. Attribute and input checks that all operators share live
   here, so that builders state only what is particular to their operator. */
#include "formats/onnx/importer/shape_tensors.h"
#include "ir/core/tensor_loop.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/operators.h"

#include <string.h>

void onnx_fail(const onnx_call *c, tn_status s, const char *format, ...) {
  diag *d = c->m->b.diag;
  va_list list;
  va_start(list, format);
  failure_set_va(&d->failure, s, format, list);
  va_end(list);
  diag_rethrow(d);
}

void onnx_fail_varying_size(onnx_call *c, const node *size, const char *format, ...) {
  import *m = c->m;
  va_list list;
  m->sizes_used.n = 0;
  vec_push(m->b.arena, &m->sizes_used, size);
  va_start(list, format);
  failure_set_va(&m->b.diag->failure, TN_ERR_UNSUPPORTED, format, list);
  va_end(list);
  diag_rethrow(m->b.diag);
}

builder *onnx_builder(onnx_call *c) { return &c->m->b; }

void onnx_blame_sizes_of_input(onnx_call *c, size_t input) {
  import *m = c->m;
  node_list order = topo_sort(m->b.arena, &c->inputs[input].node, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    bool is_weight = n->op == OP_BUFFER && map_has(&m->weights, n);
    if (n->op == OP_CARRY || n->op == OP_CUSTOM || (n->op == OP_BUFFER && !is_weight)) return;
  }
  m->b.needed = NULL;
  for (size_t i = 0; i < order.n; i++) {
    if (order.at[i]->op != OP_VAR) continue;
    vec_push(m->b.arena, &m->sizes_used, order.at[i]);
    vec_push(m->b.arena, &m->b.named.single, order.at[i]);
  }
}

bool onnx_has_input(const onnx_call *c, size_t input) {
  return input < c->n_inputs && c->inputs[input].node;
}

value onnx_any_input(const onnx_call *c, size_t i) {
  if (!onnx_has_input(c, i)) onnx_fail(c, TN_ERR_FORMAT, "required input %zu is missing", i);
  return c->inputs[i];
}

value onnx_input(const onnx_call *c, size_t i) {
  value v = onnx_any_input(c, i);
  if (importer_find_strings(c->m, v))
    onnx_fail(c, TN_ERR_UNSUPPORTED, "input '%.200s' is a tensor of strings",
              c->node->inputs.at[i]);
  if (importer_find_sequence(c->m, v))
    onnx_fail(c, TN_ERR_UNSUPPORTED, "input '%.200s' is a sequence or an absent optional value",
              c->node->inputs.at[i]);
  return v;
}

value onnx_scalar_input(onnx_call *c, size_t i) {
  value v = onnx_input(c, i);
  const node *n = v.node;
  if (!n->rank) return v;
  if (n->rank > 1 || !node_is_bits(n->dims[0], 1))
    onnx_fail(c, TN_ERR_SHAPE, "input '%.200s' must be a scalar", c->node->inputs.at[i]);
  return build_reshape(onnx_builder(c), v, &(sizes){0});
}

bool onnx_wants_output(const onnx_call *c, size_t output) {
  return output < c->n_outputs && *c->node->outputs.at[output];
}

void onnx_require_same_types(const onnx_call *c) {
  dtype first = (dtype)onnx_input(c, 0).node->dtype;
  for (size_t i = 1; i < c->n_inputs; i++)
    if (onnx_has_input(c, i) && c->inputs[i].node->dtype != first)
      onnx_fail(c, TN_ERR_DTYPE, "input '%.100s' is %s, but input '%.100s' is %s",
                c->node->inputs.at[0], dtype_name(first), c->node->inputs.at[i],
                dtype_name((dtype)c->inputs[i].node->dtype));
}

const onnx_attribute *onnx_find_attribute(const onnx_call *c, const char *name,
                                          onnx_attribute_type type) {
  for (size_t i = 0; i < c->node->attributes.n; i++) {
    const onnx_attribute *a = &c->node->attributes.at[i];
    if (strcmp(a->name, name)) continue;
    if (*a->ref_name)
      onnx_fail(c, TN_ERR_FORMAT,
                "attribute '%s' refers to '%.100s', which is allowed only in functions", name,
                a->ref_name);
    if (a->type != type) onnx_fail(c, TN_ERR_FORMAT, "attribute '%s' has the wrong type", name);
    return a;
  }
  return NULL;
}

bool onnx_has_attribute(const onnx_call *c, const char *name) {
  for (size_t i = 0; i < c->node->attributes.n; i++)
    if (!strcmp(c->node->attributes.at[i].name, name)) return true;
  return false;
}

int64_t onnx_int_attribute(const onnx_call *c, const char *name, int64_t default_value) {
  const onnx_attribute *a = onnx_find_attribute(c, name, ONNX_ATTRIBUTE_INT);
  return a ? a->i : default_value;
}

dtype onnx_dtype_attribute(const onnx_call *c, const char *name, dtype default_value) {
  int64_t t = onnx_int_attribute(c, name, (int64_t)default_value);
  bool is_number = t > 0 && t < DT_VOID;
  if (!is_number || !dtype_is_data((dtype)t))
    onnx_fail(c, TN_ERR_UNSUPPORTED, "attribute '%s' is type %s, which is not supported", name,
              is_number && onnx_dtype_name((int)t) ? onnx_dtype_name((int)t) : "(unknown)");
  return (dtype)t;
}

float onnx_float_attribute(const onnx_call *c, const char *name, float default_value) {
  const onnx_attribute *a = onnx_find_attribute(c, name, ONNX_ATTRIBUTE_FLOAT);
  return a ? a->f : default_value;
}

const char *onnx_string_attribute(const onnx_call *c, const char *name, const char *default_value) {
  const onnx_attribute *a = onnx_find_attribute(c, name, ONNX_ATTRIBUTE_STRING);
  return a ? a->s.at : default_value;
}

const onnx_ints *onnx_ints_attribute(const onnx_call *c, const char *name) {
  const onnx_attribute *a = onnx_find_attribute(c, name, ONNX_ATTRIBUTE_INTS);
  return a ? &a->ints : NULL;
}

const onnx_tensor *onnx_tensor_attribute(const onnx_call *c, const char *name) {
  const onnx_attribute *a = onnx_find_attribute(c, name, ONNX_ATTRIBUTE_TENSOR);
  return a ? a->t : NULL;
}

const onnx_graph *onnx_graph_attribute(const onnx_call *c, const char *name) {
  return onnx_find_attribute(c, name, ONNX_ATTRIBUTE_GRAPH)->g;
}

static const node *const *use_elements(onnx_call *c, size_t input, const node *const *e, size_t n) {
  const node *x = onnx_input(c, input).node;
  if (!e && x->rank == 1 && !node_is_const(x->dims[0]))
    onnx_fail(c, TN_ERR_UNSUPPORTED,
              "the number of elements of input '%.200s' is known only when the model runs; "
              "give that input of the node a fixed length",
              c->node->inputs.at[input]);
  if (!e)
    onnx_fail(c, TN_ERR_UNSUPPORTED,
              "input '%.200s' is known only when the model runs; " ONNX_STATIC_HINT,
              c->node->inputs.at[input]);
  for (size_t i = 0; i < n; i++) vec_push(c->m->b.arena, &c->m->sizes_used, e[i]);
  return e;
}

/** Refuses an input that cannot be a vector of integers, or one of them. */
static void check_integers(const onnx_call *c, size_t input) {
  const node *n = onnx_input(c, input).node;
  if (n->rank > 1)
    onnx_fail(c, TN_ERR_SHAPE, "input '%.200s' has %u dimensions, expected a vector of integers",
              c->node->inputs.at[input], n->rank);
  if (!dtype_is_int((dtype)n->dtype))
    onnx_fail(c, TN_ERR_DTYPE, "input '%.200s' is %s, expected a vector of integers",
              c->node->inputs.at[input], dtype_name((dtype)n->dtype));
}

static const node *const *computed_elements(onnx_call *c, size_t input, int64_t min,
                                            const node *most, bool may_vary, size_t *n) {
  check_integers(c, input);
  value v = onnx_input(c, input);
  const node *const *e = computed_tensor_elements(c->m, v, min, most, may_vary, n);
  return use_elements(c, input, e, *n);
}

const node *const *onnx_shape_elements(onnx_call *c, size_t input, size_t *n) {
  return computed_elements(c, input, -ONNX_SIZE_MAX, ix_const(c->m->b.ir, ONNX_SIZE_MAX), true, n);
}

const node *const *onnx_size_elements(onnx_call *c, size_t input, size_t *n) {
  return computed_elements(c, input, 0, ix_const(c->m->b.ir, ONNX_SIZE_MAX), true, n);
}

const node *const *onnx_target_elements(onnx_call *c, size_t input, size_t *n) {
  return computed_elements(c, input, 0, ix_const(c->m->b.ir, ONNX_SIZE_MAX), false, n);
}

const node *onnx_bounded_size(onnx_call *c, size_t input, const node *most) {
  size_t n;
  const node *const *e = computed_elements(c, input, 0, most, true, &n);
  if (n != 1)
    onnx_fail(c, TN_ERR_SHAPE, "input '%.200s' has %zu elements, expected 1",
              c->node->inputs.at[input], n);
  return e[0];
}

const int64_t *onnx_static_ints(onnx_call *c, size_t input, size_t *n) {
  check_integers(c, input);
  const node *const *e = shape_tensor_elements(c->m, onnx_input(c, input), n);
  use_elements(c, input, e, *n);
  int64_t *ints = arena_alloc(c->m->b.arena, (*n + 1) * sizeof *ints);
  for (size_t i = 0; i < *n; i++) {
    if (!node_is_const(e[i]))
      onnx_fail_varying_size(c, e[i], "input '%.200s' depends on a varying size",
                             c->node->inputs.at[input]);
    ints[i] = node_int(e[i]);
  }
  return ints;
}

const double *onnx_static_floats(onnx_call *c, size_t input, size_t *n) {
  value v = onnx_input(c, input);
  dtype t = (dtype)v.node->dtype;
  const node *const *e = dtype_is_float(t) ? constant_tensor_elements(c->m, v, n) : NULL;
  if (!e)
    onnx_fail(c, TN_ERR_UNSUPPORTED,
              "input '%.200s' is not a constant list of floats; " ONNX_STATIC_HINT,
              c->node->inputs.at[input]);
  double *floats = arena_alloc(c->m->b.arena, (*n + 1) * sizeof *floats);
  for (size_t i = 0; i < *n; i++) floats[i] = scalar_to_double(t, (uint64_t)node_int(e[i]));
  return floats;
}

/** A bool input as the number 0 or 1. */
static value bool_as_number(onnx_call *c, size_t input) {
  if (onnx_input(c, input).node->dtype != DT_BOOL)
    onnx_fail(c, TN_ERR_DTYPE, "input '%.200s' is %s, expected bool", c->node->inputs.at[input],
              dtype_name((dtype)c->inputs[input].node->dtype));
  value v = onnx_scalar_input(c, input);
  builder *b = onnx_builder(c);
  value one = build_cast(b, build_int(b, 1), DT_I64), zero = build_cast(b, build_int(b, 0), DT_I64);
  return build_where(b, v, one, zero);
}

static _Noreturn void refuse_late_bool(onnx_call *c, size_t input) {
  onnx_fail(c, TN_ERR_UNSUPPORTED,
            "input '%.200s' is known only when the model runs; " ONNX_STATIC_HINT,
            c->node->inputs.at[input]);
}

bool onnx_static_bool(onnx_call *c, size_t input, bool absent) {
  size_t n;
  if (!onnx_has_input(c, input)) return absent;
  const node *const *e = shape_tensor_elements(c->m, bool_as_number(c, input), &n);
  if (!e || !node_is_const(e[0])) refuse_late_bool(c, input);
  return node_int(e[0]) != 0;
}

const node *onnx_condition(onnx_call *c, size_t input) {
  size_t n;
  const node *one = ix_const(c->m->b.ir, 1);
  value v = bool_as_number(c, input);
  const node *const *e = computed_tensor_elements(c->m, v, 0, one, true, &n);
  if (e && n == 1) return e[0];
  if (!build_depends_on_loop(&c->m->b, v.node)) refuse_late_bool(c, input);
  return NULL;
}

const node *onnx_loop_range(onnx_call *c, const node *trip_count) {
  if (c->m->enclosing.n >= LOOP_MAX_DEPTH)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "loops are nested deeper than %d", LOOP_MAX_DEPTH);
  return build_loop_range(onnx_builder(c), trip_count);
}

size_t onnx_normalise_axis(onnx_call *c, int64_t axis, size_t rank) {
  if (axis < -(int64_t)rank || axis >= (int64_t)rank)
    onnx_fail(c, TN_ERR_SHAPE, "axis %lld is out of range for a tensor of %zu dimensions",
              (long long)axis, rank);
  return (size_t)(axis < 0 ? axis + (int64_t)rank : axis);
}
