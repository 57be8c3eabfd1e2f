/* Checks of operands before a call on a context, and the invalid tensors that failed calls return.
   An invalid operand makes its readers invalid with the same failure, so that the first cause is
   reported however many calls follow. */
#include "tensor/context/call.h"

tn_context *call_context(tn_tensor *const in[], size_t n) {
  for (size_t i = 0; in && i < n; i++)
    if (in[i]) return in[i]->context;
  return NULL;
}

tn_tensor *call_busy_tensor(tn_context *c) { return c ? c->handles.busy : NULL; }

static failure *report_failure(tn_context *c, const char *op, tn_tensor *const in[], size_t n) {
  context_fail(c, op, in, n);
  return context_last_failure(c);
}

failure *call_refuse_list(tn_context *c, const char *op, const char *of, size_t n) {
  diag_set(&c->diag, TN_ERR_ARGUMENT, "the list of %zu %s is NULL", n, of);
  return report_failure(c, op, NULL, 0);
}

failure *call_check(tn_context *c, const char *op, tn_tensor *const in[], size_t n,
                    uint64_t optional) {
  failure *oldest = c->failures.of_open;
  if (!oldest && !in && n) return call_refuse_list(c, op, "operands", n);
  for (size_t i = 0; i < n && !c->failures.of_open; i++) {
    if (!in[i]) continue;
    tn_status s = TN_OK;
    if (in[i]->life != HANDLE_LIVE)
      s = diag_set(&c->diag, TN_ERR_ARGUMENT, "operand %zu was freed", i + 1);
    else if (in[i]->context != c)
      s = diag_set(&c->diag, TN_ERR_ARGUMENT,
                   "operand %zu cannot be combined with the others: they have different contexts",
                   i + 1);
    if (s != TN_OK) return report_failure(c, op, NULL, 0);
    failure *f = in[i]->failure;
    if (f && (!oldest || f->serial < oldest->serial)) oldest = f;
  }
  if (oldest) {
    context_report_again(c, oldest);
    return failure_retain(oldest);
  }
  for (size_t i = 0; i < n; i++) {
    bool is_optional = i < 64 && (optional >> i & 1);
    if (in[i] || is_optional) continue;
    context_fail_null_operand(c, op, in, n, i);
    return context_last_failure(c);
  }
  return NULL;
}

failure *call_run(tn_context *c, const char *op, tn_tensor *const in[], size_t n,
                  void (*body)(void *arg), void *arg) {
  return diag_catch(&c->diag, body, arg) == TN_OK ? NULL : report_failure(c, op, in, n);
}

tn_tensor *call_failed_tensor(tn_context *c, failure *f) {
  tn_tensor *t = handle_new(c);
  if (t != c->handles.no_memory) handle_set_failure(t, f);
  failure_release(c, f);
  return t;
}

tn_status handle_check(tn_context *c, tn_tensor *t, const char *op) {
  tn_status s = TN_OK;
  if (t->life != HANDLE_LIVE)
    s = diag_set(&c->diag, TN_ERR_ARGUMENT, "the tensor was freed");
  else if (t->context != c)
    s = diag_set(&c->diag, TN_ERR_ARGUMENT, "the tensor belongs to a different context");
  if (s != TN_OK) return context_fail(c, op, NULL, 0);
  if (!t->failure) return TN_OK;
  context_report_again(c, t->failure);
  return context_return_failure(c, failure_retain(t->failure));
}
