/* Host functions of a graph, looked up by uid when a step of its executable calls one. */
#include "tensor/eval/host_calls.h"

#include "tensor/context/host_function.h"
#include "tensor/state/graph_input.h"

#include <stdlib.h>

typedef struct listed_function {
  int64_t uid;
  host_function *host;
} listed_function;

typedef struct function_list {
  tn_context *context;
  size_t n;
  listed_function at[]; /* sorted by uid */
} function_list;

static size_t list_bytes(size_t n) { return sizeof(function_list) + n * sizeof(listed_function); }

static int by_uid(const void *a, const void *b) {
  const listed_function *x = a, *y = b;
  return (x->uid > y->uid) - (x->uid < y->uid);
}

static const listed_function *find(const function_list *l, int64_t uid) {
  const listed_function key = {uid, NULL};
  return bsearch(&key, l->at, l->n, sizeof key, by_uid);
}

static executable_host_facts facts_of_listed(void *user, int64_t uid) {
  const listed_function *found = find(user, uid);
  if (!found) return executable_host_usual_facts();
  const host_function *h = found->host;
  return (executable_host_facts){h->what, h->takes_spans ? h->signature.n_in : 0};
}

static tn_status call_listed(void *user, const executable_call *c, tn_failure *failure) {
  const function_list *l = user;
  const listed_function *found = find(l, c->uid);
  if (!found)
    return tn_fail(failure, TN_ERR_INTERNAL, "no custom operation %lld", (long long)c->uid);
  callback k;
  callback_begin(&k, l->context, REENTRANCY_HOST_FUNCTION);
  tn_status s = host_function_call(found->host, c, failure);
  callback_end(&k);
  return s;
}

static void release_list(void *user) {
  function_list *l = user;
  for (size_t i = 0; i < l->n; i++) host_function_release(l->at[i].host);
  mem_free(&l->context->mem, l, list_bytes(l->n));
}

tn_status host_calls_of_graph(tn_context *c, const node_list *order, const int64_t uids[],
                              executable_host *out) {
  size_t n = 0;
  *out = (executable_host){0};
  for (size_t i = 0; i < order->n; i++) n += order->at[i]->op == OP_CUSTOM;
  if (!n) return TN_OK;
  function_list *l = mem_calloc(&c->mem, 1, list_bytes(n));
  if (!l) return diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  l->context = c;
  for (size_t i = 0; i < order->n; i++)
    if (order->at[i]->op == OP_CUSTOM) {
      l->at[l->n].uid = uids ? uids[l->n] : order->at[i]->ints[0];
      l->at[l->n++].host = host_function_retain(graph_input_of(c, order->at[i])->host_function);
    }
  qsort(l->at, l->n, sizeof *l->at, by_uid);
  *out = (executable_host){call_listed, release_list, l, facts_of_listed};
  return TN_OK;
}
