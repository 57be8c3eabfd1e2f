/* Calls of public operators: checks the operands, runs a builder under the context's catch, and
   makes handles of its results in the innermost scope. After a failure the results are invalid
   tensors that carry it, so that callers check once at the end. */
#include "tensor/ops/op_call.h"

#include "tensor/context/call.h"
#include "tensor/context/symbolic_dims.h"
#include "tensor/state/handle_node.h"

typedef struct call {
  tn_context *c;
  tn_tensor *const *in; /* operands */
  size_t n;
  uint64_t optional;     /* bit i: operand i may be NULL */
  op_build_fn one;       /* builder of one result; NULL: `many` is the builder */
  op_build_many_fn many; /* builder of `n_out` results */
  const void *options;   /* of the builder */
  state_record *state;   /* state of which the results are movements, or NULL */
  value *out;            /* results, in the arena */
  size_t n_out;
  bool is_across; /* operands may be on different devices */
} call;

/** Refuses operands on different devices. */
static void check_devices(const call *k, const value in[]) {
  size_t first = SIZE_MAX;
  for (size_t i = 0; i < k->n && !k->is_across; i++) {
    if (!in[i].node || !in[i].node->device) continue;
    if (first == SIZE_MAX) first = i;
    if (in[i].node->device != in[first].node->device)
      diag_raise(&k->c->diag, TN_ERR_ARGUMENT,
                 "operand %zu is on device %s and operand %zu on device %s; tn_to moves a tensor",
                 first + 1, context_device_of(k->c, in[first].node)->name, i + 1,
                 context_device_of(k->c, in[i].node)->name);
  }
}

static void run_builder(void *arg) {
  call *k = arg;
  builder b = context_builder(k->c);
  value *in = arena_calloc(b.arena, k->n + 1, sizeof *in);
  k->out = arena_calloc(b.arena, k->n_out + 1, sizeof *k->out);
  for (size_t i = 0; i < k->n; i++) {
    const tn_tensor *t = k->in[i];
    if (t) in[i] = (value){k->state ? t->node : handle_node(&b, t), t->weak};
  }
  check_devices(k, in);
  if (k->one)
    k->out[0] = k->one(&b, in, k->n, k->options);
  else
    k->many(&b, in, k->n, k->options, k->out, k->n_out);
  for (size_t i = 0; i < k->n_out; i++) dims_check_count(&b, k->out[i].node);
}

static tn_tensor *new_result(const call *k, value v) {
  tn_tensor *t = handle_new(k->c);
  if (t == k->c->handles.no_memory) return t;
  if (k->state)
    handle_set_state(t, k->state, v.node);
  else
    handle_set_value(t, v);
  return t;
}

/** Runs a call. The context is acquired, and released here. */
static void run_call(call *k, const char *op, tn_tensor *out[]) {
  failure *f = call_check(k->c, op, k->in, k->n, k->optional);
  if (!f && !out && k->n_out) f = call_refuse_list(k->c, op, "results", k->n_out);
  if (!f) f = call_run(k->c, op, k->in, k->n, run_builder, k);
  for (size_t i = 0; out && i < k->n_out; i++)
    out[i] = f ? call_failed_tensor(k->c, failure_retain(f)) : new_result(k, k->out[i]);
  failure_release(k->c, f);
  context_release(k->c);
}

tn_tensor *op_call(const char *op, tn_tensor *const in[], size_t n, uint64_t optional,
                   op_build_fn build_one, const void *options) {
  tn_context *c = call_context(in, n);
  tn_tensor *out = call_busy_tensor(c);
  call k = {.c = c, .in = in, .n = n, .optional = optional, .one = build_one, .n_out = 1};
  k.options = options;
  if (context_acquire(c) == TN_OK) run_call(&k, op, &out);
  return out;
}

tn_tensor *op_call_in(tn_context *c, const char *op, op_build_fn build_one, const void *options) {
  tn_tensor *out = call_busy_tensor(c);
  call k = {.c = c, .one = build_one, .options = options, .n_out = 1};
  if (context_acquire(c) == TN_OK) run_call(&k, op, &out);
  return out;
}

void op_call_many(tn_context *c, const char *op, tn_tensor *const in[], size_t n, uint64_t optional,
                  op_build_many_fn build_many, const void *options, tn_tensor *out[],
                  size_t n_out) {
  for (size_t i = 0; out && i < n_out; i++) out[i] = call_busy_tensor(c);
  call k = {.c = c, .in = in, .n = n, .optional = optional, .many = build_many, .n_out = n_out};
  k.options = options;
  if (context_acquire(c) == TN_OK) run_call(&k, op, out);
}

void op_call_across(tn_context *c, const char *op, tn_tensor *const in[], size_t n,
                    op_build_many_fn build_many, const void *options, tn_tensor *out[]) {
  call k = {.c = c, .in = in, .n = n, .many = build_many, .options = options, .n_out = n};
  k.is_across = true;
  bool is_acquired = context_acquire(c) == TN_OK;
  if (is_acquired) run_call(&k, op, out); /* `out` may be `in` */
  for (size_t i = 0; out && !is_acquired && i < n; i++) out[i] = call_busy_tensor(c);
}

static void run_movement(tn_tensor *x, call k, const char *op, tn_tensor *out[]) {
  k.in = &x;
  k.n = 1;
  k.c = call_context(k.in, 1);
  for (size_t i = 0; out && i < k.n_out; i++) out[i] = call_busy_tensor(k.c);
  if (context_acquire(k.c) != TN_OK) return;
  if (x->life == HANDLE_LIVE) k.state = x->state;
  run_call(&k, op, out);
}

tn_tensor *op_call_movement(const char *op, tn_tensor *x, op_build_fn build_one,
                            const void *options) {
  tn_tensor *out = NULL;
  run_movement(x, (call){.one = build_one, .options = options, .n_out = 1}, op, &out);
  return out;
}

void op_call_movement_many(const char *op, tn_tensor *x, op_build_many_fn build_many,
                           const void *options, tn_tensor *out[], size_t n_out) {
  run_movement(x, (call){.many = build_many, .options = options, .n_out = n_out}, op, out);
}
