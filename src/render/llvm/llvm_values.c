/* Renders elementwise instructions of a LINEAR program for LLVM. No instruction has a flag that
   relaxes it: floats are strict, and integers wrap. Where LLVM has no defined result (a shift by
   more than the width, a float outside of an integer's range) the operand is reduced, or the result
   frozen, as the program discards it. */
#include "render/llvm/ir_writer.h"

#include <string.h>

void llvm_fail_unsupported(llvm_writer *w, const node *n) {
  dtype t = n->n_src ? (dtype)n->src[n->op == OP_WHERE]->dtype : (dtype)n->dtype;
  diag_raise(w->arena->diag, TN_ERR_UNSUPPORTED,
             "%s (node %" PRIu64 ") of %s to %s has no instruction: it should have been decomposed",
             op_name((op)n->op), n->id, dtype_name(t), dtype_name((dtype)n->dtype));
}

void llvm_fail_ill_formed(llvm_writer *w, const node *n, const char *what) {
  diag_raise(w->arena->diag, TN_ERR_INTERNAL, "%s (node %" PRIu64 ") %s", op_name((op)n->op), n->id,
             what);
}

static bool is_half(dtype t) { return t == DT_F16 || t == DT_BF16; }

/* Values. */

static const char *runtime_value(llvm_writer *w, const node *n) {
  size_t i = 0;
  while (i < w->spec->n_values && strcmp(w->spec->value_names[i], n->text) != 0) i++;
  if (i == w->spec->n_values)
    diag_raise(w->arena->diag, TN_ERR_UNSUPPORTED, "there is no launch index %s", n->text);
  const char *name = arena_printf(w->arena, "%%v%zu", i), *type = llvm_type_of(w, n);
  if (dtype_bytes((dtype)n->dtype) == 8) return name;
  return llvm_emit(w, "trunc i64 %s to %s", name, type);
}

const char *llvm_value(llvm_writer *w, const node *n) {
  if (n->op == OP_CONST) return llvm_constant(w, (dtype)n->dtype, n->lanes, (uint64_t)node_int(n));
  if (n->op == OP_VAR || n->op == OP_SPECIAL) return runtime_value(w, n);
  const char *value = map_get(&w->values, n);
  const c_value *v = c_emission_value(&w->plan, n);
  if (!value && v && v->inlined) return llvm_write_value(w, n);
  if (!value) llvm_fail_ill_formed(w, n, "is used where it has no value");
  return value;
}

const char *llvm_write_value(llvm_writer *w, const node *n) {
  const char *value = n->op == OP_LOAD ? llvm_load(w, n) : llvm_elementwise(w, n);
  map_set(w->arena, &w->values, n, (void *)value);
  return value;
}

/* Conversions. */

/** A value of one type, on its way to another. */
typedef struct converted {
  dtype dtype;
  const char *value;
} converted;

static converted convert_by(llvm_writer *w, const char *how, converted x, dtype to,
                            unsigned lanes) {
  return (converted){to, llvm_emit(w, "%s %s %s to %s", how, llvm_type(w, x.dtype, lanes), x.value,
                                   llvm_type(w, to, lanes))};
}

/** An integer in another width. */
static converted resize(llvm_writer *w, converted x, dtype to, unsigned lanes) {
  size_t a = x.dtype == DT_BOOL ? 0 : dtype_bytes(x.dtype), b = dtype_bytes(to);
  if (a == b) return (converted){to, x.value};
  bool is_signed = a && dtype_is_signed(x.dtype);
  return convert_by(w, a > b ? "trunc" : is_signed ? "sext" : "zext", x, to, lanes);
}

/** A float as an integer: through i32 for narrower ones, as the C renderer converts. */
static converted float_to_integer(llvm_writer *w, converted x, dtype to, unsigned lanes) {
  dtype wide = dtype_bytes(to) < 4 ? DT_I32 : to;
  converted r = convert_by(w, dtype_is_signed(wide) ? "fptosi" : "fptoui", x, wide, lanes);
  r.value = llvm_emit(w, "freeze %s %s", llvm_type(w, wide, lanes), r.value);
  return resize(w, r, to, lanes);
}

static const char *compare_with_zero(llvm_writer *w, converted x, unsigned lanes) {
  bool is_float = llvm_is_float(x.dtype);
  return llvm_emit(w, "%s %s %s, %s", is_float ? "fcmp une" : "icmp ne",
                   llvm_type(w, x.dtype, lanes), x.value, llvm_constant(w, x.dtype, lanes, 0));
}

/** A conversion between f16, a pattern, and f32. */
static const char *cast_f16(llvm_writer *w, const node *n) {
  unsigned lanes = n->lanes;
  const char *value = llvm_value(w, n->src[0]), *single = llvm_type(w, DT_F32, lanes),
             *pattern = llvm_type(w, DT_F16, lanes);
  const char *half = lanes > 1 ? arena_printf(w->arena, "<%u x half>", lanes) : "half";
  if (n->dtype == DT_F32) {
    value = llvm_emit(w, "bitcast %s %s to %s", pattern, value, half);
    return llvm_emit(w, "fpext %s %s to %s", half, value, single);
  }
  value = llvm_emit(w, "fptrunc %s %s to %s", single, value, half);
  return llvm_emit(w, "bitcast %s %s to %s", half, value, pattern);
}

static const char *cast(llvm_writer *w, const node *n) {
  const node *x = n->src[0];
  dtype to = (dtype)n->dtype, from = (dtype)x->dtype;
  unsigned lanes = n->lanes;
  converted v = {from, llvm_value(w, x)};
  if (to == from) return v.value;
  if ((to == DT_F32 && from == DT_F16) || (to == DT_F16 && from == DT_F32)) return cast_f16(w, n);
  if (is_half(to) || is_half(from)) llvm_fail_unsupported(w, n);
  if (to == DT_BOOL) return compare_with_zero(w, v, lanes);
  if (llvm_is_float(from) && llvm_is_float(to))
    return convert_by(w, to == DT_F64 ? "fpext" : "fptrunc", v, to, lanes).value;
  if (llvm_is_float(from)) return float_to_integer(w, v, to, lanes).value;
  if (!llvm_is_float(to)) return resize(w, v, to, lanes).value;
  bool is_signed = from != DT_BOOL && dtype_is_signed(from);
  return convert_by(w, is_signed ? "sitofp" : "uitofp", v, to, lanes).value;
}

static const char *bitcast(llvm_writer *w, const node *n) {
  const node *x = n->src[0];
  dtype to = (dtype)n->dtype, from = (dtype)x->dtype;
  unsigned lanes = n->lanes;
  converted v = {from, llvm_value(w, x)};
  if (to == from) return v.value;
  if (to == DT_BOOL) return compare_with_zero(w, v, lanes);
  if (from == DT_BOOL) return resize(w, v, to, lanes).value;
  if (llvm_is_float(to) == llvm_is_float(from)) return v.value; /* patterns and integers are one */
  return convert_by(w, "bitcast", v, to, lanes).value;
}

/* Lanes. */

static const char *splat(llvm_writer *w, const node *n) {
  const node *x = n->src[0];
  const char *type = llvm_type_of(w, n), *value = llvm_value(w, x);
  if (n->lanes == 1) return value;
  if (x->op == OP_CONST) return llvm_constant(w, (dtype)n->dtype, n->lanes, (uint64_t)node_int(x));
  const char *one =
      llvm_emit(w, "insertelement %s poison, %s %s, i64 0", type, llvm_type_of(w, x), value);
  return llvm_emit(w, "shufflevector %s %s, %s poison, <%u x i32> zeroinitializer", type, one, type,
                   n->lanes);
}

static const char *vectorize(llvm_writer *w, const node *n) {
  const char *type = llvm_type_of(w, n), *value = "poison";
  if (n->lanes == 1) return llvm_value(w, n->src[0]);
  for (uint32_t i = 0; i < n->n_src; i++) {
    const char *lane = llvm_value(w, n->src[i]);
    value = llvm_emit(w, "insertelement %s %s, %s %s, i64 %u", type, value,
                      llvm_type_of(w, n->src[i]), lane, i);
  }
  return value;
}

static const char *extract(llvm_writer *w, const node *n) {
  const node *x = n->src[0];
  if (x->op == OP_CONST) return llvm_constant(w, (dtype)n->dtype, 1, (uint64_t)node_int(x));
  const char *value = llvm_value(w, x);
  if (x->lanes == 1) return value;
  return llvm_emit(w, "extractelement %s %s, i64 %lld", llvm_type_of(w, x), value,
                   (long long)n->ints[0]);
}

/* Ops by tables: how they are written by class of operand. */

typedef enum operand_class { CLASS_SIGNED, CLASS_UNSIGNED, CLASS_FLOAT, CLASSES } operand_class;

static operand_class class_of(dtype t) {
  if (llvm_is_float(t)) return CLASS_FLOAT;
  return t != DT_BOOL && dtype_is_signed(t) ? CLASS_SIGNED : CLASS_UNSIGNED;
}

#define ALL(text) \
  { text, text, NULL }
#define EACH(i, u, f) \
  { i, u, f }

/** Instructions of two operands; of bool the unsigned ones. */
static const char *const binary[OP_LIMIT][CLASSES] = {
    [OP_ADD] = EACH("add", "add", "fadd"),
    [OP_SUB] = EACH("sub", "sub", "fsub"),
    [OP_MUL] = EACH("mul", "mul", "fmul"),
    [OP_DIV] = EACH(NULL, NULL, "fdiv"),
    [OP_CDIV] = EACH("sdiv", "udiv", NULL),
    [OP_CMOD] = EACH("srem", "urem", NULL),
    [OP_AND] = ALL("and"),
    [OP_OR] = ALL("or"),
    [OP_XOR] = ALL("xor"),
    [OP_SHL] = ALL("shl"),
    [OP_SHR] = EACH("ashr", "lshr", NULL),
};

static const char *const comparisons[OP_LIMIT][CLASSES] = {
    [OP_LT] = EACH("icmp slt", "icmp ult", "fcmp olt"),
    [OP_LE] = EACH("icmp sle", "icmp ule", "fcmp ole"),
    [OP_EQ] = EACH("icmp eq", "icmp eq", "fcmp oeq"),
    [OP_NE] = EACH("icmp ne", "icmp ne", "fcmp une"),
};

/** The comparison by which max and min select their first operand. */
static const char *const selections[OP_LIMIT][CLASSES] = {
    [OP_MAX] = EACH("icmp sgt", "icmp ugt", "fcmp ogt"),
    [OP_MIN] = EACH("icmp slt", "icmp ult", "fcmp olt"),
};

/** Intrinsic functions of floats. */
static const char *const functions[OP_LIMIT] = {
    [OP_ABS] = "fabs",    [OP_SQRT] = "sqrt",  [OP_FLOOR] = "floor", [OP_CEIL] = "ceil",
    [OP_TRUNC] = "trunc", [OP_ROUND] = "rint", [OP_FMA] = "fma",
};

/** Calls an intrinsic on a float's operands, whose names end in the type: "v8f32". */
static const char *call_function(llvm_writer *w, const node *n) {
  const char *type = llvm_type_of(w, n), *args[3] = {0};
  unsigned bits = (unsigned)dtype_bits((dtype)n->dtype);
  for (uint32_t i = 0; i < n->n_src && i < 3; i++) args[i] = llvm_value(w, n->src[i]);
  const char *suffix = n->lanes > 1 ? arena_printf(w->arena, "v%uf%u", n->lanes, bits)
                                    : arena_printf(w->arena, "f%u", bits);
  str list = str_new(w->arena);
  for (uint32_t i = 0; i < n->n_src; i++) str_addf(&list, "%s%s %s", i ? ", " : "", type, args[i]);
  return llvm_emit(w, "call %s @llvm.%s.%s(%s)", type, functions[n->op], suffix, str_text(&list));
}

static const char *select(llvm_writer *w, const node *n, const char *condition, const char *a,
                          const char *b) {
  const char *type = llvm_type_of(w, n);
  return llvm_emit(w, "select %s %s, %s %s, %s %s", llvm_type(w, DT_BOOL, n->lanes), condition,
                   type, a, type, b);
}

/** The second operand where both are equal, and NaN where one is. */
static const char *extremum(llvm_writer *w, const node *n) {
  dtype t = (dtype)n->dtype;
  const char *a = llvm_value(w, n->src[0]), *b = llvm_value(w, n->src[1]),
             *type = llvm_type_of(w, n);
  if (t == DT_BOOL) return llvm_emit(w, "%s %s %s, %s", n->op == OP_MAX ? "or" : "and", type, a, b);
  const char *first = llvm_emit(w, "%s %s %s, %s", selections[n->op][class_of(t)], type, a, b);
  const char *value = select(w, n, first, a, b);
  if (!llvm_is_float(t)) return value;
  const char *nan = llvm_emit(w, "fcmp uno %s %s, %s", type, a, a);
  return select(w, n, nan, a, value);
}

static const char *absolute(llvm_writer *w, const node *n) {
  if (!dtype_is_signed((dtype)n->dtype)) return llvm_value(w, n->src[0]);
  const char *type = llvm_type_of(w, n), *x = llvm_value(w, n->src[0]);
  const char *zero = llvm_constant(w, (dtype)n->dtype, n->lanes, 0);
  const char *minus = llvm_emit(w, "sub %s %s, %s", type, zero, x);
  return select(w, n, llvm_emit(w, "icmp slt %s %s, %s", type, x, zero), minus, x);
}

static const char *negate(llvm_writer *w, const node *n) {
  const char *type = llvm_type_of(w, n), *x = llvm_value(w, n->src[0]);
  if (llvm_is_float((dtype)n->dtype)) return llvm_emit(w, "fneg %s %s", type, x);
  return llvm_emit(w, "sub %s %s, %s", type, llvm_constant(w, (dtype)n->dtype, n->lanes, 0), x);
}

static const char *invert(llvm_writer *w, const node *n) {
  const char *ones =
      llvm_constant(w, (dtype)n->dtype, n->lanes,
                    n->dtype == DT_BOOL ? 1 : scalar_cast((dtype)n->dtype, DT_I64, UINT64_MAX));
  return llvm_emit(w, "xor %s %s, %s", llvm_type_of(w, n), llvm_value(w, n->src[0]), ones);
}

/** The count of a shift, reduced below the width, even where the result is not used. */
static const char *shift_count(llvm_writer *w, const node *n) {
  const node *count = n->src[1], *value = count->op == OP_SPLAT ? count->src[0] : count;
  const char *text = llvm_value(w, count);
  int bits = dtype_bits((dtype)n->dtype);
  if (value->op == OP_CONST && node_int(value) >= 0 && node_int(value) < bits) return text;
  return llvm_emit(w, "and %s %s, %s", llvm_type_of(w, count), text,
                   llvm_constant(w, (dtype)count->dtype, count->lanes, (uint64_t)bits - 1));
}

static const char *from_tables(llvm_writer *w, const node *n) {
  dtype t = (dtype)n->src[0]->dtype;
  if (is_half(t)) llvm_fail_unsupported(w, n);
  operand_class class = class_of(t);
  if (class == CLASS_FLOAT && functions[n->op]) return call_function(w, n);
  const char *how = binary[n->op][class] ? binary[n->op][class] : comparisons[n->op][class];
  bool is_arithmetic = n->op == OP_ADD || n->op == OP_SUB || n->op == OP_MUL;
  if (!how || n->n_src != 2 || (t == DT_BOOL && is_arithmetic)) llvm_fail_unsupported(w, n);
  const char *a = llvm_value(w, n->src[0]);
  bool shifts = n->op == OP_SHL || n->op == OP_SHR;
  const char *b = shifts ? shift_count(w, n) : llvm_value(w, n->src[1]);
  return llvm_emit(w, "%s %s %s, %s", how, llvm_type_of(w, n->src[0]), a, b);
}

/** True for the choice between a masked load and 0 by one of the load's own masks: the load is 0
    where that fails. */
static bool selects_loaded_zero(llvm_writer *w, const node *n) {
  const node *load = n->src[1], *other = n->src[2];
  if (load->op != OP_LOAD || !node_is_bits(other->op == OP_SPLAT ? other->src[0] : other, 0))
    return false;
  const c_access x = c_emission_access(&w->plan, load);
  for (size_t i = 0; i < x.masks.n; i++)
    if (x.masks.at[i] == n->src[0]) return true;
  return false;
}

static const char *where(llvm_writer *w, const node *n) {
  if (selects_loaded_zero(w, n)) return llvm_value(w, n->src[1]);
  const char *c = llvm_value(w, n->src[0]), *a = llvm_value(w, n->src[1]);
  return select(w, n, c, a, llvm_value(w, n->src[2]));
}

const char *llvm_elementwise(llvm_writer *w, const node *n) {
  dtype t = n->n_src ? (dtype)n->src[0]->dtype : (dtype)n->dtype;
  const tensor_row *row = tensor_row_of((op)n->op);
  if (row) return llvm_tensor_row(w, n, row);
  switch (n->op) {
  case OP_CAST: return cast(w, n);
  case OP_BITCAST: return bitcast(w, n);
  case OP_SPLAT: return splat(w, n);
  case OP_VECTORIZE: return vectorize(w, n);
  case OP_EXTRACT: return extract(w, n);
  case OP_WHERE: return where(w, n);
  case OP_MAX:
  case OP_MIN:
    if (!is_half(t)) return extremum(w, n);
    break;
  case OP_NEG:
    if (!is_half(t)) return negate(w, n);
    break;
  case OP_NOT: return invert(w, n);
  case OP_ABS:
    if (!dtype_is_float(t)) return absolute(w, n);
    break;
  default: break;
  }
  return from_tables(w, n);
}

bool llvm_has_instruction(op o) {
  const tensor_row *row = tensor_row_of(o);
  const tensor_tile *tile = tensor_tile_of(o);
  if (row || tile) return row ? row->x != DT_F16 : tile->workers == 1;
  switch (o) {
  case OP_CAST:
  case OP_BITCAST:
  case OP_SPLAT:
  case OP_VECTORIZE:
  case OP_EXTRACT:
  case OP_WHERE:
  case OP_NEG:
  case OP_NOT: return true;
  default: break;
  }
  for (int c = 0; c < CLASSES; c++)
    if (binary[o][c] || comparisons[o][c] || selections[o][c]) return true;
  return functions[o] != NULL;
}
