#include "runtime/execution.h"

#include "device/span.h"
#include "ir/var.h"
#include "runtime/buffers.h"
#include "runtime/host_step.h"
#include "runtime/record.h"
#include "schedule/memory.h"

/** What a slot of an execution's memory is for. */
typedef struct resident {
  size_t step;
  size_t buffer; /* SIZE_MAX: the arrays of the step's kernel's own */
} resident;

/** An input, and the step after which none reads it: in a loop, the outermost one around. */
typedef struct last_read {
  execution *execution;
  size_t buffer, step;
} last_read;

/** A run of commands between the beginnings and ends of loops. */
typedef struct part {
  enum { PART_STEPS, PART_LOOP, PART_END } kind;
  size_t step;           /* the first one; of LOOP and END, that of the loop */
  size_t n_steps;        /* STEPS */
  size_t other;          /* LOOP: the place of its END; END: of its LOOP */
  tn_commands *commands; /* STEPS */
} part;

struct execution {
  executable *p;
  arena arena;
  tn_queue *queue;
  bool own_queue;
  tn_signal *done;
  uint64_t runs; /* value of `done` after the last run */
  part *parts;
  size_t n_parts;
  bool has_commands; /* every part */
  int64_t *trip;     /* of each step that is a loop: the number of the trip at hand */
  int64_t *values;   /* of variables */
  bool *has_value;
  bool is_sized;  /* `sizes` are those of the values */
  bool is_placed; /* places are those of the values and buffers */
  int64_t *sizes; /* elements of each buffer, then the sizes asked for */
  int64_t *room;
  int64_t *dims, *dims_room; /* of a kernel's arrays */
  tn_buffer **held;          /* of each buffer: given, or the execution's own output */
  bool *own;                 /* whether it is the latter */
  tn_span *spans;            /* where each buffer is */
  tn_buffer *scratch;
  memory_slot *slots;
  resident *residents; /* of each */
  size_t n_slots;
  bool has_slots; /* they lie as their bytes need it: in all `slot_bytes` */
  uint64_t slot_bytes;
  tn_launch *launches; /* of each step */
  tn_span **launch_spans;
  int64_t **launch_values;
  host_step *hosts;
  executable_host host;                    /* their functions */
  void (*tell)(void *user, size_t buffer); /* of inputs that were read; or NULL */
  void *user;
  last_read *last_reads; /* of each buffer */
  record record;         /* of the last run */
};

/* Opening: everything a run needs, but memory for data. */

static int64_t workers(const execution *e) { return e->p->target->device->host.threads; }

/** A step's buffers in its launch: one more where the kernel has arrays of its own. */
static size_t launch_buffers(const executable_step *step) {
  return step->n_buffers + (step->scratch > 0);
}

static void open_launch(execution *e, size_t i) {
  const executable_step *step = &e->p->steps[i];
  if (e->launch_spans[i]) return;
  const tn_program_facts *f = &e->p->programs[step->program]->facts;
  e->launch_spans[i] = arena_calloc(&e->arena, launch_buffers(step) + 1, sizeof(tn_span));
  e->launch_values[i] = arena_calloc(&e->arena, f->n_values + 1, sizeof(int64_t));
  e->launches[i] = (tn_launch){.buffers = e->launch_spans[i],
                               .n_buffers = launch_buffers(step),
                               .values = e->launch_values[i],
                               .n_values = f->n_values};
}

static void open_host(execution *e, size_t i) {
  if (!e->hosts[i].step)
    e->hosts[i] = host_step_open(&e->arena, e->p, &e->p->steps[i], &e->host, e->spans);
}

static void add_slot(execution *e, size_t step, size_t last, size_t buffer) {
  e->slots[e->n_slots] = (memory_slot){.first = step, .last = last};
  e->residents[e->n_slots++] = (resident){step, buffer};
}

static void open_slots(execution *e) {
  const executable *p = e->p;
  e->slots = arena_calloc(&e->arena, p->n_buffers + p->n_steps, sizeof *e->slots);
  e->residents = arena_calloc(&e->arena, p->n_buffers + p->n_steps, sizeof *e->residents);
  bool *is_added = arena_calloc(&e->arena, p->n_buffers + 1, sizeof *is_added);
  /* Buffers are numbered in the order of what makes them, which need not be that of the steps. */
  for (size_t step = 0; step < p->n_steps; step++) {
    for (size_t k = 0; k < p->steps[step].n_buffers; k++) {
      size_t i = p->steps[step].buffers[k];
      if (p->buffers[i].role != ROLE_SCRATCH || p->buffers[i].first != step || is_added[i])
        continue;
      is_added[i] = true;
      add_slot(e, step, p->buffers[i].last, i);
    }
    if (p->steps[step].scratch) add_slot(e, step, step, SIZE_MAX);
  }
}

static void open_dims(execution *e) {
  size_t n_dims = 0, n_steps = 0;
  for (size_t i = 0; i < e->p->n_programs; i++) {
    const launch_code *c = &e->p->programs[i]->terms.dims;
    if (c->n_results > n_dims) n_dims = c->n_results;
    if (c->n_steps > n_steps) n_steps = c->n_steps;
  }
  e->dims = arena_calloc(&e->arena, n_dims + 1, sizeof *e->dims);
  e->dims_room = arena_calloc(&e->arena, n_steps + 1, sizeof *e->dims_room);
}

static void open_arrays(execution *e) {
  const executable *p = e->p;
  arena *a = &e->arena;
  open_dims(e);
  e->values = arena_calloc(a, p->n_vars + 1, sizeof *e->values);
  e->has_value = arena_calloc(a, p->n_vars + 1, sizeof *e->has_value);
  e->sizes = arena_calloc(a, p->sizes.n_results + 1, sizeof *e->sizes);
  e->room = arena_calloc(a, p->sizes.n_steps + 1, sizeof *e->room);
  e->held = arena_calloc(a, p->n_buffers + 1, sizeof *e->held);
  e->own = arena_calloc(a, p->n_buffers + 1, sizeof *e->own);
  e->spans = arena_calloc(a, p->n_buffers + 1, sizeof *e->spans);
  e->launches = arena_calloc(a, p->n_steps + 1, sizeof *e->launches);
  e->launch_spans = arena_calloc(a, p->n_steps + 1, sizeof *e->launch_spans);
  e->launch_values = arena_calloc(a, p->n_steps + 1, sizeof *e->launch_values);
  e->hosts = arena_calloc(a, p->n_steps + 1, sizeof *e->hosts);
  e->trip = arena_calloc(a, p->n_steps + 1, sizeof *e->trip);
  e->record = record_open(a, p);
}

/* The list of commands is made once, and anew where profiling begins or ends; what it points to
   changes from run to run. */

static void add_command(execution *e, tn_commands *c, size_t i) {
  if (e->p->steps[i].kind == STEP_CUSTOM) {
    open_host(e, i);
    commands_call(c, host_step_call, &e->hosts[i]);
  } else {
    open_launch(e, i);
    commands_exec(c, e->p->programs[e->p->steps[i].program], &e->launches[i]);
  }
}

static size_t outermost(const executable *p, size_t step) {
  while (p->steps[step].around != SIZE_MAX) step = p->steps[step].around;
  return step;
}

static void find_last_reads(execution *e) {
  const executable *p = e->p;
  e->last_reads = arena_calloc(&e->arena, p->n_buffers + 1, sizeof *e->last_reads);
  for (size_t i = 0; i < p->n_buffers; i++) e->last_reads[i] = (last_read){e, i, SIZE_MAX};
  for (size_t i = 0; i < p->n_steps; i++)
    for (size_t k = 0; k < p->steps[i].n_buffers; k++)
      e->last_reads[p->steps[i].buffers[k]].step = outermost(p, i);
}

static tn_status tell_read(void *user, tn_failure *failure) {
  (void)failure;
  const last_read *r = user;
  r->execution->tell(r->execution->user, r->buffer);
  return TN_OK;
}

static void add_tells(execution *e, tn_commands *commands, size_t i) {
  const executable_step *step = &e->p->steps[i];
  commands_barrier(commands);
  for (size_t k = 0; k < step->n_buffers; k++) {
    last_read *r = &e->last_reads[step->buffers[k]];
    if (r->step != i || e->p->buffers[r->buffer].role != ROLE_INPUT) continue;
    commands_call(commands, tell_read, r);
    r->step = SIZE_MAX; /* a step may read a buffer twice */
  }
}

static void open_commands(execution *e, part *p) {
  for (size_t i = p->step; i < p->step + p->n_steps; i++) {
    if (i > p->step) commands_barrier(p->commands);
    if (e->record.is_profiled) commands_stamp(p->commands, &e->record.stamps[2 * i]);
    add_command(e, p->commands, i);
    if (e->record.is_profiled) commands_stamp(p->commands, &e->record.stamps[2 * i + 1]);
    if (e->tell) add_tells(e, p->commands, i);
  }
  commands_signal_at(p->commands, e->done, &e->runs);
}

static part *add_part(execution *e, part p) {
  e->parts[e->n_parts] = p;
  return &e->parts[e->n_parts++];
}

/** Ends the loops whose last step is before step i: `open` are the places of those that are not
    ended, the innermost last. */
static size_t end_loops(execution *e, size_t i, const size_t open[], size_t n) {
  for (; n; n--) {
    part *loop = &e->parts[open[n - 1]];
    if (i <= loop->step + e->p->steps[loop->step].n_steps) break;
    loop->other = e->n_parts;
    add_part(e, (part){.kind = PART_END, .step = loop->step, .other = open[n - 1]});
  }
  return n;
}

/** At least one run of commands, which may be empty. */
static void open_parts(execution *e) {
  const executable *p = e->p;
  size_t *open = arena_alloc(&e->arena, (p->n_steps + 1) * sizeof *open), n = 0;
  e->parts = arena_calloc(&e->arena, 2 * p->n_steps + 2, sizeof *e->parts);
  for (size_t i = 0; i < p->n_steps; i++) {
    part *last = e->n_parts ? &e->parts[e->n_parts - 1] : NULL;
    n = end_loops(e, i, open, n);
    if (p->steps[i].kind == STEP_LOOP) {
      open[n++] = e->n_parts;
      add_part(e, (part){.kind = PART_LOOP, .step = i});
    } else if (last && last == &e->parts[e->n_parts - 1] && last->kind == PART_STEPS) {
      last->n_steps++;
    } else {
      add_part(e, (part){.kind = PART_STEPS, .step = i, .n_steps = 1});
    }
  }
  end_loops(e, SIZE_MAX, open, n);
  if (!e->n_parts) add_part(e, (part){.kind = PART_STEPS});
}

static void open_body(void *arg) {
  execution *e = arg;
  open_arrays(e);
  open_slots(e);
  open_parts(e);
  for (size_t i = 0; i < e->p->n_vars; i++) e->has_value[i] = var_is_trip(e->p->vars[i].name);
}

static tn_status open_queue(execution *e, tn_queue *queue, diag *d) {
  tn_device *device = e->p->target->device;
  e->queue = queue;
  if (!queue) {
    tn_status s = queue_open(device, TN_QUEUE_COMPUTE, &e->queue, d);
    if (s != TN_OK) return s;
    e->own_queue = true;
  }
  return signal_open(device, 0, &e->done, d);
}

tn_status execution_open(execution **out, executable *p, tn_queue *queue, diag *d) {
  *out = NULL;
  execution *e = mem_calloc(p->mem, 1, sizeof *e);
  if (!e) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  e->p = executable_retain(p);
  e->host = p->host;
  arena_init(&e->arena, p->mem, d);
  tn_status s = open_queue(e, queue, d);
  if (s == TN_OK) s = diag_catch(d, open_body, e);
  if (s == TN_OK)
    *out = e;
  else
    execution_close(e);
  return s;
}

void execution_set_host(execution *e, const executable_host *host) { e->host = *host; }

static void release_commands(execution *e) {
  for (size_t i = 0; i < e->n_parts; i++) {
    commands_release(e->parts[i].commands);
    e->parts[i].commands = NULL;
  }
  e->has_commands = false;
}

void execution_close(execution *e) {
  if (!e) return;
  for (size_t i = 0; e->held && i < e->p->n_buffers; i++)
    if (e->held[i]) buffer_release(e->held[i]);
  if (e->scratch) buffer_release(e->scratch);
  release_commands(e);
  signal_release(e->done);
  if (e->own_queue) queue_close(e->queue);
  executable *p = e->p;
  arena_free(&e->arena);
  mem_free(p->mem, e, sizeof *e);
  executable_release(p);
}

void execution_watch_inputs(execution *e, void (*tell)(void *user, size_t buffer), void *user) {
  e->tell = tell;
  e->user = user;
}

/* What a run is given. */

static bool is_given(const execution *e, size_t i) {
  executable_role role = e->p->buffers[i].role;
  return role == ROLE_INPUT || role == ROLE_OUTPUT;
}

tn_status execution_set_var(execution *e, size_t var, int64_t value, diag *d) {
  const tn_program_var *v = &e->p->vars[var];
  if (value < v->min || value > v->max)
    return diag_set(d, TN_ERR_ARGUMENT, "%s: %s is %lld, outside its bounds %lld … %lld",
                    e->p->name, var_name(v->name), (long long)value, (long long)v->min,
                    (long long)v->max);
  if (e->has_value[var] && e->values[var] == value) return TN_OK;
  e->values[var] = value;
  e->has_value[var] = true;
  e->is_sized = e->is_placed = false;
  return TN_OK;
}

tn_status execution_set_buffer(execution *e, size_t buffer, tn_buffer *memory, diag *d) {
  if (buffer >= e->p->n_buffers || !is_given(e, buffer))
    return diag_set(d, TN_ERR_ARGUMENT, "%s has no input or output %zu", e->p->name, buffer);
  if (e->held[buffer] == memory && !e->own[buffer]) return TN_OK;
  if (memory) buffer_retain(memory);
  if (e->held[buffer]) buffer_release(e->held[buffer]);
  e->held[buffer] = memory;
  e->own[buffer] = false;
  e->is_placed = false;
  return TN_OK;
}

/* Sizes and places. */

static tn_status check_values(const execution *e, diag *d) {
  for (size_t i = 0; i < e->p->n_vars; i++)
    if (!e->has_value[i])
      return diag_set(d, TN_ERR_ARGUMENT, "%s: variable %s has no value", e->p->name,
                      var_name(e->p->vars[i].name));
  return TN_OK;
}

static tn_status check_sizes(const execution *e, diag *d) {
  for (size_t i = 0; i < e->p->n_buffers; i++) {
    uint64_t most = UINT64_MAX / 2 / dtype_bytes(e->p->buffers[i].dtype);
    if (e->sizes[i] < 0 || (uint64_t)e->sizes[i] > most)
      return diag_set(d, TN_ERR_SHAPE, "%s: a tensor of %lld elements", e->p->name,
                      (long long)e->sizes[i]);
  }
  return TN_OK;
}

static tn_status find_sizes(execution *e, diag *d) {
  if (e->is_sized) return TN_OK;
  tn_status s = check_values(e, d);
  if (s == TN_OK) s = launch_eval(&e->p->sizes, e->values, e->room, e->sizes, d);
  e->is_sized = s == TN_OK;
  return s;
}

static uint64_t bytes_of(const execution *e, size_t i) {
  return (uint64_t)e->sizes[i] * dtype_bytes(e->p->buffers[i].dtype);
}

tn_status execution_bytes(execution *e, size_t buffer, uint64_t *bytes, diag *d) {
  tn_status s = find_sizes(e, d);
  if (s == TN_OK) *bytes = bytes_of(e, buffer);
  return s;
}

tn_status execution_sizes(execution *e, const int64_t **sizes, diag *d) {
  tn_status s = find_sizes(e, d);
  *sizes = e->sizes + e->p->n_buffers;
  return s;
}

/** A trip's number is within its variable's bounds: kernels were made for those. */
static tn_status check_trips(const execution *e, diag *d) {
  for (size_t i = 0; i < e->p->n_steps; i++) {
    const executable_step *s = &e->p->steps[i];
    if (s->kind != STEP_LOOP || s->trip == SIZE_MAX) continue;
    int64_t most = e->p->vars[s->trip].max, trips = e->sizes[s->trips];
    if (trips > 0 && trips - 1 > most)
      return diag_set(d, TN_ERR_INTERNAL, "%s: a loop of %lld trips is compiled for %lld",
                      e->p->name, (long long)trips, (long long)most + 1);
  }
  return TN_OK;
}

static tn_status place_given(execution *e, size_t i, diag *d) {
  const executable_buffer *p = &e->p->buffers[i];
  if (!e->held[i] && p->role == ROLE_INPUT)
    return diag_set(d, TN_ERR_ARGUMENT, "%s: an input has no value", e->p->name);
  tn_status s = TN_OK;
  if (!e->held[i] || e->own[i]) {
    s = buffers_ensure(e->p->target->device, &e->held[i], bytes_of(e, i), d);
    e->own[i] = true;
  }
  if (s == TN_OK) s = buffer_span(e->held[i], &e->spans[i], d);
  if (s == TN_OK && e->spans[i].bytes < bytes_of(e, i))
    s = diag_set(d, TN_ERR_SHAPE, "%s: %llu bytes are given where %llu are needed", e->p->name,
                 (unsigned long long)e->spans[i].bytes, (unsigned long long)bytes_of(e, i));
  if (s == TN_OK) e->spans[i].bytes = bytes_of(e, i);
  return s;
}

static uint64_t resident_bytes(const execution *e, resident r) {
  if (r.buffer != SIZE_MAX) return bytes_of(e, r.buffer);
  const executable_step *step = &e->p->steps[r.step];
  bool shared = e->p->programs[step->program]->facts.core_id >= 0;
  return step->scratch * (shared ? (uint64_t)workers(e) : 1);
}

static tn_span *resident_span(execution *e, resident r) {
  if (r.buffer != SIZE_MAX) return &e->spans[r.buffer];
  return &e->launch_spans[r.step][e->p->steps[r.step].n_buffers];
}

static void size_slots(execution *e) {
  for (size_t i = 0; i < e->n_slots; i++) {
    uint64_t bytes = resident_bytes(e, e->residents[i]);
    if (bytes != e->slots[i].bytes) e->has_slots = false;
    e->slots[i].bytes = bytes;
  }
}

static void place_slots(void *arg) {
  execution *e = arg;
  arena_mark here = arena_here(&e->arena);
  e->slot_bytes = memory_place(&e->arena, e->slots, e->n_slots);
  arena_reset(&e->arena, here);
  e->has_slots = true;
}

/** Placing takes longer than many a run, and memory is given anew more often than sizes change. */
static tn_status find_slots(execution *e, diag *d) {
  size_slots(e);
  return e->has_slots ? TN_OK : diag_catch(d, place_slots, e);
}

tn_status execution_scratch(execution *e, uint64_t *bytes, diag *d) {
  e->arena.diag = d;
  tn_status s = find_sizes(e, d);
  if (s == TN_OK) s = check_sizes(e, d);
  if (s == TN_OK) s = find_slots(e, d);
  *bytes = s == TN_OK ? e->slot_bytes : 0;
  return s;
}

static tn_status place_scratch(execution *e, diag *d) {
  tn_span all;
  tn_status s = find_slots(e, d);
#ifdef TENON_VERIFY
  if (s == TN_OK && memory_overlaps(e->slots, e->n_slots))
    s = diag_set(d, TN_ERR_INTERNAL, "%s: two live buffers overlap", e->p->name);
#endif
  if (s == TN_OK && e->n_slots)
    s = buffers_ensure(e->p->target->device, &e->scratch, e->slot_bytes, d);
  if (s == TN_OK && e->n_slots) s = buffer_span(e->scratch, &all, d);
  for (size_t i = 0; i < e->n_slots && s == TN_OK; i++)
    *resident_span(e, e->residents[i]) = span_part(&all, e->slots[i].offset, e->slots[i].bytes);
  return s;
}

static tn_status place_all(execution *e, diag *d) {
  tn_status s = find_sizes(e, d);
  if (s == TN_OK) s = check_sizes(e, d);
  if (s == TN_OK) s = check_trips(e, d);
  for (size_t i = 0; i < e->p->n_buffers && s == TN_OK; i++)
    if (is_given(e, i)) s = place_given(e, i, d);
  return s == TN_OK ? place_scratch(e, d) : s;
}

/* Running. */

static void fill_launch(execution *e, size_t i) {
  const executable_step *step = &e->p->steps[i];
  for (size_t k = 0; k < step->n_buffers; k++) e->launch_spans[i][k] = e->spans[step->buffers[k]];
  for (size_t k = 0; k < e->launches[i].n_values; k++) {
    size_t var = step->values[k];
    e->launch_values[i][k] = var == SIZE_MAX ? workers(e) : e->values[var];
  }
}

/** Whether a kernel's buffers have what its code takes them to have. */
static tn_status check_launch(execution *e, size_t i, diag *d) {
  const executable_step *step = &e->p->steps[i];
  const launch_terms *t = &e->p->programs[step->program]->terms;
  const int64_t *dim = e->dims;
  tn_status s = launch_eval(&t->dims, e->launch_values[i], e->dims_room, e->dims, d);
  for (size_t k = 0; k < step->n_buffers && s == TN_OK; k++) {
    uint64_t bytes = t->arrays[k].element, has = bytes_of(e, step->buffers[k]);
    bool fits = true;
    for (uint32_t r = 0; r < t->arrays[k].rank; r++, dim++)
      fits &= *dim >= 0 && !__builtin_mul_overflow(bytes, (uint64_t)*dim, &bytes);
    if (!fits || bytes > has)
      s = diag_set(d, TN_ERR_INTERNAL, "%s: %s takes %llu bytes of a buffer that has %llu",
                   e->p->name, step->name, (unsigned long long)bytes, (unsigned long long)has);
  }
  return s;
}

static void command_body(void *arg) {
  execution *e = arg;
  if (e->tell) find_last_reads(e);
  for (size_t i = 0; i < e->n_parts; i++)
    if (e->parts[i].commands) open_commands(e, &e->parts[i]);
}

static tn_status make_commands(execution *e, diag *d) {
  tn_status s = TN_OK;
  for (size_t i = 0; i < e->n_parts; i++) {
    part *p = &e->parts[i];
    if (p->kind != PART_STEPS) continue;
    p->commands = commands_open(e->p->target->device);
    if (!p->commands) s = diag_set(d, TN_ERR_MEMORY, "out of memory");
  }
  if (s == TN_OK) s = diag_catch(d, command_body, e);
  for (size_t i = 0; i < e->n_parts && s == TN_OK; i++)
    if (e->parts[i].commands) s = commands_status(e->parts[i].commands, d);
  e->has_commands = s == TN_OK;
  if (s != TN_OK) release_commands(e);
  return s;
}

static tn_status prepare(execution *e, diag *d) {
  tn_status s = e->has_commands ? TN_OK : make_commands(e, d);
  if (s != TN_OK || e->is_placed) return s;
  s = place_all(e, d);
  if (s != TN_OK) return s;
  for (size_t i = 0; i < e->p->n_steps && s == TN_OK; i++) {
    if (e->p->steps[i].kind != STEP_KERNEL) continue;
    fill_launch(e, i);
    s = check_launch(e, i, d);
  }
  e->is_placed = s == TN_OK;
  return s;
}

/** A run's value of `done` is a failure if it fails. Values that are one after another fail alike,
    so one that is none comes between a failed run and the next. */
static void end_failed_run(execution *e) { signal_set(e->done, ++e->runs); }

/** Waits for the end, as what follows changes what the commands read. */
static tn_status run_part(execution *e, const part *p, diag *d) {
  e->runs++;
  tn_status s = queue_run(e->queue, p->commands, d);
  if (s == TN_OK) s = signal_wait(e->done, e->runs, -1, d);
  if (s != TN_OK) end_failed_run(e);
  for (size_t i = p->step; e->record.is_profiled && s == TN_OK && i < p->step + p->n_steps; i++)
    record_step_ran(&e->record, i, e->record.stamps[2 * i], e->record.stamps[2 * i + 1]);
  return s;
}

static int64_t trips_of(const execution *e, const part *p) {
  return e->sizes[e->p->steps[p->step].trips];
}

/** The buffer that a state is in after a trip: after the last one the result. */
static size_t after_trip(const schedule_state *s, int64_t trip, int64_t trips) {
  return (trips - 1 - trip) % 2 ? s->spare : s->result;
}

static void begin_trip(execution *e, const part *p) {
  const executable_step *loop = &e->p->steps[p->step];
  int64_t trip = e->trip[p->step], trips = trips_of(e, p);
  if (loop->trip != SIZE_MAX) e->values[loop->trip] = trip;
  for (size_t i = 0; i < loop->n_states; i++) {
    const schedule_state *s = &loop->states[i];
    if (s->now == s->next) continue;
    e->spans[s->now] = e->spans[trip ? after_trip(s, trip - 1, trips) : s->init];
    e->spans[s->next] = e->spans[after_trip(s, trip, trips)];
  }
  for (const part *k = p + 1; k < e->parts + p->other; k++) {
    if (k->kind == PART_LOOP) k = e->parts + k->other; /* filled by its own trips */
    for (size_t i = k->step; k->kind == PART_STEPS && i < k->step + k->n_steps; i++)
      if (e->p->steps[i].kind == STEP_KERNEL) fill_launch(e, i);
  }
}

/** States that are changed where they are begin as copies of their inits, and without a trip all
    end so. */
static tn_status copy_inits(execution *e, const part *p, diag *d) {
  const executable_step *loop = &e->p->steps[p->step];
  tn_status s = TN_OK;
  for (size_t i = 0; i < loop->n_states && s == TN_OK; i++) {
    const schedule_state *at = &loop->states[i];
    if (trips_of(e, p) > 0 && at->now != at->next) continue;
    if (e->spans[at->result].bytes) s = span_copy(&e->spans[at->result], &e->spans[at->init], d);
  }
  return s;
}

/** All trips are done, or there were none. */
static void end_loop(execution *e, size_t step) {
  if (e->record.is_profiled)
    record_step_ran(&e->record, step, e->record.stamps[2 * step], clock_now());
  for (size_t i = 0; e->tell && i < e->p->n_buffers; i++)
    if (e->last_reads[i].step == step && e->p->buffers[i].role == ROLE_INPUT) e->tell(e->user, i);
}

/** The place after a loop's beginning: its first step, or its end. */
static tn_status begin_loop(execution *e, size_t *at, diag *d) {
  const part *p = &e->parts[*at];
  tn_status s = copy_inits(e, p, d);
  e->trip[p->step] = 0;
  if (e->record.is_profiled) e->record.stamps[2 * p->step] = clock_now();
  if (trips_of(e, p) > 0 && e->p->steps[p->step].n_steps) {
    begin_trip(e, p);
  } else {
    end_loop(e, p->step);
    *at = p->other;
  }
  return s;
}

/** The next trip, or what follows. */
static void end_trip(execution *e, size_t *at) {
  const part *loop = &e->parts[e->parts[*at].other];
  if (++e->trip[loop->step] < trips_of(e, loop)) {
    begin_trip(e, loop);
    *at = e->parts[*at].other;
  } else {
    end_loop(e, loop->step);
  }
}

static tn_status run_parts(execution *e, diag *d) {
  tn_status s = TN_OK;
  for (size_t at = 0; at < e->n_parts && s == TN_OK; at++) {
    switch (e->parts[at].kind) {
    case PART_STEPS: s = run_part(e, &e->parts[at], d); break;
    case PART_LOOP: s = begin_loop(e, &at, d); break;
    default: end_trip(e, &at); break;
    }
  }
  return s;
}

tn_status execution_run(execution *e, diag *d) {
  e->arena.diag = d;
  tn_status s = prepare(e, d);
  if (s != TN_OK) return s;
  for (size_t i = 0; i < e->p->n_steps; i++) e->hosts[i].is_done = false;
  record_begin(&e->record, e->values);
  s = run_parts(e, d);
  record_end(&e->record, s == TN_OK);
  return s;
}

tn_buffer *execution_buffer(execution *e, size_t buffer) { return e->held[buffer]; }

bool execution_was_filled(const execution *e, size_t buffer) {
  for (size_t i = 0; i < e->p->n_steps; i++) {
    const executable_step *step = e->hosts[i].step;
    if (step && e->hosts[i].is_done && step->buffers[step->n_buffers - 1] == buffer) return true;
  }
  return false;
}

/* What is known of steps. */

static void open_stamps(void *arg) {
  execution *e = arg;
  record_open_stamps(&e->record, &e->arena);
}

tn_status execution_profile(execution *e, bool on, diag *d) {
  e->arena.diag = d;
  tn_status s = on ? diag_catch(d, open_stamps, e) : TN_OK;
  if (s != TN_OK || on == e->record.is_profiled) return s;
  e->record.is_profiled = on;
  e->record.has_stamps = false;
  release_commands(e);
  return s;
}

bool execution_step_at(execution *e, size_t i, execution_step *out) {
  if (i >= e->p->n_steps) return false;
  *out = record_step(&e->record, i);
  return true;
}
