#include "tensor/context.h"

#include "base/log.h"
#include "tensor/dims.h"
#include "tensor/executable_cache.h"
#include "tensor/handle.h"
#include "tensor/leaf.h"
#include "tensor/open.h"
#include "tensor/plan.h"
#include "tensor/scope.h"
#include "tensor/state.h"

#include <stdio.h>
#include <string.h>

/* Calls. */

static tn_status take(tn_context *c, gate_user as) {
  tn_status s = visits_mine(&c->visits) == VISIT_NONE ? gate_enter(&c->gate, as) : TN_ERR_BUSY;
  if (s == TN_OK) visit_begin(&c->inside, &c->visits, VISIT_CALL);
  return s;
}

tn_status context_take(tn_context *c) { return c ? take(c, GATE_CALL) : TN_ERR_ARGUMENT; }
tn_status context_take_for_run(tn_context *c) { return take(c, GATE_RUN); }

tn_status context_begin_beside(tn_context *c, visit_kind most) {
  if (visits_mine(&c->visits) > most) return TN_ERR_BUSY;
  atomic_fetch_add(&c->beside, 1);
  return TN_OK;
}

void context_end_beside(tn_context *c) { atomic_fetch_sub(&c->beside, 1); }

tn_status context_enter(tn_context *c) {
  tn_status s = context_take(c);
  if (s != TN_OK || !c->broken) return s;
  s = context_repeat(c, c->broken);
  context_leave(c);
  return s;
}

void context_leave(tn_context *c) {
  ir_collect(c->ir);
  arena_reset(&c->arena, (arena_mark){0}); /* keeps a block for the next call */
  visit_end(&c->inside);
  gate_leave(&c->gate);
}

builder context_builder(tn_context *c) {
  return (builder){.ir = c->ir, .arena = &c->arena, .diag = &c->diag, .context = c};
}

uint64_t context_random(builder *b, uint64_t *seed) {
  *seed = b->context->seed;
  return b->context->random_calls++;
}

void tn_seed(tn_context *c, uint64_t seed) {
  if (context_enter(c) != TN_OK) return;
  c->seed = seed;
  c->random_calls = 0;
  context_leave(c);
}

tn_status context_queue(tn_context *c, tn_queue **queue, diag *d) {
  tn_status s = c->queue ? TN_OK : queue_open(c->device, TN_QUEUE_COMPUTE, &c->queue, d);
  *queue = c->queue;
  return s;
}

void context_log(tn_context *c, tn_log_level level, const char *format, ...) {
  va_list list;
  va_start(list, format);
  log_list(&c->logger, &c->reports, level, format, list);
  va_end(list);
}

/* Failures. */

failure *failure_hold(failure *f) {
  f->count++;
  return f;
}

void failure_drop(tn_context *c, failure *f) {
  if (!f || --f->count || !f->bytes) return;
  mem_free(&c->mem, f, f->bytes);
}

static failure *new_failure(tn_context *c, const diag *d) {
  size_t length = strlen(d->text) + 1, bytes = sizeof(failure) + length;
  failure *f = mem_alloc(&c->mem, bytes);
  if (!f) return failure_hold(&c->no_memory);
  char *text = (char *)(f + 1);
  memcpy(text, d->text, length);
  *f = (failure){.count = 1, .status = d->status, .serial = c->failures++, .text = text};
  f->bytes = bytes;
  return f;
}

tn_status context_message(tn_context *c, const diag *d) {
  mutex_lock(&c->lock);
  diag_set(&c->message, d->status, "%s", d->text);
  mutex_unlock(&c->lock);
  return d->status;
}

static void add_operands(tn_context *c, const char *op, tn_tensor *const in[], size_t n) {
  char text[512];
  size_t at = 0;
  text[0] = 0;
  for (size_t i = 0; i < n && at + 1 < sizeof text; i++) {
    at += (size_t)snprintf(text + at, sizeof text - at, "%s", i ? ", " : "");
    if (at + 1 < sizeof text) at = handle_describe(in[i], text, at, sizeof text);
  }
  diag_prefix(&c->diag, n ? "%s(%s)" : "%s%s", op, text);
}

/** Not again where it quotes a failure of the same place. */
static void add_label(tn_context *c) {
  if (!c->label) return;
  char line[8 + 400];
  size_t n = (size_t)snprintf(line, sizeof line, "\nat %.400s", c->label);
  size_t length = strlen(c->diag.text);
  if (length >= n && !strcmp(c->diag.text + length - n, line)) return;
  diag_set(&c->diag, c->diag.status, "%.1600s%s", c->diag.text, line);
}

/** The innermost scope keeps its first failure. */
static tn_status tell(tn_context *c, failure *f) {
  if (!c->scope->first) c->scope->first = failure_hold(f);
  failure_hold(f);
  failure_drop(c, c->told);
  c->told = f;
  mutex_lock(&c->lock);
  diag_set(&c->message, f->status, "%s", f->text);
  mutex_unlock(&c->lock);
  return f->status;
}

failure *context_failure(tn_context *c) { return failure_hold(c->told); }

/** The failure at hand. */
static tn_status tell_new(tn_context *c) {
  failure *f = new_failure(c, &c->diag);
  tn_status s = tell(c, f);
  failure_drop(c, f);
  return s;
}

tn_status context_fail(tn_context *c, const char *op, tn_tensor *const in[], size_t n) {
  if (op) add_operands(c, op, in, n);
  add_label(c);
  return tell_new(c);
}

tn_status context_fail_null(tn_context *c, const char *op, tn_tensor *const in[], size_t n,
                            size_t i) {
  static const char before[] = "\nthe failure before it, which may be unrelated: ";
  char cause[1024];
  mutex_lock(&c->lock);
  const char *quoted = strstr(c->message.text, before);
  snprintf(cause, sizeof cause, "%.1000s", quoted ? quoted + sizeof before - 1 : c->message.text);
  mutex_unlock(&c->lock);
  diag_set(&c->diag, TN_ERR_ARGUMENT, "operand %zu is NULL", i + 1);
  add_operands(c, op, in, n);
  add_label(c);
  if (*cause) diag_set(&c->diag, TN_ERR_ARGUMENT, "%.1000s%s%s", c->diag.text, before, cause);
  return tell_new(c);
}

tn_status context_repeat(tn_context *c, failure *f) { return tell(c, f); }

void context_keep_refused(tn_context *c, failure *f) {
  if (c->scope->refused) return;
  c->scope->refused = failure_hold(f);
  c->n_refused++;
}

void context_drop_refused(tn_context *c, scope *s) {
  c->n_refused -= s->refused != NULL;
  failure_drop(c, s->refused);
  s->refused = NULL;
}

tn_status context_take_refused(tn_context *c, diag *d) {
  tn_status status = TN_OK;
  uint64_t oldest = UINT64_MAX;
  for (scope *s = c->scope; s && c->n_refused; s = s->outer) {
    const failure *f = s->refused;
    if (f && f->serial <= oldest) {
      status = diag_set(d, f->status, "%s", f->text);
      oldest = f->serial;
    }
    context_drop_refused(c, s);
  }
  return status;
}

tn_status context_return(tn_context *c, failure *f) {
  tn_status status = f->status;
  for (scope *s = c->scope; s && c->n_refused; s = s->outer)
    if (s->refused == f) context_drop_refused(c, s);
  failure_drop(c, f);
  return status;
}

const char *tn_message(const tn_context *c) { return c ? c->message.text : "there is no context"; }

void tn_label(tn_context *c, const char *where) {
  if (context_take(c) != TN_OK) return;
  mem_strfree(&c->mem, c->label);
  c->label = where ? mem_strdup(&c->mem, where) : NULL;
  if (where && !c->label) {
    diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
    context_fail(c, "label", NULL, 0);
  }
  context_leave(c);
}

/* What belongs to a context. */

void context_attach(tn_context *c, attachment *a) {
  mutex_lock(&c->lock);
  a->next = c->attachments;
  a->link = &c->attachments;
  if (a->next) a->next->link = &a->next;
  c->attachments = a;
  mutex_unlock(&c->lock);
}

void context_detach(tn_context *c, attachment *a) {
  mutex_lock(&c->lock);
  *a->link = a->next;
  if (a->next) a->next->link = a->link;
  mutex_unlock(&c->lock);
}

static void destroy_attachments(tn_context *c) {
  while (c->attachments) {
    attachment *a = c->attachments;
    context_detach(c, a);
    a->destroy(a);
  }
}

/* Closing. */

static void free_strings(tn_context *c) {
  char *const all[] = {c->device_name, c->pair, c->cpu, c->dump_text, c->label};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) mem_strfree(&c->mem, all[i]);
}

static void forget_devices(tn_context *c) {
  while (c->told_of) {
    device_facts *k = c->told_of;
    c->told_of = k->next;
    table_forget(c->table, k);
  }
}

void context_destroy(tn_context *c) {
  visit closing;
  visit_begin(&closing, &c->visits, VISIT_CALLBACK);
  destroy_attachments(c);
  plan_free_all(c);
  if (c->ir) {
    executable_cache_free(c);
    scope_free_all(c);
    ir_collect(c->ir);
    ir_watch(c->ir, NULL);
    leaf_free_all(c);
    dims_free(c);
    ir_free(c->ir);
  }
  arena_free(&c->arena);
  queue_close(c->queue);
  forget_devices(c);
  table *own = c->own_table ? c->table : NULL;
  c->table = NULL;
  table_close(own);
  disk_close(c->disk);
  free_strings(c);
  failure_drop(c, c->broken);
  failure_drop(c, c->told);
  mutex_free(&c->lock);
  mutex_free(&c->reports);
  gate_free(&c->gate);
  const callbacks given = c->given;
  callbacks_destroy(c, given.progress.destroy, given.progress.user);
  callbacks_destroy(c, given.logger.destroy, given.logger.user);
  callbacks_destroy(c, given.workers.destroy, given.workers.user);
  mem m = c->mem;
  mem_free(&m, c->nobody, sizeof *c->nobody);
  mem_free(&m, c->busy, sizeof *c->busy);
  visit_end(&closing);
  visits_free(&c->visits);
  mem_free(&m, c, sizeof *c);
  if (given.allocator.destroy) given.allocator.destroy(given.allocator.user);
}

tn_status tn_close(tn_context *c) {
  if (!c) return TN_OK;
  tn_status s = context_take(c);
  if (s != TN_OK) return s;
  if (atomic_load(&c->beside) || atomic_load(&c->bodies) || plan_any_runs(c)) {
    context_leave(c);
    return TN_ERR_BUSY;
  }
  visit_end(&c->inside);
  context_destroy(c);
  return TN_OK;
}
