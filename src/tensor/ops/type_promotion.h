/* Type rules of operators: the operand types that each rule accepts, promotion of operands as in
   <tenon/tensor.h>, result types, and the type in which f16 and bf16 are accumulated. */
#ifndef TENON_TENSOR_OPS_TYPE_PROMOTION_H
#define TENON_TENSOR_OPS_TYPE_PROMOTION_H

#include "tensor/ops/operators.h"

/** Type rule of an operation: operand types it accepts and the type of its result (ops.h). */
typedef enum rule {
  RULE_ANY,
  RULE_NUMBER,
  RULE_FLOAT,
  RULE_TEST,
  RULE_BITS,
  RULE_SHIFT,
  RULE_SUM
} rule;

/** The promoted type of several values; `weak` if all of them are weak scalars. */
typedef struct promoted_type {
  dtype dtype;
  weakness weak;
} promoted_type;
promoted_type promote_operands(builder *b, const value v[], size_t n);

/** Raises TN_ERR_DTYPE unless a rule accepts a type. */
void check_operand_type(builder *b, rule r, dtype t);

/** The result type of a function of floats: `p` if that is a float, else f32, or f64 if weak. */
promoted_type float_result_type(promoted_type p);

/** bool < integer < float: the kinds of types. */
int type_kind(dtype t);

/** The type to compute in: f32 for f16, bf16 and storage types of floats, 8 bits for those of
    integers, else itself. */
dtype accumulation_type(dtype t);

/** A value in the type to compute in. */
value value_widen(builder *b, value x);

/** The type of sums and products: 64 bits for integers and bools, else itself. */
dtype sum_type(dtype t);

/** A constant of rank 0 in another type. */
const node *constant_convert(builder *b, const node *n, dtype to);

/** A value in another type. A weak integer that the type cannot hold is TN_ERR_DTYPE. */
const node *type_convert(builder *b, value v, dtype to);

/** Operands of an elementwise operation: converted to the promoted type and broadcast. */
enum { MOST_OPERANDS = 3 };
typedef struct operands {
  promoted_type result;          /* type of the result */
  const node *at[MOST_OPERANDS]; /* in the type to compute in, of equal shapes */
} operands;
operands operands_promote(builder *b, rule r, const value v[], size_t n);

/** The result of an elementwise operation: cast to its type; folded to a constant if it is weak. */
value operands_result(builder *b, const operands *o, const node *n);

/** The operand of a function of floats that is not elementwise, made typed if weak. */
typedef struct float_operand {
  const node *x; /* in the type to compute in */
  dtype result;  /* type of the result */
} float_operand;
float_operand float_operand_of(builder *b, value x);

#endif
