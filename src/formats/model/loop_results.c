/* Implements the store of results, a list: few runs of a loop are under way at once. */
#include "formats/model/loop_results.h"

#include "base/memory_limit.h"

#include <string.h>

static size_t results_bytes(const results_store *s) {
  return sizeof(loop_results) + s->n * sizeof(loop_array);
}

void results_store_init(results_store *s, const mem *m, size_t n) {
  *s = (results_store){.mem = m, .n = n};
  mutex_init(&s->lock);
}

void results_store_free(results_store *s) {
  while (s->first) loop_results_free(s, results_store_take(s, s->first->run));
  mutex_free(&s->lock);
}

loop_results *results_store_take(results_store *s, const void *run) {
  mutex_lock(&s->lock);
  loop_results **at = &s->first;
  while (*at && (*at)->run != run) at = &(*at)->next;
  loop_results *found = *at;
  if (found) *at = found->next;
  mutex_unlock(&s->lock);
  return found;
}

void results_store_keep(results_store *s, loop_results *r) {
  mutex_lock(&s->lock);
  r->next = s->first;
  s->first = r;
  mutex_unlock(&s->lock);
}

loop_results *loop_results_open(const results_store *s, const void *run) {
  loop_results *r = mem_calloc(s->mem, 1, results_bytes(s));
  if (r) r->run = run;
  return r;
}

void loop_results_free(const results_store *s, loop_results *r) {
  for (size_t i = 0; r && i < s->n; i++) loop_array_free(s, &r->at[i]);
  mem_free(s->mem, r, results_bytes(s));
}

bool loop_results_are_empty(const results_store *s, const loop_results *r) {
  for (size_t i = 0; i < s->n; i++)
    if (r->at[i].is_kept) return false;
  return true;
}

tn_status loop_array_grow(const results_store *s, loop_array *x, size_t more, tn_failure *f) {
  char none[MEMORY_LIMIT_TEXT_BYTES];
  if (x->capacity - x->bytes >= more && x->data) return TN_OK;
  size_t capacity = x->bytes + (more > x->bytes ? more : x->bytes) + 1;
  char *data = mem_alloc(s->mem, capacity);
  if (!data)
    return tn_fail(f, TN_ERR_MEMORY, "%s", memory_limit_exhausted_text(s->mem, capacity, none));
  if (x->bytes) memcpy(data, x->data, x->bytes);
  mem_free(s->mem, x->data, x->capacity);
  x->data = data;
  x->capacity = capacity;
  return TN_OK;
}

void loop_array_free(const results_store *s, loop_array *x) {
  mem_free(s->mem, x->data, x->capacity);
  *x = (loop_array){0};
}
