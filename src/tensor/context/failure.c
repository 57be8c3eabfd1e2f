/* Failures of a context: the message of each thread, the first failure of each scope, and failed
   assigns, which the next call that runs the assigns of their scope returns.

   A failure of a call on the context is shown to all threads, which use the context in turn. A
   failure of concurrent work (binding or compiling a plan or a model, running a binding) is shown
   to its thread alone, from a record of the thread's own, so that text which another thread reads
   never changes. */
#include "tensor/context/context.h"
#include "tensor/context/handle.h"

#include <stdio.h>
#include <string.h>

/* ---- Reference counts ---- */

failure *failure_retain(failure *f) {
  f->count++;
  return f;
}

void failure_release(tn_context *c, failure *f) {
  if (!f || --f->count || !f->bytes) return;
  mem_free(&c->mem, f, f->bytes);
}

static failure *new_failure(tn_context *c, const diag *d, size_t quoted, uint64_t label) {
  size_t length = strlen(d->text) + 1, bytes = sizeof(failure) + length;
  failure *f = mem_alloc(&c->mem, bytes);
  if (!f) return failure_retain(&c->failures.no_memory);
  char *text = (char *)(f + 1);
  memcpy(text, d->text, length);
  *f = (failure){.count = 1, .status = d->status, .serial = c->failures.n_made++, .text = text};
  f->quoted = quoted;
  f->label = label;
  f->bytes = bytes;
  return f;
}

/* ---- Messages ---- */

/** The record of the calling thread, or NULL. It takes over that of an ended thread, whose
   pthread_t it has. The context's `lock` is held. */
static thread_message *find_thread_message(tn_context *c) {
  thread_message *m = c->failures.of_threads;
  while (m && !pthread_equal(m->thread, pthread_self())) m = m->next;
  if (m && m->number != thread_number()) m->is_newest = false;
  if (m) m->number = thread_number();
  return m;
}

/** A new record for the calling thread; NULL without memory. The first one is part of the context,
    so that running out of memory has a message. */
static thread_message *add_thread_message(tn_context *c) {
  mutex_lock(&c->lock);
  bool is_first = !c->failures.is_first_used;
  c->failures.is_first_used = true;
  mutex_unlock(&c->lock); /* before allocating: the allocator may ask for a message */
  thread_message *m = is_first ? &c->failures.first_of_threads : mem_calloc(&c->mem, 1, sizeof *m);
  if (!m) return NULL;
  m->thread = pthread_self();
  m->number = thread_number();
  mutex_lock(&c->lock);
  m->next = c->failures.of_threads;
  c->failures.of_threads = m;
  mutex_unlock(&c->lock);
  return m;
}

void context_free_messages(tn_context *c) {
  for (thread_message *m = c->failures.of_threads, *next; m; m = next) {
    next = m->next;
    if (m != &c->failures.first_of_threads) mem_free(&c->mem, m, sizeof *m);
  }
  c->failures.of_threads = NULL;
}

static void set_message(message *m, const char *text, size_t quoted) {
  snprintf(m->text, sizeof m->text, "%s", text);
  m->quoted = quoted;
}

static void set_thread_message(tn_context *c, const char *text, size_t quoted) {
  mutex_lock(&c->lock);
  thread_message *m = find_thread_message(c);
  mutex_unlock(&c->lock);
  if (!m) m = add_thread_message(c);
  if (!m) return;
  mutex_lock(&c->lock);
  set_message(&m->message, text, quoted);
  m->is_newest = true;
  mutex_unlock(&c->lock);
}

tn_status context_set_thread_message(tn_context *c, const diag *d) {
  set_thread_message(c, d->text, 0);
  return d->status;
}

static void set_call_message(tn_context *c, const failure *f) {
  mutex_lock(&c->lock);
  set_message(&c->failures.message, f->text, f->quoted);
  thread_message *own = find_thread_message(c);
  if (own) own->is_newest = false;
  mutex_unlock(&c->lock);
}

/** The message that the calling thread sees. The context's `lock` is held. */
static const message *message_of_thread(tn_context *c) {
  const thread_message *own = find_thread_message(c);
  return own && own->is_newest ? &own->message : &c->failures.message;
}

const char *tn_message(const tn_context *context) {
  tn_context *c = (tn_context *)context; /* for its lock */
  if (!c) return "there is no context";
  mutex_lock(&c->lock);
  const char *text = message_of_thread(c)->text;
  mutex_unlock(&c->lock);
  return text;
}

/* ---- Reports ---- */

/** Puts the op and its operands before the message: "add(f32[2], f32[3])". */
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

/** Adds the label, unless the failure was raised again and has it at its end. Returns the number of
    the label that ends the message. */
static uint64_t add_label(tn_context *c) {
  uint64_t raised = c->failures.raised_label;
  if (!c->failures.label || raised == c->failures.label_number) return raised;
  diag_set(&c->diag, c->diag.status, "%.1600s\nat %.400s", c->diag.text, c->failures.label);
  return c->failures.label_number;
}

/** Makes a failure the last one, the innermost scope's first, and the message. */
tn_status context_report_again(tn_context *c, failure *f) {
  if (!c->scopes.innermost->first_failure) c->scopes.innermost->first_failure = failure_retain(f);
  failure_retain(f);
  failure_release(c, c->failures.last);
  c->failures.last = f;
  if (c->entry.is_run)
    set_thread_message(c, f->text, f->quoted);
  else
    set_call_message(c, f);
  return f->status;
}

failure *context_last_failure(tn_context *c) { return failure_retain(c->failures.last); }

static tn_status report_diag(tn_context *c, size_t quoted, uint64_t label) {
  failure *f = new_failure(c, &c->diag, quoted, label);
  c->failures.raised_label = 0;
  tn_status s = context_report_again(c, f);
  failure_release(c, f);
  return s;
}

tn_status context_fail(tn_context *c, const char *op, tn_tensor *const in[], size_t n) {
  if (op) add_operands(c, op, in, n);
  return report_diag(c, 0, add_label(c));
}

tn_status context_fail_call(tn_context *c, const char *op) {
  if (op) diag_prefix(&c->diag, "%s", op);
  return report_diag(c, 0, c->failures.raised_label);
}

void context_raise_again(tn_context *c, diag *d, const failure *f) {
  c->failures.raised_label = f->label;
  diag_raise(d, f->status, "%s", f->text);
}

tn_status context_fail_null_operand(tn_context *c, const char *op, tn_tensor *const in[], size_t n,
                                    size_t i) {
  static const char before[] = "\nthe failure before it, which may be unrelated: ";
  char cause[1024];
  mutex_lock(&c->lock);
  const message *last = message_of_thread(c);
  snprintf(cause, sizeof cause, "%.1000s", last->text + last->quoted);
  mutex_unlock(&c->lock);
  diag_set(&c->diag, TN_ERR_ARGUMENT, "operand %zu is NULL", i + 1);
  add_operands(c, op, in, n);
  uint64_t label = add_label(c);
  if (!*cause) return report_diag(c, 0, label);
  size_t quoted = strnlen(c->diag.text, 1000) + sizeof before - 1;
  diag_set(&c->diag, TN_ERR_ARGUMENT, "%.1000s%s%s", c->diag.text, before, cause);
  return report_diag(c, quoted, 0);
}

tn_status context_return_failure(tn_context *c, failure *f) {
  tn_status status = f->status;
  for (scope *s = c->scopes.innermost; s && c->failures.n_assign; s = s->outer)
    if (s->first_assign_failure == f) context_drop_assign_failure(c, s);
  failure_release(c, f);
  return status;
}

/* ---- Failed assigns ---- */

void context_keep_assign_failure(tn_context *c, failure *f) {
  if (c->scopes.innermost->first_assign_failure) return;
  c->scopes.innermost->first_assign_failure = failure_retain(f);
  c->failures.n_assign++;
}

void context_drop_assign_failure(tn_context *c, scope *s) {
  c->failures.n_assign -= s->first_assign_failure != NULL;
  failure_release(c, s->first_assign_failure);
  s->first_assign_failure = NULL;
}

tn_status context_take_assign_failures(tn_context *c, tn_failure *to) {
  tn_status status = TN_OK;
  uint64_t oldest = UINT64_MAX;
  for (scope *s = c->scopes.innermost; s && c->failures.n_assign; s = s->outer) {
    const failure *f = s->first_assign_failure;
    if (f && f->serial <= oldest) {
      status = tn_fail(to, f->status, "%s", f->text);
      c->failures.raised_label = f->label;
      oldest = f->serial;
    }
    context_drop_assign_failure(c, s);
  }
  return status;
}

void tn_label(tn_context *c, const char *where) {
  if (context_acquire(c) != TN_OK) return;
  bool is_same = where && c->failures.label && !strcmp(where, c->failures.label);
  if (!is_same) c->failures.label_number = ++c->failures.n_labels;
  mem_strfree(&c->mem, c->failures.label);
  c->failures.label = where ? mem_strdup(&c->mem, where) : NULL;
  if (where && !c->failures.label) {
    diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
    context_fail_call(c, "label");
  }
  context_release(c);
}
