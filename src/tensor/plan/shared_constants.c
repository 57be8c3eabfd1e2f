/* A list of constants, compared by the bytes of their keys: a plan has some hundred at most, and
   looks for them when it compiles a variant. */
#include "tensor/plan/shared_constants.h"

#include "ir/text/graph_key.h"
#include "tensor/context/linked_list.h"

#include <string.h>

str shared_constant_key(const tn_plan *p, arena *a, const node *value) {
  str bytes = str_new(a);
  graph_key key = {.to = &bytes};
  node_list order = topo_sort(a, &value, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (n->op == OP_BUFFER && (uint64_t)n->ints[0] >= p->n_sources)
      diag_raise(a->diag, TN_ERR_INTERNAL, "a constant is computed from another one");
    graph_key_add(&key, n, n->op == OP_BUFFER ? (uint64_t)n->ints[0] : 0);
  }
  graph_key_add_root(&key, value);
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

shared_constants *shared_constants_open(tn_plan *p) {
  shared_constants *c = p->constants = mem_calloc(&p->context->mem, 1, sizeof *c);
  if (c) mutex_init(&c->lock);
  return c;
}

void shared_constants_close(tn_plan *p) {
  if (!p->constants) return;
  mutex_free(&p->constants->lock);
  mem_free(&p->context->mem, p->constants, sizeof *p->constants);
}
