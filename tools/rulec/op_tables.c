/* Defines the tables of ops and types of the rule compiler, derived from ir/core/ops.def and
   ir/core/dtypes.def, and their lookup by name. */
#include "rule_ast.h"

#include <string.h>

enum { C = 1, A = 2, D = 4, R = 0, J = 0, V = 0 };
enum { ELEMENTWISE, MOVEMENT, REDUCE, SOURCE, BINDER, MEMORY, CONTROL, EFFECT, PROGRAM };
enum {
  B = TAKES_BOOL,
  I = TAKES_INT,
  F = TAKES_FLOAT,
  X = TAKES_INDEX,
  S = 0,
  ANY = B | I | F | X
};
#define MANY 0xffff
#define E(e) 0
#define Z(z) 0

const op_row op_table[O_LIMIT] = {
#define OP(name, text, cls, least, most, type, operands, facts, stages, ...)                       \
  [O_##name] = {                                                                                   \
      #name,   text, least, most, type, ((facts)&C) != 0, (cls) == ELEMENTWISE, (cls) == MOVEMENT, \
      operands},
#include "ir/core/ops.def"
#undef OP
};

const type_row type_table[] = {
#define DTYPE(name, number, text, cls, bytes, exponent, mantissa) \
  {#name, text, #cls, bytes, exponent, mantissa},
#define STORED(...) /* no rule names a storage type */
#include "ir/core/dtypes.def"
#undef DTYPE
};

const size_t type_table_rows = sizeof type_table / sizeof *type_table;

static bool text_is(const char *name, const char *text, size_t n) {
  return strlen(name) == n && !memcmp(name, text, n);
}

int find_op(const char *text, size_t n) {
  for (int i = 0; i < O_LIMIT; i++)
    if (text_is(op_table[i].text, text, n)) return i;
  return -1;
}

int find_type(const char *text, size_t n) {
  for (size_t i = 0; i < type_table_rows; i++)
    if (text_is(type_table[i].text, text, n)) return (int)i;
  return -1;
}
