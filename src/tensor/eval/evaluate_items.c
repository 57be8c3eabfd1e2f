/* Implements the evaluation of ITEMs, in the order in which they depend on each other. */
#include "tensor/eval/evaluate_items.h"

#include "device/memory/buffer.h"
#include "device/memory/span.h"
#include "ir/core/guard.h"
#include "ir/core/topo_sort.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/item_bounds.h"
#include "tensor/eval/evaluate.h"
#include "tensor/eval/substitute_values.h"
#include "tensor/state/graph_input.h"

/** An element that may have to be evaluated. */
typedef struct listed_element {
  const node *element;
  const guard *guard; /* NULL: there are no PICKs */
} listed_element;

typedef struct listing {
  evaluated_items *v;
  const node *const *roots;
  size_t n;
  VEC(listed_element) all;
  size_t at; /* of the element that is tested, */
  bool is_needed;
} listing;

static bool is_unknown(const node *n, void *context) { return !computed_value_of(context, n); }

/** The guard of each node, from the roots back; none if there are no PICKs. */
static map guards_of_nodes(const listing *l, const node_list *order) {
  arena *a = &l->v->c->arena;
  guard_table t = guard_table_of(a, order->at, order->n);
  map guards = {0};
  bool has_picks = false;
  for (size_t i = 0; i < order->n; i++) has_picks |= order->at[i]->op == OP_PICK;
  if (!has_picks) return guards;
  for (size_t i = 0; i < l->n; i++) map_set(a, &guards, l->roots[i], (void *)guard_always(&t));
  for (size_t i = order->n; i-- > 0;) {
    const node *n = order->at[i];
    for (size_t k = 0; is_unknown(n, l->v->c) && k < n->n_src; k++) {
      const guard *of = guard_of_source(&t, map_get(&guards, n), n, k);
      of = guard_common(&t, map_get(&guards, n->src[k]), of);
      map_set(a, &guards, n->src[k], (void *)of);
    }
  }
  return guards;
}

static void list_elements(void *arg) {
  listing *l = arg;
  tn_context *c = l->v->c;
  node_list order = topo_sort(&c->arena, l->roots, l->n, is_unknown, c);
  map guards = guards_of_nodes(l, &order);
  for (size_t i = 0; i < order.n; i++) {
    if (order.at[i]->op != OP_ITEM) continue;
    const node *element = ir_item_element(c->ir, order.at[i]);
    if (computed_value_of(c, element)) continue;
    vec_push(&c->arena, &l->v->elements, element);
    vec_push(&c->arena, &l->all, (listed_element){element, map_get(&guards, order.at[i])});
    ir_retain(element);
  }
}

/** Tests the guard of an element; a condition that only runs of plans know counts as true. */
static void test_guard(void *arg) {
  listing *l = arg;
  const guard *guard = l->all.at[l->at].guard;
  value_substitution r = {.c = l->v->c};
  l->is_needed = true;
  for (size_t i = 0; guard && i < guard->n && l->is_needed; i++) {
    const node *c = substitute_values(&r, guard->at[i].condition);
    l->is_needed = !node_is_const(c) || (node_int(c) != 0) == guard->at[i].is_one;
  }
}

static tn_status evaluate_element(tn_context *c, const node *element) {
  const node *slot = ir_retain(element);
  evaluation_request r = {.kind = EVALUATE_VALUE, .slot = &slot, .optional = true};
  evaluation_outcome o;
  do o = evaluate(c, &r, 1);
  while (o == EVALUATION_OVERTAKEN);
  ir_release(c->ir, slot);
  return o == EVALUATION_DONE ? TN_OK : c->diag.status;
}

tn_status evaluated_items_open(evaluated_items *v, const node *const roots[], size_t n) {
  tn_context *c = v->c;
  listing l = {.v = v, .roots = roots, .n = n};
  if (!ir_has_items(c->ir)) return TN_OK;
  tn_status s = diag_catch(&c->diag, list_elements, &l);
  for (; l.at < l.all.n && s == TN_OK; l.at++) {
    s = diag_catch(&c->diag, test_guard, &l);
    if (s == TN_OK && l.is_needed) s = evaluate_element(c, l.all.at[l.at].element);
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
  if (value < item->ints[0] || value > node_int(most)) {
    item_refuse(NULL, "", value, item->ints[0], node_int(most), &c->diag);
    diag_rethrow(&c->diag);
  }
  return ix_const(c->ir, value);
}
