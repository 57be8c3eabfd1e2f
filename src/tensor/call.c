#include "tensor/call.h"

#include "tensor/dims.h"
#include "tensor/state.h"

#include <string.h>

static bool is_optional(uint64_t optional, size_t i) { return i < 64 && (optional >> i & 1); }

tn_context *call_context(tn_tensor *const in[], size_t n) {
  for (size_t i = 0; in && i < n; i++)
    if (in[i]) return in[i]->context;
  return NULL;
}

tn_tensor *call_refused(tn_context *c) { return c ? c->busy : NULL; }

static failure *told(tn_context *c, const char *op, tn_tensor *const in[], size_t n) {
  context_fail(c, op, in, n);
  return context_failure(c);
}

/** NULL where each operand is there that has to be. */
static failure *check_present(tn_context *c, const char *op, tn_tensor *const in[], size_t n,
                              uint64_t optional) {
  for (size_t i = 0; i < n; i++) {
    if (in[i] || is_optional(optional, i)) continue;
    context_fail_null(c, op, in, n, i);
    return context_failure(c);
  }
  return NULL;
}

static failure *refuse_list(tn_context *c, const char *op, const char *of, size_t n) {
  diag_set(&c->diag, TN_ERR_ARGUMENT, "the list of %zu %s is NULL", n, of);
  return told(c, op, NULL, 0);
}

failure *call_check(tn_context *c, const char *op, tn_tensor *const in[], size_t n,
                    uint64_t optional) {
  failure *oldest = c->broken;
  if (!oldest && !in && n) return refuse_list(c, op, "operands", n);
  for (size_t i = 0; i < n && !c->broken; i++) {
    if (!in[i]) continue;
    const char *wrong = in[i]->life != HANDLE_LIVE ? "a tensor that was freed"
                        : in[i]->context != c      ? "tensors of different contexts"
                                                   : NULL;
    if (wrong) {
      diag_set(&c->diag, TN_ERR_ARGUMENT, "%s", wrong);
      return told(c, op, NULL, 0);
    }
    failure *f = in[i]->failure;
    if (f && (!oldest || f->serial < oldest->serial)) oldest = f;
  }
  if (!oldest) return check_present(c, op, in, n, optional);
  context_repeat(c, oldest);
  return failure_hold(oldest);
}

failure *call_try(tn_context *c, const char *op, tn_tensor *const in[], size_t n,
                  void (*body)(void *arg), void *arg) {
  return diag_catch(&c->diag, body, arg) == TN_OK ? NULL : told(c, op, in, n);
}

tn_tensor *call_invalid(tn_context *c, failure *f) {
  tn_tensor *t = handle_new(c);
  if (t != c->nobody) handle_set_failure(t, f);
  failure_drop(c, f);
  return t;
}

/* Builders. */

typedef struct call {
  tn_context *c;
  tn_tensor *const *in;
  size_t n;
  uint64_t optional;
  build_fn one;
  build_many_fn many;
  const void *options;
  cell *cell; /* the result is a movement of it */
  value *out; /* in the arena */
  size_t n_out;
} call;

static value operand(const call *k, builder *b, const tn_tensor *t) {
  if (!t) return (value){NULL, WEAK_NO};
  return (value){k->cell ? t->node : handle_node(b, t), t->weak};
}

static void build(void *arg) {
  call *k = arg;
  builder b = context_builder(k->c);
  value *in = arena_calloc(b.arena, k->n + 1, sizeof *in);
  k->out = arena_calloc(b.arena, k->n_out + 1, sizeof *k->out);
  for (size_t i = 0; i < k->n; i++) in[i] = operand(k, &b, k->in[i]);
  if (k->one)
    k->out[0] = k->one(&b, in, k->n, k->options);
  else
    k->many(&b, in, k->n, k->options, k->out, k->n_out);
  for (size_t i = 0; i < k->n_out; i++) dims_check_count(&b, k->out[i].node);
}

static tn_tensor *handle_of(const call *k, value v) {
  tn_tensor *t = handle_new(k->c);
  if (t == k->c->nobody) return t;
  if (k->cell)
    handle_set_cell(t, k->cell, v.node);
  else
    handle_set_value(t, v);
  return t;
}

/** The context is taken, and left here. */
static void run(call *k, const char *op, tn_tensor *out[]) {
  failure *f = call_check(k->c, op, k->in, k->n, k->optional);
  if (!f && !out && k->n_out) f = refuse_list(k->c, op, "results", k->n_out);
  if (!f) f = call_try(k->c, op, k->in, k->n, build, k);
  for (size_t i = 0; out && i < k->n_out; i++)
    out[i] = f ? call_invalid(k->c, failure_hold(f)) : handle_of(k, k->out[i]);
  failure_drop(k->c, f);
  context_leave(k->c);
}

tn_tensor *tensor_call(const char *op, tn_tensor *const in[], size_t n, uint64_t optional,
                       build_fn build_one, const void *options) {
  tn_context *c = call_context(in, n);
  tn_tensor *out = call_refused(c);
  call k = {.c = c, .in = in, .n = n, .optional = optional, .one = build_one, .n_out = 1};
  k.options = options;
  if (context_take(c) == TN_OK) run(&k, op, &out);
  return out;
}

tn_tensor *tensor_call_in(tn_context *c, const char *op, build_fn build_one, const void *options) {
  tn_tensor *out = call_refused(c);
  call k = {.c = c, .one = build_one, .options = options, .n_out = 1};
  if (context_take(c) == TN_OK) run(&k, op, &out);
  return out;
}

void tensor_call_many(tn_context *c, const char *op, tn_tensor *const in[], size_t n,
                      uint64_t optional, build_many_fn build_many, const void *options,
                      tn_tensor *out[], size_t n_out) {
  for (size_t i = 0; out && i < n_out; i++) out[i] = call_refused(c);
  call k = {.c = c, .in = in, .n = n, .optional = optional, .many = build_many, .n_out = n_out};
  k.options = options;
  if (context_take(c) == TN_OK) run(&k, op, out);
}

static void move(tn_tensor *x, call k, const char *op, tn_tensor *out[]) {
  k.in = &x;
  k.n = 1;
  k.c = call_context(k.in, 1);
  for (size_t i = 0; out && i < k.n_out; i++) out[i] = call_refused(k.c);
  if (context_take(k.c) != TN_OK) return;
  if (x->life == HANDLE_LIVE) k.cell = x->cell;
  run(&k, op, out);
}

tn_tensor *tensor_move(const char *op, tn_tensor *x, build_fn build_one, const void *options) {
  tn_tensor *out = NULL;
  move(x, (call){.one = build_one, .options = options, .n_out = 1}, op, &out);
  return out;
}

void tensor_move_many(const char *op, tn_tensor *x, build_many_fn build_many, const void *options,
                      tn_tensor *out[], size_t n_out) {
  move(x, (call){.many = build_many, .options = options, .n_out = n_out}, op, out);
}
