/* ONNX's operators of classical machine learning that prepare features: ArrayFeatureExtractor,
   Binarizer, FeatureVectorizer, Imputer, LabelEncoder, Normalizer, OneHotEncoder, Scaler. */
#include "formats/onnx/ops/enum_attribute.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "formats/onnx/ops/onnx_ml_attributes.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"

#include <math.h>
#include <string.h>

static const tn_axes last_axis = {.count = 1, .axis = {-1}};

value onnx_ml_floats(onnx_call *c, const char *name) {
  const onnx_attribute *a = onnx_find_attribute(c, name, ONNX_ATTRIBUTE_FLOATS);
  if (!a || !a->floats.n) return (value){0};
  return onnx_computed_tensor(c, DT_F32, a->floats.at, a->floats.n, 0);
}

value onnx_ml_ints(onnx_call *c, const char *name) {
  const onnx_ints *l = onnx_ints_attribute(c, name);
  if (!l || !l->n) return (value){0};
  return onnx_computed_tensor(c, DT_I64, l->at, l->n, 0);
}

value onnx_ml_class_labels(onnx_call *c, const char *ints, bool *are_strings) {
  value strings = onnx_string_vector(c, "classlabels_strings");
  *are_strings = strings.node != NULL;
  return strings.node ? strings : onnx_ml_ints(c, ints);
}

value onnx_ml_features(onnx_call *c, size_t input) {
  value x = onnx_input(c, input);
  dtype t = (dtype)x.node->dtype;
  bool is_wide = t == DT_F64 || (dtype_is_int(t) && dtype_bytes(t) > 2);
  return build_cast(onnx_builder(c), x, is_wide ? DT_F64 : DT_F32);
}

/** Elements of the last axis; of a vector, as a matrix of one row. */
void onnx_ml_ArrayFeatureExtractor(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0), index = onnx_input(c, 1);
  if (!x.node->rank) onnx_fail(c, TN_ERR_SHAPE, "the input is a scalar");
  if (index.node->rank != 1) index = build_flatten(b, index, 0, -1);
  value y = build_take(b, x, index, -1);
  c->outputs[0] = x.node->rank == 1 ? build_unsqueeze(b, y, (tn_axes){.count = 1}) : y;
}

void onnx_ml_Binarizer(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  value bound = build_num(b, (double)onnx_float_attribute(c, "threshold", 0));
  c->outputs[0] = build_cast(b, build_gt(b, x, bound), (dtype)x.node->dtype);
}

/** Raises unless a list has one entry, or one for each element of x's last axis. */
static void check_list(onnx_call *c, const char *name, value list, const node *x) {
  const node *n = list.node ? list.node->dims[0] : NULL;
  if (n && !node_is_bits(n, 1) && (!x->rank || n != x->dims[x->rank - 1u]))
    onnx_fail(c, TN_ERR_SHAPE, "attribute '%s' has %s entries, not 1 or one for each feature", name,
              size_text(onnx_builder(c), n));
}

void onnx_ml_Scaler(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_ml_features(c, 0), offset = onnx_ml_floats(c, "offset"),
        scale = onnx_ml_floats(c, "scale");
  check_list(c, "offset", offset, x.node);
  check_list(c, "scale", scale, x.node);
  if (offset.node) x = build_sub(b, x, offset);
  if (scale.node) x = build_mul(b, x, scale);
  c->outputs[0] = build_cast(b, x, DT_F32);
}

void onnx_ml_Normalizer(onnx_call *c) {
  static const char *const norms[] = {"MAX", "L1", "L2"};
  builder *b = onnx_builder(c);
  value x = onnx_ml_features(c, 0), size;
  size_t norm = ENUM_ATTRIBUTE(c, "norm", norms);
  if (x.node->rank < 1 || x.node->rank > 2)
    onnx_fail(c, TN_ERR_SHAPE, "the input has %u dimensions, expected 1 or 2", x.node->rank);
  if (norm == 0)
    size = build_max(b, build_abs(b, x), last_axis, true);
  else if (norm == 1)
    size = build_sum(b, build_abs(b, x), last_axis, true);
  else
    size = build_sqrt(b, build_sum(b, build_square(b, x), last_axis, true));
  value is_zero = build_eq(b, size, build_num(b, 0));
  size = build_where(b, is_zero, build_num(b, 1), size);
  c->outputs[0] = build_cast(b, build_div(b, x, size), DT_F32);
}

void onnx_ml_Imputer(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  bool is_float = dtype_is_float((dtype)x.node->dtype);
  const char *name = is_float ? "imputed_value_floats" : "imputed_value_int64s";
  value given = is_float ? onnx_ml_floats(c, name) : onnx_ml_ints(c, name);
  if (!given.node) onnx_fail(c, TN_ERR_FORMAT, "attribute '%s' has no entries", name);
  check_list(c, name, given, x.node);
  double replaced = (double)onnx_float_attribute(c, "replaced_value_float", 0);
  value is_missing =
      !is_float ? build_eq(b, x, build_int(b, onnx_int_attribute(c, "replaced_value_int64", 0)))
      : isnan(replaced) ? build_isnan(b, x)
                        : build_eq(b, x, build_num(b, replaced));
  c->outputs[0] = build_where(b, is_missing, build_cast(b, given, (dtype)x.node->dtype), x);
}

/** Rows of features side by side, each cut or padded to its dimension. */
void onnx_ml_FeatureVectorizer(onnx_call *c) {
  builder *b = onnx_builder(c);
  const onnx_ints *l = onnx_ints_attribute(c, "inputdimensions");
  value *parts = arena_alloc(b->arena, c->n_inputs * sizeof *parts);
  if (!l || l->n != c->n_inputs)
    onnx_fail(c, TN_ERR_FORMAT, "inputdimensions does not have one entry for each input");
  for (size_t i = 0; i < c->n_inputs; i++) {
    value x = build_cast(b, onnx_input(c, i), DT_F32);
    if (x.node->rank == 1) x = build_unsqueeze(b, x, (tn_axes){.count = 1, .axis = {1}});
    if (x.node->rank != 2 || l->at[i] < 0 || l->at[i] > INT32_MAX)
      onnx_fail(c, TN_ERR_SHAPE, "input %zu has %u dimensions, expected 1 or 2", i, x.node->rank);
    const node *more = ix_sub(b->ir, ix_const(b->ir, l->at[i]), x.node->dims[1]);
    parts[i] =
        value_of(shape_pad(b, x.node, 1, ix_const(b->ir, 0), more, ir_const(b->ir, DT_F32, 0)));
  }
  c->outputs[0] = build_concat(b, parts, c->n_inputs, 1);
}

/** 1 at the place of the element's category; all 0 for none, even if `zeros` is not set. */
void onnx_ml_OneHotEncoder(onnx_call *c) {
  builder *b = onnx_builder(c);
  bool is_string = onnx_is_string_input(c, 0);
  value x = is_string ? onnx_string_input(c, 0) : onnx_input(c, 0);
  const char *name = is_string ? "cats_strings" : "cats_int64s";
  value categories = is_string ? onnx_string_vector(c, name) : onnx_ml_ints(c, name);
  if (!categories.node) onnx_fail(c, TN_ERR_FORMAT, "attribute '%s' has no entries", name);
  if (!onnx_int_attribute(c, "zeros", 1))
    onnx_fail(c, TN_ERR_UNSUPPORTED, "zeros is 0, so an unknown category would be an error");
  if (dtype_is_float((dtype)x.node->dtype)) x = build_trunc(b, x);
  x = build_unsqueeze(b, build_cast(b, x, DT_I64), last_axis);
  c->outputs[0] = build_cast(b, build_eq(b, x, categories), DT_F32);
}

/* LabelEncoder and CategoryMapper: the value of the element's key. */

/** Keys or values, of strings their numbers. */
typedef struct labels {
  value list;
  bool are_strings;
} labels;

/** A constant; of strings their numbers. */
static value constant_labels(onnx_call *c, const onnx_tensor *t, bool *are_strings) {
  *are_strings = t->dtype == ONNX_STRING;
  return *are_strings ? importer_string_constant(c->m, t) : onnx_constant_tensor(c, t);
}

/** A list of keys or values: attribute prefix_tensor, prefix_int64s, prefix_floats or
    prefix_strings. */
static labels read_labels(onnx_call *c, const char *const names[4]) {
  labels l = {0};
  const onnx_tensor *t =
      onnx_has_attribute(c, names[0]) ? onnx_tensor_attribute(c, names[0]) : NULL;
  if (t)
    l.list = constant_labels(c, t, &l.are_strings);
  else if (onnx_has_attribute(c, names[3]))
    l = (labels){onnx_string_vector(c, names[3]), true};
  else if ((l.list = onnx_ml_ints(c, names[1])).node == NULL)
    l.list = onnx_ml_floats(c, names[2]);
  return l;
}

static value default_string(onnx_call *c) {
  const char *text = onnx_string_attribute(c, "default_string", "_Unused");
  int64_t number = importer_string_number(c->m, &(onnx_bytes){text, strlen(text)});
  return build_cast(onnx_builder(c), build_int(onnx_builder(c), number), DT_I64);
}

/** The default value, which stands for elements that equal no key, of the type of the values. */
static value read_default(onnx_call *c, const labels *values) {
  builder *b = onnx_builder(c);
  dtype t = (dtype)values->list.node->dtype;
  bool is_string;
  if (onnx_has_attribute(c, "default_tensor")) {
    const onnx_tensor *given = onnx_tensor_attribute(c, "default_tensor");
    if (given->elements != 1)
      onnx_fail(c, TN_ERR_FORMAT, "default_tensor has %zu elements, expected 1", given->elements);
    onnx_tensor scalar = *given;
    scalar.dims.n = 0;
    value v = constant_labels(c, &scalar, &is_string);
    if (is_string != values->are_strings)
      onnx_fail(c, TN_ERR_DTYPE, "default_tensor is not of the type of the values");
    return v;
  }
  if (values->are_strings) return default_string(c);
  value absent = dtype_is_float(t)
                     ? build_num(b, (double)onnx_float_attribute(c, "default_float", -0.0f))
                     : build_int(b, onnx_int_attribute(c, "default_int64", -1));
  return build_cast(b, absent, t);
}

/** The value of the key that each element equals, or the default. NaN equals NaN here. */
static void look_up(onnx_call *c, const labels *keys, const labels *values) {
  builder *b = onnx_builder(c);
  bool is_string = onnx_is_string_input(c, 0);
  value x = is_string ? onnx_string_input(c, 0) : onnx_input(c, 0);
  value key = keys->list, given = values->list;
  if (!key.node || !given.node || key.node->rank != 1 || given.node->rank != 1 ||
      key.node->dims[0] != given.node->dims[0] || key.node->dtype != x.node->dtype ||
      keys->are_strings != is_string)
    onnx_fail(c, TN_ERR_FORMAT,
              "the keys are not of the input's type, or there is not one value for each");
  x = build_unsqueeze(b, x, last_axis);
  value is_key = build_eq(b, x, key);
  if (dtype_is_float((dtype)x.node->dtype))
    is_key =
        build_logical_or(b, is_key, build_logical_and(b, build_isnan(b, x), build_isnan(b, key)));
  value place = build_argmax(b, build_cast(b, is_key, DT_I32), -1, false);
  value found = build_take(b, given, place, 0);
  value y = build_where(b, build_any(b, is_key, last_axis, false), found, read_default(c, values));
  c->outputs[0] = values->are_strings ? onnx_strings(c, y) : y;
}

/** Maps strings to integers, or integers to strings, as the input is. */
static void look_up_category(onnx_call *c, value strings, value integers) {
  const labels of_string = {strings, true}, of_integer = {integers, false};
  if (onnx_is_string_input(c, 0))
    look_up(c, &of_string, &of_integer);
  else
    look_up(c, &of_integer, &of_string);
}

/** Version 1: strings and their places in a list. */
static void encode_places(onnx_call *c) {
  builder *b = onnx_builder(c);
  value classes = onnx_string_vector(c, "classes_strings");
  if (!classes.node) onnx_fail(c, TN_ERR_FORMAT, "attribute 'classes_strings' has no entries");
  value places = build_arange(b, ix_const(b->ir, 0), classes.node->dims[0], 1, DT_I64);
  look_up_category(c, classes, places);
}

void onnx_ml_LabelEncoder(onnx_call *c) {
  static const char *const keys[] = {"keys_tensor", "keys_int64s", "keys_floats", "keys_strings"};
  static const char *const values[] = {"values_tensor", "values_int64s", "values_floats",
                                       "values_strings"};
  if (c->version == 1) {
    encode_places(c);
    return;
  }
  labels of_key = read_labels(c, keys), of_value = read_labels(c, values);
  look_up(c, &of_key, &of_value);
}

void onnx_ml_CategoryMapper(onnx_call *c) {
  look_up_category(c, onnx_string_vector(c, "cats_strings"), onnx_ml_ints(c, "cats_int64s"));
}
