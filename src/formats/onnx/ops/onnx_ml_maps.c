/* ONNX's operators that take maps, CastMap and DictVectorizer. A map is a vector of keys and one of
   values (importer/sequences.c); of strings the vectors have the numbers. */
#include "formats/onnx/ops/cast_values.h"
#include "formats/onnx/ops/enum_attribute.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "formats/onnx/ops/onnx_ml_attributes.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"

#include <string.h>

static const tn_axes first_axis = {.count = 1}, last_axis = {.count = 1, .axis = {-1}};

/** A vector as a row, of strings if its elements are their numbers. */
static value as_row(onnx_call *c, value x, bool are_strings) {
  x = build_unsqueeze(onnx_builder(c), x, first_axis);
  return are_strings ? onnx_strings(c, x) : x;
}

/** The elements of a vector; of strings their numbers. */
static value elements_of(const onnx_call *c, value x, bool *are_strings) {
  const node *numbers = importer_find_strings(c->m, x);
  *are_strings = numbers != NULL;
  return numbers ? value_of(numbers) : x;
}

/** The values in the order of their keys. */
static value in_order(onnx_call *c, value keys, value x) {
  builder *b = onnx_builder(c);
  return build_take(b, x, build_argsort(b, keys, 0, false), 0);
}

/** The value of each of the first `max_map` keys, `absent` where there is none. Keys beyond them,
    and negative ones, have no place. */
static value at_keys(onnx_call *c, value keys, value x, value absent) {
  enum { KEYS_MAX = 1 << 24 };
  builder *b = onnx_builder(c);
  int64_t n = onnx_int_attribute(c, "max_map", 1);
  if (n < 1 || n > KEYS_MAX)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "max_map is %lld, not from 1 to %d", (long long)n, KEYS_MAX);
  sizes s = {1, {ix_const(b->ir, n)}};
  value is_negative = build_lt(b, keys, build_int(b, 0));
  keys = build_where(b, is_negative, build_int(b, n), keys);
  value all = build_expand(b, build_cast(b, absent, (dtype)x.node->dtype), &s);
  return build_scatter_nd(b, all, build_unsqueeze(b, keys, last_axis), x, OP_SET);
}

/** Absent strings are ONNX Runtime's. */
static value absent_value(onnx_call *c, bool are_strings) {
  builder *b = onnx_builder(c);
  return build_int(b, are_strings ? importer_string_number(c->m, &(onnx_bytes){"0.f", 3}) : 0);
}

void onnx_ml_CastMap(onnx_call *c) {
  static const char *const forms[] = {"DENSE", "SPARSE"};
  static const char *const types[] = {"TO_FLOAT", "TO_INT64", "TO_STRING"};
  const value *map = onnx_map_input_parts(c, 0);
  size_t to = ENUM_ATTRIBUTE(c, "cast_to", types);
  if (map[0].node->dtype != DT_I64) onnx_fail(c, TN_ERR_DTYPE, "the keys of the map are not int64");
  value x = onnx_cast_any(c, map[1], to == 0 ? DT_F32 : DT_I64, to == 2);
  bool are_strings;
  x = elements_of(c, x, &are_strings);
  x = ENUM_ATTRIBUTE(c, "map_form", forms) ? at_keys(c, map[0], x, absent_value(c, are_strings))
                                           : in_order(c, map[0], x);
  c->outputs[0] = as_row(c, x, are_strings);
}

/** The value of each key of a vocabulary, 0 or an empty string where the map has none. */
void onnx_ml_DictVectorizer(onnx_call *c) {
  builder *b = onnx_builder(c);
  const value *map = onnx_map_input_parts(c, 0);
  bool of_strings, are_strings;
  value keys = elements_of(c, map[0], &of_strings), x = elements_of(c, map[1], &are_strings);
  value words =
      of_strings ? onnx_string_vector(c, "string_vocabulary") : onnx_ml_ints(c, "int64_vocabulary");
  if (!words.node)
    onnx_fail(c, TN_ERR_FORMAT, "there is no vocabulary of the type of the map's keys");
  value is_key = build_eq(b, build_unsqueeze(b, words, last_axis), keys);
  value place = build_argmax(b, build_cast(b, is_key, DT_I32), -1, false);
  value none = build_cast(b, build_int(b, 0), (dtype)x.node->dtype);
  x = build_where(b, build_any(b, is_key, last_axis, false), build_take(b, x, place, 0), none);
  c->outputs[0] = as_row(c, x, are_strings);
}
