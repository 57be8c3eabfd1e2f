/* Entry into contexts: public functions acquire and release the context, one at a time, and calls
   on plans, models and bindings run beside them. Also what a context offers to all layers above:
   its builder, log, stream of random numbers, and attached objects. */
#include "tensor/context/context.h"

#include "base/log.h"
#include "device/core/device_target.h"
#include "tensor/context/linked_list.h"

#include <stdio.h>

/* ---- Entry ---- */

/** Records that the calling thread, which has the lock, is inside; carries out the releases that
    were deferred while the context was in use. */
static void begin_call(tn_context *c) {
  reentrancy_enter(&c->entry.holder, &c->entry.visits, REENTRANCY_CALL);
  c->failures.raised_label = 0;
  if (atomic_load(&c->handles.deferred)) c->handles.release_deferred(c);
}

static tn_status acquire(tn_context *c, context_lock_holder as) {
  tn_status s = reentrancy_of_thread(&c->entry.visits) == REENTRANCY_NONE
                    ? context_lock_acquire(&c->entry.lock, as)
                    : TN_ERR_BUSY;
  if (s == TN_OK) begin_call(c);
  return s;
}

bool context_try_acquire(tn_context *c) {
  if (reentrancy_of_thread(&c->entry.visits) != REENTRANCY_NONE) return false;
  if (!context_lock_try_acquire(&c->entry.lock)) return false;
  begin_call(c);
  return true;
}

tn_status context_acquire(tn_context *c) {
  return c ? acquire(c, CONTEXT_LOCK_CALL) : TN_ERR_ARGUMENT;
}

tn_status context_reacquire(tn_context *c) { return acquire(c, CONTEXT_LOCK_RUN); }

tn_status context_acquire_for_run(tn_context *c) {
  tn_status s = context_reacquire(c);
  if (s == TN_OK) c->entry.is_run = true;
  return s;
}

tn_status context_begin_concurrent(tn_context *c, reentrancy_kind most) {
  if (reentrancy_of_thread(&c->entry.visits) > most) return TN_ERR_BUSY;
  atomic_fetch_add(&c->entry.n_concurrent, 1);
  return TN_OK;
}

void context_end_concurrent(tn_context *c) { atomic_fetch_sub(&c->entry.n_concurrent, 1); }

tn_status context_acquire_valid(tn_context *c) {
  tn_status s = context_acquire(c);
  if (s != TN_OK || !c->failures.of_open) return s;
  s = context_report_again(c, c->failures.of_open);
  context_release(c);
  return s;
}

void context_release(tn_context *c) {
  do { /* freeing nodes may call the caller's destructors, which may release tensors */
    if (atomic_load(&c->handles.deferred)) c->handles.release_deferred(c);
    ir_release_unheld(c->ir);
  } while (atomic_load(&c->handles.deferred));
  arena_rewind(&c->arena, (arena_mark){0}); /* keeps one block for the next call */
  c->entry.is_run = false;
  reentrancy_leave(&c->entry.holder);
  context_lock_release(&c->entry.lock);
}

/* ---- Services ---- */

builder context_builder(tn_context *c) {
  return (builder){.ir = c->ir, .arena = &c->arena, .diag = &c->diag, .context = c};
}

uint64_t context_next_random(builder *b, uint64_t *seed) {
  *seed = b->context->random.seed;
  return b->context->random.n_calls++;
}

void tn_seed(tn_context *c, uint64_t seed) {
  if (context_acquire_valid(c) != TN_OK) return;
  c->random.seed = seed;
  c->random.n_calls = 0;
  context_release(c);
}

tn_device *context_device_of(const tn_context *c, const node *n) {
  size_t device = node_device_number(n, 0);
  return device ? c->devices.targets[device - 1]->device : c->device;
}

void context_log(tn_context *c, tn_log_level level, const char *format, ...) {
  va_list list;
  va_start(list, format);
  log_line_va(&c->reports.logger, &c->reports.lock, level, format, list);
  va_end(list);
}

void context_trace_copy(tn_context *c, int64_t begin, const char *what, const char *name) {
  char text[256];
  if (!c->reports.tracer.span) return;
  snprintf(text, sizeof text, "copy of %s%s%.200s", what, *name ? " " : "", name);
  const tn_trace_span span = {.size = sizeof span,
                              .name = text,
                              .device = c->device->name,
                              .queue = "host",
                              .step = -1,
                              .begin = begin,
                              .end = clock_now_ns(),
                              .library = NULL};
  mutex_lock(&c->reports.lock);
  c->reports.tracer.span(c->reports.tracer.user, &span);
  mutex_unlock(&c->reports.lock);
}

/* ---- Attachments ---- */

void context_attach(tn_context *c, attachment *a) {
  mutex_lock(&c->lock);
  LIST_PUSH(&c->attachments, a, next, link);
  mutex_unlock(&c->lock);
}

void context_detach(tn_context *c, attachment *a) {
  mutex_lock(&c->lock);
  LIST_REMOVE(a, next, link);
  mutex_unlock(&c->lock);
}
