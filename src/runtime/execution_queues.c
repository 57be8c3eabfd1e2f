/* Implements runs on several queues. Values of signals are counted anew in each submission, as
   lists copy them then: a queue's `steps` rises with every step that others wait for, and a list
   ends by `done`. A list that fails fails its later signals, and so the lists that wait for it; all
   lists end in any case, and are waited for. */
#include "runtime/execution_queues.h"

#include "runtime/execution_memory.h"

/* Opening. */

tn_status execution_queue_open(struct execution *e, tn_device *device, tn_queue_kind kind,
                               tn_queue **queue, bool *is_own, diag *d) {
  tn_status s = e->pool ? queue_pool_get(e->pool, device, kind, queue, d)
                        : queue_open(device, kind, queue, d);
  *is_own = s == TN_OK && !e->pool;
  return s;
}

static tn_status open_one(struct execution *e, size_t i, diag *d) {
  execution_queue *queue = &e->queues[i];
  const executable_queue *of = &e->p->queues.at[i];
  tn_device *device = e->p->targets[of->device]->device;
  tn_status s = TN_OK;
  queue->queue = e->queue;
  if (i)
    s = execution_queue_open(e, device, of->copies ? TN_QUEUE_COPY : TN_QUEUE_COMPUTE,
                             &queue->queue, &queue->owns_queue, d);
  if (s == TN_OK) s = signal_open(device, 0, &queue->done, d);
  if (s == TN_OK) s = signal_open(device, 0, &queue->steps, d);
  return s;
}

tn_status execution_queues_open(struct execution *e, diag *d) {
  const executable *p = e->p;
  if (p->queues.n < 2) return TN_OK;
  e->queues = mem_calloc(p->mem, p->queues.n, sizeof *e->queues);
  e->step_signals = mem_calloc(p->mem, p->n_steps + 1, sizeof *e->step_signals);
  if (!e->queues || !e->step_signals) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  tn_status s = TN_OK;
  for (size_t i = 0; i < p->queues.n && s == TN_OK; i++) s = open_one(e, i, d);
  return s;
}

void execution_queues_close(struct execution *e) {
  const executable *p = e->p;
  for (size_t i = 0; e->queues && i < p->queues.n; i++) {
    execution_queue *queue = &e->queues[i];
    if (queue->owns_queue) queue_close(queue->queue);
    signal_release(queue->done);
    signal_release(queue->steps);
  }
  mem_free(p->mem, e->queues, p->queues.n * sizeof *e->queues);
  mem_free(p->mem, e->step_signals, (p->n_steps + 1) * sizeof *e->step_signals);
  e->queues = NULL;
}

/* Recording. */

tn_status execution_queues_open_lists(struct execution *e, command_section *section, diag *d) {
  const executable *p = e->p;
  size_t end = section->step + section->n_steps;
  for (size_t i = section->step; i < end; i++) {
    size_t queue = p->queues.of_step[i];
    if (section->of_queue[queue]) continue;
    tn_device *device = p->targets[p->queues.at[queue].device]->device;
    section->of_queue[queue] = command_list_open(device);
    if (!section->of_queue[queue]) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  }
  return TN_OK;
}

void execution_queues_record(struct execution *e, command_section *section,
                             void (*record)(struct execution *e, tn_commands *list, size_t step)) {
  const executable_queues *x = &e->p->queues;
  for (size_t i = section->step; i < section->step + section->n_steps; i++) {
    size_t queue = x->of_step[i];
    tn_commands *list = section->of_queue[queue];
    if (list->n) command_list_barrier(list);
    for (size_t k = x->first_wait[i]; k < x->first_wait[i + 1]; k++)
      command_list_wait_at(list, e->queues[x->of_step[x->waits[k]]].steps,
                           &e->step_signals[x->waits[k]]);
    record(e, list, i);
    if (x->is_awaited[i]) command_list_signal_at(list, e->queues[queue].steps, &e->step_signals[i]);
  }
  for (size_t i = 0; i < x->n; i++)
    if (section->of_queue[i])
      command_list_signal_at(section->of_queue[i], e->queues[i].done, &e->queues[i].n_lists);
}

/* Running. */

static void wait_for_input(void *user, tn_buffer *b, contents_use use) {
  tn_span span;
  diag *d = user;
  if (use.reads && d->status == TN_OK) buffer_span(b, &span, d);
}

/** The failure of what wrote a buffer before does not matter where the run gives it new contents.
 */
static void wait_for_output(void *user, tn_buffer *b, contents_use use) {
  tn_span span;
  diag *d = user;
  if (use.reads || d->status != TN_OK) return;
  buffer_forget_writes(b, NULL);
  buffer_span(b, &span, d);
}

tn_status execution_queues_await_buffers(struct execution *e, diag *d) {
  diag_clear(d);
  execution_for_buffers(e, wait_for_input, d);
  execution_for_buffers(e, wait_for_output, d);
  return d->status;
}

/** Counts the lists and signals of a section. */
static void count_signals(struct execution *e, const command_section *section) {
  const executable_queues *x = &e->p->queues;
  for (size_t i = section->step; i < section->step + section->n_steps; i++)
    if (x->is_awaited[i]) e->step_signals[i] = ++e->queues[x->of_step[i]].n_steps;
  for (size_t i = 0; i < x->n; i++)
    if (section->of_queue[i]) e->queues[i].n_lists++;
}

/** Fails what a list that was not submitted would have raised, for those who wait. */
static void fail_queue(execution_queue *queue, const diag *d) {
  signal_fail(queue->steps, queue->n_steps, d->status, d->text);
  signal_fail(queue->done, queue->n_lists, d->status, d->text);
}

/** Waits for what a stream was given before its list failed, and raises the signals of a queue
   beyond failed values, so that later ones are not taken for them. */
static void end_failures(execution_queue *queue) {
  diag unread = {0};
  if (queue_has_stream(queue->queue))
    signal_wait(queue_timeline(queue->queue), queue_last_number(queue->queue), -1, &unread);
  signal_set(queue->steps, ++queue->n_steps);
  signal_set(queue->done, ++queue->n_lists);
}

tn_status execution_queues_run(struct execution *e, const command_section *section, diag *d) {
  size_t n = e->p->queues.n;
  tn_status s = TN_OK;
  count_signals(e, section);
  for (size_t i = 0; i < n; i++) {
    if (!section->of_queue[i]) continue;
    if (s == TN_OK) s = queue_submit(e->queues[i].queue, section->of_queue[i], d);
    if (s != TN_OK) fail_queue(&e->queues[i], d);
  }
  for (size_t i = 0; i < n; i++) {
    diag own = {0};
    if (!section->of_queue[i]) continue;
    tn_status of_queue = signal_wait(e->queues[i].done, e->queues[i].n_lists, -1, &own);
    if (of_queue != TN_OK && s == TN_OK) {
      d->failure = own.failure;
      s = of_queue;
    }
  }
  for (size_t i = 0; i < n && s != TN_OK; i++) end_failures(&e->queues[i]);
  return s;
}
