/* Checks of operands before a call on a context, and the invalid tensors that calls which fail
   return. */
#include "tensor/context/call.h"

static bool is_optional(uint64_t optional, size_t i) { return i < 64 && (optional >> i & 1); }

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

/** NULL if every operand that is not optional is there; else the failure, reported and retained. */
static failure *check_present(tn_context *c, const char *op, tn_tensor *const in[], size_t n,
                              uint64_t optional) {
  for (size_t i = 0; i < n; i++) {
    if (in[i] || is_optional(optional, i)) continue;
    context_fail_null_operand(c, op, in, n, i);
    return context_last_failure(c);
  }
  return NULL;
}

failure *call_refuse_list(tn_context *c, const char *op, const char *of, size_t n) {
  diag_set(&c->diag, TN_ERR_ARGUMENT, "the list of %zu %s is NULL", n, of);
  return report_failure(c, op, NULL, 0);
}

failure *call_check(tn_context *c, const char *op, tn_tensor *const in[], size_t n,
                    uint64_t optional) {
  failure *oldest = c->broken;
  if (!oldest && !in && n) return call_refuse_list(c, op, "operands", n);
  for (size_t i = 0; i < n && !c->broken; i++) {
    if (!in[i]) continue;
    const char *wrong = in[i]->life != HANDLE_LIVE ? "a tensor that was freed"
                        : in[i]->context != c      ? "tensors of different contexts"
                                                   : NULL;
    if (wrong) {
      diag_set(&c->diag, TN_ERR_ARGUMENT, "%s", wrong);
      return report_failure(c, op, NULL, 0);
    }
    failure *f = in[i]->failure;
    if (f && (!oldest || f->serial < oldest->serial)) oldest = f;
  }
  if (!oldest) return check_present(c, op, in, n, optional);
  context_report_again(c, oldest);
  return failure_retain(oldest);
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
    s = diag_set(&c->diag, TN_ERR_ARGUMENT, "the tensor is of another context");
  if (s != TN_OK) return context_fail(c, op, NULL, 0);
  if (!t->failure) return TN_OK;
  context_report_again(c, t->failure);
  return context_return_failure(c, failure_retain(t->failure));
}
