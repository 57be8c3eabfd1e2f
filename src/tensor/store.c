#include "tensor/store.h"

tn_status store_open(tn_context *c, uint64_t bytes, store **out) {
  store *s = mem_calloc(&c->mem, 1, sizeof *s);
  *out = s;
  if (!s) return diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  atomic_init(&s->count, 1);
  atomic_init(&s->pending, false);
  s->context = c;
  s->bytes = bytes;
  return signal_open(c->device, 0, &s->timeline, &c->diag);
}

store *store_retain(store *s) {
  atomic_fetch_add_explicit(&s->count, 1, memory_order_relaxed);
  return s;
}

void store_release(store *s) {
  if (!s || atomic_fetch_sub_explicit(&s->count, 1, memory_order_acq_rel) > 1) return;
  if (s->memory) buffer_release(s->memory);
  signal_release(s->timeline);
  mem_free(&s->context->mem, s, sizeof *s);
}

/* Contents. */

bool store_is_in(store *s, const tn_buffer *memory) {
  mutex_lock(&s->context->lock);
  bool same = !s->memory || s->memory == memory;
  mutex_unlock(&s->context->lock);
  return same;
}

tn_buffer *store_changed(store *s, const tn_buffer *known) {
  mutex_lock(&s->context->lock);
  tn_buffer *m = s->memory != known ? s->memory : NULL;
  if (m) buffer_retain(m);
  mutex_unlock(&s->context->lock);
  return m;
}

void store_lend(store *s, bool lent) {
  mutex_lock(&s->context->lock);
  s->lent = lent;
  mutex_unlock(&s->context->lock);
}

tn_buffer *store_replace(store *s, tn_buffer *memory) {
  mutex_lock(&s->context->lock);
  tn_buffer *old = s->memory;
  bool lent = s->lent;
  s->memory = memory;
  s->lent = false;
  mutex_unlock(&s->context->lock);
  if (!old || !lent) return old;
  buffer_release(old);
  return NULL;
}

/* Turns. */

void turns_take(tn_context *c, turn turns[], size_t n) {
  if (!n) return;
  mutex_lock(&c->lock);
  for (size_t i = 0; i < n; i++) turns[i].number = turns[i].store->turns++;
  mutex_unlock(&c->lock);
}

static void note_lent(turn turns[], size_t n) {
  if (!n) return;
  mutex_lock(&turns->store->context->lock);
  for (size_t i = 0; i < n; i++) turns[i].is_lent = turns[i].store->lent;
  mutex_unlock(&turns->store->context->lock);
}

tn_status turns_wait(turn turns[], size_t n, diag *d) {
  tn_status s = TN_OK;
  for (size_t i = 0; i < n && s == TN_OK; i++)
    s = signal_wait(turns[i].store->timeline, turns[i].number, -1, d);
  if (s == TN_OK) note_lent(turns, n);
  return s;
}

void turns_end(const turn turns[], size_t n) {
  for (size_t i = 0; i < n; i++) signal_set(turns[i].store->timeline, turns[i].number + 1);
}

tn_status store_wait(tn_context *c, store *s, diag *d) {
  turn t = {.store = s};
  turns_take(c, &t, 1);
  tn_status status = turns_wait(&t, 1, d);
  turns_end(&t, 1);
  return status;
}
