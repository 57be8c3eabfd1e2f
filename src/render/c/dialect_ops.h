/* Entries of op tables that dialects share: kinds of expressions, and ops that languages of the C
   family spell alike. */
#ifndef TENON_RENDER_C_DIALECT_OPS_H
#define TENON_RENDER_C_DIALECT_OPS_H

#include "render/c/dialect.h"

#define EXPRESSION(text) \
  { text, C_EXPRESSION }
#define UNARY(text) \
  { text, C_UNARY }
#define CALL(text) \
  { text, C_CALL }
#define WRAPS(text) \
  { text, C_WRAPS }
#define NARROWS(text) \
  { text, C_NARROWS }
#define FUNCTION(text) \
  { text, C_FUNCTION }
#define LANES(text) \
  { text, C_LANES }

#define INTEGER_OPS                                                                         \
  [OP_NEG] = WRAPS("-$a"), [OP_NOT] = NARROWS("~$a"), [OP_ADD] = WRAPS("$a + $b"),          \
  [OP_SUB] = WRAPS("$a - $b"), [OP_MUL] = WRAPS("$a * $b"), [OP_CDIV] = NARROWS("$a / $b"), \
  [OP_CMOD] = NARROWS("$a % $b"), [OP_AND] = EXPRESSION("$a & $b"),                         \
  [OP_OR] = EXPRESSION("$a | $b"), [OP_XOR] = EXPRESSION("$a ^ $b"),                        \
  [OP_SHL] = UNARY("($t)(($u)$a << $k)"), [OP_SHR] = NARROWS("$a >> $k")

/* Scalars. */
#define COMPARISONS                                                  \
  [OP_LT] = EXPRESSION("$a < $b"), [OP_LE] = EXPRESSION("$a <= $b"), \
  [OP_EQ] = EXPRESSION("$a == $b"), [OP_NE] = EXPRESSION("$a != $b")

#define SELECTIONS                                  \
  [OP_MAX] = FUNCTION("return $a > $b ? $a : $b;"), \
  [OP_MIN] = FUNCTION("return $a < $b ? $a : $b;"), [OP_WHERE] = EXPRESSION("$a ? $b : $c")

#define TRUTH_VALUES                                                               \
  COMPARISONS, [OP_NOT] = UNARY("!$a"), [OP_AND] = EXPRESSION("$a & $b"),          \
               [OP_OR] = EXPRESSION("$a | $b"), [OP_XOR] = EXPRESSION("$a ^ $b"),  \
               [OP_MAX] = EXPRESSION("$a | $b"), [OP_MIN] = EXPRESSION("$a & $b"), \
               [OP_WHERE] = EXPRESSION("$a ? $b : $c")

#define ABS_SIGNED   [OP_ABS] = FUNCTION("return $a < 0 ? ($t)(0 - ($u)$a) : $a;")
#define ABS_UNSIGNED [OP_ABS] = UNARY("$a")

/* NaN wins. */
#define EXTREMA_FLOAT                                                            \
  [OP_MAX] = FUNCTION("$t r = $a > $b ? $a : $b;\n  return $a != $a ? $a : r;"), \
  [OP_MIN] = FUNCTION("$t r = $a < $b ? $a : $b;\n  return $a != $a ? $a : r;")

#endif
