/* Implements the evaluation of ITEMs, in the order in which they depend on each other. Reductions,
   scans and scatters that an element depends on and the rest of the graph reads too are evaluated
   with it, so that they are computed once. Elements that depend on inputs of plans are not
   evaluated: the runs of these compute them. */
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
  const guard *guard; /* NULL: always */
} listed_element;

typedef struct listing {
  evaluated_items *v;
  const node *const *roots;
  size_t n;
  VEC(listed_element) all;
  map guards;  /* of nodes; none: all are needed */
  map readers; /* of each long value that is not known */
} listing;

static bool is_unknown(const node *n, void *context) { return !computed_value_of(context, n); }

/** The guard of each node, from the roots back; none if all are needed. */
static map guards_of_nodes(const listing *l, const node_list *order) {
  arena *a = &l->v->c->arena;
  guard_table t = {.a = a};
  map guards = {0};
  bool has_choices = false;
  for (size_t i = 0; i < order->n; i++) has_choices |= guard_condition(order->at[i]) != NULL;
  if (!has_choices) return guards;
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

/** True if a node chooses between its second and third source by its first. */
static bool is_choice(const node *n) {
  return n->op == OP_PICK || (n->op == OP_WHERE && n->dtype == DT_INDEX);
}

/** The nodes that have no value but in runs of plans, whichever sides are taken. */
static map nodes_of_runs(tn_context *c, const node_list *order) {
  map found = {0};
  for (size_t i = 0; i < order->n; i++) {
    const node *n = order->at[i];
    bool is_found = graph_input_is_of_runs(c, n), chooses = is_choice(n);
    for (size_t k = 0; k < n->n_src && !is_found; k++) {
      bool is_side = chooses && (k == 1 || k == 2);
      is_found = map_has(&found, n->src[k]) && (!is_side || map_has(&found, n->src[3 - k]));
    }
    if (is_found) map_set(&c->arena, &found, n, (void *)n);
  }
  return found;
}

/** The nodes of a graph that are part of a loop, or come after one. */
static map nodes_of_loops(arena *a, const node_list *order) {
  map found = {0};
  for (size_t i = 0; i < order->n; i++) {
    const node *n = order->at[i];
    bool is_found = n->op == OP_RANGE || n->op == OP_CARRY;
    for (size_t k = 0; k < n->n_src && !is_found; k++) is_found = map_has(&found, n->src[k]);
    if (is_found) map_set(a, &found, n, (void *)n);
  }
  return found;
}

/** True if a value takes more than a pass over its operands to compute anew. */
static bool is_long(const node *n) {
  return n->op == OP_REDUCE || n->op == OP_SCAN || n->op == OP_SCATTER;
}

/** The readers of each such value outside of loops, lists of nodes. */
static map readers_of_long_values(const listing *l, const node_list *order, const map *loops) {
  tn_context *c = l->v->c;
  map found = {0};
  for (size_t i = 0; i < order->n; i++) {
    const node *n = order->at[i];
    if (n->op == OP_ITEM || computed_value_of(c, n)) continue;
    for (size_t k = 0; k < n->n_src; k++) {
      const node *x = n->src[k];
      if (!is_long(x) || map_has(loops, x) || computed_value_of(c, x)) continue;
      node_list *readers = map_get(&found, x);
      if (!readers) readers = arena_calloc(&c->arena, 1, sizeof *readers);
      map_set(&c->arena, &found, x, readers);
      vec_push(&c->arena, readers, n);
    }
  }
  return found;
}

/** True if a guard holds; `unknown`: what counts for a condition that only runs of plans know. */
static bool guard_holds(const listing *l, const guard *guard, bool unknown) {
  value_substitution r = {.c = l->v->c};
  bool holds = true;
  for (size_t i = 0; guard && i < guard->n && holds; i++) {
    const node *c = substitute_values(&r, guard->at[i].condition);
    holds = node_is_const(c) ? (node_int(c) != 0) == guard->at[i].is_one : unknown;
  }
  return holds;
}

/** The values that an element depends on and other nodes of the graph read too, those of sides that
    are not taken excepted. */
static node_list shared_values(const listing *l, const node *element) {
  tn_context *c = l->v->c;
  node_list below = topo_sort(&c->arena, &element, 1, is_unknown, c), shared = {0};
  map is_below = {0};
  for (size_t i = 0; i < below.n; i++) map_set(&c->arena, &is_below, below.at[i], (void *)element);
  for (size_t i = 0; i < below.n; i++) {
    const node_list *of = map_get(&l->readers, below.at[i]);
    bool is_shared = false;
    for (size_t k = 0; of && k < of->n && !is_shared; k++)
      is_shared = !map_has(&is_below, of->at[k]);
    is_shared = is_shared && guard_holds(l, map_get(&l->guards, below.at[i]), false);
    if (is_shared) vec_push(&c->arena, &shared, below.at[i]);
  }
  return shared;
}

static void retain_for_run(evaluated_items *v, const node *n) {
  vec_push(&v->c->arena, &v->elements, n);
  ir_retain(n);
}

static void list_elements(void *arg) {
  listing *l = arg;
  tn_context *c = l->v->c;
  node_list order = topo_sort(&c->arena, l->roots, l->n, is_unknown, c);
  map loops = nodes_of_loops(&c->arena, &order);
  map of_runs = nodes_of_runs(c, &order);
  l->guards = guards_of_nodes(l, &order);
  l->readers = readers_of_long_values(l, &order, &loops);
  for (size_t i = 0; i < order.n; i++) {
    if (order.at[i]->op != OP_ITEM || map_has(&of_runs, order.at[i])) continue;
    const node *element = ir_item_element(c->ir, order.at[i]);
    if (computed_value_of(c, element)) continue;
    retain_for_run(l->v, element);
    vec_push(&c->arena, &l->all, (listed_element){element, map_get(&l->guards, order.at[i])});
  }
}

/** An element whose guard is tested. */
typedef struct guard_test {
  const listing *l;
  const guard *guard;
  bool holds;
} guard_test;

static void test_guard(void *arg) {
  guard_test *t = arg;
  t->holds = guard_holds(t->l, t->guard, true);
}

typedef struct element_requests {
  const listing *l;
  const node *element;
  const node **slots; /* each with a reference */
  evaluation_request *at;
  size_t n; /* slots that are filled */
} element_requests;

static void make_requests(void *arg) {
  element_requests *r = arg;
  arena *a = &r->l->v->c->arena;
  node_list shared = shared_values(r->l, r->element), all = {0};
  vec_push(a, &all, r->element);
  for (size_t k = 0; k < shared.n; k++) {
    retain_for_run(r->l->v, shared.at[k]);
    vec_push(a, &all, shared.at[k]);
  }
  r->slots = arena_alloc(a, all.n * sizeof *r->slots);
  r->at = arena_calloc(a, all.n, sizeof *r->at);
  for (; r->n < all.n; r->n++) {
    r->slots[r->n] = ir_retain(all.at[r->n]);
    r->at[r->n] =
        (evaluation_request){.kind = EVALUATE_VALUE, .slot = &r->slots[r->n], .optional = true};
  }
}

static tn_status evaluate_element(const listing *l, const node *element) {
  tn_context *c = l->v->c;
  element_requests r = {.l = l, .element = element};
  evaluation_outcome o = EVALUATION_FAILED;
  if (diag_catch(&c->diag, make_requests, &r) == TN_OK) {
    do o = evaluate_of_items(c, r.at, r.n);
    while (o == EVALUATION_OVERTAKEN);
  }
  for (size_t i = 0; i < r.n; i++) ir_release(c->ir, r.slots[i]);
  return o == EVALUATION_DONE ? TN_OK : c->diag.status;
}

tn_status evaluated_items_open(evaluated_items *v, const node *const roots[], size_t n) {
  tn_context *c = v->c;
  listing l = {.v = v, .roots = roots, .n = n};
  if (!ir_has_items(c->ir)) return TN_OK;
  tn_status s = diag_catch(&c->diag, list_elements, &l);
  for (size_t i = 0; i < l.all.n && s == TN_OK; i++) {
    guard_test t = {.l = &l, .guard = l.all.at[i].guard};
    s = diag_catch(&c->diag, test_guard, &t);
    if (s == TN_OK && t.holds) s = evaluate_element(&l, l.all.at[i].element);
  }
  return s;
}

void evaluated_items_close(evaluated_items *v) {
  for (size_t i = 0; i < v->elements.n; i++) ir_release(v->c->ir, v->elements.at[i]);
}

/** Reads the element of an ITEM; false if it has no value. */
static bool read_element(tn_context *c, const node *item, int64_t *value) {
  const node *buffer = computed_value_of(c, ir_item_element(c->ir, item));
  tn_span span;
  if (buffer && (buffer_span(graph_input_of(c, buffer)->memory, &span, &c->diag) != TN_OK ||
                 span_read(&span, DT_I64, DT_I64, value, 1, &c->diag) != TN_OK))
    diag_rethrow(&c->diag);
  return buffer != NULL;
}

const node *evaluated_item(tn_context *c, const node *item, const node *most) {
  int64_t value = 0;
  if (!node_is_const(most) || !read_element(c, item, &value)) return NULL;
  bool fits = value >= item->ints[0] && value <= node_int(most);
  return fits ? ix_const(c->ir, value) : NULL; /* a run that needs it refuses it */
}

void refuse_evaluated_items(tn_context *c, const node *tensor) {
  value_substitution r = {.c = c};
  const node *sizes[IR_MAX_RANK];
  map is_left = {0};
  for (size_t k = 0; k < tensor->rank; k++) sizes[k] = substitute_values(&r, tensor->dims[k]);
  node_list left = topo_sort(&c->arena, sizes, tensor->rank, NULL, NULL);
  for (size_t i = 0; i < left.n; i++) map_set(&c->arena, &is_left, left.at[i], (void *)tensor);
  for (size_t i = 0; i < r.image.n; i++) {
    const node *n = r.image.at[i].key, *most = n->op == OP_ITEM ? n->src[n->n_src - 1] : NULL;
    int64_t value;
    if (!most || !map_has(&is_left, r.image.at[i].value) || !read_element(c, n, &value)) continue;
    most = substitute_values(&r, most);
    if (!node_is_const(most)) continue;
    item_refuse(NULL, "", value, n->ints[0], node_int(most), &c->diag);
    diag_rethrow(&c->diag);
  }
}
