/* tn_cond: both branches are built at once, by the caller's bodies, and each result is a PICK of
   theirs, so that runs compute the branch that the condition takes. While a body runs the context
   is released, so that the body uses it like any caller. */
#include "ir/core/tensor_loop.h"
#include "ir/core/topo_sort.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/api/scope.h"
#include "tensor/context/call.h"
#include "tensor/context/descriptor.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/operators.h"
#include "tensor/state/handle_node.h"

typedef struct cond_job {
  tn_context *c;
  tn_cond_desc desc;
  tn_tensor *condition;
  size_t n;
  const node *first;    /* index: 1 where the condition holds; retained. NULL: `select` is used */
  const node *select;   /* the condition, a bool of rank 0, where steps of a loop compute it;
                           retained. NULL elsewhere */
  tn_tensor **returned; /* of both branches, one after the other */
  value *results;       /* in the context's arena */
} cond_job;

enum { MAX_RESULTS = 1 << 16 };

/** True if the steps of a loop that is being built compute a node. */
static bool is_of_loop(builder *b, const node *n) {
  if (!b->context->entry.n_loop_bodies) return false;
  node_list order = topo_sort(b->arena, &n, 1, NULL, NULL);
  return loop_find_unbound(b->arena, order.at, order.n)[order.n - 1];
}

static void find_condition(void *arg) {
  cond_job *j = arg;
  builder b = context_builder(j->c);
  const node *x = handle_typed_node(&b, j->condition), *at[IR_MAX_RANK];
  if (x->dtype != DT_BOOL)
    diag_raise(b.diag, TN_ERR_DTYPE, "the condition is %s, expected bool",
               dtype_name((dtype)x->dtype));
  for (size_t i = 0; i < x->rank; i++) {
    if (!node_is_bits(x->dims[i], 1))
      diag_raise(b.diag, TN_ERR_SHAPE, "the condition is one element; axis %zu has size %s", i,
                 size_text(&b, x->dims[i]));
    at[i] = ix_const(b.ir, 0);
  }
  if (is_of_loop(&b, x)) {
    j->select = ir_retain(ir_reshape(b.ir, x, 0, NULL));
    return;
  }
  const node *c =
      node_is_const(x) ? ix_const(b.ir, node_int(x)) : ir_item(b.ir, x, at, 0, ix_const(b.ir, 1));
  j->first = ir_retain(c);
}

static tn_status check_desc(cond_job *j, const tn_cond_desc *given) {
  diag *d = &j->c->diag;
  j->desc = (tn_cond_desc)TN_COND_DESC_INIT;
  if (descriptor_read(d, &j->desc, given, sizeof j->desc, "tn_cond_desc") != TN_OK)
    return d->status;
  if (!j->desc.then_body || !j->desc.else_body)
    return diag_set(d, TN_ERR_ARGUMENT, "the body of a branch is NULL");
  if (!j->n || j->n > MAX_RESULTS)
    return diag_set(d, TN_ERR_ARGUMENT, "1 to %d results are supported, not %zu", MAX_RESULTS,
                    j->n);
  j->returned = mem_calloc(&j->c->mem, 2 * j->n, sizeof *j->returned);
  return j->returned ? TN_OK : diag_set(d, TN_ERR_MEMORY, "out of memory");
}

/** Checks arguments. The context is acquired. */
static failure *begin_cond(cond_job *j, const tn_cond_desc *given) {
  failure *f = call_check(j->c, "cond", &j->condition, 1, 0);
  if (f) return f;
  if (check_desc(j, given) != TN_OK) {
    context_fail(j->c, "cond", &j->condition, 1);
    return context_last_failure(j->c);
  }
  return call_run(j->c, "cond", &j->condition, 1, find_condition, j);
}

/** Calls a body with the context released; then waits for threads that acquired it meanwhile. False
    if the body left scopes open, which are ended for it. */
static bool call_body(cond_job *j, tn_cond_body body, tn_tensor *out[]) {
  tn_context *c = j->c;
  const scope_floor before = scope_set_floor(c);
  atomic_fetch_add(&c->entry.n_branches, 1);
  context_release(c);
  body(j->desc.user, out);
  context_reacquire(c);
  atomic_fetch_sub(&c->entry.n_branches, 1);
  return scope_end_to_floor(c, before);
}

/** Chooses between both results in each step of a loop. */
static const node *selected(const cond_job *j, builder *b, size_t i, const node *x, const node *y) {
  sizes of_x = sizes_of(x), of_y = sizes_of(y);
  if (!sizes_equal(&of_x, &of_y))
    diag_raise(
        b->diag, TN_ERR_SHAPE,
        "out[%zu] has shape %s in one branch and %s in the other: shapes must be equal where "
        "the steps of a loop compute the condition",
        i, sizes_text(b, &of_x), sizes_text(b, &of_y));
  return build_where(b, value_of(j->select), value_of(x), value_of(y)).node;
}

static void pick_results(void *arg) {
  cond_job *j = arg;
  builder b = context_builder(j->c);
  j->results = arena_alloc(b.arena, j->n * sizeof *j->results);
  for (size_t i = 0; i < j->n; i++) {
    const node *x = handle_typed_node(&b, j->returned[i]);
    const node *y = handle_typed_node(&b, j->returned[j->n + i]);
    sizes of_x = sizes_of(x), of_y = sizes_of(y);
    if (x->dtype != y->dtype)
      diag_raise(b.diag, TN_ERR_DTYPE, "out[%zu] is %s in one branch and %s in the other", i,
                 dtype_name((dtype)x->dtype), dtype_name((dtype)y->dtype));
    if (x->rank != y->rank)
      diag_raise(b.diag, TN_ERR_SHAPE,
                 "out[%zu] has shape %s in one branch and %s in the other: ranks must be equal", i,
                 sizes_text(&b, &of_x), sizes_text(&b, &of_y));
    j->results[i] = value_of(j->select ? selected(j, &b, i, x, y) : ir_pick(b.ir, j->first, x, y));
  }
}

static failure *refuse_body(cond_job *j, size_t unset) {
  tn_context *c = j->c;
  if (unset == SIZE_MAX)
    diag_set(&c->diag, TN_ERR_ARGUMENT, "the body left a scope open that it began");
  else
    diag_set(&c->diag, TN_ERR_ARGUMENT, "the body left out[%zu] unset", unset % j->n);
  context_fail(c, "cond", NULL, 0);
  return context_last_failure(c);
}

/** Builds the results. The context is acquired again. */
static failure *finish_cond(cond_job *j, bool is_balanced) {
  tn_context *c = j->c;
  failure *f = NULL;
  size_t unset = 0;
  if (!is_balanced) return refuse_body(j, SIZE_MAX);
  for (size_t i = 0; i < 2 * j->n && !f; i++)
    if (j->returned[i]) f = call_check(c, "cond", &j->returned[i], 1, 0);
  if (f) return f;
  while (unset < 2 * j->n && j->returned[unset]) unset++;
  if (unset < 2 * j->n && !c->failures.of_open) return refuse_body(j, unset);
  f = call_check(c, "cond", j->returned, 2 * j->n, 0);
  return f ? f : call_run(c, "cond", j->returned, 2 * j->n, pick_results, j);
}

void tn_cond(tn_context *c, tn_tensor *condition, const tn_cond_desc *given, tn_tensor *out[],
             size_t n) {
  cond_job j = {.c = c, .condition = condition, .n = n};
  if (context_acquire(c) != TN_OK) {
    for (size_t i = 0; out && i < n; i++) out[i] = call_busy_tensor(c);
    return;
  }
  failure *f = begin_cond(&j, given);
  if (!f) {
    bool is_balanced = call_body(&j, j.desc.then_body, j.returned);
    is_balanced &= call_body(&j, j.desc.else_body, j.returned + n);
    f = finish_cond(&j, is_balanced);
  }
  for (size_t i = 0; out && i < n; i++) {
    out[i] = f ? call_failed_tensor(c, failure_retain(f)) : handle_new(c);
    if (!f && out[i] != c->handles.no_memory) handle_set_value(out[i], j.results[i]);
  }
  failure_release(c, f);
  ir_release(c->ir, j.first);
  ir_release(c->ir, j.select);
  mem_free(&c->mem, j.returned, 2 * n * sizeof *j.returned);
  context_release(c);
}
