/* Sizes that the tensors of an evaluation compute: evaluates the elements first, so that the graph
   that follows has numbers as sizes. */
#ifndef TENON_TENSOR_EVAL_EVALUATE_ITEMS_H
#define TENON_TENSOR_EVAL_EVALUATE_ITEMS_H

#include "base/vec.h"
#include "tensor/context/context.h"

/** The elements of ITEMs, and values that they share, retained so that they stay known. */
typedef struct evaluated_items {
  tn_context *c;
  VEC(const node *) elements;
} evaluated_items;

/** Evaluates the elements of the ITEMs that nodes depend on, but for those that runs of plans
    compute, and those that only sides need which are not taken. No catch is active; a failure is in
    the context's diag. */
tn_status evaluated_items_open(evaluated_items *v, const node *const roots[], size_t n);
void evaluated_items_close(evaluated_items *v);

/** The number that an ITEM is; NULL: its element has no value, or one outside of its bounds, which
    a run refuses if it takes the side that the ITEM is of. `most`: the greatest value. */
const node *evaluated_item(tn_context *c, const node *item, const node *most);

/** Raises the refusal of an ITEM that is outside of its bounds and that a tensor's sizes depend on,
    if there is one. */
void refuse_evaluated_items(tn_context *c, const node *tensor);

#endif
