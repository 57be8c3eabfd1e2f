/* Pieces of text, calls of helper functions, and conversions between forms. */
#include "render/c_writer.h"

c_piece c_primary(const char *text) { return (c_piece){text, true}; }
c_piece c_expression(const char *text) { return (c_piece){text, false}; }

const char *c_operand(c_writer *w, c_piece p) {
  return p.primary ? p.text : arena_printf(w->arena, "(%s)", p.text);
}

c_piece c_fill_piece(c_writer *w, const char *text, const c_blanks *b) {
  return c_expression(c_fill(w, text, b));
}

c_piece c_fill_unary(c_writer *w, const char *text, const c_blanks *b) {
  return c_primary(c_fill(w, text, b));
}

c_piece c_call(c_writer *w, const char *name, const char *body, c_form result,
               const c_form params[], const c_piece args[], size_t n) {
  str text = str_new(w->arena), list = str_new(w->arena);
  for (size_t i = 0; i < n; i++) {
    str_addf(&text, "%s%s", i ? ", " : "", args[i].text);
    str_addf(&list, "%s%s %c", i ? ", " : "", c_form_name(w, params[i]), (char)('a' + i));
  }
  const char *type = c_form_name(w, result);
  if (!c_is_known(w, name))
    str_addf(&w->head, "#ifndef %s\n#define %s %s\n%s%s %s(%s) {\n  %s\n}\n#endif\n", name, name,
             name, w->d->helper, type, name, str_text(&list), body);
  return c_primary(arena_printf(w->arena, "%s(%s)", name, str_text(&text)));
}

/* Conversions. */

c_piece c_reinterpret(c_writer *w, c_form to, c_form from, c_piece p) {
  bool vector = to.lanes > 1;
  if (to.dtype == from.dtype) return p;
  c_blanks b = {.a = c_operand(w, p), .t = to, .o = from};
  if (!vector && !dtype_is_float(to.dtype) && !dtype_is_float(from.dtype))
    return c_fill_unary(w, w->d->cast[0], &b);
  const c_op *row = &w->d->bitcast[vector];
  if (row->how != C_FUNCTION) return (c_piece){c_fill(w, row->text, &b), row->how == C_UNARY};
  b.a = "a";
  const char *name =
      arena_printf(w->arena, "bitcast_%s_%s", c_form_label(w, from), c_form_label(w, to));
  return c_call(w, name, c_fill(w, row->text, &b), to, &from, &p, 1);
}

static dtype signed_type(size_t bytes) { return c_form_mask((unsigned)bytes, 1).dtype; }

/** The next type on the way of a conversion. Compilers know instructions for integers of twice or
    half the width, and for floats from and to integers of 32 bits; of a greater step at once they
    make one conversion a lane. What is between holds all values of the smaller type. */
static dtype next_type(dtype from, dtype to) {
  size_t a = dtype_bytes(from), b = dtype_bytes(to);
  if (dtype_is_float(from)) return dtype_is_float(to) || b >= 4 ? to : DT_I32;
  if (dtype_is_float(to)) return a >= 4 ? to : signed_type(a * 2);
  if (a * 2 < b) return signed_type(a * 2);
  return a > b * 2 ? signed_type(a / 2) : to;
}

c_piece c_convert(c_writer *w, c_form to, c_form from, c_piece p) {
  bool vector = to.lanes > 1;
  if (to.dtype == from.dtype) return p;
  c_blanks b = {.a = vector ? p.text : c_operand(w, p), .t = to};
  if (!vector || next_type(from.dtype, to.dtype) == to.dtype)
    return c_fill_unary(w, w->d->cast[vector], &b);
  b.a = "a";
  for (dtype t = from.dtype; t != to.dtype;) {
    b.t.dtype = t = next_type(t, to.dtype);
    b.a = c_fill(w, w->d->cast[1], &b);
  }
  const char *body = arena_printf(w->arena, "return %s;", b.a),
             *name =
                 arena_printf(w->arena, "cast_%s_%s", c_form_label(w, from), c_form_label(w, to));
  return c_call(w, name, body, to, &from, &p, 1);
}
