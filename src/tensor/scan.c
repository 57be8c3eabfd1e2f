/* tn_scan: what it hands to the caller's body, and what it makes of what the body hands back. */
#include "ir/loop.h"
#include "tensor/build.h"
#include "tensor/call.h"
#include "tensor/desc.h"
#include "tensor/scope.h"

typedef struct scan_job {
  tn_context *c;
  tn_scan_desc desc;
  tn_tensor *const *init, *const *xs;
  size_t n_states, n_xs, n_ys;
  const node *range;   /* held */
  const node **starts; /* of the states, as they are before the body runs; held */
  tn_tensor **given;   /* index, states, entries */
  tn_tensor **made;    /* next states, ys */
  value *results;      /* in the context's arena */
} scan_job;

enum { MOST_TENSORS = 1 << 16 };

/* Before the body. */

static const node *steps_of(scan_job *j, builder *b) {
  const node *steps = j->desc.steps == -1 ? NULL : dim_node(b, j->desc.steps);
  for (size_t i = 0; i < j->n_xs; i++) {
    const node *x = handle_typed(b, j->xs[i]);
    if (!x->rank) diag_raise(b->diag, TN_ERR_SHAPE, "xs %zu is a scalar: it has no entries", i);
    if (steps && x->dims[0] != steps)
      diag_raise(b->diag, TN_ERR_SHAPE, "xs %zu has not as many entries as there are steps", i);
    steps = x->dims[0];
  }
  if (!steps)
    diag_raise(b->diag, TN_ERR_ARGUMENT, "nothing tells how many steps there are: set `steps`");
  return steps;
}

static void give(scan_job *j, size_t i, value v) {
  tn_tensor *t = handle_new(j->c);
  if (t == j->c->nobody) diag_raise(&j->c->diag, TN_ERR_MEMORY, "out of memory");
  handle_set_value(t, v);
  j->given[i] = t;
}

static void open_body(void *arg) {
  scan_job *j = arg;
  builder b = context_builder(j->c);
  const node *range = build_loop_range(&b, steps_of(j, &b));
  const node *index = build_loop_index(&b, range, j->desc.reverse);
  give(j, 0, value_of(ir_cast(b.ir, index, DT_I64)));
  for (size_t i = 0; i < j->n_states; i++) {
    j->starts[i] = ir_retain(handle_typed(&b, j->init[i]));
    give(j, 1 + i, build_loop_state(&b, range, i, value_of(j->starts[i])));
  }
  for (size_t i = 0; i < j->n_xs; i++)
    give(j, 1 + j->n_states + i, build_entry(&b, value_of(handle_typed(&b, j->xs[i])), index));
  j->range = ir_retain(range);
}

static tn_status check_desc(scan_job *j, const tn_scan_desc *given) {
  diag *d = &j->c->diag;
  j->desc = (tn_scan_desc)TN_SCAN_DESC_INIT;
  if (desc_read(d, &j->desc, given, sizeof j->desc, "tn_scan_desc") != TN_OK) return d->status;
  if (!j->desc.body) return diag_set(d, TN_ERR_ARGUMENT, "there is no body");
  if (!j->n_states && !j->n_ys)
    return diag_set(d, TN_ERR_ARGUMENT, "there is neither a state nor a y");
  if (j->n_states > MOST_TENSORS || j->n_xs > MOST_TENSORS || j->n_ys > MOST_TENSORS)
    return diag_set(d, TN_ERR_ARGUMENT, "there are more than %d states, xs or ys", MOST_TENSORS);
  if (j->c->bodies >= LOOP_DEPTH)
    return diag_set(d, TN_ERR_UNSUPPORTED, "loops are nested deeper than %d", LOOP_DEPTH);
  return TN_OK;
}

static tn_status open_lists(scan_job *j) {
  const mem *m = &j->c->mem;
  j->given = mem_calloc(m, 1 + j->n_states + j->n_xs, sizeof *j->given);
  j->made = mem_calloc(m, 1 + j->n_states + j->n_ys, sizeof *j->made);
  j->starts = mem_calloc(m, 1 + j->n_states, sizeof *j->starts);
  if (j->given && j->made && j->starts) return TN_OK;
  return diag_set(&j->c->diag, TN_ERR_MEMORY, "out of memory");
}

static void close_lists(scan_job *j) {
  const mem *m = &j->c->mem;
  for (size_t i = 0; j->starts && i < j->n_states; i++) ir_release(j->c->ir, j->starts[i]);
  ir_release(j->c->ir, j->range);
  mem_free(m, j->starts, (1 + j->n_states) * sizeof *j->starts);
  mem_free(m, j->given, (1 + j->n_states + j->n_xs) * sizeof *j->given);
  mem_free(m, j->made, (1 + j->n_states + j->n_ys) * sizeof *j->made);
}

/** The context is taken. */
static failure *begin(scan_job *j, const tn_scan_desc *given) {
  failure *f = call_check(j->c, "scan", j->init, j->n_states, 0);
  if (!f) f = call_check(j->c, "scan", j->xs, j->n_xs, 0);
  if (f) return f;
  tn_status s = check_desc(j, given);
  if (s == TN_OK) s = open_lists(j);
  if (s != TN_OK) {
    context_fail(j->c, "scan", j->init, j->n_states);
    return context_failure(j->c);
  }
  return call_try(j->c, "scan", j->init, j->n_states, open_body, j);
}

/* After it. */

static void close_body(void *arg) {
  scan_job *j = arg;
  builder b = context_builder(j->c);
  size_t n = j->n_states + j->n_ys;
  value *made = arena_alloc(b.arena, (n + 1) * sizeof *made);
  value *inits = arena_alloc(b.arena, (j->n_states + 1) * sizeof *inits);
  for (size_t i = 0; i < n; i++) made[i] = value_of(handle_typed(&b, j->made[i]));
  for (size_t i = 0; i < j->n_states; i++) inits[i] = value_of(j->starts[i]);
  const node *index = build_loop_index(&b, j->range, j->desc.reverse);
  const node **places = arena_alloc(b.arena, (j->n_ys + 1) * sizeof *places);
  for (size_t i = 0; i < j->n_ys; i++) places[i] = index;
  j->results = arena_alloc(b.arena, (n + 1) * sizeof *j->results);
  build_loop(&b, j->range, inits, made, j->n_states, made + j->n_states, places, j->n_ys,
             j->results);
}

/** Why what the body made is not to be used; NULL: it is, or it is not there. */
static failure *check_made(const scan_job *j, size_t n) {
  failure *f = NULL;
  for (size_t i = 0; i < n && !f; i++)
    if (j->made[i]) f = call_check(j->c, "scan", &j->made[i], 1, 0);
  return f;
}

/** The first of what the body hands back that it left as it was; `n`: none. */
static size_t find_unset(const scan_job *j, size_t n) {
  size_t i = 0;
  while (i < n && j->made[i]) i++;
  return i;
}

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
  return context_failure(j->c);
}

static failure *refuse_open(scan_job *j) {
  diag_set(&j->c->diag, TN_ERR_ARGUMENT, "the body left a scope open that it began");
  context_fail(j->c, "scan", NULL, 0);
  return context_failure(j->c);
}

/** The context is taken again. */
static failure *end(scan_job *j, bool balanced) {
  size_t n = j->n_states + j->n_ys, unset = find_unset(j, n);
  if (!balanced) return refuse_open(j);
  failure *f = check_made(j, n);
  if (f) return f;
  if (unset < n && !j->c->broken) return refuse_unset(j, unset);
  f = call_check(j->c, "scan", j->made, n, 0);
  return f ? f : call_try(j->c, "scan", j->made, n, close_body, j);
}

/** The caller's function, which uses the context as anybody does. Who took it meanwhile is waited
    for. False where the body did not end the scopes that it began: they are ended for it. */
static bool call_body(scan_job *j) {
  tn_context *c = j->c;
  const scope_floor before = scope_set_floor(c);
  atomic_fetch_add(&c->bodies, 1);
  context_leave(c);
  j->desc.body(j->desc.user, j->given[0], j->given + 1, j->given + 1 + j->n_states, j->made,
               j->made + j->n_states);
  context_take_for_run(c);
  atomic_fetch_sub(&c->bodies, 1);
  return scope_end_to_floor(c, before);
}

static void refuse(tn_context *c, tn_tensor *out[], size_t n) {
  for (size_t i = 0; out && i < n; i++) out[i] = call_refused(c);
}

void tn_scan(tn_context *c, const tn_scan_desc *given, tn_tensor *const init[], size_t n_states,
             tn_tensor *const xs[], size_t n_xs, tn_tensor *out[], size_t n_ys) {
  size_t n = n_states + n_ys;
  scan_job j = {.c = c, .init = init, .xs = xs, .n_states = n_states, .n_xs = n_xs, .n_ys = n_ys};
  if (context_take(c) != TN_OK) {
    refuse(c, out, n);
    return;
  }
  failure *f = begin(&j, given);
  if (!f) f = end(&j, call_body(&j));
  for (size_t i = 0; out && i < n; i++) {
    out[i] = f ? call_invalid(c, failure_hold(f)) : handle_new(c);
    if (!f && out[i] != c->nobody) handle_set_value(out[i], j.results[i]);
  }
  failure_drop(c, f);
  close_lists(&j);
  context_leave(c);
}
