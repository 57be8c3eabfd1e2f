/* Renders the values of instructions as C expressions: conversions, masks, lanes, memory accesses,
   and ops by the dialect's tables. Functions here call each other recursively; the emission limits
   how deep expressions nest. */
#include "ir/core/tensor_rows.h"
#include "render/c/writer.h"

#include <inttypes.h>
#include <string.h>

static _Noreturn void fail_unsupported(c_writer *w, const node *n) {
  dtype t = n->n_src ? (dtype)n->src[n->op == OP_WHERE]->dtype : (dtype)n->dtype;
  diag_raise(w->arena->diag, TN_ERR_UNSUPPORTED,
             "%s (node %" PRIu64 ") of %s to %s has no expression: it should have been decomposed",
             op_name((op)n->op), n->id, dtype_name(t), dtype_name((dtype)n->dtype));
}

/* Masks. */

static unsigned mask_bytes(c_writer *w, const node *n) {
  const c_value *v = c_emission_value(&w->plan, n);
  return v && v->mask ? v->mask : 1;
}

c_value_type c_value_type_of(c_writer *w, const node *n) {
  if (c_is_mask(n)) return c_value_type_of_mask(mask_bytes(w, n), n->lanes);
  return c_value_type_make((dtype)n->dtype, n->lanes);
}

static c_fragment splat(c_writer *w, c_value_type f, c_fragment scalar);
static c_fragment constant(c_writer *w, const node *n, c_value_type f);

/** A mask converted to lanes of `bytes` (0: unchanged). */
static c_fragment as_mask(c_writer *w, const node *n, unsigned bytes) {
  c_value_type f = c_value_type_of_mask(bytes ? bytes : mask_bytes(w, n), n->lanes);
  if (n->op == OP_CONST) return constant(w, n, f);
  c_fragment p = c_expr_value(w, n);
  return c_convert(w, f, c_value_type_of(w, n), p);
}

/** Numbers 0 and 1 from a mask of as many bytes. */
static c_fragment mask_numbers(c_writer *w, c_fragment mask) {
  c_template_arguments b = {.a = c_fragment_operand(w, mask)};
  return c_template_compound(w, w->d->conversion.of_mask, &b);
}

static c_fragment to_mask(c_writer *w, c_value_type from, c_fragment p) {
  c_template_arguments b = {.a = c_fragment_operand(w, p), .o = from};
  return c_template_primary(w, w->d->conversion.to_bool[1], &b);
}

static c_fragment to_bool(c_writer *w, c_fragment p) {
  c_template_arguments b = {.a = c_fragment_operand(w, p)};
  return c_template_compound(w, w->d->conversion.to_bool[0], &b);
}

/** A scalar truth value as a lane of a mask. */
static c_fragment mask_lane(c_writer *w, c_fragment p) {
  c_template_arguments b = {.a = c_fragment_operand(w, p)};
  return c_template_compound(w, w->d->conversion.to_mask, &b);
}

/** Operand i of an instruction; a mask in the width that the instruction wants. */
static c_fragment operand(c_writer *w, const node *n, size_t i) {
  if (!c_is_mask(n->src[i])) return c_expr_value(w, n->src[i]);
  return as_mask(w, n->src[i], c_emission_wanted_mask(&w->plan, n, i));
}

static c_value_type operand_type(c_writer *w, const node *n, size_t i) {
  unsigned wanted = c_is_mask(n->src[i]) ? c_emission_wanted_mask(&w->plan, n, i) : 0;
  return wanted ? c_value_type_of_mask(wanted, n->src[i]->lanes) : c_value_type_of(w, n->src[i]);
}

/* Conversions. */

static c_fragment bitcast(c_writer *w, const node *n) {
  const node *x = n->src[0];
  c_fragment p = operand(w, n, 0);
  c_value_type to = c_value_type_of(w, n), from = operand_type(w, n, 0);
  if (n->dtype == x->dtype) return p;
  if (n->dtype == DT_BOOL) return n->lanes > 1 ? to_mask(w, from, p) : to_bool(w, p);
  if (c_is_mask(x)) p = mask_numbers(w, p);
  return c_reinterpret(w, to, from, p);
}

static c_fragment cast(c_writer *w, const node *n) {
  const node *x = n->src[0];
  dtype to = (dtype)n->dtype;
  bool is_of_f16 = (to == DT_F32 && x->dtype == DT_F16) || (to == DT_F16 && x->dtype == DT_F32);
  if (is_of_f16 && w->d->conversion.f16[0])
    return c_convert_f16(w, to, (dtype)x->dtype, n->lanes, operand(w, n, 0));
  if (c_is_half(to) || c_is_half((dtype)x->dtype)) fail_unsupported(w, n);
  c_value_type from = operand_type(w, n, 0), form = c_value_type_of(w, n);
  c_fragment p = operand(w, n, 0);
  if (to == (dtype)x->dtype) return p;
  if (to == DT_BOOL) return n->lanes > 1 ? to_mask(w, from, p) : to_bool(w, p);
  if (c_is_mask(x)) {
    p = mask_numbers(w, p);
    if (!c_is_number(to)) return c_reinterpret(w, form, from, p);
  }
  return c_convert(w, form, from, p);
}

/* Constants and lanes. */

static c_fragment splat(c_writer *w, c_value_type f, c_fragment scalar) {
  const c_op *row = &w->d->splat;
  c_value_type one = {f.dtype, 1};
  str list = str_new(w->arena);
  for (unsigned i = 0; i < f.lanes; i++) str_add(&list, i ? ", a" : "a");
  c_template_arguments b = {.a = "a", .l = str_text(&list), .t = f, .o = one};
  if (row->kind == C_FUNCTION)
    return c_call_helper(w, arena_printf(w->arena, "splat_%s", c_value_type_label(w, f)),
                         c_template_fill(w, row->text, &b), f, &one, &scalar, 1);
  b.a = c_fragment_operand(w, scalar);
  return c_template_compound(w, row->text, &b);
}

/** A constant of a value type (a mask's lanes are 0 and −1). */
static c_fragment constant(c_writer *w, const node *n, c_value_type f) {
  uint64_t bits = (uint64_t)node_int(n);
  if (c_is_mask(n)) return splat(w, f, c_scalar_constant(w, f.dtype, bits ? UINT64_MAX : 0));
  c_fragment one = c_scalar_constant(w, (dtype)n->dtype, bits);
  return n->lanes > 1 ? splat(w, f, one) : one;
}

static c_fragment splat_node(c_writer *w, const node *n) {
  c_fragment p = c_expr_value(w, n->src[0]);
  if (n->lanes == 1) return p;
  return splat(w, c_value_type_of(w, n), n->dtype == DT_BOOL ? mask_lane(w, p) : p);
}

/** The vector, of as many lanes, that all lanes of a VECTORIZE are extracted from, but for those of
    one constant; NULL: there is none. */
static const node *shuffled_vector(const node *n, const node **constant_lane) {
  const node *from = NULL;
  for (uint32_t i = 0; i < n->n_src; i++) {
    const node *x = n->src[i], **same = x->op == OP_CONST ? constant_lane : &from;
    if (x->op != OP_CONST && x->op != OP_EXTRACT) return NULL;
    if (x->op == OP_EXTRACT) x = x->src[0];
    if (*same && *same != x) return NULL;
    *same = x;
  }
  bool fits = from && from->op != OP_CONST && from->lanes == n->lanes && n->lanes == n->n_src &&
              from->dtype == n->dtype && n->dtype != DT_BOOL;
  return fits ? from : NULL;
}

/** The lanes of a vector in another order, and a constant in some. */
static c_fragment shuffle(c_writer *w, const node *n, const node *from, const node *constant_lane) {
  str list = str_new(w->arena);
  c_value_type t = c_value_type_of(w, n);
  c_fragment x = c_expr_value(w, from), other = x;
  if (constant_lane) other = splat(w, t, c_expr_value(w, constant_lane));
  for (uint32_t i = 0; i < n->n_src; i++) {
    const node *lane = n->src[i];
    int64_t number = lane->op == OP_CONST ? n->lanes : lane->ints[0];
    str_addf(&list, "%s%" PRId64, i ? ", " : "", number);
  }
  c_template_arguments b = {.a = c_fragment_operand(w, x),
                            .b = c_fragment_operand(w, other),
                            .l = str_text(&list),
                            .t = t,
                            .o = c_value_type_of_mask((unsigned)dtype_bytes(t.dtype), t.lanes)};
  return c_fragment_primary(c_template_fill(w, w->d->shuffle, &b));
}

static c_fragment vectorize(c_writer *w, const node *n) {
  str list = str_new(w->arena);
  if (n->lanes == 1) return c_expr_value(w, n->src[0]);
  const node *constant_lane = NULL;
  const node *from = w->d->shuffle ? shuffled_vector(n, &constant_lane) : NULL;
  if (from) return shuffle(w, n, from, constant_lane);
  for (uint32_t i = 0; i < n->n_src; i++) {
    c_fragment p = c_expr_value(w, n->src[i]);
    if (n->dtype == DT_BOOL) p = mask_lane(w, p);
    str_addf(&list, "%s%s", i ? ", " : "", p.text);
  }
  c_template_arguments b = {.l = str_text(&list), .t = c_value_type_of(w, n)};
  return c_fragment_primary(c_template_fill(w, w->d->vectorize, &b));
}

static c_fragment extract(c_writer *w, const node *n) {
  const node *x = n->src[0];
  if (x->op == OP_CONST) return c_scalar_constant(w, (dtype)n->dtype, (uint64_t)node_int(x));
  c_fragment p = c_expr_value(w, x);
  if (x->lanes > 1) {
    c_template_arguments b = {.a = c_fragment_operand(w, p),
                              .l = arena_printf(w->arena, "%llx", (long long)n->ints[0]),
                              .n = n->ints[0]};
    p = c_fragment_primary(c_template_fill(w, w->d->extract, &b));
  }
  return c_is_mask(x) ? to_bool(w, p) : p;
}

/* Memory. */

c_fragment c_expr_predicate(c_writer *w, const c_access *access) {
  str s = str_new(w->arena);
  if (access->masks.n == 1) return c_expr_value(w, access->masks.at[0]);
  for (size_t i = 0; i < access->masks.n; i++)
    str_addf(&s, "%s%s", i ? " && " : "",
             c_fragment_operand(w, c_expr_value(w, access->masks.at[i])));
  return c_fragment_compound(str_text(&s));
}

static c_fragment element(c_writer *w, const c_access *access, c_value_type f) {
  if (c_is_register(access->storage->root)) return c_fragment_primary(access->cell->name);
  bool vector = f.lanes > 1;
  c_fragment address = c_expr_value(w, access->address);
  access->storage->used = true;
  c_template_arguments b = {.a = access->storage->name,
                            .b = vector ? c_fragment_operand(w, address) : address.text,
                            .l = arena_printf(w->arena, "%u", f.lanes),
                            .t = f};
  return c_template_primary(w, w->d->memory.load[vector], &b);
}

static c_fragment masked_element(c_writer *w, const c_access *access, c_value_type f) {
  c_template_arguments b = {.t = f};
  bool vector = f.lanes > 1;
  c_fragment zero = c_template_primary(w, w->d->memory.zero[vector], &b);
  if (!access->address) return zero;
  c_fragment p = element(w, access, f);
  if (!access->masks.n) return p;
  b.a = c_fragment_operand(w, c_expr_predicate(w, access));
  b.b = p.text, b.c = zero.text;
  return c_template_compound(w, w->d->memory.masked[vector], &b);
}

static c_fragment load(c_writer *w, const node *n) {
  c_access access = c_emission_access(&w->plan, n);
  c_value_type f = c_value_type_make((dtype)n->dtype, n->lanes);
  c_fragment p = masked_element(w, &access, f);
  if (n->dtype != DT_BOOL) return p;
  return n->lanes > 1 ? to_mask(w, f, p) : to_bool(w, p);
}

c_fragment c_expr_stored(c_writer *w, const node *store) {
  const node *x = store->src[2];
  c_fragment p = operand(w, store, 2);
  if (!c_is_mask(x)) return p;
  return c_reinterpret(w, (c_value_type){DT_BOOL, x->lanes}, c_value_type_of_mask(1, x->lanes),
                       mask_numbers(w, p));
}

/* Ops by the tables of the dialect. */

static c_class class_of(dtype t) {
  if (t == DT_BOOL) return C_BOOL;
  if (c_is_number(t)) return C_FLOAT;
  return dtype_is_signed(t) ? C_INT : C_UINT;
}

static const c_op *row_of(c_writer *w, const node *n, dtype t) {
  const c_op *table = (n->lanes > 1 ? w->d->vector : w->d->scalar)[class_of(t)];
  if (!table[n->op].text || (c_is_half(t) && n->op != OP_WHERE)) fail_unsupported(w, n);
  return &table[n->op];
}

/** The count of a shift, reduced below the width, even where the result is not used. */
static const char *shift_count(c_writer *w, const node *n) {
  const node *count = n->src[1], *value = count->op == OP_SPLAT ? count->src[0] : count;
  const char *text = c_fragment_operand(w, c_expr_value(w, count));
  int bits = dtype_bits((dtype)n->dtype);
  if (value->op == OP_CONST && node_int(value) >= 0 && node_int(value) < bits) return text;
  c_template_arguments b = {.a = text, .n = bits - 1};
  return c_template_fill(w, w->d->shift[n->lanes > 1], &b);
}

/** The body of a helper function that does an op lane by lane. */
static const char *lanes_body(c_writer *w, const node *n, const char *text,
                              const c_template_arguments *b) {
  c_template_arguments lane = *b, loop = *b;
  const char **names[] = {&lane.a, &lane.b, &lane.c};
  for (int i = 0; i < 3; i++) {
    c_template_arguments one = {.a = *names[i]};
    *names[i] = c_template_fill(w, w->d->lane, &one);
  }
  loop.a = c_template_fill(w, text, &lane);
  loop.n = n->lanes;
  return c_template_fill(w, w->d->lanes, &loop);
}

/** The body of an op's helper function: an intrinsic where the compiler has one. */
static const char *helper_body(c_writer *w, const node *n, const c_op *row,
                               const c_template_arguments *b) {
  bool by_lanes = row->kind == C_LANES;
  const char *body = by_lanes ? lanes_body(w, n, row->text, b) : c_template_fill(w, row->text, b);
  for (size_t i = 0; i < w->d->n_intrinsics; i++) {
    const c_intrinsic *x = &w->d->intrinsics[i];
    if (x->op != n->op || x->dtype != n->dtype || x->lanes != n->lanes) continue;
    return arena_printf(w->arena, "#if %s\n  return %s;\n#else\n  %s\n#endif", x->condition,
                        c_template_fill(w, x->text, b), body);
  }
  return body;
}

static c_fragment call_op_helper(c_writer *w, const node *n, const c_op *row,
                                 c_template_arguments b) {
  c_value_type params[3];
  c_fragment args[3];
  for (uint32_t i = 0; i < n->n_src; i++) {
    params[i] = operand_type(w, n, i);
    args[i] = operand(w, n, i);
  }
  b.a = "a", b.b = "b", b.c = "c";
  const char *body = helper_body(w, n, row, &b);
  const char *name =
      arena_printf(w->arena, "%s_%s", op_name((op)n->op), c_value_type_label(w, b.o));
  return c_call_helper(w, name, body, b.t, params, args, n->n_src);
}

/** An expression on integers: computed unsigned where it may overflow. */
static c_fragment wrapping(c_writer *w, const node *n, const c_op *row, c_template_arguments b) {
  const c_value *v = c_emission_value(&w->plan, n);
  bool vector = n->lanes > 1, small = dtype_bytes((dtype)n->dtype) < 4;
  if (!dtype_is_signed((dtype)n->dtype) && (vector || !small))
    return c_template_compound(w, row->text, &b);
  if (!vector && !small && v->exact) return c_template_compound(w, row->text, &b);
  c_template_arguments cast = {.o = b.o};
  const char *to = c_template_fill(w, "($u)", &cast);
  if (b.a) b.a = arena_printf(w->arena, "%s%s", to, b.a);
  if (b.b) b.b = arena_printf(w->arena, "%s%s", to, b.b);
  cast = (c_template_arguments){.a = c_template_fill(w, row->text, &b), .t = b.t};
  return c_template_primary(w, "($t)($a)", &cast);
}

static c_fragment from_table(c_writer *w, const node *n) {
  size_t typed = n->op == OP_WHERE ? 1 : 0;
  const c_op *row = row_of(w, n, (dtype)n->src[typed]->dtype);
  w->traits.has_dots |= tensor_row_of((op)n->op) || tensor_tile_of((op)n->op);
  c_template_arguments b = {.t = c_value_type_of(w, n), .o = operand_type(w, n, typed)};
  bool vector = n->lanes > 1, alone = row->kind == C_CALL || row->kind == C_LANES;
  if (row->kind == C_FUNCTION || (row->kind == C_LANES && vector))
    return call_op_helper(w, n, row, b);
  const char *text[3] = {0};
  for (uint32_t i = 0; i < n->n_src; i++) {
    c_fragment p = operand(w, n, i);
    text[i] = alone ? p.text : c_fragment_operand(w, p);
  }
  b.a = text[0], b.b = text[1], b.c = text[2];
  if (n->op == OP_SHL || n->op == OP_SHR) b.k = shift_count(w, n);
  if (row->kind == C_WRAPS) return wrapping(w, n, row, b);
  c_fragment p = {c_template_fill(w, row->text, &b), alone || row->kind == C_UNARY};
  bool small = dtype_bytes((dtype)n->dtype) < 4;
  if (row->kind != C_NARROWS || !small || vector) return p;
  c_template_arguments inner = {.a = c_fragment_operand(w, p), .t = b.t};
  return c_template_primary(w, w->d->conversion.cast[0], &inner);
}

c_fragment c_expr(c_writer *w, const node *n) {
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

/** The expression of a launch index; NULL: it is a runtime value. */
static const char *launch_index(const c_writer *w, const node *n) {
  const c_launch_index *x = w->d->team.indices;
  if (n->op != OP_SPECIAL) return NULL;
  for (; x && x->name; x++)
    if (!strcmp(x->name, n->text)) return x->text;
  return NULL;
}

static c_fragment runtime_value(c_writer *w, const node *n) {
  const char *index = launch_index(w, n);
  if (index) {
    c_template_arguments b = {.a = index, .t = c_value_type_make((dtype)n->dtype, 1)};
    return c_template_primary(w, w->d->conversion.cast[0], &b);
  }
  c_fragment name = c_fragment_primary(c_runtime_value_name(w, n->text));
  return n->dtype == DT_I64
             ? name
             : c_convert(w, c_value_type_make((dtype)n->dtype, 1), (c_value_type){DT_I64, 1}, name);
}

c_fragment c_expr_value(c_writer *w, const node *n) {
  if (n->op == OP_CONST) return constant(w, n, c_value_type_of(w, n));
  if (n->op == OP_VAR || n->op == OP_SPECIAL) return runtime_value(w, n);
  const c_value *v = c_emission_value(&w->plan, n);
  if (v && v->name) return c_fragment_primary(v->name);
  if (v && v->inlined) return c_expr(w, n);
  diag_raise(w->arena->diag, TN_ERR_INTERNAL, "%s (node %" PRIu64 ") is used where it has no value",
             op_name((op)n->op), n->id);
}
