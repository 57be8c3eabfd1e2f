/* Runs of bindings that are started: a list of commands for a queue of the binding's own, whose one
   call is the run. `finished` rises before `done`, so that who waited for this finds the binding
   free. */
#include "tensor/binding.h"

#include "device/failure.h"

bool binding_is_running(const tn_binding *b) {
  uint64_t started = atomic_load(&b->started);
  return started && signal_get(b->finished) < started;
}

void binding_collect(tn_binding *b) {
  uint64_t last = atomic_load(&b->started);
  diag d = {0};
  if (!b->is_untold) return;
  b->is_untold = false;
  if (signal_wait(b->finished, last, 0, &d) == TN_OK) return;
  diag_copy(&b->message, &d);
  b->has_run = false;
  b->kept_is_run = b->kept.status == TN_OK;
  if (b->kept_is_run) diag_copy(&b->kept, &d);
  signal_set(b->finished, last + 1); /* or the next failure would be taken for this one */
  atomic_store(&b->started, last + 1);
}

void binding_end_started(tn_binding *b) {
  queue_close(b->starts);
  signal_release(b->finished);
}

static tn_status run_started(void *user, tn_failure *failure) {
  tn_binding *b = user;
  tn_status s = binding_run(b);
  b->has_run = s == TN_OK;
  return s == TN_OK ? s : failure_take(failure, &b->diag);
}

static tn_status open_queue(tn_binding *b) {
  tn_device *device = b->context->device;
  tn_status s = TN_OK;
  if (!b->finished) s = signal_open(device, 0, &b->finished, &b->diag);
  if (s == TN_OK && !b->starts) s = queue_open(device, TN_QUEUE_COMPUTE, &b->starts, &b->diag);
  return s;
}

typedef struct moment {
  tn_signal *signal; /* NULL: none */
  uint64_t value;
} moment;

static tn_status submit(tn_binding *b, moment after, moment done) {
  uint64_t next = atomic_load(&b->started) + 1;
  tn_commands *list = commands_open(b->context->device);
  if (!list) return diag_set(&b->diag, TN_ERR_MEMORY, "out of memory");
  if (after.signal) commands_wait(list, after.signal, after.value);
  commands_call(list, run_started, b);
  commands_signal(list, b->finished, next);
  if (done.signal) commands_signal(list, done.signal, done.value);
  tn_status s = queue_submit(b->starts, list, &b->diag);
  commands_release(list);
  if (s != TN_OK) return s;
  b->is_untold = true;
  atomic_store(&b->started, next);
  return s;
}

static tn_status start(tn_binding *b, moment after, moment done) {
  tn_status s = binding_take_kept(b);
  if (s != TN_OK) return s;
  s = binding_check_caller(b);
  if (s == TN_OK) s = open_queue(b);
  if (s == TN_OK) s = submit(b, after, done);
  if (s != TN_OK) diag_copy(&b->message, &b->diag);
  return s;
}

tn_status tn_binding_start(tn_binding *b, tn_signal *after, uint64_t after_value, tn_signal *done,
                           uint64_t done_value) {
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  b->has_run = false;
  s = start(b, (moment){after, after_value}, (moment){done, done_value});
  binding_leave(b);
  return s;
}
