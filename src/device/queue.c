#include "device/queue.h"

#include "device/commands.h"
#include "device/failure.h"
#include "device/span.h"

#include <inttypes.h>

/* How long a wait goes on before it looks whether the queue is being freed. */
enum { WAIT_SLICE_NS = 20000000 };

struct tn_queue {
  tn_device *device;
  const tn_queue_functions *functions;
  void *handle;
  tn_commands *building; /* NULL: nothing noted yet */
  bool starved;          /* something could not be noted */
  atomic_bool cancelled;
  mutex submitting; /* held before `lock` */
  mutex lock;       /* of what follows */
  condition progress;
  uint64_t submitted, done;
  bool failed;      /* a failure that nobody was told of yet; */
  bool lost;        /* and that stays */
  uint64_t skip_to; /* submissions up to this one are skipped */
  tn_failure failure;
};

static void queue_init(tn_queue *q, tn_device *device) {
  q->device = device;
  q->functions = device->backend->queue ? device->backend->queue : &host_queue;
  atomic_init(&q->cancelled, false);
  mutex_init(&q->submitting);
  mutex_init(&q->lock);
  condition_init(&q->progress);
}

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
  queue_init(q, device);
  void *owner = device->backend->queue ? device->state : (void *)device;
  tn_failure f;
  failure_clear(&f);
  tn_status status = q->functions->open(owner, kind, &q->handle, &f);
  if (status) {
    queue_free(q);
    return failure_tell(d, status, &f);
  }
  *queue = q;
  return TN_OK;
}

void queue_close(tn_queue *q) {
  if (!q) return;
  atomic_store(&q->cancelled, true);
  q->functions->free(q->handle);
  commands_release(q->building);
  queue_free(q);
}

tn_commands *queue_building(tn_queue *q) {
  if (!q->building) q->building = commands_open(q->device);
  q->starved = q->starved || !q->building;
  return q->building;
}

tn_status queue_take(tn_queue *q, tn_commands **c, diag *d) {
  *c = queue_building(q);
  tn_status status =
      q->starved ? diag_set(d, TN_ERR_MEMORY, "out of memory") : commands_status(*c, d);
  q->building = NULL;
  q->starved = false;
  if (!status) return TN_OK;
  commands_release(*c);
  *c = NULL;
  return status;
}

/** The failure that is kept, which then is told; TN_OK if there is none. Under the lock. */
static tn_status report(tn_queue *q, diag *d) {
  if (!q->failed) return TN_OK;
  if (!q->lost) {
    q->failed = false;
    q->skip_to = q->submitted;
  }
  return failure_tell(d, q->failure.status, &q->failure);
}

/** The next submission, unless there is a failure to tell. Under `submitting`. */
static tn_status next_submission(tn_queue *q, tn_commands *c, tn_submission *s, diag *d) {
  mutex_lock(&q->lock);
  tn_status status = report(q, d);
  *s = (tn_submission){c->at, c->n, q, c, q->submitted + 1};
  mutex_unlock(&q->lock);
  return status;
}

static void note_submitted(tn_queue *q, const tn_submission *s) {
  mutex_lock(&q->lock);
  q->submitted = s->number;
  mutex_unlock(&q->lock);
}

/** Under `submitting`. */
static tn_status hand_over(tn_queue *q, const tn_submission *s, diag *d) {
  tn_failure f;
  failure_clear(&f);
  commands_retain(s->list);
  tn_status status = q->functions->submit(q->handle, s, &f);
  if (status)
    commands_release(s->list);
  else
    note_submitted(q, s);
  return failure_tell(d, status, &f);
}

static tn_status check_list(const tn_queue *q, const tn_commands *c, diag *d) {
  if (commands_status(c, d) != TN_OK) return d->status;
  if (c->device == q->device) return TN_OK;
  return diag_set(d, TN_ERR_DEVICE, "commands for %s are submitted to a queue of %s",
                  c->device->name, q->device->name);
}

tn_status queue_submit(tn_queue *q, tn_commands *c, diag *d) {
  tn_submission s;
  tn_status status = check_list(q, c, d);
  if (status) return status;
  mutex_lock(&q->submitting);
  status = next_submission(q, c, &s, d);
  if (!status) status = hand_over(q, &s, d);
  mutex_unlock(&q->submitting);
  return status;
}

/** Whether the caller may run a list itself; under `submitting`. */
static bool enter(tn_queue *q, const tn_submission *s) {
  if (!q->functions->enter || !q->functions->enter(q->handle)) return false;
  commands_retain(s->list);
  note_submitted(q, s);
  return true;
}

tn_status queue_run(tn_queue *q, tn_commands *c, diag *d) {
  tn_submission s;
  bool here = false;
  tn_status status = check_list(q, c, d);
  if (status) return status;
  mutex_lock(&q->submitting);
  status = next_submission(q, c, &s, d);
  if (!status) here = enter(q, &s);
  if (!status && !here) status = hand_over(q, &s, d);
  mutex_unlock(&q->submitting);
  if (!here) return status;
  submission_run(&s);
  q->functions->leave(q->handle);
  tn_submission_done(&s);
  return TN_OK;
}

tn_status queue_finish(tn_queue *q, int64_t timeout_ns, diag *d) {
  int64_t now = clock_now();
  int64_t deadline = timeout_ns < 0 || timeout_ns > INT64_MAX - now ? -1 : now + timeout_ns;
  bool in_time = true;
  mutex_lock(&q->lock);
  uint64_t last = q->submitted;
  while (q->done < last && in_time)
    in_time = condition_wait_until(&q->progress, &q->lock, deadline);
  tn_status status = report(q, d);
  if (!status && q->done < last)
    status = diag_set(d, TN_ERR_TIMEOUT, "a queue of %s is not done after %" PRId64 " ns",
                      q->device->name, timeout_ns);
  mutex_unlock(&q->lock);
  return status;
}

/* What backends call. */

/** Fails the signals of a list from a command on; whether there are any. */
static bool fail_signals(const tn_submission *s, size_t from, const tn_failure *f) {
  bool told = false;
  for (size_t i = from; i < s->n_commands; i++) {
    const tn_command *c = &s->commands[i];
    if (c->kind != TN_COMMAND_SIGNAL) continue;
    signal_fail(c->signal, command_value(c), f->status, f->text);
    told = true;
  }
  return told;
}

tn_status tn_submission_begin(const tn_submission *s, tn_failure *f) {
  tn_queue *q = s->queue;
  tn_failure why;
  failure_clear(&why);
  mutex_lock(&q->lock);
  if (atomic_load(&q->cancelled))
    tn_fail(&why, TN_ERR_CANCELLED, "a queue of %s was freed before this ran", q->device->name);
  else if (q->failed || s->number <= q->skip_to)
    tn_fail(&why, q->failure.status, "%s", q->failure.text);
  mutex_unlock(&q->lock);
  if (!why.status) return TN_OK;
  fail_signals(s, 0, &why);
  return tn_fail(f, why.status, "%s", why.text);
}

void tn_submission_fail(const tn_submission *s, size_t command, const tn_failure *f) {
  tn_queue *q = s->queue;
  bool told = fail_signals(s, command + 1, f);
  bool lost = f->status == TN_ERR_DEVICE;
  if (told && !lost) return;
  mutex_lock(&q->lock);
  if (!q->failed || (lost && !q->lost)) tn_fail(&q->failure, f->status, "%s", f->text);
  q->failed = true;
  q->lost = q->lost || lost;
  mutex_unlock(&q->lock);
}

void tn_submission_done(const tn_submission *s) {
  tn_queue *q = s->queue;
  commands_release(s->list);
  mutex_lock(&q->lock);
  q->done++;
  condition_wake_all(&q->progress);
  mutex_unlock(&q->lock);
}

static tn_status run_wait(tn_queue *q, const tn_command *c, tn_failure *f) {
  uint64_t value = command_value(c);
  tn_status status = TN_ERR_TIMEOUT;
  while (status == TN_ERR_TIMEOUT) {
    if (atomic_load(&q->cancelled))
      return tn_fail(f, TN_ERR_CANCELLED, "a queue of %s was freed while it waited",
                     q->device->name);
    const tn_signal *s = c->signal;
    status = s->functions->wait(s->handle, value, WAIT_SLICE_NS, f);
    if (status == TN_ERR_TIMEOUT && s->functions->get(s->handle) >= value)
      return s->functions->wait(s->handle, value, 0, f); /* it rose since, or that is its failure */
  }
  return status;
}

static tn_status run_copy(const tn_command *c, tn_failure *f) {
  diag d = {0};
  return span_copy(c->to, c->from, &d) ? failure_take(f, &d) : TN_OK;
}

static tn_status run(tn_queue *q, const tn_command *c, tn_failure *f) {
  switch (c->kind) {
  case TN_COMMAND_WAIT: return run_wait(q, c, f);
  case TN_COMMAND_SIGNAL: signal_set(c->signal, command_value(c)); return TN_OK;
  case TN_COMMAND_EXEC: return program_execute(c->owner, c->launch, f);
  case TN_COMMAND_COPY: return run_copy(c, f);
  case TN_COMMAND_CALL: return c->call(c->user, f);
  case TN_COMMAND_BARRIER: return TN_OK; /* one command ends before the next begins */
  case TN_COMMAND_STAMP: *c->stamp = clock_now(); return TN_OK;
  default: return tn_fail(f, TN_ERR_INTERNAL, "a queue has an unknown command");
  }
}

tn_status tn_submission_run(const tn_submission *s, size_t command, tn_failure *f) {
  failure_clear(f);
  return f->status = run(s->queue, &s->commands[command], f);
}

void submission_run(const tn_submission *s) {
  tn_failure f;
  failure_clear(&f);
  if (tn_submission_begin(s, &f)) return;
  for (size_t i = 0; i < s->n_commands; i++)
    if (tn_submission_run(s, i, &f)) {
      tn_submission_fail(s, i, &f);
      return;
    }
}
