/* ONNX Cast, CastLike and BitCast. Casts to and from strings are steps of the host
   (formats/host/string_numbers.h), around casts of the numbers to types that hold them. */
#include "formats/host/string_numbers.h"
#include "formats/onnx/ops/cast_values.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "formats/onnx/ops/quantise.h"
#include "tensor/ops/operators.h"

#include <string.h>

/** The type that version 1 names, as TensorProto does. */
static dtype named_type(const onnx_call *c) {
  static const struct {
    const char *name;
    dtype t;
  } types[] = {{"FLOAT", DT_F32},   {"UINT8", DT_U8},   {"INT8", DT_I8},    {"UINT16", DT_U16},
               {"INT16", DT_I16},   {"INT32", DT_I32},  {"INT64", DT_I64},  {"BOOL", DT_BOOL},
               {"FLOAT16", DT_F16}, {"DOUBLE", DT_F64}, {"UINT32", DT_U32}, {"UINT64", DT_U64}};
  const char *name = onnx_string_attribute(c, "to", "");
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (!strcmp(name, types[i].name)) return types[i].t;
  onnx_fail(c, TN_ERR_UNSUPPORTED, "attribute 'to' is type '%.50s', which is not supported", name);
}

/** Floats outside of an integer type of 4 or 2 bits, which ONNX does not define, wrap as in its
    reference implementation. */
static value cast_to(onnx_call *c, value x, dtype to) {
  builder *b = onnx_builder(c);
  bool wraps = dtype_is_storage(to) && dtype_has_ints(to) && dtype_has_floats((dtype)x.node->dtype);
  if (wraps) x = build_cast(b, x, DT_I32);
  return build_cast_by(b, x, to, onnx_storage_rounding(c));
}

/* Strings. */

/** The type of the step's numbers for those of type t. Where strings are read, smaller floats than
    f32 are rounded once, from f64. */
static dtype held_type(dtype t, bool is_read) {
  if (t == DT_F64 || t == DT_F32) return t;
  if (dtype_has_floats(t)) return is_read ? DT_F64 : DT_F32;
  return dtype_has_signs(t) || t == DT_BOOL ? DT_I64 : DT_U64;
}

static value cast_step(onnx_call *c, host_step step, number_options o, value x, dtype t) {
  sizes s = sizes_of(x.node);
  step.options = arena_copy(&c->m->host->arena, &o, sizeof o);
  return onnx_host_step(c, step, &x, 1, t, &s);
}

static void cast_to_strings(onnx_call *c) {
  if (onnx_is_string_input(c, 0)) {
    c->outputs[0] = onnx_any_input(c, 0);
    return;
  }
  value x = onnx_input(c, 0);
  dtype t = (dtype)x.node->dtype;
  number_options o = {held_type(t, false), t};
  host_step step = {.run = strings_of_numbers};
  x = build_cast(onnx_builder(c), x, o.held);
  c->outputs[0] = onnx_strings(c, cast_step(c, step, o, x, DT_I64));
}

static void cast_to_numbers(onnx_call *c, dtype t) {
  if (!onnx_is_string_input(c, 0)) {
    c->outputs[0] = cast_to(c, onnx_input(c, 0), t);
    return;
  }
  number_options o = {held_type(t, true), t};
  host_step step = {.run = numbers_of_strings};
  c->outputs[0] = cast_to(c, cast_step(c, step, o, onnx_string_input(c, 0), o.held), t);
}

value onnx_cast_any(onnx_call *c, value x, dtype t, bool to_strings) {
  value y = {0};
  onnx_call k = *c;
  k.inputs = &x;
  k.n_inputs = 1;
  k.outputs = &y;
  if (to_strings)
    cast_to_strings(&k);
  else
    cast_to_numbers(&k, t);
  return y;
}

void onnx_Cast(onnx_call *c) {
  if (c->version < 6)
    cast_to_numbers(c, named_type(c));
  else if (onnx_int_attribute(c, "to", 0) == ONNX_STRING)
    cast_to_strings(c);
  else
    cast_to_numbers(c, onnx_dtype_attribute(c, "to", (dtype)0));
}

void onnx_CastLike(onnx_call *c) {
  if (onnx_is_string_input(c, 1))
    cast_to_strings(c);
  else
    cast_to_numbers(c, (dtype)onnx_input(c, 1).node->dtype);
}

void onnx_BitCast(onnx_call *c) {
  c->outputs[0] =
      build_bitcast(onnx_builder(c), onnx_input(c, 0), onnx_dtype_attribute(c, "to", (dtype)0));
}
