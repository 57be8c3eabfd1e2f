/* Expressions. How deep they nest is limited by the plan, so functions here call each other. */
#include "render/c_writer.h"

#include <string.h>

static _Noreturn void cannot_say(c_writer *w, const node *n) {
  dtype t = n->n_src ? (dtype)n->src[n->op == OP_WHERE]->dtype : (dtype)n->dtype;
  diag_raise(w->arena->diag, TN_ERR_UNSUPPORTED,
             "%s (node %" PRIu64 ") of %s to %s has no expression: it should have been decomposed",
             op_name((op)n->op), n->id, dtype_name(t), dtype_name((dtype)n->dtype));
}

/* Masks. */

static unsigned mask_bytes(c_writer *w, const node *n) {
  const c_value *v = c_plan_value(&w->plan, n);
  return v && v->mask ? v->mask : 1;
}

c_form c_form_of(c_writer *w, const node *n) {
  if (c_is_mask(n)) return c_form_mask(mask_bytes(w, n), n->lanes);
  return c_form_make((dtype)n->dtype, n->lanes);
}

static c_piece splat(c_writer *w, c_form f, c_piece scalar);
static c_piece constant(c_writer *w, const node *n, c_form f);

/** A mask with lanes of another width (0: as it is). */
static c_piece as_mask(c_writer *w, const node *n, unsigned bytes) {
  c_form f = c_form_mask(bytes ? bytes : mask_bytes(w, n), n->lanes);
  if (n->op == OP_CONST) return constant(w, n, f);
  c_piece p = c_expr_value(w, n);
  return c_convert(w, f, c_form_of(w, n), p);
}

/** Numbers 0 and 1 from a mask of as many bytes. */
static c_piece mask_numbers(c_writer *w, c_piece mask) {
  c_blanks b = {.a = c_operand(w, mask)};
  return c_fill_piece(w, w->d->of_mask, &b);
}

static c_piece to_mask(c_writer *w, c_form from, c_piece p) {
  c_blanks b = {.a = c_operand(w, p), .o = from};
  return c_fill_unary(w, w->d->to_bool[1], &b);
}

static c_piece to_bool(c_writer *w, c_piece p) {
  c_blanks b = {.a = c_operand(w, p)};
  return c_fill_piece(w, w->d->to_bool[0], &b);
}

/** A scalar truth value as a lane of a mask. */
static c_piece mask_lane(c_writer *w, c_piece p) {
  c_blanks b = {.a = c_operand(w, p)};
  return c_fill_piece(w, w->d->to_mask, &b);
}

/** Source i of an instruction, masks as they are wanted there. */
static c_piece source(c_writer *w, const node *n, size_t i) {
  if (!c_is_mask(n->src[i])) return c_expr_value(w, n->src[i]);
  return as_mask(w, n->src[i], c_plan_wanted_mask(&w->plan, n, i));
}

static c_form source_form(c_writer *w, const node *n, size_t i) {
  unsigned wanted = c_is_mask(n->src[i]) ? c_plan_wanted_mask(&w->plan, n, i) : 0;
  return wanted ? c_form_mask(wanted, n->src[i]->lanes) : c_form_of(w, n->src[i]);
}

/* Conversions. */

static c_piece bitcast(c_writer *w, const node *n) {
  const node *x = n->src[0];
  c_piece p = source(w, n, 0);
  c_form to = c_form_of(w, n), from = source_form(w, n, 0);
  if (n->dtype == x->dtype) return p;
  if (n->dtype == DT_BOOL) return n->lanes > 1 ? to_mask(w, from, p) : to_bool(w, p);
  if (c_is_mask(x)) p = mask_numbers(w, p);
  return c_reinterpret(w, to, from, p);
}

static c_piece cast(c_writer *w, const node *n) {
  const node *x = n->src[0];
  dtype to = (dtype)n->dtype;
  if (c_is_half(to) || c_is_half((dtype)x->dtype)) cannot_say(w, n);
  c_form from = source_form(w, n, 0), form = c_form_of(w, n);
  c_piece p = source(w, n, 0);
  if (to == (dtype)x->dtype) return p;
  if (to == DT_BOOL) return n->lanes > 1 ? to_mask(w, from, p) : to_bool(w, p);
  if (c_is_mask(x)) {
    p = mask_numbers(w, p);
    if (!c_is_number(to)) return c_reinterpret(w, form, from, p);
  }
  return c_convert(w, form, from, p);
}

/* Constants and lanes. */

static c_piece splat(c_writer *w, c_form f, c_piece scalar) {
  const c_op *row = &w->d->splat;
  c_form one = {f.dtype, 1};
  str list = str_new(w->arena);
  for (unsigned i = 0; i < f.lanes; i++) str_add(&list, i ? ", a" : "a");
  c_blanks b = {.a = "a", .l = str_text(&list), .t = f, .o = one};
  if (row->how == C_FUNCTION)
    return c_call(w, arena_printf(w->arena, "splat_%s", c_form_label(w, f)),
                  c_fill(w, row->text, &b), f, &one, &scalar, 1);
  b.a = c_operand(w, scalar);
  return c_fill_piece(w, row->text, &b);
}

static c_piece scalar_constant(c_writer *w, dtype t, uint64_t bits) {
  bool minus_zero = dtype_is_float(t) && bits == scalar_from_double(t, -0.0);
  if (minus_zero && dtype_bytes(t) > 2)
    return c_primary(c_fill(w, w->d->minus_zero, &(c_blanks){.t = {t, 1}}));
  const char *text = c_literal(w, t, bits);
  if (text) return c_primary(text);
  dtype pattern = t == DT_F64 ? DT_U64 : DT_U32;
  return c_reinterpret(w, (c_form){t, 1}, (c_form){pattern, 1},
                       c_primary(c_literal(w, pattern, bits)));
}

/** A constant in the form that is wanted (a mask's lanes are 0 and −1). */
static c_piece constant(c_writer *w, const node *n, c_form f) {
  uint64_t bits = (uint64_t)node_int(n);
  if (c_is_mask(n)) return splat(w, f, scalar_constant(w, f.dtype, bits ? UINT64_MAX : 0));
  c_piece one = scalar_constant(w, (dtype)n->dtype, bits);
  return n->lanes > 1 ? splat(w, f, one) : one;
}

static c_piece splat_node(c_writer *w, const node *n) {
  c_piece p = c_expr_value(w, n->src[0]);
  if (n->lanes == 1) return p;
  return splat(w, c_form_of(w, n), n->dtype == DT_BOOL ? mask_lane(w, p) : p);
}

static c_piece vectorize(c_writer *w, const node *n) {
  str list = str_new(w->arena);
  if (n->lanes == 1) return c_expr_value(w, n->src[0]);
  for (uint32_t i = 0; i < n->n_src; i++) {
    c_piece p = c_expr_value(w, n->src[i]);
    if (n->dtype == DT_BOOL) p = mask_lane(w, p);
    str_addf(&list, "%s%s", i ? ", " : "", p.text);
  }
  c_blanks b = {.l = str_text(&list), .t = c_form_of(w, n)};
  return c_primary(c_fill(w, w->d->vectorize, &b));
}

static c_piece extract(c_writer *w, const node *n) {
  const node *x = n->src[0];
  if (x->op == OP_CONST) return scalar_constant(w, (dtype)n->dtype, (uint64_t)node_int(x));
  c_piece p = c_expr_value(w, x);
  if (x->lanes > 1) {
    c_blanks b = {.a = c_operand(w, p), .n = n->ints[0]};
    p = c_primary(c_fill(w, w->d->extract, &b));
  }
  return c_is_mask(x) ? to_bool(w, p) : p;
}

/* Memory. */

c_piece c_expr_gates(c_writer *w, const c_access *access) {
  str s = str_new(w->arena);
  if (access->gates.n == 1) return c_expr_value(w, access->gates.at[0]);
  for (size_t i = 0; i < access->gates.n; i++)
    str_addf(&s, "%s%s", i ? " && " : "", c_operand(w, c_expr_value(w, access->gates.at[i])));
  return c_expression(str_text(&s));
}

static c_piece element(c_writer *w, const c_access *access, c_form f) {
  if (c_is_register(access->storage->root)) return c_primary(access->cell->name);
  bool vector = f.lanes > 1;
  c_piece address = c_expr_value(w, access->address);
  access->storage->used = true;
  c_blanks b = {
      .a = access->storage->name, .b = vector ? c_operand(w, address) : address.text, .t = f};
  return c_fill_unary(w, w->d->load[vector], &b);
}

static c_piece gated_element(c_writer *w, const c_access *access, c_form f) {
  c_blanks b = {.t = f};
  bool vector = f.lanes > 1;
  c_piece zero = c_fill_unary(w, w->d->zero[vector], &b);
  if (!access->address) return zero;
  c_piece p = element(w, access, f);
  if (!access->gates.n) return p;
  b.a = c_operand(w, c_expr_gates(w, access));
  b.b = p.text, b.c = zero.text;
  return c_fill_piece(w, w->d->gated[vector], &b);
}

/** A load, and a wish for what is so many elements away, which may be outside of the buffer. */
static c_piece with_wish(c_writer *w, const c_access *access, c_piece loaded, int64_t away) {
  c_blanks b = {.a = access->storage->name,
                .b = c_operand(w, c_expr_value(w, access->address)),
                .l = loaded.text,
                .n = away};
  return c_primary(c_fill(w, w->d->ahead, &b));
}

static c_piece load(c_writer *w, const node *n) {
  c_access access = c_plan_access(&w->plan, n);
  c_form f = c_form_make((dtype)n->dtype, n->lanes);
  c_piece p = gated_element(w, &access, f);
  if (n->n_int && w->d->ahead && access.address && !access.gates.n)
    p = with_wish(w, &access, p, n->ints[0]);
  if (n->dtype != DT_BOOL) return p;
  return n->lanes > 1 ? to_mask(w, f, p) : to_bool(w, p);
}

c_piece c_expr_stored(c_writer *w, const node *store) {
  const node *x = store->src[2];
  c_piece p = source(w, store, 2);
  if (!c_is_mask(x)) return p;
  return c_reinterpret(w, (c_form){DT_BOOL, x->lanes}, c_form_mask(1, x->lanes),
                       mask_numbers(w, p));
}

/* Ops that the tables say. */

static c_class class_of(dtype t) {
  if (t == DT_BOOL) return C_BOOL;
  if (c_is_number(t)) return C_FLOAT;
  return dtype_is_signed(t) ? C_INT : C_UINT;
}

static const c_op *row_of(c_writer *w, const node *n, dtype t) {
  const c_op *table = (n->lanes > 1 ? w->d->vector : w->d->scalar)[class_of(t)];
  if (!table[n->op].text || (c_is_half(t) && n->op != OP_WHERE)) cannot_say(w, n);
  return &table[n->op];
}

/** The count of a shift, in range even where the result is not used. */
static const char *shift_count(c_writer *w, const node *n) {
  const node *count = n->src[1], *value = count->op == OP_SPLAT ? count->src[0] : count;
  const char *text = c_operand(w, c_expr_value(w, count));
  int bits = dtype_bits((dtype)n->dtype);
  if (value->op == OP_CONST && node_int(value) >= 0 && node_int(value) < bits) return text;
  return arena_printf(w->arena, "(%s & %d)", text, bits - 1);
}

static const c_native *native_of(c_writer *w, const node *n) {
  for (size_t i = 0; i < w->d->natives; i++) {
    const c_native *x = &w->d->native[i];
    if (x->op == n->op && x->dtype == n->dtype && x->lanes == n->lanes) return x;
  }
  return NULL;
}

/** The body of a helper function that does an op lane by lane. */
static const char *lanes_body(c_writer *w, const node *n, const char *text, const c_blanks *b) {
  c_blanks lane = *b, loop = *b;
  const char **names[] = {&lane.a, &lane.b, &lane.c};
  for (int i = 0; i < 3; i++) {
    c_blanks one = {.a = *names[i]};
    *names[i] = c_fill(w, w->d->lane, &one);
  }
  loop.a = c_fill(w, text, &lane);
  loop.n = n->lanes;
  return c_fill(w, w->d->lanes, &loop);
}

static const char *helper_body(c_writer *w, const node *n, const c_op *row, const c_blanks *b) {
  bool by_lanes = row->how == C_LANES;
  const char *body = by_lanes ? lanes_body(w, n, row->text, b) : c_fill(w, row->text, b);
  const c_native *x = native_of(w, n);
  if (!x) return body;
  return arena_printf(w->arena, "#if %s\n  return %s;\n#else\n  %s\n#endif", x->condition,
                      c_fill(w, x->text, b), body);
}

static c_piece helper(c_writer *w, const node *n, const c_op *row, c_blanks b) {
  c_form params[3];
  c_piece args[3];
  for (uint32_t i = 0; i < n->n_src; i++) {
    params[i] = source_form(w, n, i);
    args[i] = source(w, n, i);
  }
  b.a = "a", b.b = "b", b.c = "c";
  const char *body = helper_body(w, n, row, &b);
  const char *name = arena_printf(w->arena, "%s_%s", op_name((op)n->op), c_form_label(w, b.o));
  return c_call(w, name, body, b.t, params, args, n->n_src);
}

static c_piece narrowed(c_writer *w, c_piece p, const c_blanks *b) {
  c_blanks inner = {.a = c_operand(w, p), .t = b->t};
  return c_fill_unary(w, w->d->cast[0], &inner);
}

/** An expression on integers: as it stands where it cannot overflow, else done unsigned. */
static c_piece wrapping(c_writer *w, const node *n, const c_op *row, c_blanks b) {
  const c_value *v = c_plan_value(&w->plan, n);
  bool vector = n->lanes > 1, small = dtype_bytes((dtype)n->dtype) < 4;
  if (!dtype_is_signed((dtype)n->dtype) && (vector || !small))
    return c_fill_piece(w, row->text, &b);
  if (!vector && !small && v->exact) return c_fill_piece(w, row->text, &b);
  c_blanks cast = {.o = b.o};
  const char *to = c_fill(w, "($u)", &cast);
  if (b.a) b.a = arena_printf(w->arena, "%s%s", to, b.a);
  if (b.b) b.b = arena_printf(w->arena, "%s%s", to, b.b);
  cast = (c_blanks){.a = c_fill(w, row->text, &b), .t = b.t};
  return c_fill_unary(w, "($t)($a)", &cast);
}

static c_piece from_table(c_writer *w, const node *n) {
  size_t typed = n->op == OP_WHERE ? 1 : 0;
  const c_op *row = row_of(w, n, (dtype)n->src[typed]->dtype);
  c_blanks b = {.t = c_form_of(w, n), .o = source_form(w, n, typed)};
  bool vector = n->lanes > 1, alone = row->how == C_CALL || row->how == C_LANES;
  if (row->how == C_FUNCTION || (row->how == C_LANES && vector)) return helper(w, n, row, b);
  const char *text[3] = {0};
  for (uint32_t i = 0; i < n->n_src; i++) {
    c_piece p = source(w, n, i);
    text[i] = alone ? p.text : c_operand(w, p);
  }
  b.a = text[0], b.b = text[1], b.c = text[2];
  if (n->op == OP_SHL || n->op == OP_SHR) b.k = shift_count(w, n);
  if (row->how == C_WRAPS) return wrapping(w, n, row, b);
  c_piece p = {c_fill(w, row->text, &b), alone || row->how == C_UNARY};
  bool small = dtype_bytes((dtype)n->dtype) < 4;
  return row->how == C_NARROWS && small && !vector ? narrowed(w, p, &b) : p;
}

/* All. */

c_piece c_expr(c_writer *w, const node *n) {
  switch (n->op) {
  case OP_LOAD: return load(w, n);
  case OP_CAST: return cast(w, n);
  case OP_BITCAST: return bitcast(w, n);
  case OP_SPLAT: return splat_node(w, n);
  case OP_VECTORIZE: return vectorize(w, n);
  case OP_EXTRACT: return extract(w, n);
  default: return from_table(w, n);
  }
}

static c_piece runtime_value(c_writer *w, const node *n) {
  c_piece name = c_primary(c_value_name(w, n->text));
  return n->dtype == DT_I64
             ? name
             : c_convert(w, c_form_make((dtype)n->dtype, 1), (c_form){DT_I64, 1}, name);
}

c_piece c_expr_value(c_writer *w, const node *n) {
  if (n->op == OP_CONST) return constant(w, n, c_form_of(w, n));
  if (n->op == OP_VAR || n->op == OP_SPECIAL) return runtime_value(w, n);
  const c_value *v = c_plan_value(&w->plan, n);
  if (v && v->name) return c_primary(v->name);
  if (v && v->inlined) return c_expr(w, n);
  diag_raise(w->arena->diag, TN_ERR_INTERNAL, "%s (node %" PRIu64 ") is used where it has no value",
             op_name((op)n->op), n->id);
}
