/* A list of constants, compared by the bytes of their keys: a plan has some hundred at most, and
   looks for them when it compiles a variant. */
#include "tensor/plan/shared_constants.h"

#include "ir/text/graph_key.h"
#include "tensor/context/linked_list.h"

#include <string.h>

/** The number of a BUFFER in keys: that of its weight, which all plans of the file have, or its own
   in the plan. */
static uint64_t number_of_buffer(const tn_plan *p, const node *n, bool *is_own) {
  const void *weight = p->sources[n->ints[0]].weight;
  if (weight) return (uint64_t)(uintptr_t)weight; /* even, as it is aligned */
  *is_own = true;
  return 2 * (uint64_t)n->ints[0] + 1;
}

str shared_constant_key(const tn_plan *p, arena *a, const node *value) {
  str bytes = str_new(a);
  graph_key key = {.to = &bytes};
  node_list order = topo_sort(a, &value, 1, NULL, NULL);
  bool is_own = false;
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (n->op == OP_BUFFER && (uint64_t)n->ints[0] >= p->n_sources)
      diag_raise(a->diag, TN_ERR_INTERNAL, "a constant is computed from another one");
    is_own |= n->op == OP_CUSTOM;
    graph_key_add(&key, n, n->op == OP_BUFFER ? number_of_buffer(p, n, &is_own) : 0);
  }
  graph_key_add_root(&key, value);
  if (is_own) str_add_bytes(&bytes, (const char *)&p->first_variant, sizeof p->first_variant);
  str_add(&bytes, is_own ? "o" : "s"); /* no key of a plan's own equals one of all plans */
  return bytes;
}

static void free_constant(tn_plan *p, shared_constant *k) {
  const mem *m = &p->context->mem;
  if (k->memory) buffer_release(k->memory);
  mem_free(m, k->key, k->key_bytes);
  mem_free(m, k, sizeof *k);
}

shared_constant *shared_constants_find(tn_plan *p, str key) {
  mutex_lock(&p->constants->lock);
  shared_constant *k = p->constants->first;
  while (k && (k->key_bytes != key.n || memcmp(k->key, key.at, key.n))) k = k->next;
  if (k) k->count++;
  mutex_unlock(&p->constants->lock);
  return k;
}

shared_constant *shared_constants_add(tn_plan *p, str key, tn_buffer *memory) {
  const mem *m = &p->context->mem;
  shared_constant *k = mem_calloc(m, 1, sizeof *k);
  if (!k) return NULL;
  k->key = mem_alloc(m, key.n);
  k->key_bytes = key.n;
  if (!k->key) {
    free_constant(p, k);
    return NULL;
  }
  memcpy(k->key, key.at, key.n);
  k->memory = buffer_retain(memory);
  k->count = 1;
  mutex_lock(&p->constants->lock);
  LIST_PUSH(&p->constants->first, k, next, link);
  mutex_unlock(&p->constants->lock);
  return k;
}

void shared_constant_release(tn_plan *p, shared_constant *k) {
  mutex_lock(&p->constants->lock);
  bool is_last = !--k->count;
  if (is_last) LIST_REMOVE(k, next, link);
  mutex_unlock(&p->constants->lock);
  if (is_last) free_constant(p, k);
}

shared_constants *shared_constants_new(const mem *m) {
  shared_constants *c = mem_calloc(m, 1, sizeof *c);
  if (!c) return NULL;
  atomic_init(&c->count, 1);
  c->mem = m;
  mutex_init(&c->lock);
  return c;
}

shared_constants *shared_constants_retain(shared_constants *c) {
  atomic_fetch_add_explicit(&c->count, 1, memory_order_relaxed);
  return c;
}

void shared_constants_release(shared_constants *c) {
  if (!c || atomic_fetch_sub_explicit(&c->count, 1, memory_order_acq_rel) > 1) return;
  mutex_free(&c->lock);
  mem_free(c->mem, c, sizeof *c);
}
