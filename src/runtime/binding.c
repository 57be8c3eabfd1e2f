#include "runtime/binding.h"

#include "device/span.h"
#include "runtime/inside.h"
#include "schedule/memory.h"

#include <string.h>

/** What a CUSTOM step's call gets, made anew in every run from the spans. */
typedef struct host_step {
  struct binding *b;
  const plan_step *step;
  void **data;
  uint64_t *bytes;
} host_step;

struct binding {
  plan *p;
  arena arena;
  tn_queue *queue;
  bool own_queue;
  tn_signal *done;
  uint64_t runs; /* value of `done` after the last run */
  tn_commands *commands;
  int64_t *values; /* of the plan's variables */
  bool *has_value;
  bool stale;     /* values or buffers have changed since places were given */
  int64_t *sizes; /* elements of each buffer, then the sizes asked for */
  int64_t *room;
  tn_buffer **held; /* of each buffer: given, or the binding's own output */
  bool *own;
  tn_span *spans; /* where each buffer is */
  tn_buffer *scratch;
  memory_slot *slots;
  size_t *slot_buffers, n_slots;
  tn_launch *launches; /* of each step */
  tn_span **launch_spans;
  int64_t **launch_values;
  host_step *hosts;
  tn_signal *order_wait, *order_signal;
  const uint64_t *order_wait_value, *order_signal_value;
};

/* Opening: everything a run needs, but memory for data. */

static int64_t workers(const binding *b) { return b->p->target->device->host.threads; }

static void open_launch(binding *b, size_t i) {
  const plan_step *step = &b->p->steps[i];
  const tn_program_facts *f = &b->p->programs[step->program]->facts;
  b->launch_spans[i] = arena_calloc(&b->arena, step->n_buffers + 1, sizeof(tn_span));
  b->launch_values[i] = arena_calloc(&b->arena, f->n_values + 1, sizeof(int64_t));
  b->launches[i] = (tn_launch){.buffers = b->launch_spans[i],
                               .n_buffers = step->n_buffers,
                               .values = b->launch_values[i],
                               .n_values = f->n_values,
                               .global = {f->core_id < 0 ? 1 : workers(b), 1, 1}};
  commands_exec(b->commands, b->p->programs[step->program], &b->launches[i]);
}

/** Data that the host does not see is read and written around the call. */
static tn_status read_inputs(host_step *h, diag *d) {
  tn_status s = TN_OK;
  for (size_t k = 0; k + 1 < h->step->n_buffers && s == TN_OK; k++) {
    const tn_span *at = &h->b->spans[h->step->buffers[k]];
    const plan_buffer *t = &h->b->p->buffers[h->step->buffers[k]];
    size_t count = (size_t)h->bytes[k] / dtype_bytes(t->dtype);
    if (!device_host_pointer(at)) s = span_read(at, t->dtype, t->dtype, h->data[k], count, d);
  }
  return s;
}

static tn_status write_result(host_step *h, diag *d) {
  size_t k = h->step->n_buffers - 1;
  const tn_span *at = &h->b->spans[h->step->buffers[k]];
  const plan_buffer *t = &h->b->p->buffers[h->step->buffers[k]];
  size_t count = (size_t)h->bytes[k] / dtype_bytes(t->dtype);
  if (device_host_pointer(at)) return TN_OK;
  return span_write(at, t->dtype, t->dtype, h->data[k], count, d);
}

static void free_copies(host_step *h) {
  for (size_t k = 0; k < h->step->n_buffers; k++)
    if (!device_host_pointer(&h->b->spans[h->step->buffers[k]]))
      mem_free(h->b->p->mem, h->data[k], (size_t)h->bytes[k]);
}

static bool locate(host_step *h) {
  bool ok = true;
  for (size_t k = 0; k < h->step->n_buffers; k++) {
    const tn_span *at = &h->b->spans[h->step->buffers[k]];
    h->bytes[k] = at->bytes;
    h->data[k] = device_host_pointer(at);
    if (!h->data[k]) ok &= (h->data[k] = mem_alloc(h->b->p->mem, (size_t)at->bytes)) != NULL;
  }
  return ok;
}

static tn_status call_host(void *user, tn_failure *failure) {
  host_step *h = user;
  diag d = {0};
  plan_custom_call c = {h->step->uid, h->step->output, h->step->n_buffers - 1, h->data, h->bytes};
  tn_status s = locate(h) ? read_inputs(h, &d) : diag_set(&d, TN_ERR_MEMORY, "out of memory");
  if (s == TN_OK) {
    s = h->b->p->host.call(h->b->p->host.user, &c, failure);
    if (s == TN_OK)
      s = write_result(h, &d);
    else
      d.status = TN_OK;
  }
  free_copies(h);
  return d.status == TN_OK ? s : tn_fail(failure, d.status, "%s", d.text);
}

static void open_host(binding *b, size_t i) {
  const plan_step *step = &b->p->steps[i];
  b->hosts[i] = (host_step){b, step, arena_calloc(&b->arena, step->n_buffers, sizeof(void *)),
                            arena_calloc(&b->arena, step->n_buffers, sizeof(uint64_t))};
  commands_call(b->commands, call_host, &b->hosts[i]);
}

static void open_slots(binding *b) {
  const plan *p = b->p;
  b->slots = arena_calloc(&b->arena, p->n_buffers, sizeof *b->slots);
  b->slot_buffers = arena_calloc(&b->arena, p->n_buffers, sizeof *b->slot_buffers);
  /* Buffers are numbered in the order of what makes them, which need not be that of the steps. */
  for (size_t step = 0; step < p->n_steps; step++)
    for (size_t k = 0; k < p->steps[step].n_buffers; k++) {
      size_t i = p->steps[step].buffers[k];
      if (p->buffers[i].role != ROLE_SCRATCH || p->buffers[i].first != step || b->own[i]) continue;
      b->own[i] = true;
      b->slots[b->n_slots] = (memory_slot){.first = step, .last = p->buffers[i].last};
      b->slot_buffers[b->n_slots++] = i;
    }
}

static void open_arrays(binding *b) {
  const plan *p = b->p;
  arena *a = &b->arena;
  b->values = arena_calloc(a, p->n_vars + 1, sizeof *b->values);
  b->has_value = arena_calloc(a, p->n_vars + 1, sizeof *b->has_value);
  b->sizes = arena_calloc(a, p->sizes.n_results + 1, sizeof *b->sizes);
  b->room = arena_calloc(a, p->sizes.n_steps + 1, sizeof *b->room);
  b->held = arena_calloc(a, p->n_buffers + 1, sizeof *b->held);
  b->own = arena_calloc(a, p->n_buffers + 1, sizeof *b->own);
  b->spans = arena_calloc(a, p->n_buffers + 1, sizeof *b->spans);
  b->launches = arena_calloc(a, p->n_steps + 1, sizeof *b->launches);
  b->launch_spans = arena_calloc(a, p->n_steps + 1, sizeof *b->launch_spans);
  b->launch_values = arena_calloc(a, p->n_steps + 1, sizeof *b->launch_values);
  b->hosts = arena_calloc(a, p->n_steps + 1, sizeof *b->hosts);
}

/* The list of commands is made once; what it points to changes from run to run. */

static void open_commands(binding *b) {
  if (b->order_wait) commands_wait_at(b->commands, b->order_wait, b->order_wait_value);
  for (size_t i = 0; i < b->p->n_steps; i++) {
    if (i) commands_barrier(b->commands);
    if (b->p->steps[i].kind == STEP_CUSTOM)
      open_host(b, i);
    else
      open_launch(b, i);
  }
  if (b->order_signal) commands_signal_at(b->commands, b->order_signal, b->order_signal_value);
  commands_signal_at(b->commands, b->done, &b->runs);
}

static void open_body(void *arg) {
  binding *b = arg;
  open_arrays(b);
  open_slots(b);
  b->stale = true;
}

static tn_status open_queue(binding *b, tn_queue *queue, diag *d) {
  tn_device *device = b->p->target->device;
  b->queue = queue;
  if (!queue) {
    tn_status s = queue_open(device, TN_QUEUE_COMPUTE, &b->queue, d);
    if (s != TN_OK) return s;
    b->own_queue = true;
  }
  return signal_open(device, 0, &b->done, d);
}

tn_status binding_open(binding **out, plan *p, tn_queue *queue, diag *d) {
  *out = NULL;
  binding *b = mem_calloc(p->mem, 1, sizeof *b);
  if (!b) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  b->p = plan_retain(p);
  arena_init(&b->arena, p->mem, d);
  tn_status s = open_queue(b, queue, d);
  if (s == TN_OK) s = diag_catch(d, open_body, b);
  if (s == TN_OK)
    *out = b;
  else
    binding_close(b);
  return s;
}

void binding_close(binding *b) {
  if (!b) return;
  for (size_t i = 0; b->held && i < b->p->n_buffers; i++)
    if (b->held[i]) buffer_release(b->held[i]);
  if (b->scratch) buffer_release(b->scratch);
  commands_release(b->commands);
  signal_release(b->done);
  signal_release(b->order_wait);
  signal_release(b->order_signal);
  if (b->own_queue) queue_close(b->queue);
  plan *p = b->p;
  arena_free(&b->arena);
  mem_free(p->mem, b, sizeof *b);
  plan_release(p);
}

/* What a run is given. */

tn_status binding_set_var(binding *b, const char *name, int64_t value, diag *d) {
  for (size_t i = 0; i < b->p->n_vars; i++) {
    const tn_program_var *v = &b->p->vars[i];
    if (strcmp(v->name, name)) continue;
    if (value < v->min || value > v->max)
      return diag_set(d, TN_ERR_ARGUMENT, "%s: %s is %lld, outside its bounds %lld … %lld",
                      b->p->name, name, (long long)value, (long long)v->min, (long long)v->max);
    b->stale |= !b->has_value[i] || b->values[i] != value;
    b->values[i] = value;
    b->has_value[i] = true;
    return TN_OK;
  }
  return diag_set(d, TN_ERR_ARGUMENT, "%s has no variable %s", b->p->name, name);
}

tn_status binding_set_buffer(binding *b, size_t buffer, tn_buffer *memory, diag *d) {
  if (buffer >= b->p->n_buffers || b->p->buffers[buffer].role == ROLE_SCRATCH)
    return diag_set(d, TN_ERR_ARGUMENT, "%s has no input or output %zu", b->p->name, buffer);
  if (b->held[buffer] == memory && !b->own[buffer]) return TN_OK;
  if (memory) buffer_retain(memory);
  if (b->held[buffer]) buffer_release(b->held[buffer]);
  b->held[buffer] = memory;
  b->own[buffer] = false;
  b->stale = true;
  return TN_OK;
}

tn_status binding_order(binding *b, tn_signal *wait, const uint64_t *wait_value, tn_signal *signal,
                        const uint64_t *signal_value, diag *d) {
  if (b->commands) return diag_set(d, TN_ERR_ARGUMENT, "%s has been run already", b->p->name);
  if (wait) b->order_wait = signal_retain(wait);
  if (signal) b->order_signal = signal_retain(signal);
  b->order_wait_value = wait_value;
  b->order_signal_value = signal_value;
  return TN_OK;
}

/* Sizes and places. */

static tn_status check_values(const binding *b, diag *d) {
  for (size_t i = 0; i < b->p->n_vars; i++)
    if (!b->has_value[i])
      return diag_set(d, TN_ERR_ARGUMENT, "%s: variable %s has no value", b->p->name,
                      b->p->vars[i].name);
  return TN_OK;
}

static tn_status find_sizes(binding *b, diag *d) {
  tn_status s = check_values(b, d);
  if (s == TN_OK) s = launch_eval(&b->p->sizes, b->values, b->room, b->sizes, d);
  return s;
}

static uint64_t bytes_of(const binding *b, size_t i) {
  return (uint64_t)b->sizes[i] * dtype_bytes(b->p->buffers[i].dtype);
}

tn_status binding_bytes(binding *b, size_t buffer, uint64_t *bytes, diag *d) {
  tn_status s = find_sizes(b, d);
  if (s == TN_OK) *bytes = bytes_of(b, buffer);
  return s;
}

tn_status binding_size(binding *b, size_t i, int64_t *value, diag *d) {
  tn_status s = find_sizes(b, d);
  if (s == TN_OK) *value = b->sizes[b->p->n_buffers + i];
  return s;
}

static tn_status check_sizes(const binding *b, diag *d) {
  for (size_t i = 0; i < b->p->n_buffers; i++) {
    uint64_t most = UINT64_MAX / 2 / dtype_bytes(b->p->buffers[i].dtype);
    if (b->sizes[i] < 0 || (uint64_t)b->sizes[i] > most)
      return diag_set(d, TN_ERR_SHAPE, "%s: a tensor of %lld elements", b->p->name,
                      (long long)b->sizes[i]);
  }
  return TN_OK;
}

/** Memory of at least so many bytes in *at; what is there is kept if it is large enough. */
static tn_status ensure(binding *b, tn_buffer **at, uint64_t bytes, diag *d) {
  if (*at && buffer_bytes(*at) >= bytes) return TN_OK;
  tn_buffer *fresh;
  tn_status s = buffer_open(b->p->target->device, bytes ? bytes : 1, &fresh, d);
  if (s != TN_OK) return s;
  if (*at) buffer_release(*at);
  *at = fresh;
  return TN_OK;
}

static tn_status place_given(binding *b, size_t i, diag *d) {
  const plan_buffer *p = &b->p->buffers[i];
  if (!b->held[i] && p->role == ROLE_INPUT)
    return diag_set(d, TN_ERR_ARGUMENT, "%s: an input has no value", b->p->name);
  tn_status s = TN_OK;
  if (!b->held[i] || b->own[i]) {
    s = ensure(b, &b->held[i], bytes_of(b, i), d);
    b->own[i] = true;
  }
  if (s == TN_OK) s = buffer_span(b->held[i], &b->spans[i], d);
  if (s == TN_OK && b->spans[i].bytes < bytes_of(b, i))
    s = diag_set(d, TN_ERR_SHAPE, "%s: %llu bytes are given where %llu are needed", b->p->name,
                 (unsigned long long)b->spans[i].bytes, (unsigned long long)bytes_of(b, i));
  if (s == TN_OK) b->spans[i].bytes = bytes_of(b, i);
  return s;
}

typedef struct scratch_request {
  binding *b;
  uint64_t bytes;
} scratch_request;

static void place_slots(void *arg) {
  scratch_request *r = arg;
  binding *b = r->b;
  for (size_t i = 0; i < b->n_slots; i++) b->slots[i].bytes = bytes_of(b, b->slot_buffers[i]);
  arena_mark here = arena_here(&b->arena);
  r->bytes = memory_place(&b->arena, b->slots, b->n_slots);
  arena_reset(&b->arena, here);
}

static tn_status place_scratch(binding *b, diag *d) {
  scratch_request r = {b, 0};
  tn_span all;
  tn_status s = diag_catch(d, place_slots, &r);
#ifdef TENON_VERIFY
  if (s == TN_OK && memory_overlaps(b->slots, b->n_slots))
    s = diag_set(d, TN_ERR_INTERNAL, "%s: two live buffers overlap", b->p->name);
#endif
  if (s == TN_OK && b->n_slots) s = ensure(b, &b->scratch, r.bytes, d);
  if (s == TN_OK && b->n_slots) s = buffer_span(b->scratch, &all, d);
  for (size_t i = 0; i < b->n_slots && s == TN_OK; i++)
    b->spans[b->slot_buffers[i]] = span_part(&all, b->slots[i].offset, b->slots[i].bytes);
  return s;
}

static tn_status place_all(binding *b, diag *d) {
  tn_status s = find_sizes(b, d);
  if (s == TN_OK) s = check_sizes(b, d);
  for (size_t i = 0; i < b->p->n_buffers && s == TN_OK; i++)
    if (b->p->buffers[i].role != ROLE_SCRATCH) s = place_given(b, i, d);
  return s == TN_OK ? place_scratch(b, d) : s;
}

/* Running. */

static int64_t value_of(const binding *b, const char *name) {
  for (size_t i = 0; i < b->p->n_vars; i++)
    if (!strcmp(b->p->vars[i].name, name)) return b->values[i];
  return workers(b); /* core_count; core_id's is not read */
}

static void fill_launches(binding *b) {
  for (size_t i = 0; i < b->p->n_steps; i++) {
    const plan_step *step = &b->p->steps[i];
    if (step->kind != STEP_KERNEL) continue;
    const tn_program_facts *f = &b->p->programs[step->program]->facts;
    for (size_t k = 0; k < step->n_buffers; k++) b->launch_spans[i][k] = b->spans[step->buffers[k]];
    for (size_t k = 0; k < f->n_values; k++)
      b->launch_values[i][k] = value_of(b, f->value_names[k]);
  }
}

static void command_body(void *arg) { open_commands(arg); }

static tn_status prepare(binding *b, diag *d) {
  if (!b->commands) {
    b->commands = commands_open(b->p->target->device);
    if (!b->commands) return diag_set(d, TN_ERR_MEMORY, "out of memory");
    tn_status s = diag_catch(d, command_body, b);
    if (s != TN_OK) {
      commands_release(b->commands);
      b->commands = NULL;
      return s;
    }
  }
  if (!b->stale) return TN_OK;
  tn_status s = place_all(b, d);
  if (s != TN_OK) return s;
  fill_launches(b);
  b->stale = false;
  return TN_OK;
}

tn_status binding_run(binding *b, diag *d) {
  b->arena.diag = d;
  tn_status s = prepare(b, d);
  if (s != TN_OK) return s;
  b->runs++;
  s = queue_run(b->queue, b->commands, d);
  if (s != TN_OK) {
    signal_set(b->done, b->runs);
    return s;
  }
  return signal_wait(b->done, b->runs, -1, d);
}

tn_buffer *binding_buffer(binding *b, size_t buffer) { return b->held[buffer]; }

uint64_t binding_scratch_bytes(const binding *b) {
  uint64_t bytes = b->scratch ? buffer_bytes(b->scratch) : 0;
  for (size_t i = 0; i < b->p->n_buffers; i++)
    if (b->held[i] && b->own[i]) bytes += buffer_bytes(b->held[i]);
  return bytes;
}
