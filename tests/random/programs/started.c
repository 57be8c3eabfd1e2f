/* Starts runs of plans asynchronously, at once or after a signal, and finishes or cancels them
   later. A run that touches states is awaited, so that it is known what comes before it and what
   after; all else may overlap with the rest of the program. */
#include "program.h"

static void open_signal(program *p, tn_signal **made) {
  tn_device *device;
  check_status(p, tn_device_open(p->context, NULL, &device, NULL), "device_open");
  check_status(p, tn_signal_open(device, 0, made, NULL), "signal_open");
}

static void check_busy(program *p, const bound *b) {
  if (tn_binding_run(b->binding) != TN_ERR_BUSY) fail(p, "a binding that was started could run");
  if (tn_binding_type(b->binding, "0").dtype != TN_UNDEFINED)
    fail(p, "a binding that was started has results");
}

static void start(program *p, plan *made, bound *b) {
  bool waits = rng_chance(&p->r, touches(made, NULL) ? 80 : 25);
  give_inputs(p, made, b);
  if (waits) open_signal(p, &b->after);
  open_signal(p, &b->done);
  say(p, "start(plan %d, binding %d)%s", made->number, (int)(b - made->bound),
      waits ? ", which waits" : "");
  cover(p, COVERED_STARTED);
  if (!waits && !touches(made, NULL)) cover(p, COVERED_STARTED_BESIDE);
  if (tn_binding_start(b->binding, b->after, 1, b->done, 1) != TN_OK)
    fail(p, "start of plan %d: %s", made->number, tn_binding_message(b->binding));
  b->is_started = true;
  p->n_started++;
  if (waits) check_busy(p, b);
}

static void close_signals(bound *b) {
  tn_signal_free(b->after);
  tn_signal_free(b->done);
  b->after = b->done = NULL;
  b->is_started = false;
}

static void await(program *p, plan *made, bound *b) {
  tn_failure f = {TN_OK, ""};
  say(p, "finish(plan %d, binding %d)", made->number, (int)(b - made->bound));
  if (b->after) tn_signal_set(b->after, 1);
  if (tn_signal_wait(b->done, 1, -1, &f) != TN_OK)
    fail(p, "started run of plan %d: %s", made->number, f.text);
  p->n_started--;
  close_signals(b);
}

static void finish_one(program *p, plan *made, bound *b) { run_with(p, made, b, await); }

void start_run(program *p) {
  plan *made = p->n_plans ? p->plans[rng_below(&p->r, p->n_plans)] : NULL;
  bound *b = made ? &made->bound[rng_below(&p->r, made->n_bound)] : NULL;
  if (!b || b->is_started) return;
  start(p, made, b);
  if (!b->after && touches(made, NULL)) finish_one(p, made, b);
}

/** Calls a function for started runs, at most `most` of them. */
static void for_started(program *p, size_t most, void (*call)(program *p, plan *made, bound *b)) {
  for (size_t i = 0; i < p->n_plans; i++)
    for (size_t k = 0; k < p->plans[i]->n_bound; k++)
      if (p->plans[i]->bound[k].is_started && most && most--)
        call(p, p->plans[i], &p->plans[i]->bound[k]);
}

void finish_run(program *p) { for_started(p, 1, finish_one); }
void finish_all_runs(program *p) { for_started(p, SIZE_MAX, finish_one); }

static void cancel(program *p, plan *made, bound *b) {
  (void)p;
  (void)made;
  tn_binding_free(b->binding);
  close_signals(b);
}

void cancel_runs(program *p) { for_started(p, SIZE_MAX, cancel); }
