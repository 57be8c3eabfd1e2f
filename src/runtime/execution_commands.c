/* Records the command lists of an execution: one for each run of steps between the beginnings and
   ends of loops and segments, with barriers between steps, timestamps if profiling is on, and
   callbacks around the steps that read an input. */
#include "runtime/execution_commands.h"

#include "runtime/execution_memory.h"
#include "runtime/execution_queues.h"

#include <string.h>

/* Sections. */

static void add_section(struct execution *e, command_section section) {
  e->sections[e->n_sections++] = section;
}

/** Ends the loops whose last step is before step i. `open` are the sections of the loops that
    contain the step before, innermost last; returns how many stay open. */
static size_t end_loops(struct execution *e, size_t i, const size_t open[], size_t n) {
  for (; n; n--) {
    command_section *loop = &e->sections[open[n - 1]];
    if (i <= loop->step + e->p->steps[loop->step].n_steps) break;
    loop->other_end = e->n_sections;
    add_section(e, (command_section){.kind = SECTION_LOOP_END,
                                     .segment = loop->segment,
                                     .step = loop->step,
                                     .other_end = open[n - 1]});
  }
  return n;
}

/** Makes at least one section of steps, which may be empty. */
static void add_sections(struct execution *e) {
  const executable *p = e->p;
  size_t *open = arena_alloc(&e->arena, (p->n_steps + 1) * sizeof *open), n = 0;
  e->sections = arena_calloc(&e->arena, 2 * p->n_steps + 2, sizeof *e->sections);
  for (size_t i = 0; i < p->n_steps; i++) {
    n = end_loops(e, i, open, n);
    if (p->steps[i].kind == STEP_LOOP) {
      open[n++] = e->n_sections;
      add_section(e, (command_section){
                         .kind = SECTION_LOOP_BEGIN, .segment = p->steps[i].segment, .step = i});
    } else if (!executable_begins_section(p, i)) {
      e->sections[e->n_sections - 1].n_steps++;
    } else {
      add_section(
          e, (command_section){
                 .kind = SECTION_STEPS, .segment = p->steps[i].segment, .step = i, .n_steps = 1});
    }
  }
  end_loops(e, SIZE_MAX, open, n);
  if (!e->n_sections) add_section(e, (command_section){.kind = SECTION_STEPS});
  for (size_t i = 0; i < e->n_sections && p->queues.n > 1; i++)
    if (e->sections[i].kind == SECTION_STEPS)
      e->sections[i].of_queue =
          arena_calloc(&e->arena, p->queues.n, sizeof *e->sections[i].of_queue);
}

void execution_commands_open(struct execution *e) {
  const executable *p = e->p;
  execution_launches *x = &e->launch;
  size_t n_terms = 0;
  for (size_t i = 0; i < p->n_programs; i++)
    if (p->programs[i]->limits.dims.n_terms > n_terms)
      n_terms = p->programs[i]->limits.dims.n_terms;
  x->dims = launch_terms_open(&e->arena, n_terms);
  x->launches = arena_calloc(&e->arena, p->n_steps + 1, sizeof *x->launches);
  x->spans = arena_calloc(&e->arena, p->n_steps + 1, sizeof *x->spans);
  x->values = arena_calloc(&e->arena, p->n_steps + 1, sizeof *x->values);
  e->custom_calls = arena_calloc(&e->arena, p->n_steps + 1, sizeof *e->custom_calls);
  e->trip = arena_calloc(&e->arena, p->n_steps + 1, sizeof *e->trip);
  add_sections(e);
}

/* Launches. */

/** Allocates the arguments of a step's launch, once: a kernel with an extra array has a buffer
    more. */
static void open_launch(struct execution *e, size_t i) {
  const executable_step *step = &e->p->steps[i];
  execution_launches *x = &e->launch;
  if (x->spans[i]) return;
  const tn_program_facts *f = &e->p->programs[step->program]->facts;
  size_t n_buffers = step->n_buffers + (step->scratch > 0);
  x->spans[i] = arena_calloc(&e->arena, n_buffers + 1, sizeof(tn_span));
  x->values[i] = arena_calloc(&e->arena, f->n_values + 1, sizeof(int64_t));
  x->launches[i] = (tn_launch){.buffers = x->spans[i],
                               .n_buffers = n_buffers,
                               .values = x->values[i],
                               .n_values = f->n_values};
}

void execution_fill_launch(struct execution *e, size_t i) {
  const executable_step *step = &e->p->steps[i];
  execution_launches *x = &e->launch;
  for (size_t k = 0; k < step->n_buffers; k++) x->spans[i][k] = e->memory.spans[step->buffers[k]];
  for (size_t k = 0; k < x->launches[i].n_values; k++) {
    size_t var = step->values[k];
    x->values[i][k] = var == SIZE_MAX ? execution_workers(e, step->device) : e->values.vars[var];
  }
}

/** Computes the bytes of an array whose sizes are the results of `exprs` from `first` on; false if
    some are no sizes, or the product of those above 0 does not fit: a kernel may loop over these
    even where the array is empty. */
static bool count_bytes(const launch_terms *dims, const launch_exprs *exprs, size_t first,
                        const launch_operand *array, uint64_t *bytes) {
  bool is_empty = false, fits = true;
  *bytes = array->element;
  for (size_t i = first; i < first + array->rank; i++) {
    int64_t dim = launch_terms_result(dims, exprs, i);
    is_empty |= !dim;
    fits &= dim >= 0 && !__builtin_mul_overflow(*bytes, dim ? (uint64_t)dim : 1, bytes);
  }
  if (is_empty) *bytes = 0;
  return fits;
}

tn_status execution_check_launch(struct execution *e, size_t i, diag *d) {
  const executable *p = e->p;
  const executable_step *step = &p->steps[i];
  const launch_limits *limits = &p->programs[step->program]->limits;
  launch_terms *dims = &e->launch.dims;
  launch_terms_eval(dims, &limits->dims, NULL, limits->dims.n_terms, e->launch.values[i]);
  size_t first = 0;
  for (size_t k = 0; k < step->n_buffers; k++) {
    size_t b = step->buffers[k];
    uint64_t available = (uint64_t)e->values.sizes[b] * dtype_bytes(p->buffers[b].dtype), bytes;
    if (!count_bytes(dims, &limits->dims, first, &limits->arrays[k], &bytes))
      return diag_set(d, TN_ERR_SHAPE, "%s: %.200s: sizes of an array overflow", p->name,
                      step->name);
    if (bytes > available)
      return diag_set(d, TN_ERR_INTERNAL,
                      "%s: kernel %s needs %llu bytes of a buffer of %llu bytes", p->name,
                      step->name, (unsigned long long)bytes, (unsigned long long)available);
    first += limits->arrays[k].rank;
  }
  return TN_OK;
}

/* Uses of inputs. */

static size_t outermost_loop(const executable *p, size_t step) {
  while (p->steps[step].parent != SIZE_MAX) step = p->steps[step].parent;
  return step;
}

/** Notes that a step uses a buffer, if that is an input, or part of one. */
static void note_use(const executable *p, input_use *uses, size_t step, size_t buffer) {
  input_use *u = &uses[p->buffers[buffer].within];
  if (p->buffers[u->buffer].role != BUFFER_ROLE_INPUT) return;
  u->last = outermost_loop(p, step);
  if (u->first == SIZE_MAX) u->first = u->last;
}

static void find_uses(struct execution *e) {
  const executable *p = e->p;
  input_use *uses = arena_calloc(&e->arena, p->n_buffers + 1, sizeof *uses);
  for (size_t i = 0; i < p->n_buffers; i++) uses[i] = (input_use){e, i, SIZE_MAX, SIZE_MAX};
  for (size_t i = 0; i < p->n_steps; i++) {
    const executable_step *s = &p->steps[i];
    for (size_t k = 0; k < s->n_buffers; k++) note_use(p, uses, i, s->buffers[k]);
    for (size_t k = 0; k < s->n_states; k++) note_use(p, uses, i, s->states[k].init);
  }
  e->uses = uses;
}

tn_status execution_begin_use(const input_use *u, tn_failure *failure) {
  struct execution *e = u->execution;
  const executable *p = e->p;
  tn_span *spans = e->memory.spans;
  if (!e->readers.begin || e->memory.buffers[u->buffer]) return TN_OK;
  uint64_t bytes = execution_bytes_of(e, u->buffer);
  tn_status s = e->readers.begin(e->readers.user, u->buffer, &spans[u->buffer], failure);
  if (s != TN_OK) return s;
  if (spans[u->buffer].bytes < bytes)
    return tn_fail(failure, TN_ERR_INTERNAL, "%s: an input is too short", p->name);
  spans[u->buffer].bytes = bytes;
  execution_place_views_of(e, u->buffer);
  for (size_t i = 0; i < p->n_steps; i++)
    for (size_t k = 0; k < p->steps[i].n_buffers; k++)
      if (p->buffers[p->steps[i].buffers[k]].within == u->buffer && e->launch.spans[i])
        e->launch.spans[i][k] = spans[p->steps[i].buffers[k]];
  return TN_OK;
}

static tn_status call_begin_use(void *user, tn_failure *failure) {
  return execution_begin_use(user, failure);
}

static tn_status call_end_use(void *user, tn_failure *failure) {
  (void)failure;
  const input_use *u = user;
  u->execution->readers.end(u->execution->readers.user, u->buffer);
  return TN_OK;
}

/** The k-th buffer of a step, if that is an input, or part of one, that no buffer before it is. */
static input_use *use_of(struct execution *e, size_t i, size_t k) {
  const executable *p = e->p;
  const executable_step *step = &p->steps[i];
  size_t b = p->buffers[step->buffers[k]].within;
  for (size_t j = 0; j < k; j++)
    if (p->buffers[step->buffers[j]].within == b) return NULL;
  return p->buffers[b].role == BUFFER_ROLE_INPUT ? &e->uses[b] : NULL;
}

static void record_first_uses(struct execution *e, tn_commands *commands, size_t i) {
  for (size_t k = 0; e->readers.begin && k < e->p->steps[i].n_buffers; k++) {
    input_use *u = use_of(e, i, k);
    if (u && u->first == i) command_list_call(commands, call_begin_use, u);
  }
}

static void record_last_uses(struct execution *e, tn_commands *commands, size_t i) {
  command_list_barrier(commands);
  for (size_t k = 0; k < e->p->steps[i].n_buffers; k++) {
    input_use *u = use_of(e, i, k);
    if (u && u->last == i) command_list_call(commands, call_end_use, u);
  }
}

/* Recording. */

static void record_step(struct execution *e, tn_commands *c, size_t i) {
  const executable_step *step = &e->p->steps[i];
  if (step->kind == STEP_CUSTOM) {
    if (!e->custom_calls[i].step)
      e->custom_calls[i] = custom_call_open(&e->arena, e->p, step, &e->host, e->memory.spans);
    command_list_call(c, custom_call_run, &e->custom_calls[i]);
  } else if (step->kind == STEP_COPY) {
    tn_span *to = &e->memory.spans[step->buffers[0]], *from = &e->memory.spans[step->buffers[1]];
    to->device = executable_device_of(e->p, step->buffers[0]); /* placed after recording */
    from->device = executable_device_of(e->p, step->buffers[1]);
    command_list_copy(c, to, from);
  } else {
    open_launch(e, i);
    command_list_exec(c, e->p->programs[step->program], &e->launch.launches[i]);
  }
}

static void record_stamp(struct execution *e, tn_commands *c, size_t i) {
  step_times *t = &e->profile.times;
  if (e->profile.is_profiled) command_list_timestamp(c, &t->stamps[i], &t->seen[i]);
}

/** Records a step with its time stamps. */
static void record_timed_step(struct execution *e, tn_commands *c, size_t i) {
  record_stamp(e, c, 2 * i);
  record_step(e, c, i);
  record_stamp(e, c, 2 * i + 1);
}

/** Records all steps of a section, or those that the run at hand needs. With a stream, each list
    waits for the one before it in the run, and for the last write of what the run reads, and fails
    with them. */
static void record_section(struct execution *e, command_section *section, tn_commands *c,
                           bool all) {
  bool is_first = true;
  if (queue_has_stream(e->queue)) {
    command_list_wait_at(c, e->done, &e->after);
    command_list_wait_at(c, queue_timeline(e->queue), &e->reads_after);
  }
  for (size_t i = section->step; i < section->step + section->n_steps; i++) {
    if (!all && !step_reuse_runs(&e->reuse, i)) continue;
    if (!is_first) command_list_barrier(c);
    is_first = false;
    if (e->uses) record_first_uses(e, c, i);
    record_timed_step(e, c, i);
    section->has_host_steps |= e->p->steps[i].kind == STEP_CUSTOM;
    if (e->uses) record_last_uses(e, c, i);
  }
  command_list_signal_at(c, e->done, &e->runs);
}

static void record_body(void *arg) {
  struct execution *e = arg;
  if (e->readers.end) find_uses(e);
  for (size_t i = 0; i < e->n_sections; i++)
    if (e->sections[i].commands)
      record_section(e, &e->sections[i], e->sections[i].commands, true);
    else if (e->queues && e->sections[i].kind == SECTION_STEPS)
      execution_queues_record(e, &e->sections[i], record_timed_step);
}

/** The list of a section on a queue; NULL: it has none. */
static tn_commands *list_of(const struct execution *e, const command_section *section,
                            size_t queue) {
  if (!e->queues) return section->commands;
  return section->of_queue ? section->of_queue[queue] : NULL;
}

static void add_graphs(struct execution *e) {
  for (size_t i = 0; i < e->n_sections; i++)
    for (size_t k = 0; k < e->p->queues.n; k++) {
      tn_commands *list = list_of(e, &e->sections[i], k);
      if (list) command_list_add_graphs(list);
    }
}

/** The list that the last run submitted, which may leave out steps. */
static const tn_commands *list_of_run(const struct execution *e, size_t number, size_t queue) {
  const command_section *section = &e->sections[number];
  const step_reuse *r = &e->reuse;
  if (e->queues || step_reuse_runs_all(r, section->step, section->n_steps))
    return list_of(e, section, queue);
  bool any = false;
  for (size_t i = 0; i < section->n_steps; i++) any |= step_reuse_runs(r, section->step + i);
  return any ? r->lists[number] : NULL;
}

bool execution_launches_at(const struct execution *e, size_t i, tn_device **device,
                           launch_run *run) {
  for (size_t s = 0; s < e->n_sections; s++)
    for (size_t k = 0; k < e->p->queues.n; k++) {
      const tn_commands *list = list_of_run(e, s, k);
      for (size_t at = 0; list && command_list_find_launches(list, at, run); at = run->end) {
        if (i--) continue;
        *device = list->device;
        if (e->profile.is_profiled) run->why = "the times of its steps are taken";
        return true;
      }
    }
  return false;
}

/** Opens the lists of a section. */
static tn_status open_lists(struct execution *e, command_section *section, diag *d) {
  if (e->queues) return execution_queues_open_lists(e, section, d);
  section->commands = command_list_open(executable_first_device(e->p));
  return section->commands ? TN_OK : diag_set(d, TN_ERR_MEMORY, "out of memory");
}

static tn_status check_lists(const struct execution *e, const command_section *section, diag *d) {
  tn_status s = TN_OK;
  for (size_t i = 0; i < e->p->queues.n && s == TN_OK; i++) {
    const tn_commands *list = list_of(e, section, i);
    if (list) s = command_list_status(list, d);
  }
  return s;
}

tn_status execution_commands_record(struct execution *e, diag *d) {
  tn_status s = TN_OK;
  for (size_t i = 0; i < e->n_sections; i++) {
    command_section *section = &e->sections[i];
    if (section->kind == SECTION_STEPS && s == TN_OK) s = open_lists(e, section, d);
  }
  if (s == TN_OK) s = diag_catch(d, record_body, e);
  if (s == TN_OK) add_graphs(e);
  for (size_t i = 0; i < e->n_sections && s == TN_OK; i++) s = check_lists(e, &e->sections[i], d);
  e->has_commands = s == TN_OK;
  if (s != TN_OK) execution_commands_release(e);
  return s;
}

typedef struct part_recording {
  struct execution *e;
  command_section *section;
  tn_commands *list;
} part_recording;

static void record_part(void *arg) {
  const part_recording *p = arg;
  record_section(p->e, p->section, p->list, false);
  command_list_add_graphs(p->list);
}

tn_status execution_commands_of_run(struct execution *e, size_t number, tn_commands **list,
                                    diag *d) {
  command_section *section = &e->sections[number];
  step_reuse *r = &e->reuse;
  *list = section->commands;
  if (step_reuse_runs_all(r, section->step, section->n_steps)) return TN_OK;
  bool *needed = r->runs + section->step, *recorded = r->recorded + section->step;
  size_t n_needed = 0;
  for (size_t i = 0; i < section->n_steps; i++) n_needed += needed[i];
  if (!n_needed) *list = NULL;
  bool is_same = r->lists[number] && !memcmp(needed, recorded, section->n_steps * sizeof *needed);
  if (n_needed && is_same) *list = r->lists[number];
  if (!n_needed || is_same) return TN_OK;
  command_list_release(r->lists[number]);
  r->lists[number] = command_list_open(executable_first_device(e->p));
  if (!r->lists[number]) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  part_recording p = {e, section, r->lists[number]};
  tn_status s = diag_catch(d, record_part, &p);
  if (s == TN_OK) s = command_list_status(p.list, d);
  memcpy(recorded, needed, section->n_steps * sizeof *needed);
  *list = p.list;
  if (s == TN_OK) return TN_OK;
  command_list_release(p.list);
  r->lists[number] = NULL;
  return s;
}

void execution_commands_release(struct execution *e) {
  for (size_t i = 0; i < e->n_sections; i++) {
    command_list_release(e->sections[i].commands);
    e->sections[i].commands = NULL;
    for (size_t k = 0; k < e->p->queues.n && e->sections[i].of_queue; k++) {
      command_list_release(e->sections[i].of_queue[k]);
      e->sections[i].of_queue[k] = NULL;
    }
  }
  step_reuse_release(e);
  e->has_commands = false;
}
