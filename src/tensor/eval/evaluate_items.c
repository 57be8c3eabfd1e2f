/* Implements the evaluation of ITEMs, in the order in which they depend on each other. */
#include "tensor/eval/evaluate_items.h"

#include "device/memory/buffer.h"
#include "device/memory/span.h"
#include "ir/core/topo_sort.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/eval/evaluate.h"
#include "tensor/state/graph_input.h"

typedef struct listing {
  evaluated_items *v;
  const node *const *roots;
  size_t n;
} listing;

static bool is_unknown(const node *n, void *context) { return !computed_value_of(context, n); }

static void list_elements(void *arg) {
  const listing *l = arg;
  tn_context *c = l->v->c;
  node_list order = topo_sort(&c->arena, l->roots, l->n, is_unknown, c);
  for (size_t i = 0; i < order.n; i++) {
    if (order.at[i]->op != OP_ITEM) continue;
    const node *element = ir_item_element(c->ir, order.at[i]);
    if (computed_value_of(c, element)) continue;
    vec_push(&c->arena, &l->v->elements, element);
    ir_retain(element);
  }
}

tn_status evaluated_items_open(evaluated_items *v, const node *const roots[], size_t n) {
  tn_context *c = v->c;
  if (!ir_has_items(c->ir)) return TN_OK;
  tn_status s = diag_catch(&c->diag, list_elements, &(listing){v, roots, n});
  for (size_t i = 0; i < v->elements.n && s == TN_OK; i++) {
    const node *slot = ir_retain(v->elements.at[i]);
    evaluation_request r = {.kind = EVALUATE_VALUE, .slot = &slot, .optional = true};
    evaluation_outcome o;
    do o = evaluate(c, &r, 1);
    while (o == EVALUATION_OVERTAKEN);
    ir_release(c->ir, slot);
    if (o != EVALUATION_DONE) s = c->diag.status;
  }
  return s;
}

void evaluated_items_close(evaluated_items *v) {
  for (size_t i = 0; i < v->elements.n; i++) ir_release(v->c->ir, v->elements.at[i]);
}

const node *evaluated_item(tn_context *c, const node *item, const node *most) {
  const node *buffer = computed_value_of(c, ir_item_element(c->ir, item));
  tn_span span;
  int64_t value = 0;
  if (!buffer || !node_is_const(most)) return NULL;
  if (buffer_span(graph_input_of(c, buffer)->memory, &span, &c->diag) != TN_OK ||
      span_read(&span, DT_I64, DT_I64, &value, 1, &c->diag) != TN_OK)
    diag_rethrow(&c->diag);
  if (value < item->ints[0] || value > node_int(most))
    diag_raise(&c->diag, TN_ERR_SHAPE,
               "a size is %lld, an element of a tensor; from %lld to %lld can be", (long long)value,
               (long long)item->ints[0], (long long)node_int(most));
  return ix_const(c->ir, value);
}
