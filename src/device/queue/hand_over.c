/* Hands command lists to a backend's stream, and completes them on the queue's thread.

   A list goes to the stream at once, up to a wait for a value that nobody has promised in a stream
   of the same backend, or up to a command that the library runs itself: a call, or a copy through
   the host. Signals, time stamps, such commands and the list's end are left to the queue's thread,
   with the marks that it has to wait for. What the stream has, it completes without the library; so
   waiting for a mark always ends, and a chain of marks is never a circle.

   Launches that are a graph (work_graph.h) are handed over as one piece.

   A signal is promised when all commands before it have been handed over: then nothing but the loss
   of a device can fail it, or the failure of an earlier list of the queue, as a wait for one is not
   left to the device. A list fails from a wait on that turns out to have failed when the list is
   completed. */
#include "device/memory/span.h"
#include "device/queue/queue_state.h"

/* Works that are handed over together. */
enum { MOST_WORKS = 16 };

typedef enum outcome { HANDED_OVER, HELD, BLOCKED } outcome;

/** Commands of a list on their way to the stream. */
typedef struct handing {
  tn_queue *q;
  submission *s;
  size_t n;
  tn_work works[MOST_WORKS];
} handing;

static const tn_stream_functions *streams(const tn_queue *q) { return q->device->backend->streams; }

/* Failures. */

static bool has_signal_from(const submission *s, size_t from) {
  for (size_t i = from; i < s->n; i++)
    if (s->commands[i].kind == COMMAND_SIGNAL) return true;
  return false;
}

/** Fails a list from a command on; the loss of the device is kept after an earlier failure too. */
static void fail_from(tn_queue *q, submission *s, size_t from, const tn_failure *f, bool is_lost) {
  bool is_first = from < s->failed_from;
  if (is_first) {
    s->failed_from = from;
    s->why = *f;
  }
  if (is_lost || (is_first && !has_signal_from(s, from)))
    queue_keep_failure(q, s->number, f, is_lost);
}

/** Skips a list as a whole if `check` finds why. */
static void skip_list(tn_queue *q, submission *s,
                      tn_status (*check)(tn_queue *q, uint64_t number, tn_failure *f)) {
  tn_failure f;
  f.text[0] = 0;
  if (!check(q, s->number, &f) || !s->failed_from) return;
  s->failed_from = 0;
  s->why = f;
}

/* Handing over. Under `handing`. */

static void forget_mark(tn_queue *q) {
  stream_mark_release(q->last_mark);
  q->last_mark = NULL;
}

static tn_status flush_works(handing *h, tn_failure *f) {
  tn_queue *q = h->q;
  size_t n = h->n;
  h->n = 0;
  if (!n) return TN_OK;
  forget_mark(q);
  return streams(q)->enqueue(q->stream, h->works, n, f);
}

static tn_status add_work(handing *h, const tn_work *w, tn_failure *f) {
  h->works[h->n++] = *w;
  return h->n == MOST_WORKS ? flush_works(h, f) : TN_OK;
}

/** Marks the end of what was handed over; an earlier mark serves if nothing was since. */
static tn_status mark_stream(handing *h, bool timed, stream_mark **mark, tn_failure *f) {
  tn_queue *q = h->q;
  *mark = NULL;
  tn_status status = flush_works(h, f);
  if (status) return status;
  if (!q->last_mark || (timed && !q->is_last_timed)) {
    status = stream_mark_make(mark, q->device, q->stream, timed, f);
    if (status) return status;
    stream_mark_release(q->last_mark);
    q->last_mark = *mark;
    q->is_last_timed = timed;
  }
  *mark = stream_mark_retain(q->last_mark);
  return TN_OK;
}

/** Leaves the command at hand, or the end of the list, to the queue's thread. */
static void add_end(submission *s, stream_mark *mark) {
  s->ends[s->n_ends++] = (queue_end){s->next_command, mark, s->n_awaits};
}

/** Leaves the command at hand to the queue's thread, after what was handed over. */
static tn_status leave_to_thread(handing *h, bool timed, tn_failure *f) {
  stream_mark *mark;
  tn_status status = mark_stream(h, timed, &mark, f);
  if (!status) add_end(h->s, mark);
  return status;
}

static tn_status hand_over_signal(handing *h, const command *c, tn_failure *f) {
  stream_mark *mark;
  tn_status status = mark_stream(h, false, &mark, f);
  if (status) return status;
  signal_promise(c->signal, c->value, mark);
  add_end(h->s, mark);
  return TN_OK;
}

/** True for a wait for an earlier list of the queue itself: the stream runs them in order. */
static bool is_behind(const handing *h, const command *wait) {
  return wait->signal == h->q->base.timeline && command_value(wait) < h->s->number;
}

/** Leaves a wait to the device, if the value is promised; held: it is not. */
static tn_status hand_over_wait(handing *h, const command *c, bool *is_held, tn_failure *f) {
  submission *s = h->s;
  stream_mark *mark;
  tn_status status = flush_works(h, f);
  if (status) return status;
  switch (queue_look(c, h->q->device->backend, &mark, f)) {
  case VALUE_REACHED: return TN_OK;
  case VALUE_FAILED: return f->status;
  case VALUE_OPEN:
    *is_held = !is_behind(h, c);
    if (!*is_held) s->awaits[s->n_awaits++] = s->next_command;
    return TN_OK;
  default:
    forget_mark(h->q);
    s->awaits[s->n_awaits++] = s->next_command;
    status = streams(h->q)->await(h->q->stream, mark->handle, f);
    stream_mark_release(mark);
    return status;
  }
}

static tn_status hand_over_exec(handing *h, const command *c, tn_failure *f) {
  tn_work w;
  tn_status status = queue_prepare_launch(h->q, c, &w, f);
  return status ? status : add_work(h, &w, f);
}

/** Computes the works of the launches that follow a graph's command; false if one is refused, which
    its own command then reports. */
static bool prepare_graph(const handing *h, const command *c, tn_work *works, size_t *n_commands) {
  tn_failure unread;
  size_t n = work_graph_size(c->graph), done = 0;
  for (*n_commands = 0; done < n; (*n_commands)++) {
    const command *next = &c[1 + *n_commands];
    if (next->kind == COMMAND_EXEC && queue_prepare_launch(h->q, next, &works[done++], &unread))
      return false;
  }
  return true;
}

/** Hands over the launches after a graph's command as one run of the graph, or leaves them to their
    own commands. */
static tn_status hand_over_graph(handing *h, const command *c, tn_failure *f) {
  size_t n_commands;
  bool is_run;
  tn_work *works = work_graph_begin(c->graph);
  if (!works || !prepare_graph(h, c, works, &n_commands)) return TN_OK;
  if (!work_graph_update(c->graph)) return TN_OK;
  tn_status status = flush_works(h, f);
  if (status) return status;
  forget_mark(h->q);
  status = work_graph_run(c->graph, h->q->stream, &is_run, f);
  if (is_run) h->s->next_command += n_commands;
  return status;
}

/** Hands a copy or fill over; `is_blocked`: the thread runs it instead. */
static tn_status hand_over_copy(handing *h, const command *c, bool *is_blocked, tn_failure *f) {
  tn_work w = {.kind = TN_WORK_FILL, .to = *c->to, .fill = c->fill};
  if (c->kind == COMMAND_COPY) {
    diag d;
    diag_clear(&d);
    if (span_check_copy(c->to, c->from, &d)) {
      *f = d.failure;
      return d.status;
    }
    if (!c->to->bytes) return TN_OK;
    *is_blocked = !span_copy_work(h->q->device, c->to, c->from, &w);
  }
  if (*is_blocked) return leave_to_thread(h, false, f);
  return c->to->bytes ? add_work(h, &w, f) : TN_OK;
}

/** Hands over the command at hand; `stop`: what comes after it must wait. */
static tn_status hand_over_command(handing *h, outcome *stop, tn_failure *f) {
  const command *c = &h->s->commands[h->s->next_command];
  bool is_held = false, is_blocked = false;
  tn_status status = TN_OK;
  switch (c->kind) {
  case COMMAND_WAIT: status = hand_over_wait(h, c, &is_held, f); break;
  case COMMAND_SIGNAL: status = hand_over_signal(h, c, f); break;
  case COMMAND_EXEC: status = hand_over_exec(h, c, f); break;
  case COMMAND_GRAPH: status = hand_over_graph(h, c, f); break;
  case COMMAND_BARRIER: break; /* a stream works in order */
  case COMMAND_STAMP: status = leave_to_thread(h, true, f); break;
  case COMMAND_CALL:
    is_blocked = true;
    status = leave_to_thread(h, false, f);
    break;
  default: status = hand_over_copy(h, c, &is_blocked, f);
  }
  *stop = status ? HANDED_OVER : is_held ? HELD : is_blocked ? BLOCKED : HANDED_OVER;
  return status;
}

/** Ends a list: what follows its failure is left to the thread without marks. */
static void end_list(handing *h) {
  submission *s = h->s;
  stream_mark *mark = NULL;
  tn_failure f;
  f.text[0] = 0;
  if ((f.status = flush_works(h, &f))) fail_from(h->q, s, s->n, &f, f.status == TN_ERR_DEVICE);
  f.text[0] = 0;
  if (mark_stream(h, false, &mark, &f)) {
    f.status = TN_ERR_DEVICE; /* nobody can tell when the list's memory is unused */
    fail_from(h->q, s, s->n, &f, true);
  }
  add_end(s, mark);
}

/** Hands over a list from its next command on. */
static outcome hand_over_list(handing *h) {
  submission *s = h->s;
  outcome stop = HANDED_OVER;
  tn_failure f;
  if (!s->next_command) {
    forget_mark(h->q); /* a stamp is no earlier than its list */
    skip_list(h->q, s, queue_check_begin);
  }
  for (; s->next_command < s->n && stop == HANDED_OVER; s->next_command += stop != HELD) {
    const command *c = &s->commands[s->next_command];
    if (s->next_command >= s->failed_from) {
      if (c->kind == COMMAND_SIGNAL) add_end(s, NULL);
      continue;
    }
    f.text[0] = 0;
    f.status = hand_over_command(h, &stop, &f);
    if (!f.status) continue;
    fail_from(h->q, s, s->next_command, &f, f.status == TN_ERR_DEVICE && c->kind != COMMAND_WAIT);
    if (c->kind == COMMAND_SIGNAL) add_end(s, NULL);
  }
  if (stop == HANDED_OVER) end_list(h);
  return stop; /* what is held or blocked has flushed its works */
}

void queue_hand_over(tn_queue *q) {
  mutex_lock(&q->handing);
  while (!q->is_held && !q->is_blocked && q->n_handed < atomic_load(&q->n_submitted)) {
    submission *s = q->ring[q->n_handed % QUEUE_RING];
    handing h;
    h.q = q, h.s = s, h.n = 0;
    outcome stop = hand_over_list(&h);
    q->n_handed += stop == HANDED_OVER;
    mutex_lock(&q->lock);
    s->n_published = s->n_ends;
    q->is_held = stop == HELD;
    q->is_blocked = stop == BLOCKED;
    if (q->n_sleeping) condition_broadcast(&q->changed);
    mutex_unlock(&q->lock);
  }
  mutex_unlock(&q->handing);
}

/* Completing, on the queue's thread. */

/** Ends the state in which nothing is handed over, and hands over what follows. */
static void go_on(tn_queue *q) {
  mutex_lock(&q->handing);
  forget_mark(q); /* time passed that a later stamp is to show */
  mutex_lock(&q->lock);
  q->is_held = q->is_blocked = false;
  mutex_unlock(&q->lock);
  mutex_unlock(&q->handing);
  queue_hand_over(q);
}

void queue_resume(tn_queue *q) {
  submission *s = q->ring[q->n_handed % QUEUE_RING];
  stream_mark *mark = NULL;
  tn_failure f;
  f.text[0] = 0;
  value_state state = queue_await_signal(q, &s->commands[s->next_command],
                                         (queue_position){s->number, s->next_command},
                                         q->device->backend, &mark, &f);
  stream_mark_release(mark); /* it is looked up again, with what was promised meanwhile */
  if (state == VALUE_FAILED) fail_from(q, s, s->next_command, &f, false);
  go_on(q);
}

/** Fails a list whose waits, left to the device, turn out to have failed. The device is past them,
    so their values are reached or about to be. */
static void check_awaits(tn_queue *q, submission *s, size_t n) {
  for (; s->n_checked < n; s->n_checked++) {
    size_t i = s->awaits[s->n_checked];
    diag d;
    diag_clear(&d);
    if (signal_wait(s->commands[i].signal, s->commands[i].value, -1, &d) && !s->commands[i].ends)
      fail_from(q, s, i, &d.failure, false);
  }
}

static void complete_on_host(tn_queue *q, submission *s, size_t i) {
  tn_failure f;
  f.text[0] = 0;
  if (i < s->failed_from && (f.status = queue_run_on_host(&s->commands[i], &f)))
    fail_from(q, s, i, &f, f.status == TN_ERR_DEVICE);
  go_on(q);
}

bool queue_complete(tn_queue *q, submission *s, const queue_end *e) {
  tn_failure f;
  f.text[0] = 0;
  if (!s->n_ended) skip_list(q, s, queue_check_earlier);
  if (e->mark && (f.status = stream_mark_sync(e->mark, &f))) fail_from(q, s, e->command, &f, true);
  check_awaits(q, s, e->n_awaits);
  const command *c = e->command < s->n ? &s->commands[e->command] : NULL;
  bool is_skipped = e->command >= s->failed_from;
  if (c && c->kind == COMMAND_STAMP && !is_skipped) {
    if (c->seen) *c->seen = clock_now_ns();
    *c->stamp = streams(q)->time(e->mark->handle);
  }
  stream_mark_release(e->mark);
  if (!c || c->kind == COMMAND_STAMP) return c != NULL;
  if (c->kind != COMMAND_SIGNAL)
    complete_on_host(q, s, e->command);
  else if (is_skipped)
    signal_fail(c->signal, c->value, s->why.status, s->why.text);
  else
    signal_set(c->signal, c->value);
  return true;
}
