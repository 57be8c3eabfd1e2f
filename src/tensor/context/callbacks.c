/* Wrappers of the caller's callbacks, which record each call as a visit of the context. They are
   the context's own allocator, workers, logger and progress, so that no layer below knows of
   visits. */
#include "tensor/context/callbacks.h"

#include "device/registry/device_registry.h"
#include "tensor/context/context.h"

void callback_begin(callback *k, tn_context *c, reentrancy_kind kind) {
  reentrancy_enter(&k->of_context, c ? &c->entry.visits : NULL, kind);
  reentrancy_enter(&k->of_registry, c && c->registry ? registry_reentrancy(c->registry) : NULL,
                   kind);
}

void callback_end(callback *k) {
  reentrancy_leave(&k->of_registry);
  reentrancy_leave(&k->of_context);
}

static void *call_alloc(void *user, size_t bytes, size_t align) {
  tn_context *c = user;
  callback k;
  callback_begin(&k, c, REENTRANCY_CALLBACK);
  void *at = c->callbacks.allocator.alloc(c->callbacks.allocator.user, bytes, align);
  callback_end(&k);
  return at;
}

static void call_release(void *user, void *at, size_t bytes) {
  tn_context *c = user;
  const tn_allocator caller = c->callbacks.allocator;
  if (at == c) { /* the context itself, at its end: it has no visits any more */
    caller.release(caller.user, at, bytes);
    return;
  }
  callback k;
  callback_begin(&k, c, REENTRANCY_CALLBACK);
  caller.release(caller.user, at, bytes);
  callback_end(&k);
}

static void call_workers(void *user, void (*task)(void *arg, size_t i), void *arg, size_t n) {
  tn_context *c = user;
  callback k;
  callback_begin(&k, c, REENTRANCY_CALLBACK);
  c->callbacks.workers.run(c->callbacks.workers.user, task, arg, n);
  callback_end(&k);
}

static void call_logger(void *user, tn_log_level level, const char *text) {
  tn_context *c = user;
  callback k;
  callback_begin(&k, c, REENTRANCY_CALLBACK);
  c->callbacks.logger.log(c->callbacks.logger.user, level, text);
  callback_end(&k);
}

static bool call_progress(void *user, const char *what, uint64_t done, uint64_t total) {
  tn_context *c = user;
  callback k;
  callback_begin(&k, c, REENTRANCY_CALLBACK);
  bool goes_on = c->callbacks.progress.step(c->callbacks.progress.user, what, done, total);
  callback_end(&k);
  return goes_on;
}

static void call_tracer(void *user, const tn_trace_span *span) {
  tn_context *c = user;
  callback k;
  callback_begin(&k, c, REENTRANCY_CALLBACK);
  c->callbacks.tracer.span(c->callbacks.tracer.user, span);
  callback_end(&k);
}

void callbacks_install(tn_context *c, const tn_open_desc *o) {
  c->callbacks = (callbacks){o->allocator, o->workers, o->logger, o->progress, o->tracer};
  if (o->allocator.alloc) c->mem = (mem){call_alloc, call_release, c};
  if (o->workers.run) c->workers = (tn_workers){call_workers, c, NULL};
  if (o->logger.log) c->reports.logger = (tn_logger){call_logger, c, NULL};
  if (o->tracer.span) c->reports.tracer = (tn_tracer){call_tracer, c, NULL};
  if (o->progress.step) c->progress = (tn_progress){call_progress, c, NULL};
}

void callbacks_destroy_payload(tn_context *c, void (*destroy)(void *user), void *user) {
  callback k;
  if (!destroy) return;
  callback_begin(&k, c, REENTRANCY_CALLBACK);
  destroy(user);
  callback_end(&k);
}
