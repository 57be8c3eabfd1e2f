/* Implements command queues: gives submissions their sequence numbers, keeps the failure that no
   signal carries until it is reported, and runs single commands for backends that leave that to the
   library (tn_submission_run). Of the two locks, one orders submitting callers, the other guards
   the counts and the failure. */
#include "device/queue/queue.h"

#include "device/memory/span.h"
#include "device/queue/command_list.h"

#include <inttypes.h>
#include <stdatomic.h>

/* A queue that waits for a signal checks this often whether it is being freed. */
enum { WAIT_SLICE_NS = 20000000 };

/** A failure of a queue's commands that no signal carries: it skips the submissions after it until
    it is reported, once. */
typedef struct queue_failure {
  bool is_pending;  /* not reported */
  bool is_lost;     /* the device is lost: stays pending */
  uint64_t skip_to; /* submissions up to this one are skipped */
  tn_failure why;
} queue_failure;

struct tn_queue {
  tn_device *device;
  const tn_queue_functions *functions; /* the backend's, or host_queue_functions */
  void *handle;
  tn_commands *recording; /* NULL: no command yet */
  bool lacks_memory;      /* the list to record could not be allocated */
  atomic_bool cancelled;
  mutex submitting; /* held before `lock` */
  mutex lock;       /* of the fields below */
  condition progress;
  uint64_t submitted, done;
  size_t inline_runs; /* lists that callers run on their own threads */
  queue_failure failure;
};

static void queue_free(tn_queue *q) {
  condition_free(&q->progress);
  mutex_free(&q->lock);
  mutex_free(&q->submitting);
  mem_free(q->device->mem, q, sizeof *q);
}

tn_status queue_open(tn_device *device, tn_queue_kind kind, tn_queue **queue, diag *d) {
  *queue = NULL;
  tn_queue *q = mem_calloc(device->mem, 1, sizeof *q);
  if (!q) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  const tn_queue_functions *own = device->backend->queue;
  q->device = device;
  q->functions = own ? own : &host_queue_functions;
  atomic_init(&q->cancelled, false);
  mutex_init(&q->submitting);
  mutex_init(&q->lock);
  condition_init(&q->progress);
  diag_clear(d);
  void *state = own ? device->state : (void *)device;
  tn_status status = diag_complete(d, q->functions->open(state, kind, &q->handle, &d->failure));
  if (status) {
    queue_free(q);
    return status;
  }
  *queue = q;
  return TN_OK;
}

void queue_close(tn_queue *q) {
  if (!q) return;
  atomic_store(&q->cancelled, true);
  mutex_lock(&q->lock);
  while (q->inline_runs) condition_wait(&q->progress, &q->lock);
  mutex_unlock(&q->lock);
  q->functions->free(q->handle);
  command_list_release(q->recording);
  queue_free(q);
}

tn_commands *queue_current_list(tn_queue *q) {
  if (!q->recording) q->recording = command_list_open(q->device);
  q->lacks_memory = q->lacks_memory || !q->recording;
  return q->recording;
}

tn_status queue_take_list(tn_queue *q, tn_commands **c, diag *d) {
  *c = queue_current_list(q);
  tn_status status =
      q->lacks_memory ? diag_set(d, TN_ERR_MEMORY, "out of memory") : command_list_status(*c, d);
  q->recording = NULL;
  q->lacks_memory = false;
  if (!status) return TN_OK;
  command_list_release(*c);
  *c = NULL;
  return status;
}

/* Submitting. */

/** Reports the pending failure; TN_OK if there is none. Under the lock. */
static tn_status report_failure(tn_queue *q, diag *d) {
  queue_failure *f = &q->failure;
  if (!f->is_pending) return TN_OK;
  if (!f->is_lost) {
    f->is_pending = false;
    f->skip_to = q->submitted;
  }
  d->failure = f->why;
  return diag_complete(d, d->status);
}

/** Makes the next submission, unless there is a failure to report. Under `submitting`. */
static tn_status make_submission(tn_queue *q, tn_commands *c, tn_submission *s, diag *d) {
  mutex_lock(&q->lock);
  tn_status status = report_failure(q, d);
  *s = (tn_submission){c->at, c->n, q, c, q->submitted + 1};
  mutex_unlock(&q->lock);
  return status;
}

static void note_submitted(tn_queue *q, const tn_submission *s, bool is_inline) {
  mutex_lock(&q->lock);
  q->submitted = s->number;
  q->inline_runs += is_inline;
  mutex_unlock(&q->lock);
}

/** Submits to the queue's own thread or device. Under `submitting`. */
static tn_status pass_submission(tn_queue *q, const tn_submission *s, diag *d) {
  diag_clear(d);
  command_list_retain(s->list);
  tn_status status = diag_complete(d, q->functions->submit(q->handle, s, &d->failure));
  if (status)
    command_list_release(s->list);
  else
    note_submitted(q, s, false);
  return status;
}

static tn_status check_list(const tn_queue *q, const tn_commands *c, diag *d) {
  if (command_list_status(c, d) != TN_OK) return d->status;
  if (c->device == q->device) return TN_OK;
  return diag_set(d, TN_ERR_DEVICE,
                  "commands for device %s cannot be submitted to a queue of device %s",
                  c->device->name, q->device->name);
}

tn_status queue_submit(tn_queue *q, tn_commands *c, diag *d) {
  tn_submission s;
  tn_status status = check_list(q, c, d);
  if (status) return status;
  mutex_lock(&q->submitting);
  status = make_submission(q, c, &s, d);
  if (!status) status = pass_submission(q, &s, d);
  mutex_unlock(&q->submitting);
  return status;
}

/** True if the caller may run a list itself. Under `submitting`. */
static bool enter_inline(tn_queue *q, const tn_submission *s) {
  if (!q->functions->enter || !q->functions->enter(q->handle)) return false;
  command_list_retain(s->list);
  note_submitted(q, s, true);
  return true;
}

/** Counts a submission as done: the last access to the queue of who ran it. */
static void note_done(const tn_submission *s, bool is_inline) {
  tn_queue *q = s->queue;
  command_list_release(s->list);
  mutex_lock(&q->lock);
  q->done++;
  q->inline_runs -= is_inline;
  condition_broadcast(&q->progress);
  mutex_unlock(&q->lock);
}

tn_status queue_run_inline(tn_queue *q, tn_commands *c, diag *d) {
  tn_submission s;
  bool is_inline = false;
  tn_status status = check_list(q, c, d);
  if (status) return status;
  mutex_lock(&q->submitting);
  status = make_submission(q, c, &s, d);
  if (!status) is_inline = enter_inline(q, &s);
  if (!status && !is_inline) status = pass_submission(q, &s, d);
  mutex_unlock(&q->submitting);
  if (!is_inline) return status;
  submission_run(&s);
  q->functions->leave(q->handle);
  note_done(&s, true);
  return TN_OK;
}

tn_status queue_finish(tn_queue *q, int64_t timeout_ns, diag *d) {
  int64_t now = clock_now_ns();
  int64_t deadline = timeout_ns < 0 || timeout_ns > INT64_MAX - now ? -1 : now + timeout_ns;
  bool in_time = true;
  mutex_lock(&q->lock);
  uint64_t last = q->submitted;
  while (q->done < last && in_time)
    in_time = condition_wait_until(&q->progress, &q->lock, deadline);
  tn_status status = report_failure(q, d);
  if (!status && q->done < last)
    status =
        diag_set(d, TN_ERR_TIMEOUT, "the queue of device %s is not finished after %" PRId64 " ns",
                 q->device->name, timeout_ns);
  mutex_unlock(&q->lock);
  return status;
}

/* Running, for backends. */

/** Fails the signals of a list from a command on; true if there are any. */
static bool fail_signals(const tn_submission *s, size_t from, const tn_failure *f) {
  bool any = false;
  for (size_t i = from; i < s->n_commands; i++) {
    const tn_command *c = &s->commands[i];
    if (c->kind != TN_COMMAND_SIGNAL) continue;
    signal_fail(c->signal, command_value(c), f->status, f->text);
    any = true;
  }
  return any;
}

tn_status tn_submission_begin(const tn_submission *s, tn_failure *f) {
  tn_queue *q = s->queue;
  tn_failure why;
  why.status = TN_OK;
  mutex_lock(&q->lock);
  if (atomic_load(&q->cancelled))
    tn_fail(&why, TN_ERR_CANCELLED, "the queue of device %s was freed before the commands ran",
            q->device->name);
  else if (q->failure.is_pending || s->number <= q->failure.skip_to)
    why = q->failure.why;
  mutex_unlock(&q->lock);
  if (!why.status) return TN_OK;
  fail_signals(s, 0, &why);
  if (f) *f = why;
  return why.status;
}

void tn_submission_fail(const tn_submission *s, size_t command, const tn_failure *f) {
  tn_queue *q = s->queue;
  queue_failure *kept = &q->failure;
  bool has_signal = fail_signals(s, command + 1, f), is_lost = f->status == TN_ERR_DEVICE;
  if (has_signal && !is_lost) return;
  mutex_lock(&q->lock);
  if (!kept->is_pending || (is_lost && !kept->is_lost)) kept->why = *f;
  kept->is_pending = true;
  kept->is_lost = kept->is_lost || is_lost;
  mutex_unlock(&q->lock);
}

void tn_submission_done(const tn_submission *s) { note_done(s, false); }

static tn_status run_wait(tn_queue *q, const tn_command *c, tn_failure *f) {
  uint64_t value = command_value(c);
  tn_status status = TN_ERR_TIMEOUT;
  while (status == TN_ERR_TIMEOUT) {
    if (atomic_load(&q->cancelled))
      return tn_fail(f, TN_ERR_CANCELLED, "the queue of device %s was freed while it waited",
                     q->device->name);
    const tn_signal *s = c->signal;
    status = s->functions->wait(s->handle, value, WAIT_SLICE_NS, f);
    if (status == TN_ERR_TIMEOUT && s->functions->get(s->handle) >= value)
      return s->functions->wait(s->handle, value, 0, f); /* it rose since, or this is its failure */
  }
  return status;
}

static tn_status run_copy(const tn_command *c, tn_failure *f) {
  diag d = {0};
  tn_status status = span_copy(c->to, c->from, &d);
  if (status) *f = d.failure;
  return status;
}

tn_status tn_submission_run(const tn_submission *s, size_t command, tn_failure *f) {
  const tn_command *c = &s->commands[command];
  tn_status status = TN_OK;
  f->status = TN_OK;
  f->text[0] = 0;
  switch (c->kind) {
  case TN_COMMAND_WAIT: status = run_wait(s->queue, c, f); break;
  case TN_COMMAND_SIGNAL: signal_set(c->signal, command_value(c)); break;
  case TN_COMMAND_EXEC: status = program_execute(c->owner, c->launch, f); break;
  case TN_COMMAND_COPY: status = run_copy(c, f); break;
  case TN_COMMAND_CALL: status = c->call(c->user, f); break;
  case TN_COMMAND_BARRIER: break; /* one command ends before the next begins */
  case TN_COMMAND_STAMP: *c->stamp = clock_now_ns(); break;
  default: status = tn_fail(f, TN_ERR_INTERNAL, "unknown command in a queue");
  }
  return f->status = status;
}

void submission_run(const tn_submission *s) {
  tn_failure f;
  if (tn_submission_begin(s, &f)) return;
  for (size_t i = 0; i < s->n_commands; i++)
    if (tn_submission_run(s, i, &f)) {
      tn_submission_fail(s, i, &f);
      return;
    }
}
