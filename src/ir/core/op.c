/* Implements the queries about ops: holds the table made from ops.def, and finds ops by name, the
   layout of their arguments, and identity and absorbing elements. */
#include "ir/core/op.h"

#include "ir/core/tensor_rows.h"

#include <math.h>
#include <string.h>

enum {
  B = TAKES_BOOL,
  I = TAKES_INT,
  F = TAKES_FLOAT,
  X = TAKES_INDEX,
  S = TAKES_STORAGE,
  ANY = TAKES_ANY
};
enum { C = FACT_COMMUTATIVE, A = FACT_ASSOCIATIVE, D = FACT_IDEMPOTENT };
enum { R = FACT_TRANSCENDENTAL, J = FACT_DISCONTINUOUS, V = FACT_MOVES_LANES };
enum {
  T = LEVEL_TENSOR,
  K = LEVEL_KERNEL,
  L = LEVEL_LOWERED,
  P = LEVEL_LINEAR,
  KL = LEVEL_KERNEL | LEVEL_LOWERED,
  LP = LEVEL_LOWERED | LEVEL_LINEAR,
  KLP = LEVEL_KERNEL | LP,
  TKLP = LEVEL_TENSOR | KLP
};
enum { MANY = OP_UNLIMITED_SOURCES };
/* Identity and absorbing elements share the column of facts, above its bits. */
#define E(e) (ELEMENT_##e << 8)
#define Z(z) (ELEMENT_##z << 12)

static const op_facts table[OP_LIMIT] = {
#define OP(name, text, cls, least, most, type, operands, facts, stages, cost, ...) \
  [OP_##name] = {text,        {__VA_ARGS__},     least,         most,              \
                 CLASS_##cls, TYPE_##type,       operands,      (facts)&0xff,      \
                 stages,      (facts) >> 8 & 15, (facts) >> 12, cost},
#include "ir/core/ops.def"
#undef OP
};

const op_facts *op_facts_of(op o) { return &table[o]; }

op op_from_name(const char *name, size_t length) {
  for (int i = 0; i < OP_LIMIT; i++)
    if (strlen(table[i].name) == length && !memcmp(table[i].name, name, length)) return (op)i;
  return OP_LIMIT;
}

argument_layout argument_layout_of(op o) {
  argument_layout form = {0};
  const char *const *fields = table[o].fields;
  for (size_t i = 0; i < OP_MAX_FIELDS && fields[i] && *fields[i]; i++) {
    bool list = *fields[i] == '*', text = !strcmp(fields[i], "text");
    form.list |= list;
    form.text |= text;
    form.named += !list && !text;
    form.optional += *fields[i] == '?';
  }
  return form;
}

/** The style of the i-th integer of a list. The list of a FOLD begins with an op and a component
    for each state. */
static argument_style style_in_list(op o, const int64_t ints[], size_t i) {
  return o == OP_FOLD && i % 2 == 0 && (int64_t)(i / 2) < ints[0] ? ARGUMENT_OP : ARGUMENT_NUMBER;
}

argument_field argument_field_of(op o, const int64_t ints[], size_t i) {
  size_t named = argument_layout_of(o).named;
  if (i >= named) return (argument_field){"", style_in_list(o, ints, i - named)};
  const char *name = table[o].fields[i] + (*table[o].fields[i] == '?');
  argument_style style = !strcmp(name, "op")     ? ARGUMENT_OP
                         : !strcmp(name, "kind") ? ARGUMENT_KIND
                                                 : ARGUMENT_NUMBER;
  return (argument_field){name, style};
}

bool op_takes(op o, dtype t) {
  const tensor_tile *tile = tensor_tile_of(o);
  const tensor_row *row = tile ? &tensor_rows[tile->row] : tensor_row_of(o);
  static const uint8_t mask[] = {[DC_NONE] = 0,
                                 [DC_BOOL] = TAKES_BOOL,
                                 [DC_INT] = TAKES_INT,
                                 [DC_UINT] = TAKES_INT,
                                 [DC_FLOAT] = TAKES_FLOAT,
                                 [DC_INDEX] = TAKES_INDEX,
                                 [DC_STORAGE] = TAKES_STORAGE};
  return (table[o].operands & mask[dtype_facts_of(t)->cls]) != 0 && (!row || row->sum == t);
}

/** The least (sign < 0) or greatest value of a type; infinities for floats. */
static uint64_t extreme(dtype t, int sign) {
  if (dtype_is_float(t)) return scalar_from_double(t, sign < 0 ? -INFINITY : INFINITY);
  if (t == DT_BOOL) return sign > 0;
  if (t == DT_U64) return sign < 0 ? 0 : UINT64_MAX;
  return (uint64_t)(sign < 0 ? dtype_min(t) : dtype_max(t));
}

static bool element(op_element e, dtype t, uint64_t *bits) {
  switch (e) {
  case ELEMENT_ZERO: *bits = 0; return true;
  case ELEMENT_ONE: *bits = dtype_is_float(t) ? scalar_from_double(t, 1) : 1; return true;
  case ELEMENT_ONES: *bits = scalar_cast(t, DT_I64, UINT64_MAX); return true;
  case ELEMENT_LEAST: *bits = extreme(t, -1); return true;
  case ELEMENT_GREATEST: *bits = extreme(t, 1); return true;
  default: return false;
  }
}

bool op_identity(op o, dtype t, uint64_t *bits) {
  return (table[o].facts & FACT_ASSOCIATIVE) && element((op_element)table[o].identity, t, bits);
}

bool op_rounds_reduction(op o, dtype t) {
  return dtype_is_float(t) && (o == OP_ADD || o == OP_MUL);
}

bool op_right_identity(op o, dtype t, uint64_t *bits) {
  if (o == OP_ADD && dtype_is_float(t)) {
    *bits = scalar_from_double(t, -0.0);
    return true;
  }
  return element((op_element)table[o].identity, t, bits);
}

bool op_absorbing(op o, dtype t, uint64_t *bits) {
  return !dtype_is_float(t) && element((op_element)table[o].absorbing, t, bits);
}
