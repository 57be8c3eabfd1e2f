#include "ir/op.h"

#include <math.h>
#include <string.h>

enum { B = TAKES_BOOL, I = TAKES_INT, F = TAKES_FLOAT, X = TAKES_INDEX, ANY = TAKES_ANY };
enum { C = FACT_COMMUTATIVE, A = FACT_ASSOCIATIVE, D = FACT_IDEMPOTENT };
enum {
  T = STAGE_TENSOR,
  K = STAGE_KERNEL,
  L = STAGE_LOWERED,
  P = STAGE_LINEAR,
  KL = STAGE_KERNEL | STAGE_LOWERED,
  LP = STAGE_LOWERED | STAGE_LINEAR,
  KLP = STAGE_KERNEL | LP,
  TKLP = STAGE_TENSOR | KLP
};
enum { MANY = OP_MANY };

static const op_facts table[OP_LIMIT] = {
#define OP(name, text, cls, least, most, type, operands, facts, stages, fields) \
  [OP_##name] = {text, fields, least, most, CLASS_##cls, TYPE_##type, operands, facts, stages},
#include "ir/ops.def"
#undef OP
};

const op_facts *op_get(op o) { return &table[o]; }

op op_find(const char *name, size_t length) {
  for (int i = 0; i < OP_LIMIT; i++)
    if (strlen(table[i].name) == length && !memcmp(table[i].name, name, length)) return (op)i;
  return OP_LIMIT;
}

bool op_takes(op o, dtype t) {
  static const uint8_t mask[] = {
      [DC_NONE] = 0,         [DC_BOOL] = TAKES_BOOL,   [DC_INT] = TAKES_INT,
      [DC_UINT] = TAKES_INT, [DC_FLOAT] = TAKES_FLOAT, [DC_INDEX] = TAKES_INDEX};
  return (table[o].operands & mask[dtype_get(t)->cls]) != 0;
}

/** The least (sign < 0) or greatest value of a type, infinities for floats. */
static uint64_t extreme(dtype t, int sign) {
  if (dtype_is_float(t)) return scalar_from_double(t, sign < 0 ? -INFINITY : INFINITY);
  if (t == DT_BOOL) return sign > 0;
  if (t == DT_U64) return sign < 0 ? 0 : UINT64_MAX;
  return (uint64_t)(sign < 0 ? dtype_min(t) : dtype_max(t));
}

static uint64_t number(dtype t, int value) {
  return dtype_is_float(t) ? scalar_from_double(t, value) : (uint64_t)(int64_t)value;
}

static uint64_t all_ones(dtype t) {
  return scalar_cast(t, t == DT_BOOL ? DT_BOOL : DT_I64, t == DT_BOOL ? 1 : UINT64_MAX);
}

bool op_identity(op o, dtype t, uint64_t *bits) {
  switch (o) {
  case OP_ADD:
  case OP_OR:
  case OP_XOR: *bits = number(t, 0); return true;
  case OP_MUL: *bits = number(t, 1); return true;
  case OP_MAX: *bits = extreme(t, -1); return true;
  case OP_MIN: *bits = extreme(t, 1); return true;
  case OP_AND: *bits = all_ones(t); return true;
  default: return false;
  }
}

bool op_absorbing(op o, dtype t, uint64_t *bits) {
  if (dtype_is_float(t)) return false;
  switch (o) {
  case OP_MUL:
  case OP_AND: *bits = 0; return true;
  case OP_OR: *bits = all_ones(t); return true;
  case OP_MAX: *bits = extreme(t, 1); return true;
  case OP_MIN: *bits = extreme(t, -1); return true;
  default: return false;
  }
}
