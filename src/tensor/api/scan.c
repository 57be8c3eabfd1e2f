/* tn_scan, the scan of JAX: the loop's body is called once (traced), with placeholders for the
   index, the states and the entries of xs, and the loop is built from the tensors that the body
   returns. While the body runs the context is released, so that the body uses it like any caller.
 */
#include "ir/core/tensor_loop.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/api/scope.h"
#include "tensor/context/call.h"
#include "tensor/context/descriptor.h"
#include "tensor/context/symbolic_dims.h"
#include "tensor/ops/operators.h"
#include "tensor/state/handle_node.h"

typedef struct scan_job {
  tn_context *c;
  tn_scan_desc desc;
  tn_tensor *const *init, *const *xs;
  size_t n_states, n_xs, n_ys;
  const node *range;     /* of the steps; retained */
  const node **inits;    /* nodes of `init`, before the body runs; retained */
  tn_tensor **arguments; /* of the body: index, states, entries of xs */
  tn_tensor **returned;  /* next states, ys; set by the body */
  value *results;        /* last states, stacked ys; in the context's arena */
} scan_job;

enum { MAX_TENSORS = 1 << 16 };

/* ---- Before the body ---- */

static const node *find_steps(scan_job *j, builder *b) {
  const node *steps = j->desc.steps == -1 ? NULL : dim_to_node(b, j->desc.steps);
  for (size_t i = 0; i < j->n_xs; i++) {
    const node *x = handle_typed_node(b, j->xs[i]);
    if (!x->rank)
      diag_raise(b->diag, TN_ERR_SHAPE,
                 "xs[%zu] is a scalar; the body takes an entry of its first axis in each step", i);
    if (steps && x->dims[0] != steps)
      diag_raise(b->diag, TN_ERR_SHAPE, "xs[%zu] has %s entries; there are %s steps", i,
                 size_text(b, x->dims[0]), size_text(b, steps));
    steps = x->dims[0];
  }
  bool may_be_open = j->desc.until != -1 && !j->n_ys;
  if (!steps && may_be_open) return ix_const(b->ir, LOOP_MAX_STEPS);
  if (!steps)
    diag_raise(b->diag, TN_ERR_ARGUMENT, "the number of steps is unknown: set `steps`, or give xs");
  return steps;
}

static void set_argument(scan_job *j, size_t i, value v) {
  tn_tensor *t = handle_new(j->c);
  if (t == j->c->handles.no_memory) diag_raise(&j->c->diag, TN_ERR_MEMORY, "out of memory");
  handle_set_value(t, v);
  j->arguments[i] = t;
}

static void check_until(const scan_job *j, builder *b) {
  const node *init = j->desc.until < 0 ? NULL : j->inits[j->desc.until];
  sizes s = init ? sizes_of(init) : (sizes){0};
  if (init && init->dtype != DT_BOOL)
    diag_raise(b->diag, TN_ERR_DTYPE, "state %lld ends the loop; it is %s, expected bool",
               (long long)j->desc.until, dtype_name((dtype)init->dtype));
  if (init && init->rank)
    diag_raise(b->diag, TN_ERR_SHAPE,
               "state %lld ends the loop; it has shape %s, expected a scalar",
               (long long)j->desc.until, sizes_text(b, &s));
}

static void open_body(void *arg) {
  scan_job *j = arg;
  builder b = context_builder(j->c);
  const node *range = build_loop_range(&b, find_steps(j, &b));
  const node *index = build_loop_index(&b, range, j->desc.reverse);
  set_argument(j, 0, value_of(ir_cast(b.ir, index, DT_I64)));
  for (size_t i = 0; i < j->n_states; i++) {
    j->inits[i] = ir_retain(handle_typed_node(&b, j->init[i]));
    set_argument(j, 1 + i, build_loop_state(&b, range, i, value_of(j->inits[i])));
  }
  for (size_t i = 0; i < j->n_xs; i++)
    set_argument(j, 1 + j->n_states + i,
                 build_loop_entry(&b, value_of(handle_typed_node(&b, j->xs[i])), index));
  check_until(j, &b);
  j->range = ir_retain(range);
}

static tn_status check_desc(scan_job *j, const tn_scan_desc *given) {
  diag *d = &j->c->diag;
  j->desc = (tn_scan_desc)TN_SCAN_DESC_INIT;
  if (descriptor_read(d, &j->desc, given, sizeof j->desc, "tn_scan_desc") != TN_OK)
    return d->status;
  if (!j->desc.body) return diag_set(d, TN_ERR_ARGUMENT, "the body is NULL");
  if (!j->n_states && !j->n_ys)
    return diag_set(d, TN_ERR_ARGUMENT, "the loop has no result: it needs a state or a y");
  if (j->n_states > MAX_TENSORS || j->n_xs > MAX_TENSORS || j->n_ys > MAX_TENSORS)
    return diag_set(d, TN_ERR_ARGUMENT, "%d states, xs and ys each are supported, not more",
                    MAX_TENSORS);
  if (j->desc.until < -1 || j->desc.until >= (int64_t)j->n_states)
    return diag_set(d, TN_ERR_ARGUMENT, "`until` is %lld; there are %zu states",
                    (long long)j->desc.until, j->n_states);
  if (j->c->entry.n_loop_bodies >= LOOP_MAX_DEPTH)
    return diag_set(d, TN_ERR_UNSUPPORTED, "loops are nested deeper than %d", LOOP_MAX_DEPTH);
  return TN_OK;
}

static tn_status alloc_lists(scan_job *j) {
  const mem *m = &j->c->mem;
  j->arguments = mem_calloc(m, 1 + j->n_states + j->n_xs, sizeof *j->arguments);
  j->returned = mem_calloc(m, 1 + j->n_states + j->n_ys, sizeof *j->returned);
  j->inits = mem_calloc(m, 1 + j->n_states, sizeof *j->inits);
  if (j->arguments && j->returned && j->inits) return TN_OK;
  return diag_set(&j->c->diag, TN_ERR_MEMORY, "out of memory");
}

static void free_lists(scan_job *j) {
  const mem *m = &j->c->mem;
  for (size_t i = 0; j->inits && i < j->n_states; i++) ir_release(j->c->ir, j->inits[i]);
  ir_release(j->c->ir, j->range);
  mem_free(m, j->inits, (1 + j->n_states) * sizeof *j->inits);
  mem_free(m, j->arguments, (1 + j->n_states + j->n_xs) * sizeof *j->arguments);
  mem_free(m, j->returned, (1 + j->n_states + j->n_ys) * sizeof *j->returned);
}

/** Checks arguments and creates the placeholders. The context is acquired. */
static failure *begin_scan(scan_job *j, const tn_scan_desc *given) {
  failure *f = call_check(j->c, "scan", j->init, j->n_states, 0);
  if (!f) f = call_check(j->c, "scan", j->xs, j->n_xs, 0);
  if (f) return f;
  tn_status s = check_desc(j, given);
  if (s == TN_OK) s = alloc_lists(j);
  if (s != TN_OK) {
    context_fail(j->c, "scan", j->init, j->n_states);
    return context_last_failure(j->c);
  }
  return call_run(j->c, "scan", j->init, j->n_states, open_body, j);
}

/* ---- After the body ---- */

static void close_body(void *arg) {
  scan_job *j = arg;
  builder b = context_builder(j->c);
  size_t n = j->n_states + j->n_ys;
  value *returned = arena_alloc(b.arena, (n + 1) * sizeof *returned);
  value *inits = arena_alloc(b.arena, (j->n_states + 1) * sizeof *inits);
  for (size_t i = 0; i < n; i++) returned[i] = value_of(handle_typed_node(&b, j->returned[i]));
  for (size_t i = 0; i < j->n_states; i++) inits[i] = value_of(j->inits[i]);
  const node *index = build_loop_index(&b, j->range, j->desc.reverse);
  const node **places = arena_alloc(b.arena, (j->n_ys + 1) * sizeof *places);
  for (size_t i = 0; i < j->n_ys; i++) places[i] = index;
  j->results = arena_alloc(b.arena, (n + 1) * sizeof *j->results);
  size_t until = j->desc.until < 0 ? SIZE_MAX : (size_t)j->desc.until;
  build_loop_until(&b, j->range, inits, returned, j->n_states, until, returned + j->n_states,
                   places, j->n_ys, j->results);
}

/** Reports that the body left result `i` unset. */
static failure *refuse_unset(scan_job *j, size_t i) {
  diag *d = &j->c->diag;
  if (i < j->n_states)
    diag_set(d, TN_ERR_ARGUMENT,
             "the body left next[%zu] unset: set it to what state %zu becomes, or to state[%zu] "
             "where it stays as it is",
             i, i, i);
  else
    diag_set(d, TN_ERR_ARGUMENT, "the body left y[%zu] unset", i - j->n_states);
  context_fail(j->c, "scan", NULL, 0);
  return context_last_failure(j->c);
}

/** Builds the loop from the body's results. The context is acquired again. */
static failure *finish_scan(scan_job *j, bool is_balanced) {
  tn_context *c = j->c;
  size_t n = j->n_states + j->n_ys, unset = 0;
  if (!is_balanced) {
    diag_set(&c->diag, TN_ERR_ARGUMENT, "the body left a scope open that it began");
    context_fail(c, "scan", NULL, 0);
    return context_last_failure(c);
  }
  failure *f = NULL;
  for (size_t i = 0; i < n && !f; i++)
    if (j->returned[i]) f = call_check(c, "scan", &j->returned[i], 1, 0);
  if (f) return f;
  while (unset < n && j->returned[unset]) unset++;
  if (unset < n && !c->failures.of_open) return refuse_unset(j, unset);
  f = call_check(c, "scan", j->returned, n, 0);
  return f ? f : call_run(c, "scan", j->returned, n, close_body, j);
}

/** Calls the caller's body with the context released; then waits for threads that acquired it
    meanwhile. False if the body left scopes open, which are ended for it. */
static bool call_body(scan_job *j) {
  tn_context *c = j->c;
  const scope_floor before = scope_set_floor(c);
  atomic_fetch_add(&c->entry.n_loop_bodies, 1);
  context_release(c);
  j->desc.body(j->desc.user, j->arguments[0], j->arguments + 1, j->arguments + 1 + j->n_states,
               j->returned, j->returned + j->n_states);
  context_reacquire(c);
  atomic_fetch_sub(&c->entry.n_loop_bodies, 1);
  return scope_end_to_floor(c, before);
}

void tn_scan(tn_context *c, const tn_scan_desc *given, tn_tensor *const init[], size_t n_states,
             tn_tensor *const xs[], size_t n_xs, tn_tensor *out[], size_t n_ys) {
  size_t n = n_states + n_ys;
  scan_job j = {.c = c, .init = init, .xs = xs, .n_states = n_states, .n_xs = n_xs, .n_ys = n_ys};
  if (context_acquire(c) != TN_OK) {
    for (size_t i = 0; out && i < n; i++) out[i] = call_busy_tensor(c);
    return;
  }
  failure *f = begin_scan(&j, given);
  if (!f) f = finish_scan(&j, call_body(&j));
  for (size_t i = 0; out && i < n; i++) {
    out[i] = f ? call_failed_tensor(c, failure_retain(f)) : handle_new(c);
    if (!f && out[i] != c->handles.no_memory) handle_set_value(out[i], j.results[i]);
  }
  failure_release(c, f);
  free_lists(&j);
  context_release(c);
}
