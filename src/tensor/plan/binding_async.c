/* Asynchronous runs: a list of commands for a queue of the binding's own, with the run as its one
   call. The signal `finished` rises before the caller's `done`, so that a thread which waited for
   `done` finds the binding free. */
#include "tensor/plan/binding.h"

#include "device/queue/command_list.h"

bool binding_is_running(const tn_binding *b) {
  uint64_t started = atomic_load(&b->async.n_started);
  return started && signal_get(b->async.finished) < started;
}

/** Takes the failure of the run that was started last, which is over. */
static void collect_run(tn_binding *b) {
  uint64_t last = atomic_load(&b->async.n_started);
  diag d;
  diag_clear(&d);
  b->async.is_uncollected = false;
  if (signal_wait(b->async.finished, last, 0, &d) == TN_OK) return;
  b->failures.message = d.failure;
  b->has_run = false;
  b->failures.first_is_run = b->failures.first.status == TN_OK;
  if (b->failures.first_is_run) b->failures.first = d.failure;
  signal_set(b->async.finished, last + 1); /* else the next failure would be taken for this one */
  atomic_store(&b->async.n_started, last + 1);
}

void binding_collect_run(tn_binding *b) {
  if (b->async.is_uncollected) collect_run(b);
}

void binding_end_async(tn_binding *b) {
  queue_close(b->async.queue);
  signal_release(b->async.finished);
}

static tn_status run_in_queue(void *user, tn_failure *failure) {
  tn_binding *b = user;
  tn_status s = binding_name_failure(b, binding_run(b));
  b->has_run = s == TN_OK;
  if (s != TN_OK) *failure = b->diag.failure;
  return s;
}

static tn_status open_queue(tn_binding *b) {
  tn_device *device = b->context->device;
  tn_status s = TN_OK;
  if (!b->async.finished) s = signal_open(device, 0, &b->async.finished, &b->diag);
  if (s == TN_OK && !b->async.queue)
    s = queue_open(device, TN_QUEUE_COMPUTE, &b->async.queue, &b->diag);
  return s;
}

typedef struct signal_value {
  tn_signal *signal; /* NULL: no signal */
  uint64_t value;
} signal_value;

static tn_status submit(tn_binding *b, signal_value after, signal_value done) {
  uint64_t next = atomic_load(&b->async.n_started) + 1;
  tn_commands *list = command_list_open(b->context->device);
  if (!list) return diag_set(&b->diag, TN_ERR_MEMORY, "out of memory");
  if (after.signal) command_list_wait(list, after.signal, after.value);
  command_list_call(list, run_in_queue, b);
  command_list_signal(list, b->async.finished, next);
  if (done.signal) command_list_signal(list, done.signal, done.value);
  diag own = {0}; /* the binding's is the run's from now on */
  tn_status s = queue_submit(b->async.queue, list, &own);
  command_list_release(list);
  if (s != TN_OK) {
    b->diag.failure = own.failure;
    return s;
  }
  b->async.is_uncollected = true;
  atomic_store(&b->async.n_started, next);
  return s;
}

static tn_status start_run(tn_binding *b, signal_value after, signal_value done) {
  tn_status s = binding_take_failure(b);
  if (s != TN_OK) return s;
  s = binding_check_caller(b);
  if (s == TN_OK) s = open_queue(b);
  if (s == TN_OK) s = submit(b, after, done);
  return binding_show_failure(b, s);
}

tn_status tn_binding_start(tn_binding *b, tn_signal *after, uint64_t after_value, tn_signal *done,
                           uint64_t done_value) {
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  b->has_run = false;
  s = start_run(b, (signal_value){after, after_value}, (signal_value){done, done_value});
  binding_leave(b);
  return s;
}
