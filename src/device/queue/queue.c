/* Implements command queues: gives submissions their numbers and places in a ring, keeps the
   failure that no signal carries until it is reported, and has a thread that runs lists, or
   completes what a stream has run. The thread starts with the first submission. */
#include "device/queue/queue.h"

#include "device/queue/queue_state.h"
#include "device/threads/spin.h"

#include <inttypes.h>

enum { SPIN_NS = 50000 };

/* Opening and closing. */

static void link_queue(tn_queue *q) {
  tn_device *v = q->device;
  mutex_lock(&v->queues_lock);
  q->base.next = v->queues;
  q->base.link = &v->queues;
  if (v->queues) v->queues->link = &q->base.next;
  v->queues = &q->base;
  mutex_unlock(&v->queues_lock);
}

static void unlink_queue(tn_queue *q) {
  tn_device *v = q->device;
  if (!q->base.link) return;
  mutex_lock(&v->queues_lock);
  *q->base.link = q->base.next;
  if (q->base.next) q->base.next->link = q->base.link;
  mutex_unlock(&v->queues_lock);
}

static uint64_t busy_until(device_queue *base) {
  tn_queue *q = (tn_queue *)base;
  mutex_lock(&q->lock);
  uint64_t last = atomic_load(&q->n_submitted);
  bool is_busy = q->n_done < last;
  q->has_points = q->has_points || is_busy;
  mutex_unlock(&q->lock);
  return is_busy ? last : 0;
}

static void queue_free(tn_queue *q) {
  const mem *m = q->device->mem;
  unlink_queue(q);
  signal_release(q->base.timeline);
  stream_mark_release(q->last_mark);
  if (q->stream) q->device->backend->streams->free(q->stream);
  while (q->unused) {
    submission *s = q->unused;
    q->unused = s->next;
    submission_free(s, m);
  }
  command_list_release(q->recording);
  condition_free(&q->progress);
  condition_free(&q->changed);
  mutex_free(&q->lock);
  mutex_free(&q->handing);
  mutex_free(&q->submitting);
  mem_free(m, q, sizeof *q);
}

static tn_status open_stream(tn_queue *q, diag *d) {
  const tn_device *v = q->device;
  const tn_stream_functions *s = v->backend->streams;
  if (!s) return TN_OK;
  diag_clear(d);
  tn_status status = diag_complete(d, s->open(v->state, q->kind, &q->stream, &d->failure));
  if (!status) return TN_OK;
  q->stream = NULL;
  return diag_prefix(d, "device %s", v->name);
}

tn_status queue_open(tn_device *device, tn_queue_kind kind, tn_queue **queue, diag *d) {
  *queue = NULL;
  tn_queue *q = mem_calloc(device->mem, 1, sizeof *q);
  if (!q) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  q->device = device;
  q->kind = kind;
  atomic_init(&q->is_cancelled, false);
  atomic_init(&q->n_submitted, 0);
  mutex_init(&q->submitting);
  mutex_init(&q->handing);
  mutex_init(&q->lock);
  condition_init(&q->changed);
  condition_init(&q->progress);
  q->base.busy_until = busy_until;
  tn_status status = signal_open(device, 0, &q->base.timeline, d);
  if (!status) status = open_stream(q, d);
  q->has_points = q->stream != NULL;
  if (status) {
    queue_free(q);
    return status;
  }
  link_queue(q);
  *queue = q;
  return TN_OK;
}

void queue_close(tn_queue *q) {
  if (!q) return;
  mutex_lock(&q->lock);
  atomic_store(&q->is_cancelled, true);
  q->stop = true;
  condition_broadcast(&q->changed);
  while (q->n_inline) condition_wait(&q->progress, &q->lock);
  bool is_started = q->is_started;
  mutex_unlock(&q->lock);
  if (is_started) thread_join(q->thread);
  queue_free(q);
}

tn_device *queue_device(const tn_queue *q) { return q->device; }

bool queue_has_stream(const tn_queue *q) { return q->stream != NULL; }

tn_signal *queue_timeline(const tn_queue *q) { return q->base.timeline; }

uint64_t queue_last_number(const tn_queue *q) { return atomic_load(&q->n_submitted); }

/* Recording. */

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

/* Failures. */

/** The submission of a number in the ring, where it stays until its place is needed; NULL: the list
    runs on its caller's thread. Under the lock. */
static submission *submission_of(const tn_queue *q, uint64_t number) {
  submission *s = q->ring[(number - 1) % QUEUE_RING];
  return s && s->number == number ? s : NULL;
}

tn_status queue_check_earlier(tn_queue *q, uint64_t number, tn_failure *f) {
  f->status = TN_OK;
  mutex_lock(&q->lock);
  const submission *s = submission_of(q, number);
  if (s && s->is_skipped)
    *f = s->skipped_by;
  else if (q->failure.is_pending && number > q->failure.number)
    *f = q->failure.why;
  mutex_unlock(&q->lock);
  return f->status;
}

tn_status queue_check_begin(tn_queue *q, uint64_t number, tn_failure *f) {
  if (!atomic_load(&q->is_cancelled)) return queue_check_earlier(q, number, f);
  return tn_fail(f, TN_ERR_CANCELLED, "the queue of device %s was freed before the commands ran",
                 q->device->name);
}

void queue_keep_failure(tn_queue *q, uint64_t number, const tn_failure *f, bool is_lost) {
  queue_failure *kept = &q->failure;
  mutex_lock(&q->lock);
  if (!kept->is_pending || (is_lost && !kept->is_lost)) kept->why = *f;
  if (!kept->is_pending || number < kept->number) kept->number = number;
  kept->is_pending = true;
  kept->is_lost = kept->is_lost || is_lost;
  mutex_unlock(&q->lock);
}

/** Has the submissions behind the failed one skipped. Under the lock. */
static void skip_later(tn_queue *q) {
  const queue_failure *f = &q->failure;
  for (uint64_t n = atomic_load(&q->n_submitted); n > f->number && n > q->n_done; n--) {
    submission *s = submission_of(q, n);
    if (!s || s->is_skipped) continue;
    s->is_skipped = true;
    s->skipped_by = f->why;
  }
}

/** Reports the pending failure; TN_OK if there is none. Under the lock. */
static tn_status report_failure(tn_queue *q, diag *d) {
  queue_failure *f = &q->failure;
  if (!f->is_pending) return TN_OK;
  if (!f->is_lost) {
    f->is_pending = false;
    skip_later(q);
  }
  d->failure = f->why;
  return diag_complete(d, d->status);
}

/* Waits. */

static void wake_queue(void *user) {
  tn_queue *q = user;
  mutex_lock(&q->lock);
  q->is_woken = true;
  if (q->n_sleeping) condition_broadcast(&q->changed);
  mutex_unlock(&q->lock);
}

/** Sleeps until a signal or the end of the queue wakes it. */
static void sleep_at(tn_queue *q, const command *wait, queue_position at) {
  mutex_lock(&q->lock);
  q->wait = (queue_wait){wait->signal, command_value(wait), at.number, at.command};
  q->n_sleeping++;
  while (!q->is_woken && !atomic_load(&q->is_cancelled)) condition_wait(&q->changed, &q->lock);
  q->n_sleeping--;
  q->is_woken = false;
  q->wait.signal = NULL;
  mutex_unlock(&q->lock);
}

value_state queue_look(const command *wait, const tn_backend *backend, stream_mark **mark,
                       tn_failure *f) {
  value_state state = signal_look(wait->signal, command_value(wait), backend, mark, f);
  return state == VALUE_FAILED && wait->ends ? VALUE_REACHED : state;
}

value_state queue_await_signal(tn_queue *q, const command *wait, queue_position at,
                               const tn_backend *backend, stream_mark **mark, tn_failure *f) {
  tn_signal *s = wait->signal;
  value_state state = queue_look(wait, backend, mark, f);
  if (state == VALUE_OPEN && !backend && signal_spin(s, command_value(wait)))
    state = queue_look(wait, NULL, NULL, f);
  if (state != VALUE_OPEN) return state;
  signal_watch w = {wake_queue, q, NULL};
  signal_watch_begin(s, &w);
  while ((state = queue_look(wait, backend, mark, f)) == VALUE_OPEN &&
         !atomic_load(&q->is_cancelled))
    sleep_at(q, wait, at);
  signal_watch_end(s, &w);
  if (state != VALUE_OPEN) return state;
  tn_fail(f, TN_ERR_CANCELLED, "the queue of device %s was freed while it waited", q->device->name);
  return VALUE_FAILED;
}

/* The thread. */

/** Ends a submission, whose list is released; it may be used again. Called under the lock, which it
    gives up meanwhile: points of the timeline are either known before it is done, or not needed. */
static void end_submission(tn_queue *q, submission *s) {
  q->n_done++;
  if (q->has_points) {
    mutex_unlock(&q->lock);
    if (s->failed_from == SIZE_MAX)
      signal_set(q->base.timeline, s->number);
    else
      signal_fail(q->base.timeline, s->number, s->why.status, s->why.text);
    mutex_lock(&q->lock);
  }
  s->next = q->unused;
  q->unused = s;
  condition_broadcast(&q->progress);
}

/** Runs the oldest submission. Called under the lock, which it gives up meanwhile. */
static void run_submission(tn_queue *q, submission *s) {
  q->is_running = true;
  mutex_unlock(&q->lock);
  queue_run_list(q, s->commands, s->n, s->number);
  command_list_release(s->list);
  mutex_lock(&q->lock);
  q->is_running = false;
  end_submission(q, s);
}

/** Completes the next end of the oldest submission. Called under the lock, which it gives up
    meanwhile. */
static void complete_end(tn_queue *q, submission *s) {
  const queue_end e = s->ends[s->n_ended];
  mutex_unlock(&q->lock);
  bool has_more = queue_complete(q, s, &e);
  if (!has_more) command_list_release(s->list);
  mutex_lock(&q->lock);
  s->n_ended++;
  if (!has_more) end_submission(q, s);
}

/** The number of submissions that was last seen. */
typedef struct submission_count {
  tn_queue *queue;
  uint64_t seen;
} submission_count;

static bool has_new_submission(const void *arg) {
  const submission_count *c = arg;
  return atomic_load(&c->queue->n_submitted) != c->seen;
}

/** Waits for something to do. Called under the lock, which it gives up meanwhile. A queue without a
 * stream spins once before it sleeps. */
static void sleep_idle(tn_queue *q, bool *has_spun) {
  const submission_count c = {q, atomic_load(&q->n_submitted)};
  if (!q->stream && !q->stop && !*has_spun) {
    mutex_unlock(&q->lock);
    spin_until(has_new_submission, &c, SPIN_NS);
    mutex_lock(&q->lock);
    *has_spun = true;
    return;
  }
  q->n_sleeping++;
  condition_wait(&q->changed, &q->lock);
  q->n_sleeping--;
}

static void *queue_body(void *arg) {
  tn_queue *q = arg;
  bool has_spun = false;
  mutex_lock(&q->lock);
  for (;;) {
    bool is_idle = q->n_done == atomic_load(&q->n_submitted);
    submission *s = is_idle || q->n_inline ? NULL : q->ring[q->n_done % QUEUE_RING];
    if (s && !q->stream) {
      run_submission(q, s);
    } else if (s && s->n_ended < s->n_published) {
      complete_end(q, s);
    } else if (s && q->is_held) {
      mutex_unlock(&q->lock);
      queue_resume(q);
      mutex_lock(&q->lock);
    } else if (q->stop && is_idle) {
      break;
    } else {
      sleep_idle(q, &has_spun);
      continue;
    }
    has_spun = false;
  }
  mutex_unlock(&q->lock);
  return NULL;
}

/* Submitting. */

/** Under the lock. */
static tn_status start_thread(tn_queue *q, diag *d) {
  if (q->is_started) return TN_OK;
  tn_status status = thread_start(&q->thread, queue_body, q, d);
  q->is_started = !status;
  return status;
}

/** Under the lock. */
static bool is_full(const tn_queue *q) {
  return atomic_load(&q->n_submitted) - q->n_done == QUEUE_RING;
}

/** True on the thread that runs the queue's lists and calls their functions. Under the lock. */
static bool is_own_thread(const tn_queue *q) {
  thread self = pthread_self();
  return (q->is_started && pthread_equal(q->thread, self)) ||
         (q->n_inline && pthread_equal(q->caller, self));
}

/** Waits until there is room in the ring, except on the thread that alone makes it. Under the
    lock. */
static tn_status await_room(tn_queue *q, diag *d) {
  tn_status status = report_failure(q, d);
  if (status) return status;
  if (is_own_thread(q))
    return diag_set(d, TN_ERR_BUSY,
                    "the queue of device %s is full, and the function that it calls cannot wait "
                    "for room: its submission is refused",
                    q->device->name);
  while (is_full(q)) condition_wait(&q->progress, &q->lock);
  return TN_OK;
}

/** Takes the lock `submitting` once there is room in the ring. Nobody waits for room with the lock,
    so that a function that the queue calls never waits for it long. */
static tn_status begin_submitting(tn_queue *q, diag *d) {
  for (;;) {
    tn_status status = TN_OK;
    mutex_lock(&q->submitting);
    mutex_lock(&q->lock);
    bool has_room = !is_full(q);
    if (!has_room) {
      mutex_unlock(&q->submitting);
      status = await_room(q, d);
    }
    mutex_unlock(&q->lock);
    if (has_room || status) return status;
  }
}

/** A submission for the next list, for which the ring has room. Under `submitting`. */
static tn_status take_submission(tn_queue *q, submission **s, diag *d) {
  mutex_lock(&q->lock);
  tn_status status = report_failure(q, d);
  if (!status) status = start_thread(q, d);
  *s = status ? NULL : q->unused;
  if (*s) q->unused = (*s)->next;
  mutex_unlock(&q->lock);
  if (!status && !*s && !(*s = mem_calloc(q->device->mem, 1, sizeof **s)))
    status = diag_set(d, TN_ERR_MEMORY, "out of memory");
  return status;
}

/** Puts a submission into the ring; or, after a failure, back. Under `submitting`. */
static void put_submission(tn_queue *q, submission *s, bool is_filled) {
  mutex_lock(&q->lock);
  if (is_filled) {
    uint64_t number = atomic_load(&q->n_submitted);
    s->number = number + 1;
    q->ring[number % QUEUE_RING] = s;
    atomic_store(&q->n_submitted, number + 1);
    if (q->n_sleeping && !q->stream) condition_broadcast(&q->changed);
  } else {
    s->next = q->unused;
    q->unused = s;
  }
  mutex_unlock(&q->lock);
}

static tn_status check_list(const tn_queue *q, const tn_commands *c, diag *d) {
  if (command_list_status(c, d) != TN_OK) return d->status;
  if (c->device == q->device) return TN_OK;
  return diag_set(d, TN_ERR_ARGUMENT,
                  "commands for device %s cannot be submitted to a queue of device %s",
                  c->device->name, q->device->name);
}

/** Under `submitting`. */
static tn_status submit_list(tn_queue *q, tn_commands *c, diag *d) {
  submission *s;
  tn_status status = take_submission(q, &s, d);
  if (status) return status;
  status = submission_fill(s, c, d);
  put_submission(q, s, !status);
  if (!status && q->stream) queue_hand_over(q);
  return status;
}

tn_status queue_submit(tn_queue *q, tn_commands *c, diag *d) {
  tn_status status = check_list(q, c, d);
  if (status) return status;
  if ((status = begin_submitting(q, d))) return status;
  status = submit_list(q, c, d);
  mutex_unlock(&q->submitting);
  return status;
}

/** Begins to run a list on the calling thread, if the queue is idle; its number is 0 if it is not.
    Under `submitting`. */
static tn_status begin_inline(tn_queue *q, uint64_t *number, diag *d) {
  *number = 0;
  mutex_lock(&q->lock);
  tn_status status = report_failure(q, d);
  if (!status && !q->stream && !q->is_running && !q->n_inline &&
      q->n_done == atomic_load(&q->n_submitted)) {
    *number = q->n_done + 1;
    atomic_store(&q->n_submitted, *number);
    q->n_inline++;
    q->caller = pthread_self();
  }
  mutex_unlock(&q->lock);
  return status;
}

static void end_inline(tn_queue *q) {
  mutex_lock(&q->lock);
  uint64_t number = ++q->n_done;
  if (q->has_points) {
    mutex_unlock(&q->lock);
    signal_set(q->base.timeline, number);
    mutex_lock(&q->lock);
  }
  q->n_inline--;
  if (q->n_sleeping) condition_broadcast(&q->changed);
  condition_broadcast(&q->progress);
  mutex_unlock(&q->lock);
}

tn_status queue_run_inline(tn_queue *q, tn_commands *c, diag *d) {
  uint64_t number;
  tn_status status = check_list(q, c, d);
  if (status) return status;
  if ((status = begin_submitting(q, d))) return status;
  status = begin_inline(q, &number, d);
  if (!status && !number) status = submit_list(q, c, d);
  mutex_unlock(&q->submitting);
  if (status || !number) return status;
  command_list_retain(c);
  queue_run_list(q, c->at, c->n, number);
  command_list_release(c);
  end_inline(q);
  return TN_OK;
}

/* Finishing. */

/** Says where the queue stands. Under the lock. */
static tn_status fail_unfinished(const tn_queue *q, int64_t timeout_ns, diag *d) {
  const queue_wait *w = &q->wait;
  if (!w->signal)
    return diag_set(d, TN_ERR_TIMEOUT,
                    "the queue of device %s is not finished after %" PRId64 " ns", q->device->name,
                    timeout_ns);
  return diag_set(d, TN_ERR_TIMEOUT,
                  "the queue of device %s is not finished after %" PRId64 " ns: command %zu of "
                  "submission %" PRIu64 " waits until a signal of device %s, now at %" PRIu64
                  ", is at %" PRIu64,
                  q->device->name, timeout_ns, w->command + 1, w->number, w->signal->device->name,
                  signal_get(w->signal), w->value);
}

/** Refuses a wait that would be for itself. */
static tn_status fail_own_thread(const tn_queue *q, diag *d) {
  return diag_set(d, TN_ERR_BUSY,
                  "the queue of device %s is not finished before the function that it calls "
                  "returns, which cannot wait for that",
                  q->device->name);
}

tn_status queue_finish(tn_queue *q, int64_t timeout_ns, diag *d) {
  int64_t now = clock_now_ns();
  int64_t deadline = timeout_ns < 0 || timeout_ns > INT64_MAX - now ? -1 : now + timeout_ns;
  bool in_time = true;
  mutex_lock(&q->lock);
  tn_status status = is_own_thread(q) ? fail_own_thread(q, d) : TN_OK;
  uint64_t last = atomic_load(&q->n_submitted);
  while (!status && q->n_done < last && in_time)
    in_time = condition_wait_until(&q->progress, &q->lock, deadline);
  if (!status) status = report_failure(q, d);
  if (!status && q->n_done < last) status = fail_unfinished(q, timeout_ns, d);
  mutex_unlock(&q->lock);
  return status;
}
