/* Renders conversions between value types and calls of helper functions as C expressions, for the C
   renderer. A conversion goes through intermediate types for which compilers have vector
   instructions. */
#include "render/c/writer.h"

c_fragment c_fragment_primary(const char *text) { return (c_fragment){text, true}; }
c_fragment c_fragment_compound(const char *text) { return (c_fragment){text, false}; }

const char *c_fragment_operand(c_writer *w, c_fragment p) {
  return p.primary ? p.text : arena_printf(w->arena, "(%s)", p.text);
}

c_fragment c_template_compound(c_writer *w, const char *text, const c_template_arguments *b) {
  return c_fragment_compound(c_template_fill(w, text, b));
}

c_fragment c_template_primary(c_writer *w, const char *text, const c_template_arguments *b) {
  return c_fragment_primary(c_template_fill(w, text, b));
}

c_fragment c_call_helper(c_writer *w, const char *name, const char *body, c_value_type result,
                         const c_value_type params[], const c_fragment args[], size_t n) {
  str text = str_new(w->arena), list = str_new(w->arena);
  for (size_t i = 0; i < n; i++) {
    str_addf(&text, "%s%s", i ? ", " : "", args[i].text);
    str_addf(&list, "%s%s %c", i ? ", " : "", c_value_type_name(w, params[i]), (char)('a' + i));
  }
  const char *type = c_value_type_name(w, result);
  if (!c_declared_before(w, name))
    str_addf(&w->text.head, "#ifndef %s\n#define %s %s\n%s%s %s(%s) {\n  %s\n}\n#endif\n", name,
             name, name, w->d->helper, type, name, str_text(&list), body);
  return c_fragment_primary(arena_printf(w->arena, "%s(%s)", name, str_text(&text)));
}

/* Conversions. */

c_fragment c_reinterpret(c_writer *w, c_value_type to, c_value_type from, c_fragment p) {
  bool vector = to.lanes > 1;
  if (to.dtype == from.dtype) return p;
  c_template_arguments b = {.a = c_fragment_operand(w, p), .t = to, .o = from};
  if (!vector && !dtype_is_float(to.dtype) && !dtype_is_float(from.dtype))
    return c_template_primary(w, w->d->conversion.cast[0], &b);
  const c_op *row = &w->d->conversion.bitcast[vector];
  if (row->kind != C_FUNCTION)
    return (c_fragment){c_template_fill(w, row->text, &b), row->kind == C_UNARY};
  b.a = "a";
  const char *name = arena_printf(w->arena, "bitcast_%s_%s", c_value_type_label(w, from),
                                  c_value_type_label(w, to));
  return c_call_helper(w, name, c_template_fill(w, row->text, &b), to, &from, &p, 1);
}

static dtype signed_type(size_t bytes) { return c_value_type_of_mask((unsigned)bytes, 1).dtype; }

/** The next type on the way of a conversion. Compilers have vector instructions for integers of
   twice or half the width, and between floats and integers of 32 bits; greater steps they convert
   lane by lane. An intermediate type holds all values of the smaller type. */
static dtype next_type(dtype from, dtype to) {
  size_t a = dtype_bytes(from), b = dtype_bytes(to);
  if (dtype_is_float(from)) return dtype_is_float(to) || b >= 4 ? to : DT_I32;
  if (dtype_is_float(to)) return a >= 4 ? to : signed_type(a * 2);
  if (a * 2 < b) return signed_type(a * 2);
  return a > b * 2 ? signed_type(a / 2) : to;
}

/** The body of a conversion's helper through intermediate types: that of gcc's builtin (`by`), or
    NULL, to the type that this converts to. */
static const char *convert_by_steps(c_writer *w, c_value_type to, c_value_type from,
                                    const c_conversion_intrinsic *by) {
  c_template_arguments b = {.a = "a", .t = to};
  dtype t = from.dtype;
  if (by) {
    b.t.dtype = t = by->to;
    b.a = c_template_fill(w, by->text, &b);
  }
  while (t != to.dtype) {
    b.t.dtype = t = next_type(t, to.dtype);
    b.a = c_template_fill(w, w->d->conversion.cast[1], &b);
  }
  return arena_printf(w->arena, "return %s;", b.a);
}

/** A faster first step of a conversion to a wider type; NULL: none. */
static const c_conversion_intrinsic *find_intrinsic(const c_writer *w, c_value_type to,
                                                    c_value_type from) {
  for (size_t i = 0; i < w->d->conversion.n_intrinsics; i++) {
    const c_conversion_intrinsic *x = &w->d->conversion.intrinsics[i];
    bool is_step = dtype_is_int(x->to) && dtype_bytes(to.dtype) >= 4; /* those of f16 are whole */
    if (x->from == from.dtype && x->lanes == from.lanes && is_step) return x;
  }
  return NULL;
}

/** The body of a conversion's helper by the intrinsics of its lanes, each under its condition, and
    `other` where none holds. */
static const char *choose_intrinsic(c_writer *w, dtype to, dtype from, c_value_type result,
                                    const char *other) {
  str text = str_new(w->arena);
  for (size_t i = 0; i < w->d->conversion.n_intrinsics; i++) {
    const c_conversion_intrinsic *x = &w->d->conversion.intrinsics[i];
    if (x->from != from || x->to != to || x->lanes != result.lanes) continue;
    c_template_arguments b = {.a = "a", .t = result};
    str_addf(&text, "#%s %s\n  return %s;\n", text.n ? "elif" : "if", x->condition,
             c_template_fill(w, x->text, &b));
  }
  return text.n ? arena_printf(w->arena, "%s#else\n  %s\n#endif", str_text(&text), other) : other;
}

c_fragment c_convert_f16(c_writer *w, dtype to, dtype from, uint16_t lanes, c_fragment p) {
  const char *one = w->d->conversion.f16[to == DT_F16];
  c_value_type result = c_value_type_make(to, lanes), param = c_value_type_make(from, lanes);
  c_template_arguments b = {.a = lanes > 1 ? "a" : c_fragment_operand(w, p), .t = result};
  if (lanes == 1) return c_template_primary(w, one, &b);
  c_template_arguments lane = {.a = c_template_fill(w, w->d->lane, &b)};
  c_template_arguments loop = {.a = c_template_fill(w, one, &lane), .t = result, .n = lanes};
  const char *body = choose_intrinsic(w, to, from, result, c_template_fill(w, w->d->lanes, &loop));
  const char *name =
      arena_printf(w->arena, "cast_%sx%u_%s", dtype_name(from), (unsigned)lanes, dtype_name(to));
  return c_call_helper(w, name, body, result, &param, &p, 1);
}

c_fragment c_convert(c_writer *w, c_value_type to, c_value_type from, c_fragment p) {
  bool vector = to.lanes > 1;
  if (to.dtype == from.dtype) return p;
  c_template_arguments b = {.a = vector ? p.text : c_fragment_operand(w, p), .t = to};
  if (!vector || next_type(from.dtype, to.dtype) == to.dtype)
    return c_template_primary(w, w->d->conversion.cast[vector], &b);
  const c_conversion_intrinsic *by = find_intrinsic(w, to, from);
  const char *body = convert_by_steps(w, to, from, NULL);
  if (by)
    body = arena_printf(w->arena, "#if %s\n  %s\n#else\n  %s\n#endif", by->condition,
                        convert_by_steps(w, to, from, by), body);
  const char *name =
      arena_printf(w->arena, "cast_%s_%s", c_value_type_label(w, from), c_value_type_label(w, to));
  return c_call_helper(w, name, body, to, &from, &p, 1);
}
