/* Implements ops on rows. Loops over the types of C are made from tables of ops and of types; f16
   and bf16, which are not types of C, bools and storage types have none. */
#include "ir/interp/element_rows.h"

#include "ir/core/scalar_eval.h"

#include <string.h>

/* clang-format off */

/* Ops of a type T, as expressions of two elements, `a` and `b`. Integers wrap: sums and products of
   64 bits are cut to the type. Of floats the maximum and minimum are NaN if an operand is NaN, and
   the second one of equal operands. */

#define INTEGER_OPS(OP, T)                \
  OP(OP_ADD, T, (uint64_t)a + (uint64_t)b) \
  OP(OP_SUB, T, (uint64_t)a - (uint64_t)b) \
  OP(OP_MUL, T, (uint64_t)a * (uint64_t)b) \
  OP(OP_MAX, T, b < a ? a : b)             \
  OP(OP_MIN, T, a < b ? a : b)

#define FLOAT_OPS(OP, T)                   \
  OP(OP_ADD, T, a + b)                     \
  OP(OP_SUB, T, a - b)                     \
  OP(OP_MUL, T, a * b)                     \
  OP(OP_DIV, T, a / b)                     \
  OP(OP_MAX, T, a > b || a != a ? a : b)   \
  OP(OP_MIN, T, a < b || a != a ? a : b)

#define COMPARISONS(OP)                    \
  OP(OP_LT, uint8_t, a < b)                \
  OP(OP_LE, uint8_t, a <= b)               \
  OP(OP_EQ, uint8_t, a == b)               \
  OP(OP_NE, uint8_t, a != b)

/* Types with their ops. */
#define TYPES_OF_C(TYPE)                   \
  TYPE(DT_I8, int8_t, INTEGER_OPS)         \
  TYPE(DT_I16, int16_t, INTEGER_OPS)       \
  TYPE(DT_I32, int32_t, INTEGER_OPS)       \
  TYPE(DT_I64, int64_t, INTEGER_OPS)       \
  TYPE(DT_U8, uint8_t, INTEGER_OPS)        \
  TYPE(DT_U16, uint16_t, INTEGER_OPS)      \
  TYPE(DT_U32, uint32_t, INTEGER_OPS)      \
  TYPE(DT_U64, uint64_t, INTEGER_OPS)      \
  TYPE(DT_F32, float, FLOAT_OPS)           \
  TYPE(DT_F64, double, FLOAT_OPS)

/* The loop of an op over two rows. */
#define EVAL_OP(op, R, expression)                          \
  case op:                                                  \
    for (size_t i = 0; i < n; i++) {                        \
      memcpy(&a, x + i * sizeof a, sizeof a);               \
      memcpy(&b, y + i * sizeof b, sizeof b);               \
      R result = (R)(expression);                           \
      memcpy(to + i * sizeof result, &result, sizeof result); \
    }                                                       \
    return true;

/* The loop of an op over a row, in which `a` is the state. */
#define REDUCE_OP(op, T, expression)                        \
  case op:                                                  \
    for (size_t i = 0; i < n; i++) {                        \
      memcpy(&b, x + i * sizeof b, sizeof b);               \
      a = (T)(expression);                                  \
    }                                                       \
    break;

#define LOOPS(name, T, OPS)                                                                  \
  static bool eval_##name(op o, const char *x, const char *y, char *restrict to, size_t n) { \
    T a, b;                                                                                  \
    switch (o) {                                                                             \
    OPS(EVAL_OP, T)                                                                          \
    COMPARISONS(EVAL_OP)                                                                     \
    default: return false;                                                                   \
    }                                                                                        \
  }                                                                                          \
  static bool reduce_##name(op o, void *state, const char *x, size_t n) {                    \
    T a, b;                                                                                  \
    memcpy(&a, state, sizeof a);                                                             \
    switch (o) {                                                                             \
    OPS(REDUCE_OP, T)                                                                        \
    default: return false;                                                                   \
    }                                                                                        \
    memcpy(state, &a, sizeof a);                                                             \
    return true;                                                                             \
  }                                                                                          \
  static long double reduce_exactly_##name(op o, long double s, const char *x, size_t n) {   \
    for (size_t i = 0; i < n; i++) {                                                         \
      T a;                                                                                   \
      memcpy(&a, x + i * sizeof a, sizeof a);                                                \
      s = o == OP_MUL ? s * a : s + a;                                                       \
    }                                                                                        \
    return s;                                                                                \
  }

TYPES_OF_C(LOOPS)
/* clang-format on */

/** The loops over a type: they return false for an op that they do not have. */
typedef struct type_loops {
  bool (*eval)(op o, const char *x, const char *y, char *restrict to, size_t n);
  bool (*reduce)(op o, void *state, const char *x, size_t n);
  long double (*reduce_exactly)(op o, long double state, const char *x, size_t n);
} type_loops;

#define ROW(name, T, OPS) [name] = {eval_##name, reduce_##name, reduce_exactly_##name},
static const type_loops loops[DT_LIMIT] = {TYPES_OF_C(ROW)};

static uint64_t read_element(dtype t, const char *row, size_t i) {
  return scalar_load(t, row + i * dtype_bytes(t));
}

/** Selects elements, of any type. */
static void eval_where(const char *const from[], char *to, size_t n, size_t bytes) {
  for (size_t i = 0; i < n; i++)
    memcpy(to + i * bytes, from[from[0][i] ? 1 : 2] + i * bytes, bytes);
}

void row_eval(const row_op *o, const char *const from[], void *to, size_t n, bool *overflow) {
  dtype t = o->operands[scalar_typed_operand(o->o)];
  size_t bytes = dtype_bytes(o->result);
  if (o->o == OP_WHERE) {
    eval_where(from, to, n, bytes);
    return;
  }
  if (o->n == 2 && loops[t].eval && loops[t].eval(o->o, from[0], from[1], to, n)) return;
  for (size_t i = 0; i < n; i++) {
    uint64_t args[3];
    for (size_t k = 0; k < o->n; k++) args[k] = read_element(o->operands[k], from[k], i);
    scalar_store(o->result, (char *)to + i * bytes,
                 scalar_eval(o->o, t, o->result, args, overflow));
  }
}

uint64_t row_reduce(op o, dtype t, uint64_t state, const void *row, size_t n) {
  char s[8];
  bool overflow = false;
  scalar_store(t, s, state);
  if (loops[t].reduce && loops[t].reduce(o, s, row, n)) return scalar_load(t, s);
  for (size_t i = 0; i < n; i++)
    state = scalar_eval(o, t, t, (uint64_t[]){state, read_element(t, row, i)}, &overflow);
  return state;
}

long double row_reduce_exactly(op o, dtype t, long double state, const void *row, size_t n) {
  if (loops[t].reduce_exactly) return loops[t].reduce_exactly(o, state, row, n);
  for (size_t i = 0; i < n; i++) {
    double a = scalar_to_double(t, read_element(t, row, i));
    state = o == OP_MUL ? state * a : state + a;
  }
  return state;
}
