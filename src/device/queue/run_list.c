/* Runs command lists on the calling thread, for devices without streams: each command ends before
   the next begins. */
#include "device/memory/span.h"
#include "device/queue/queue_state.h"

tn_status queue_prepare_launch(const tn_queue *q, const command *c, tn_work *w, tn_failure *f) {
  if (q->kind != TN_QUEUE_COPY) return program_prepare(c->program, c->launch, w, f);
  return tn_fail(f, TN_ERR_UNSUPPORTED, "kernel %s: a copy queue of device %s runs no programs",
                 c->program->name, q->device->name);
}

tn_status queue_run_on_host(const command *c, tn_failure *f) {
  diag d;
  diag_clear(&d);
  tn_status status;
  switch (c->kind) {
  case COMMAND_CALL: return c->call(c->user, f);
  case COMMAND_COPY: status = span_copy(c->to, c->from, &d); break;
  default: status = span_fill(c->to, c->fill, &d);
  }
  if (status) *f = d.failure;
  return status;
}

static tn_status run_exec(const tn_queue *q, const command *c, tn_failure *f) {
  tn_work w;
  tn_status status = queue_prepare_launch(q, c, &w, f);
  if (status || program_stores_nothing(c->program, c->launch)) return status;
  return q->device->backend->execute(q->device->state, &w, f);
}

static tn_status run_wait(tn_queue *q, const command *c, queue_position at, tn_failure *f) {
  value_state state = queue_await_signal(q, c, at, NULL, NULL, f);
  return state == VALUE_FAILED ? f->status : TN_OK;
}

static tn_status run_command(tn_queue *q, const command *c, queue_position at, tn_failure *f) {
  switch (c->kind) {
  case COMMAND_WAIT: return run_wait(q, c, at, f);
  case COMMAND_SIGNAL: signal_set(c->signal, command_value(c)); return TN_OK;
  case COMMAND_EXEC: return run_exec(q, c, f);
  case COMMAND_BARRIER:
  case COMMAND_GRAPH: return TN_OK;
  case COMMAND_STAMP:
    *c->stamp = clock_now_ns();
    if (c->seen) *c->seen = *c->stamp;
    return TN_OK;
  default: return queue_run_on_host(c, f);
  }
}

/** Fails the signals of a list from a command on; false if there are none. */
static bool fail_signals(const command commands[], size_t from, size_t n, const tn_failure *f) {
  bool any = false;
  for (size_t i = from; i < n; i++) {
    const command *c = &commands[i];
    if (c->kind != COMMAND_SIGNAL) continue;
    signal_fail(c->signal, command_value(c), f->status, f->text);
    any = true;
  }
  return any;
}

void queue_run_list(tn_queue *q, const command commands[], size_t n, uint64_t number) {
  tn_failure f;
  f.text[0] = 0;
  if (queue_check_begin(q, number, &f)) {
    fail_signals(commands, 0, n, &f);
    return;
  }
  for (size_t i = 0; i < n; i++) {
    f.status = run_command(q, &commands[i], (queue_position){number, i}, &f);
    if (!f.status) continue;
    bool is_lost = f.status == TN_ERR_DEVICE && commands[i].kind != COMMAND_WAIT;
    if (!fail_signals(commands, i + 1, n, &f) || is_lost)
      queue_keep_failure(q, number, &f, is_lost);
    return;
  }
}
