/* Renders type names and exact literals as C text, and fills in the templates of a dialect. */
#include "render/c/writer.h"

#include <string.h>

/* Types. */

c_value_type c_value_type_make(dtype t, uint16_t lanes) {
  if (t == DT_F16 || t == DT_BF16) t = DT_U16;
  if (dtype_is_storage(t)) t = DT_U8;
  return (c_value_type){t, lanes};
}

c_value_type c_value_type_of_mask(unsigned bytes, uint16_t lanes) {
  static const dtype types[9] = {[1] = DT_I8, [2] = DT_I16, [4] = DT_I32, [8] = DT_I64};
  return (c_value_type){types[bytes], lanes};
}

static dtype unsigned_type(c_value_type f) {
  size_t bytes = dtype_bytes(f.dtype);
  if (f.lanes == 1 && bytes < 4) bytes = 4;
  return bytes == 1 ? DT_U8 : bytes == 2 ? DT_U16 : bytes == 4 ? DT_U32 : DT_U64;
}

bool c_declared_before(c_writer *w, const char *name) {
  for (size_t i = 0; i < w->text.declared.n; i++)
    if (!strcmp(w->text.declared.at[i], name)) return true;
  vec_push(w->arena, &w->text.declared, name);
  return false;
}

const char *c_value_type_label(c_writer *w, c_value_type f) {
  if (f.lanes == 1) return dtype_name(f.dtype);
  return arena_printf(w->arena, "%s%u", w->d->types[f.dtype].vector, f.lanes);
}

const char *c_value_type_name(c_writer *w, c_value_type f) {
  if (f.lanes == 1) return w->d->types[f.dtype].scalar;
  const char *name = c_value_type_label(w, f);
  if (f.lanes & (f.lanes - 1))
    diag_raise(w->arena->diag, TN_ERR_UNSUPPORTED, "vectors of %u lanes: only powers of two",
               f.lanes);
  if (!*w->d->types[f.dtype].vector)
    diag_raise(w->arena->diag, TN_ERR_UNSUPPORTED, "there are no vectors of %s",
               dtype_name(f.dtype));
  if (w->d->most_lanes && f.lanes > w->d->most_lanes)
    diag_raise(w->arena->diag, TN_ERR_UNSUPPORTED, "vectors of %u lanes: at most %u", f.lanes,
               w->d->most_lanes);
  if (!w->d->vector_type || c_declared_before(w, name)) return name;
  c_template_arguments b = {
      .t = f, .o = {f.dtype, 1}, .n = (int64_t)(f.lanes * dtype_bytes(f.dtype))};
  const char *text = c_template_fill(w, w->d->vector_type, &b);
  str_addf(&w->text.head, "#ifndef %s\n#define %s %s\n%s#endif\n", name, name, name, text);
  return name;
}

/* Templates. */

static const char *placeholder(c_writer *w, char which, const c_template_arguments *b) {
  switch (which) {
  case 'a': return b->a;
  case 'b': return b->b;
  case 'c': return b->c;
  case 'k': return b->k;
  case 'l': return b->l;
  case 't': return c_value_type_name(w, b->t);
  case 'o': return c_value_type_name(w, b->o);
  case 'u': return c_value_type_name(w, (c_value_type){unsigned_type(b->o), b->o.lanes});
  case 'm':
    return c_value_type_name(w,
                             c_value_type_of_mask((unsigned)dtype_bytes(b->o.dtype), b->o.lanes));
  case 'x': return arena_printf(w->arena, "%s%s", c_value_type_name(w, b->t), w->d->memory_type);
  case 'f': return w->d->types[b->o.dtype].function;
  default: return arena_printf(w->arena, "%lld", (long long)b->n);
  }
}

const char *c_template_fill(c_writer *w, const char *text, const c_template_arguments *b) {
  str s = str_new(w->arena);
  for (const char *at; (at = strchr(text, '$')); text = at + 2) {
    str_add_bytes(&s, text, (size_t)(at - text));
    str_add(&s, placeholder(w, at[1], b));
  }
  str_add(&s, text);
  return str_text(&s);
}

/* Constants. */

/** A hexadecimal literal, which is exact; its digits are not printed by %a, whose decimal point
   depends on the locale. */
static const char *float_literal(c_writer *w, dtype t, double v) {
  const char *suffix = w->d->types[t].suffix;
  uint64_t bits = scalar_from_double(DT_F64, v), fraction = bits & 0xfffffffffffff;
  int exponent = (int)(bits >> 52 & 0x7ff);
  bool negative = bits >> 63;
  if (exponent == 0x7ff) return NULL;
  const char *open = negative ? "(-" : "", *close = negative ? ")" : "";
  double size = negative ? -v : v;
  if (size < 1e6 && size == (double)(int64_t)size)
    return arena_printf(w->arena, "%s%lld.0%s%s", open, (long long)size, suffix, close);
  int digits = 13;
  while (digits > 1 && !(fraction & 15)) fraction >>= 4, digits--;
  return arena_printf(w->arena, "%s0x%d.%0*llxp%d%s%s", open, exponent != 0, digits,
                      (unsigned long long)fraction, exponent ? exponent - 1023 : -1022, suffix,
                      close);
}

static const char *signed_literal(c_writer *w, dtype t, int64_t v) {
  const char *suffix = w->d->types[t].suffix;
  if (v >= 0) return arena_printf(w->arena, "%lld%s", (long long)v, suffix);
  if (v > dtype_min(t)) return arena_printf(w->arena, "(%lld%s)", (long long)v, suffix);
  return arena_printf(w->arena, "(%lld%s - 1)", (long long)(v + 1), suffix);
}

/** An exact literal of type `t`; NULL: no finite number. */
static const char *literal(c_writer *w, dtype t, uint64_t bits) {
  if (dtype_is_storage(t)) return arena_printf(w->arena, "%u", (unsigned)(bits & 0xff));
  if (t == DT_F16 || t == DT_BF16)
    return arena_printf(w->arena, "0x%04x", (unsigned)(bits & 0xffff));
  if (dtype_is_float(t)) return float_literal(w, t, scalar_to_double(t, bits));
  if (dtype_is_signed(t)) return signed_literal(w, t, (int64_t)bits);
  return arena_printf(w->arena, "%llu%s", (unsigned long long)bits, w->d->types[t].suffix);
}

c_fragment c_scalar_constant(c_writer *w, dtype t, uint64_t bits) {
  bool minus_zero = dtype_is_float(t) && bits == scalar_from_double(t, -0.0);
  if (minus_zero && dtype_bytes(t) > 2)
    return c_fragment_primary(
        c_template_fill(w, w->d->minus_zero, &(c_template_arguments){.t = {t, 1}}));
  const char *text = literal(w, t, bits);
  if (text) return c_fragment_primary(text);
  dtype pattern = t == DT_F64 ? DT_U64 : DT_U32;
  return c_reinterpret(w, (c_value_type){t, 1}, (c_value_type){pattern, 1},
                       c_fragment_primary(literal(w, pattern, bits)));
}
