/* Storages of states. A turn is a number of a storage's timeline (as of a ticket lock), taken under
   the context's lock, so that runs of several storages cannot wait for one another in a circle. */
#include "tensor/state/state_storage.h"

#include "device/stream/signal.h"

tn_status state_storage_open(tn_context *c, uint64_t bytes, state_storage **out) {
  state_storage *s = mem_calloc(&c->mem, 1, sizeof *s);
  *out = s;
  if (!s) return diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  atomic_init(&s->count, 1);
  atomic_init(&s->has_pending, false);
  s->context = c;
  s->bytes = bytes;
  return signal_open(c->device, 0, &s->timeline, &c->diag);
}

state_storage *state_storage_retain(state_storage *s) {
  atomic_fetch_add_explicit(&s->count, 1, memory_order_relaxed);
  return s;
}

void state_storage_release(state_storage *s) {
  if (!s || atomic_fetch_sub_explicit(&s->count, 1, memory_order_acq_rel) > 1) return;
  if (s->memory) buffer_release(s->memory);
  signal_release(s->timeline);
  mem_free(&s->context->mem, s, sizeof *s);
}

/* ---- Contents ---- */

bool state_storage_is_in(state_storage *s, const tn_buffer *memory) {
  mutex_lock(&s->context->lock);
  bool same = !s->memory || s->memory == memory;
  mutex_unlock(&s->context->lock);
  return same;
}

tn_buffer *state_storage_changed_memory(state_storage *s, const tn_buffer *known) {
  mutex_lock(&s->context->lock);
  tn_buffer *m = s->memory != known ? s->memory : NULL;
  if (m) buffer_retain(m);
  mutex_unlock(&s->context->lock);
  return m;
}

void state_storage_set_copy_on_write(state_storage *s, bool is_copy_on_write) {
  mutex_lock(&s->context->lock);
  s->is_copy_on_write = is_copy_on_write;
  mutex_unlock(&s->context->lock);
}

tn_buffer *state_storage_replace(state_storage *s, tn_buffer *memory) {
  mutex_lock(&s->context->lock);
  tn_buffer *old = s->memory;
  bool was_copy_on_write = s->is_copy_on_write;
  s->memory = memory;
  s->is_copy_on_write = false;
  mutex_unlock(&s->context->lock);
  if (!old || !was_copy_on_write) return old;
  buffer_release(old);
  return NULL;
}

/* ---- Turns ---- */

void storage_turns_take(tn_context *c, storage_turn turns[], size_t n) {
  if (!n) return;
  mutex_lock(&c->lock);
  for (size_t i = 0; i < n; i++) turns[i].number = turns[i].storage->n_turns++;
  mutex_unlock(&c->lock);
}

tn_status storage_turns_wait(storage_turn turns[], size_t n, diag *d) {
  tn_status s = TN_OK;
  for (size_t i = 0; i < n && s == TN_OK; i++)
    s = signal_wait(turns[i].storage->timeline, turns[i].number, -1, d);
  if (s != TN_OK || !n) return s;
  mutex_lock(&turns->storage->context->lock);
  for (size_t i = 0; i < n; i++) turns[i].is_copy_on_write = turns[i].storage->is_copy_on_write;
  mutex_unlock(&turns->storage->context->lock);
  return TN_OK;
}

void storage_turns_end(const storage_turn turns[], size_t n) {
  for (size_t i = 0; i < n; i++) signal_set(turns[i].storage->timeline, turns[i].number + 1);
}

tn_status state_storage_wait(tn_context *c, state_storage *s, diag *d) {
  storage_turn t = {.storage = s};
  storage_turns_take(c, &t, 1);
  tn_status status = storage_turns_wait(&t, 1, d);
  storage_turns_end(&t, 1);
  return status;
}
