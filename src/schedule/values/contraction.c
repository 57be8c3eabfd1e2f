/* Implements the recognition of contractions, by which layouts of weights and copies of operands
   are found before values exist. */
#include "schedule/values/contraction.h"

#include "ir/core/tensor_rows.h"

const node *contraction_product(const node *reduce) {
  const node *x = reduce->op == OP_REDUCE && reduce->ints[0] == OP_ADD ? reduce->src[0] : NULL;
  while (x &&
         (x->op == OP_PERMUTE || x->op == OP_SLICE || x->op == OP_EXPAND || x->op == OP_RESHAPE))
    x = x->src[0];
  return x && (x->op == OP_MUL || tensor_row_of((op)x->op)) ? x : NULL;
}
