/* Runs executables: places memory, fills launches, then submits the command lists of the plan's
   sections in order, one at a time. Before the sections of a segment the host reads the elements
   that sizes follow from, and places memory and fills launches of that segment. The host runs
   loops: each trip rebinds the loop's states (double buffering) and submits the sections of its
   body again. */
#include "runtime/execution.h"

#include "device/memory/span.h"
#include "ir/core/var_names.h"
#include "runtime/execution_commands.h"
#include "runtime/execution_memory.h"
#include "runtime/execution_queues.h"

/* Opening: lists for everything but data. */

static void open_body(void *arg) {
  execution *e = arg;
  execution_memory_open(e);
  execution_commands_open(e);
  e->profile = run_profile_open(&e->arena, e->p);
  e->profile.trips_run = e->trip;
}

static tn_status open_queue(execution *e, const execution_source *queues, diag *d) {
  tn_device *device = executable_first_device(e->p);
  tn_status s = TN_OK;
  e->pool = queues ? queues->pool : NULL;
  e->queue = queues ? queues->queue : NULL;
  if (!e->queue || queue_device(e->queue) != device)
    s = execution_queue_open(e, device, TN_QUEUE_COMPUTE, &e->queue, &e->owns_queue, d);
  if (s == TN_OK) s = signal_open(device, 0, &e->done, d);
  return s == TN_OK ? execution_queues_open(e, d) : s;
}

tn_status execution_open(execution **out, executable *p, const execution_source *queues, diag *d) {
  *out = NULL;
  execution *e = mem_calloc(p->mem, 1, sizeof *e);
  if (!e) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  e->p = executable_retain(p);
  e->host = p->host;
  arena_init(&e->arena, p->mem, d);
  tn_status s = open_queue(e, queues, d);
  if (s == TN_OK) s = diag_catch(d, open_body, e);
  if (s == TN_OK)
    *out = e;
  else
    execution_close(e);
  return s;
}

void execution_close(execution *e) {
  if (!e) return;
  diag unread = {0};
  if (e->owns_queue) queue_finish(e->queue, -1, &unread);
  execution_memory_close(e);
  execution_commands_release(e);
  execution_queues_close(e);
  signal_release(e->done);
  if (e->owns_queue) queue_close(e->queue);
  executable *p = e->p;
  arena_free(&e->arena);
  mem_free(p->mem, e, sizeof *e);
  executable_release(p);
}

/* Settings of runs. */

void execution_set_host(execution *e, const executable_host *host) { e->host = *host; }

void execution_set_readers(execution *e, const input_readers *r) { e->readers = *r; }

tn_status execution_set_var(execution *e, size_t var, int64_t value, diag *d) {
  const tn_program_var *v = &e->p->vars[var];
  if (value < v->min || value > v->max)
    return diag_set(d, TN_ERR_ARGUMENT, "%s: variable %s is %lld, not in %lld … %lld", e->p->name,
                    var_user_name(v->name), (long long)value, (long long)v->min, (long long)v->max);
  if (e->values.has_value[var] && e->values.vars[var] == value) return TN_OK;
  e->values.vars[var] = value;
  e->values.has_value[var] = true;
  e->values.is_evaluated = e->memory.is_placed = false;
  step_reuse_forget(&e->reuse);
  return TN_OK;
}

tn_status execution_set_buffer(execution *e, size_t buffer, tn_buffer *memory, diag *d) {
  if (buffer >= e->p->n_buffers || !execution_is_bindable(e, buffer))
    return diag_set(d, TN_ERR_ARGUMENT, "%s has no input or output %zu", e->p->name, buffer);
  tn_buffer **bound = &e->memory.buffers[buffer];
  if (*bound == memory && !e->memory.is_allocated[buffer]) return TN_OK;
  if (memory && buffer_device(memory) != executable_device_of(e->p, buffer))
    return diag_set(d, TN_ERR_DEVICE, "%s: an array on device %s is needed on device %s",
                    e->p->name, buffer_device(memory)->name,
                    executable_device_of(e->p, buffer)->name);
  if (memory) buffer_retain(memory);
  if (*bound) buffer_release(*bound);
  *bound = memory;
  e->memory.is_allocated[buffer] = false;
  e->memory.is_placed = false;
  step_reuse_move(&e->reuse, buffer);
  return TN_OK;
}

static void open_reuse(void *arg) {
  step_reuse_open(arg);
  execution_keep_results(arg);
}

tn_status execution_set_reuse(execution *e, bool on, diag *d) {
  e->arena.diag = d;
  bool is_new = on && !e->p->n_items && !e->queues && !e->reuse.may_skip;
  tn_status s = is_new ? diag_catch(d, open_reuse, e) : TN_OK;
  e->reuse.is_on = on && s == TN_OK && e->reuse.may_skip;
  step_reuse_forget(&e->reuse);
  return s;
}

void execution_touch_input(execution *e, size_t buffer) { step_reuse_touch(&e->reuse, buffer); }

void execution_forget_results(execution *e) { step_reuse_forget(&e->reuse); }

void execution_on_late_output(execution *e,
                              tn_status (*place)(void *user, size_t buffer, uint64_t bytes,
                                                 diag *d),
                              void *user) {
  e->late_outputs.place = place;
  e->late_outputs.user = user;
}

void execution_share_scratch(execution *e, tn_buffer **slot) { e->memory.scratch[0].at = slot; }

void execution_unbind(execution *e) {
  for (size_t i = 0; i < e->p->n_buffers; i++) {
    if (e->memory.buffers[i]) buffer_release(e->memory.buffers[i]);
    e->memory.buffers[i] = NULL;
    e->memory.is_allocated[i] = false;
  }
  execution_forget_scratch(e);
  e->memory.is_placed = false;
}

tn_status execution_buffer_bytes(execution *e, size_t buffer, uint64_t *bytes, diag *d) {
  tn_status s = execution_evaluate_sizes(e, d);
  if (s == TN_OK) s = execution_check_size(e, buffer, d);
  if (s == TN_OK) *bytes = execution_bytes_of(e, buffer);
  return s;
}

tn_status execution_scratch_bytes(execution *e, uint64_t *bytes, diag *d) {
  e->arena.diag = d;
  tn_status s = execution_place_slots(e, d);
  *bytes = 0;
  for (size_t i = 0; i < e->p->n_targets && s == TN_OK; i++)
    *bytes += execution_scratch_on(e, 0, i)->bytes;
  return s;
}

size_t execution_late_buffers(const execution *e) {
  size_t n = 0;
  for (size_t i = 0; i < e->p->n_buffers; i++) {
    buffer_role role = e->p->buffers[i].role;
    n +=
        e->p->buffers[i].segment > 0 && (role == BUFFER_ROLE_OUTPUT || role == BUFFER_ROLE_SCRATCH);
  }
  return n;
}

/* Sections. */

/** Places memory and fills launches of a segment. */
static tn_status prepare_segment(execution *e, size_t segment, diag *d) {
  const segment_list *steps = &e->p->segments.steps;
  tn_status s = execution_place_buffers(e, segment, d);
  for (size_t k = steps->first[segment]; k < steps->first[segment + 1] && s == TN_OK; k++) {
    size_t i = steps->at[k];
    if (e->p->steps[i].kind != STEP_KERNEL) continue;
    if (executable_skips(e->p, i, segment, e->values.sizes)) continue;
    execution_fill_launch(e, i);
    s = execution_check_launch(e, i, d);
  }
  return s;
}

/** Records commands, and prepares the first segment as far as any of it changed. */
static tn_status prepare_run(execution *e, diag *d) {
  tn_status s = e->has_commands ? TN_OK : execution_commands_record(e, d);
  e->segment = 0;
  if (s == TN_OK && e->p->n_items) s = execution_evaluate_sizes(e, d);
  if (s != TN_OK || execution_is_placed(e)) return s;
  s = prepare_segment(e, 0, d);
  e->memory.is_placed = s == TN_OK;
  return s;
}

/** True if a section's end must be known before the next one is submitted. */
static bool is_awaited(const execution *e, const command_section *section) {
  return !execution_is_handed_over(e) || section->has_host_steps || e->profile.is_profiled ||
         e->readers.end;
}

/** Waits until all sections that were submitted are done, after a failure too. Those that fail set
    their values of `done` as failed, and consecutive values fail alike: a value that succeeds
    separates them from the next run. */
static tn_status await_sections(execution *e, tn_status s, diag *d) {
  diag unread;
  if (s == TN_OK) s = signal_wait(e->done, e->runs, -1, d);
  if (s == TN_OK && e->reads_after)
    s = signal_wait(queue_timeline(e->queue), e->reads_after, -1, d);
  if (s == TN_OK) return s;
  diag_clear(&unread);
  if (execution_is_handed_over(e))
    signal_wait(queue_timeline(e->queue), queue_last_number(e->queue), -1, &unread);
  signal_set(e->done, ++e->runs);
  return s;
}

/** Counts one more command list of the run: it waits for `after` and raises `done` to `runs`. */
static void begin_list(execution *e) {
  e->after = e->n_sections_submitted++ ? e->runs : 0;
  e->runs++;
}

/* Traces. */

static const char *queue_name(const execution *e, size_t step) {
  if (e->p->steps[step].kind == STEP_LOOP) return "host";
  return e->queues && e->p->queues.at[e->p->queues.of_step[step]].copies ? "copy" : "compute";
}

static void trace_span(execution *e, size_t step, int64_t begin, int64_t end) {
  const tn_trace_span span = {.size = sizeof span,
                              .name = e->p->steps[step].name,
                              .device = e->p->targets[e->p->steps[step].device]->device->name,
                              .queue = queue_name(e, step),
                              .step = (int64_t)step,
                              .begin = begin,
                              .end = end,
                              .library = executable_step_library(e->p, step)};
  mutex_lock(e->tracing);
  e->tracer->span(e->tracer->user, &span);
  mutex_unlock(e->tracing);
}

/** Hands over the spans of a section that is done. */
static void trace_section(execution *e, const command_section *section) {
  const int64_t *stamps = e->profile.times.stamps;
  for (size_t i = section->step; e->tracer && i < section->step + section->n_steps; i++) {
    if (!step_reuse_runs(&e->reuse, i)) continue;
    int64_t shift = run_profile_shift(&e->profile, i);
    trace_span(e, i, stamps[2 * i] + shift, stamps[2 * i + 1] + shift);
  }
}

static tn_status run_list(execution *e, const command_section *section, diag *d) {
  tn_commands *list;
  tn_status s = execution_commands_of_run(e, (size_t)(section - e->sections), &list, d);
  if (s != TN_OK || !list) return s;
  begin_list(e);
  s = queue_run_inline(e->queue, list, d);
  return is_awaited(e, section) ? await_sections(e, s, d) : s;
}

static tn_status run_steps(execution *e, const command_section *section, diag *d) {
  run_profile *r = &e->profile;
  tn_status s = e->queues ? execution_queues_run(e, section, d) : run_list(e, section, d);
  size_t end = section->step + section->n_steps;
  for (size_t i = section->step; r->is_profiled && s == TN_OK && i < end; i++)
    if (step_reuse_runs(&e->reuse, i)) run_profile_add_step(r, i);
  if (s == TN_OK) trace_section(e, section);
  return s;
}

/* Uses of memory, by queues with a stream. */

/** The waits of a run for other queues. */
typedef struct use_waits {
  execution *e;
  tn_commands *list; /* NULL: there is none yet */
  bool lacks_memory;
} use_waits;

static void add_wait(void *user, tn_signal *timeline, uint64_t value, bool ends) {
  use_waits *w = user;
  execution *e = w->e;
  bool is_own = timeline == queue_timeline(e->queue);
  if (is_own && (!e->reads_after || e->reads_after == value)) {
    e->reads_after = value; /* the run's own lists wait for it */
    return;
  }
  if (!w->list) w->list = command_list_open(executable_first_device(e->p));
  if (w->list) (ends ? command_list_wait_end : command_list_wait)(w->list, timeline, value);
  w->lacks_memory |= !w->list;
}

static void add_waits_of_buffer(void *user, tn_buffer *b, contents_use use) {
  const use_waits *w = user;
  buffer_for_waits(b, queue_timeline(w->e->queue), use.reads, add_wait, user);
}

static void note_use_of_buffer(void *user, tn_buffer *b, contents_use use) {
  const execution *e = user;
  point_use of = !use.writes ? POINT_READS : use.reads ? POINT_WRITES_PART : POINT_WRITES;
  buffer_note_use(b, queue_timeline(e->queue), queue_last_number(e->queue), of);
}

/** The caller is told the failure of the run, so that it does not fail later readers as well. */
static void note_told_failure(void *user, tn_buffer *b, contents_use use) {
  const execution *e = user;
  if (use.writes) buffer_forget_writes(b, queue_timeline(e->queue));
}

/** Visits the buffers of a run that submitted anything to its stream. */
static void for_used_buffers(execution *e,
                             void (*visit)(void *user, tn_buffer *b, contents_use use)) {
  if (execution_is_handed_over(e) && e->n_sections_submitted) execution_for_buffers(e, visit, e);
}

/** Submits a list, unless it is empty, and releases it; its end raises `done`. */
static tn_status end_list(execution *e, tn_commands *list, diag *d) {
  if (list->n) command_list_signal(list, e->done, e->runs);
  tn_status s = command_list_status(list, d);
  if (s == TN_OK && list->n) s = queue_submit(e->queue, list, d);
  command_list_release(list);
  return s;
}

/** Has the queue wait until other queues are done with the buffers of the run. */
static tn_status await_other_uses(execution *e, diag *d) {
  use_waits w = {.e = e};
  execution_for_buffers(e, add_waits_of_buffer, &w);
  if (w.lacks_memory) {
    command_list_release(w.list);
    return diag_set(d, TN_ERR_MEMORY, "out of memory");
  }
  if (!w.list) return TN_OK;
  begin_list(e);
  return end_list(e, w.list, d);
}

/** Copies between buffers, in the order of the queue. */
static tn_status copy_span(execution *e, const tn_span *to, const tn_span *from, diag *d) {
  if (!execution_is_handed_over(e)) return span_copy(to, from, d);
  tn_commands *list = command_list_open(executable_first_device(e->p));
  if (!list) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  begin_list(e);
  command_list_wait(list, e->done, e->after);
  command_list_wait(list, queue_timeline(e->queue), e->reads_after);
  command_list_copy(list, to, from);
  return end_list(e, list, d);
}

/* Loops. */

static int64_t loop_trips(const execution *e, const command_section *loop) {
  return e->values.sizes[e->p->steps[loop->step].trips];
}

/** The buffer of a state after a trip. States alternate between two buffers, such that the last
    trip writes the result. */
static size_t state_buffer_after(const schedule_state *s, int64_t trip, int64_t trips) {
  return (trips - 1 - trip) % 2 ? s->spare : s->result;
}

static void begin_trip(execution *e, const command_section *loop) {
  const executable_step *step = &e->p->steps[loop->step];
  tn_span *spans = e->memory.spans;
  int64_t trip = e->trip[loop->step], trips = loop_trips(e, loop);
  if (step->trip != SIZE_MAX) e->values.vars[step->trip] = trip;
  for (size_t i = 0; i < step->n_states; i++) {
    const schedule_state *s = &step->states[i];
    if (s->now == s->next) continue;
    spans[s->now] = spans[trip ? state_buffer_after(s, trip - 1, trips) : s->init];
    spans[s->next] = spans[state_buffer_after(s, trip, trips)];
  }
  for (const command_section *k = loop + 1; k < e->sections + loop->other_end; k++) {
    if (k->kind == SECTION_LOOP_BEGIN) k = e->sections + k->other_end; /* its trips fill its own */
    for (size_t i = k->step; k->kind == SECTION_STEPS && i < k->step + k->n_steps; i++)
      if (e->p->steps[i].kind == STEP_KERNEL) execution_fill_launch(e, i);
  }
}

/** Copies initial values: to states that the loop updates in place, and, if the loop has no trips,
    to all results. */
static tn_status copy_initial_states(execution *e, const command_section *loop, bool has_trips,
                                     diag *d) {
  const executable_step *step = &e->p->steps[loop->step];
  tn_span *spans = e->memory.spans;
  tn_status s = TN_OK;
  for (size_t i = 0; i < step->n_states && s == TN_OK; i++) {
    const schedule_state *x = &step->states[i];
    if (has_trips && x->now != x->next) continue;
    if (spans[x->result].bytes) s = copy_span(e, &spans[x->result], &spans[x->init], d);
  }
  return s;
}

/** Tells that a step is the last to read its inputs. */
static void end_uses(execution *e, size_t step) {
  for (size_t i = 0; e->uses && i < e->p->n_buffers; i++)
    if (e->uses[i].last == step) e->readers.end(e->readers.user, i);
}

/** Ends a loop after its last trip, or one without trips: takes its time and reports inputs. */
static void end_loop(execution *e, size_t step) {
  int64_t begin = e->profile.is_profiled ? e->profile.times.stamps[2 * step] : 0;
  if (e->profile.is_profiled) run_profile_add_loop(&e->profile, step, begin, clock_now_ns());
  if (e->tracer) trace_span(e, step, begin, clock_now_ns());
  end_uses(e, step);
}

/** Gives inputs that a loop is the first to read their memory. */
static tn_status begin_uses(execution *e, size_t step, diag *d) {
  tn_status s = TN_OK;
  for (size_t i = 0; e->uses && i < e->p->n_buffers && s == TN_OK; i++)
    if (e->uses[i].first == step) s = execution_begin_use(&e->uses[i], &d->failure);
  return s;
}

/** Skips the section *at, or the loop that it begins. Its inputs get their memory even so, as later
    steps may read them. */
static tn_status skip_section(execution *e, size_t *at, diag *d) {
  const command_section *section = &e->sections[*at];
  tn_status s = TN_OK;
  if (section->kind == SECTION_LOOP_BEGIN) *at = section->other_end;
  size_t n = section->kind == SECTION_STEPS ? section->n_steps : 1;
  for (size_t i = 0; i < n && s == TN_OK; i++) {
    s = begin_uses(e, section->step + i, d);
    if (s == TN_OK) end_uses(e, section->step + i);
  }
  return s;
}

/** Reads the state that ends a loop from a buffer; false if there is none. */
static tn_status read_until(execution *e, size_t step, size_t buffer, bool *ends, diag *d) {
  uint8_t value = 0;
  *ends = false;
  if (e->p->steps[step].until == SIZE_MAX) return TN_OK;
  tn_status s = execution_is_handed_over(e) ? await_sections(e, TN_OK, d) : TN_OK;
  if (s == TN_OK) s = span_read(&e->memory.spans[buffer], DT_BOOL, DT_BOOL, &value, 1, d);
  *ends = value;
  return s;
}

/** Begins the loop of section *at; if it has no trips, moves *at to its end. */
static tn_status begin_loop(execution *e, size_t *at, diag *d) {
  const command_section *loop = &e->sections[*at];
  const executable_step *step = &e->p->steps[loop->step];
  bool has_trips = loop_trips(e, loop) > 0 && step->n_steps, ends = false;
  tn_status s = begin_uses(e, loop->step, d);
  if (s == TN_OK && has_trips && step->until != SIZE_MAX)
    s = read_until(e, loop->step, step->states[step->until].init, &ends, d);
  has_trips &= !ends;
  if (s == TN_OK) s = copy_initial_states(e, loop, has_trips, d);
  e->trip[loop->step] = 0;
  if (e->profile.is_profiled) e->profile.times.stamps[2 * loop->step] = clock_now_ns();
  if (has_trips) {
    begin_trip(e, loop);
  } else {
    end_loop(e, loop->step);
    *at = loop->other_end;
  }
  return s;
}

/** Copies the states of a loop that ends early to the results: those that its last trip wrote
    elsewhere. */
static tn_status copy_last_states(execution *e, const command_section *loop, int64_t trip,
                                  diag *d) {
  const executable_step *step = &e->p->steps[loop->step];
  tn_span *spans = e->memory.spans;
  tn_status s = TN_OK;
  for (size_t i = 0; i < step->n_states && s == TN_OK; i++) {
    const schedule_state *x = &step->states[i];
    size_t last = state_buffer_after(x, trip, loop_trips(e, loop));
    if (last != x->result && spans[last].bytes)
      s = copy_span(e, &spans[x->result], &spans[last], d);
  }
  return s;
}

bool execution_ask_progress(const tn_progress *progress, mutex *reporting, int64_t done,
                            int64_t total) {
  mutex_lock(reporting);
  bool goes_on = progress->step(progress->user, "steps", (uint64_t)done, (uint64_t)total);
  mutex_unlock(reporting);
  return goes_on;
}

/** Asks the caller, when that is due, whether a loop goes on. */
static tn_status check_goes_on(execution *e, size_t step, int64_t trips, diag *d) {
  enum { BETWEEN_NS = 10 * 1000 * 1000 };
  bool may_end_early = e->p->steps[step].until != SIZE_MAX;
  const tn_progress *p = e->trips.progress;
  int64_t now = p ? clock_last_tick_ns() : 0;
  if (!p || now < e->trips.due) return TN_OK;
  e->trips.due = now + BETWEEN_NS;
  if (execution_ask_progress(p, e->trips.lock, e->trip[step], may_end_early ? 0 : trips))
    return TN_OK;
  tn_status s = execution_is_handed_over(e) ? await_sections(e, TN_OK, d) : TN_OK;
  if (s != TN_OK) return s;
  return diag_set(d, TN_ERR_CANCELLED, "%s was cancelled after %lld steps of a loop", e->p->name,
                  (long long)e->trip[step]);
}

/** Ends a trip at section *at: moves *at back for the next trip, or ends the loop. */
static tn_status end_trip(execution *e, size_t *at, diag *d) {
  size_t begin = e->sections[*at].other_end;
  const command_section *loop = &e->sections[begin];
  const executable_step *step = &e->p->steps[loop->step];
  int64_t trip = e->trip[loop->step]++, trips = loop_trips(e, loop);
  bool ends = false;
  tn_status s = TN_OK;
  if (trip + 1 < trips && step->until != SIZE_MAX) {
    size_t last = state_buffer_after(&step->states[step->until], trip, trips);
    s = read_until(e, loop->step, last, &ends, d);
    if (s == TN_OK && ends) s = copy_last_states(e, loop, trip, d);
  }
  bool goes_on = trip + 1 < trips && !ends;
  if (s == TN_OK && goes_on) s = check_goes_on(e, loop->step, trips, d);
  if (s != TN_OK) return s;
  if (goes_on) {
    begin_trip(e, loop);
    *at = begin;
  } else {
    end_loop(e, loop->step);
  }
  return s;
}

/** Goes on to a segment: waits for the elements that sizes of it follow from, and reads them. */
static tn_status begin_segment(execution *e, size_t segment, diag *d) {
  tn_status s = execution_is_handed_over(e) ? await_sections(e, TN_OK, d) : TN_OK;
  e->segment = segment;
  if (s == TN_OK) s = execution_read_items(e, segment, d);
  return s == TN_OK && segment < e->p->n_segments ? prepare_segment(e, segment, d) : s;
}

/** Reads the ITEMs that only sizes of outputs follow from. */
static tn_status end_segments(execution *e, diag *d) {
  return e->p->n_items ? begin_segment(e, e->p->n_segments, d) : TN_OK;
}

static tn_status run_sections(execution *e, diag *d) {
  tn_status s = TN_OK;
  for (size_t at = 0; at < e->n_sections && s == TN_OK; at++) {
    size_t segment = e->sections[at].segment;
    if (segment > e->segment && (s = begin_segment(e, segment, d)) != TN_OK) break;
    if (executable_skips(e->p, e->sections[at].step, segment, e->values.sizes)) {
      s = skip_section(e, &at, d);
      continue;
    }
    switch (e->sections[at].kind) {
    case SECTION_STEPS: s = run_steps(e, &e->sections[at], d); break;
    case SECTION_LOOP_BEGIN: s = begin_loop(e, &at, d); break;
    default: s = end_trip(e, &at, d); break;
    }
  }
  return s == TN_OK ? end_segments(e, d) : s;
}

tn_status execution_start(execution *e, diag *d) {
  e->arena.diag = d;
  e->n_sections_submitted = 0;
  e->reads_after = 0;
  tn_status s = prepare_run(e, d);
  if (s != TN_OK) return s;
  for (size_t i = 0; i < e->p->n_steps; i++) e->custom_calls[i].is_done = false;
  run_profile_begin(&e->profile);
  step_reuse_begin(e);
  if (e->queues) s = execution_queues_await_buffers(e, d);
  if (execution_is_handed_over(e)) s = await_other_uses(e, d);
  if (s == TN_OK) s = run_sections(e, d);
  for_used_buffers(e, note_use_of_buffer);
  if (s != TN_OK) for_used_buffers(e, note_told_failure);
  run_profile_end(&e->profile, e->values.vars, s == TN_OK);
  step_reuse_end(e, s == TN_OK);
  return s;
}

tn_status execution_run(execution *e, diag *d) {
  tn_status s = execution_start(e, d);
  if (execution_is_handed_over(e)) s = await_sections(e, s, d);
  if (s == TN_OK) return s;
  step_reuse_forget(&e->reuse);
  for_used_buffers(e, note_told_failure);
  return s;
}

/* After a run. */

tn_status execution_root_sizes(execution *e, size_t root, size_t rank, int64_t size[], diag *d) {
  const size_t *first = e->p->root_sizes;
  tn_status s = execution_evaluate_sizes(e, d);
  for (size_t i = 0; i < rank; i++) size[i] = first ? e->values.sizes[first[root] + i] : -1;
  return s;
}

tn_buffer *execution_buffer(execution *e, size_t buffer) { return e->memory.buffers[buffer]; }

bool execution_was_filled_by_host(const execution *e, size_t buffer) {
  for (size_t i = 0; i < e->p->n_steps; i++) {
    const custom_call *c = &e->custom_calls[i];
    if (c->step && c->is_done && c->step->buffers[c->step->n_buffers - 1] == buffer) return true;
  }
  return false;
}

static void open_timestamps(void *arg) {
  execution *e = arg;
  run_profile_open_timestamps(&e->profile, &e->arena);
}

tn_status execution_set_profiling(execution *e, bool on, diag *d) {
  e->arena.diag = d;
  on = on || e->tracer;
  tn_status s = on ? diag_catch(d, open_timestamps, e) : TN_OK;
  if (s != TN_OK || on == e->profile.is_profiled) return s;
  e->profile.is_profiled = on;
  e->profile.has_times = false;
  execution_commands_release(e);
  return s;
}

/** The offset of a buffer in the scratch memory of its segment; 0: it is not there. */
static uint64_t scratch_offset(const execution *e, size_t buffer) {
  const executable_buffer *own = &e->p->buffers[buffer];
  const execution_scratch *x = execution_scratch_on(e, own->segment, own->device);
  for (size_t i = 0; i < x->slots.n; i++)
    if (x->owners.at[i].buffer == buffer) return x->slots.at[i].offset;
  return 0;
}

tn_status execution_slot_at(execution *e, size_t i, execution_slot *out, diag *d) {
  const executable *p = e->p;
  if (i >= p->n_slots)
    return diag_set(d, TN_ERR_ARGUMENT, "%s watches %zu tensors; there is no number %zu", p->name,
                    p->n_slots, i);
  *out = (execution_slot){.is_overwritten = p->slots[i].is_overwritten};
  e->arena.diag = d;
  tn_status s = execution_place_slots(e, d);
  size_t b = p->slots[i].buffer;
  if (s != TN_OK || b == SIZE_MAX) return s;
  out->has_buffer = true;
  out->buffer = b;
  out->dtype = p->buffers[b].dtype;
  out->bytes = execution_bytes_of(e, b);
  out->offset = scratch_offset(e, b);
  out->is_placed = execution_is_placed(e);
  if (!out->is_placed) return TN_OK;
  out->span = e->memory.spans[b];
  if (p->buffers[b].role != BUFFER_ROLE_SCRATCH) out->offset = out->span.offset;
  return TN_OK;
}

tn_status execution_set_tracer(execution *e, const tn_tracer *tracer, mutex *tracing, diag *d) {
  e->tracer = tracer && tracer->span ? tracer : NULL;
  e->tracing = tracing;
  return e->tracer ? execution_set_profiling(e, true, d) : TN_OK;
}

void execution_set_progress(execution *e, const tn_progress *progress, mutex *reporting) {
  e->trips = (trip_reports){progress && progress->step ? progress : NULL, reporting, 0};
}

bool execution_kernels_at(const execution *e, size_t i, execution_kernels *out) {
  tn_device *device;
  launch_run run;
  if (!execution_launches_at(e, i, &device, &run)) return false;
  *out = (execution_kernels){device->name, run.n, run.why};
  return true;
}

static size_t count_refused_graphs(const executable *p) {
  size_t n = 0;
  for (size_t i = 0; i < p->n_targets; i++)
    n += atomic_load(&p->targets[i]->device->refused_graphs);
  return n;
}

bool execution_take_refusal(execution *e, execution_kernels *out) {
  tn_device *device;
  launch_run run;
  size_t n = count_refused_graphs(e->p);
  if (n == e->refused_graphs) return false;
  for (size_t i = 0; execution_launches_at(e, i, &device, &run); i++) {
    const char *why = run.graph ? work_graph_take_refusal(run.graph) : NULL;
    if (!why) continue;
    *out = (execution_kernels){device->name, run.n, why};
    return true;
  }
  e->refused_graphs = n;
  return false;
}

bool execution_step_at(execution *e, size_t i, execution_step *out) {
  if (i >= e->p->n_steps) return false;
  *out = run_profile_step(&e->profile, i);
  if (step_reuse_runs(&e->reuse, i)) return true;
  out->times = 0;
  out->work = (kernel_counts){0, 0};
  out->begin = out->end = 0;
  return true;
}
