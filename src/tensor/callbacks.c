#include "tensor/callbacks.h"

#include "device/cache.h"
#include "device/table.h"
#include "tensor/context.h"

void callback_begin(callback *k, tn_context *c, visit_kind kind) {
  kernel_cache *kernels = c && c->table ? table_kernels(c->table) : NULL;
  visit_begin(&k->of_context, c ? &c->visits : NULL, kind);
  visit_begin(&k->of_kernels, kernels ? cache_visits(kernels) : NULL, kind);
}

void callback_end(callback *k) {
  visit_end(&k->of_kernels);
  visit_end(&k->of_context);
}

static void *alloc(void *user, size_t bytes, size_t align) {
  tn_context *c = user;
  callback k;
  callback_begin(&k, c, VISIT_CALLBACK);
  void *at = c->given.allocator.alloc(c->given.allocator.user, bytes, align);
  callback_end(&k);
  return at;
}

static void release(void *user, void *at, size_t bytes) {
  tn_context *c = user;
  const tn_allocator given = c->given.allocator;
  if (at == c) { /* its end */
    given.release(given.user, at, bytes);
    return;
  }
  callback k;
  callback_begin(&k, c, VISIT_CALLBACK);
  given.release(given.user, at, bytes);
  callback_end(&k);
}

static void run(void *user, void (*task)(void *arg, size_t i), void *arg, size_t n) {
  tn_context *c = user;
  callback k;
  callback_begin(&k, c, VISIT_CALLBACK);
  c->given.workers.run(c->given.workers.user, task, arg, n);
  callback_end(&k);
}

static void take_line(void *user, tn_log_level level, const char *text) {
  tn_context *c = user;
  callback k;
  callback_begin(&k, c, VISIT_CALLBACK);
  c->given.logger.log(c->given.logger.user, level, text);
  callback_end(&k);
}

static bool step(void *user, const char *what, uint64_t done, uint64_t total) {
  tn_context *c = user;
  callback k;
  callback_begin(&k, c, VISIT_CALLBACK);
  bool goes_on = c->given.progress.step(c->given.progress.user, what, done, total);
  callback_end(&k);
  return goes_on;
}

void callbacks_take(tn_context *c, const tn_open_desc *o) {
  c->given = (callbacks){o->allocator, o->workers, o->logger, o->progress};
  if (o->allocator.alloc) c->mem = (mem){alloc, release, c};
  if (o->workers.run) c->workers = (tn_workers){run, c, NULL};
  if (o->logger.log) c->logger = (tn_logger){take_line, c, NULL};
  if (o->progress.step) c->progress = (tn_progress){step, c, NULL};
}

void callbacks_destroy(tn_context *c, void (*destroy)(void *user), void *user) {
  callback k;
  if (!destroy) return;
  callback_begin(&k, c, VISIT_CALLBACK);
  destroy(user);
  callback_end(&k);
}
