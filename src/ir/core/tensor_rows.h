/* Rows of tensor_rows.def: ops that multiply elements of small types in groups and add the products
   to a sum, as one instruction of some processors does. */
#ifndef TENON_IR_CORE_TENSOR_ROWS_H
#define TENON_IR_CORE_TENSOR_ROWS_H

#include "ir/core/op.h"

#include <stddef.h>

typedef struct tensor_row {
  op op;
  dtype sum, x, y; /* types of sums, and of the elements of both operands */
  int group;       /* elements in a word */
  bool is_exact;
} tensor_row;

/** The rows, and their number. */
enum {
#define TENSOR_ROW(op, sum, x, y, group, exact) TENSOR_ROW_##op,
#include "ir/core/tensor_rows.def"
#undef TENSOR_ROW
  TENSOR_ROWS
};
extern const tensor_row tensor_rows[TENSOR_ROWS];

/** The row of an op; NULL for other ops. */
const tensor_row *tensor_row_of(op o);

/** The row's op for scalars, which are carried as 64 bits (dtype.h). */
uint64_t tensor_row_eval(const tensor_row *row, uint64_t sum, uint64_t x, uint64_t y);

#endif
