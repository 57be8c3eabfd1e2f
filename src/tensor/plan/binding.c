/* Public functions of bindings: opening and freeing, inputs and outputs, runs, results and
   profiles. A call enters the binding by an atomic flag, concurrently with the context. */
#include "tensor/plan/binding.h"

#include "tensor/context/descriptor.h"
#include "tensor/context/linked_list.h"
#include "tensor/plan/background_jobs.h"

#include <stdio.h>

/* Calls. */

void binding_leave(tn_binding *b) {
  tn_context *c = b->context;
  atomic_store_explicit(&b->is_entered, false, memory_order_release);
  context_end_concurrent(c);
}

tn_status binding_enter(tn_binding *b) {
  if (!b) return TN_ERR_ARGUMENT;
  tn_context *c = b->context;
  if (context_begin_concurrent(c, REENTRANCY_HOST_FUNCTION) != TN_OK) return TN_ERR_BUSY;
  if (atomic_exchange_explicit(&b->is_entered, true, memory_order_acquire)) {
    context_end_concurrent(c);
    return TN_ERR_BUSY;
  }
  if (binding_is_running(b)) {
    binding_leave(b);
    return TN_ERR_BUSY;
  }
  binding_collect_run(b);
  return TN_OK;
}

tn_status binding_take_failure(tn_binding *b) {
  tn_status s = b->failures.first.status;
  if (s != TN_OK) b->failures.message = b->failures.first;
  b->failures.first.status = TN_OK;
  b->failures.first_is_run = false;
  return s;
}

tn_status binding_name_failure(tn_binding *b, tn_status s) {
  if (s == TN_OK || s == TN_ERR_MEMORY || !b->plan->title) return s;
  return diag_prefix(&b->diag, "%.400s", b->plan->title);
}

tn_status binding_show_failure(tn_binding *b, tn_status s) {
  if (s == TN_OK) return s;
  binding_name_failure(b, s);
  b->failures.message = b->diag.failure;
  return s;
}

/** Makes a failure the message, and keeps it for the next run if it is the first. */
static tn_status record_failure(tn_binding *b) {
  binding_show_failure(b, b->diag.status);
  if (b->failures.first.status == TN_OK) b->failures.first = b->diag.failure;
  return b->diag.status;
}

const char *tn_binding_message(const tn_binding *b) {
  return b ? b->failures.message.text : "there is no binding";
}

/* Opening and freeing. */

static void destroy_binding(tn_binding *b) {
  tn_plan *p = b->plan;
  const mem *m = &b->context->mem;
  binding_end_async(b);
  binding_close_uses(b);
  for (size_t i = 0; b->inputs && i < p->ports.n_inputs; i++) {
    binding_set_memory(&b->inputs[i].imported, NULL);
    binding_set_memory(&b->inputs[i].copy, NULL);
    binding_set_memory(&b->inputs[i].carried_memory, NULL);
  }
  for (size_t i = 0; b->outputs && i < p->ports.n_outputs; i++) {
    binding_set_memory(&b->outputs[i].memory, NULL);
    binding_set_memory(&b->outputs[i].previous, NULL);
  }
  for (size_t i = 0; b->spares && i < p->n_states; i++) binding_set_memory(&b->spares[i], NULL);
  mem_free(m, b->inputs, p->ports.n_inputs * sizeof *b->inputs);
  mem_free(m, b->outputs, p->ports.n_outputs * sizeof *b->outputs);
  mem_free(m, b->spares, p->n_states * sizeof *b->spares);
  mem_free(m, b->turns, p->n_states * sizeof *b->turns);
  mem_free(m, b->facts, binding_numbers(p) * sizeof *b->facts);
  tn_plan *late = b->late == p ? NULL : b->late;
  mem_free(m, b, sizeof *b);
  plan_release(p);
  plan_release(late);
}

static bool alloc_arrays(tn_binding *b) {
  const mem *m = &b->context->mem;
  const tn_plan *p = b->plan;
  b->inputs = mem_calloc(m, p->ports.n_inputs, sizeof *b->inputs);
  b->outputs = mem_calloc(m, p->ports.n_outputs, sizeof *b->outputs);
  b->spares = mem_calloc(m, p->n_states, sizeof *b->spares);
  b->turns = mem_calloc(m, p->n_states, sizeof *b->turns);
  b->facts = mem_calloc(m, binding_numbers(p), sizeof *b->facts);
  if (!b->inputs || !b->outputs || !b->spares || !b->turns || !b->facts) return false;
  binding_set_numbers(b, b->facts);
  return true;
}

static tn_status init_binding(tn_binding *b, diag *d) {
  const tn_plan *p = b->plan;
  if (!alloc_arrays(b)) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  for (size_t i = 0; i < p->n_states; i++) b->turns[i].storage = p->states[i].storage;
  return TN_OK;
}

tn_status binding_open(tn_plan *p, diag *d, tn_binding **out) {
  tn_context *c = p->context;
  tn_binding *b = mem_calloc(&c->mem, 1, sizeof *b);
  *out = NULL;
  if (!b) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  b->context = c;
  b->plan = p;
  b->late = p->values ? p : NULL;
  b->last_variant = -1;
  atomic_init(&b->is_entered, false);
  atomic_init(&b->async.n_started, 0);
  atomic_fetch_add_explicit(&p->count, 1, memory_order_relaxed);
  tn_status s = init_binding(b, d);
  if (s == TN_OK)
    *out = b;
  else
    destroy_binding(b);
  return s;
}

void binding_close(tn_binding *b) {
  if (b) destroy_binding(b);
}

static tn_status open_binding(tn_plan *p, tn_binding **out) {
  tn_context *c = p->context;
  diag d = {0};
  tn_binding *b;
  if (!out) {
    diag_set(&d, TN_ERR_ARGUMENT, "%.400s: plan_bind: the place for the binding is NULL",
             p->title ? p->title : p->name);
    return context_set_thread_message(c, &d);
  }
  tn_status s = binding_open(p, &d, &b);
  if (s != TN_OK) {
    diag_prefix(&d, "%.400s: plan_bind", p->title ? p->title : p->name);
    return context_set_thread_message(c, &d);
  }
  mutex_lock(&c->lock);
  LIST_PUSH(&c->bindings, b, next, link);
  mutex_unlock(&c->lock);
  *out = b;
  return s;
}

tn_status tn_plan_bind(tn_plan *p, tn_binding **out) {
  if (out) *out = NULL;
  if (!p) return TN_ERR_ARGUMENT;
  tn_context *c = p->context;
  tn_status s = context_begin_concurrent(c, REENTRANCY_NONE);
  if (s != TN_OK) return s;
  s = open_binding(p, out);
  context_end_concurrent(c);
  return s;
}

static void free_binding(tn_binding *b) {
  tn_context *c = b->context;
  mutex_lock(&c->lock);
  LIST_REMOVE(b, next, link);
  mutex_unlock(&c->lock);
  destroy_binding(b);
}

void tn_binding_free(tn_binding *b) {
  tn_context *c = b ? b->context : NULL;
  if (!b || context_begin_concurrent(c, REENTRANCY_NONE) != TN_OK) return;
  free_binding(b);
  context_end_concurrent(c);
}

bool plan_any_runs(tn_context *c) {
  bool any = false;
  mutex_lock(&c->lock);
  for (const tn_binding *b = c->bindings; b && !any; b = b->next) any = binding_is_running(b);
  mutex_unlock(&c->lock);
  return any;
}

void plan_free_all(tn_context *c) {
  while (c->bindings) free_binding(c->bindings);
  while (c->plans) plan_free(c->plans);
  background_jobs_close(c);
}

/* Ports. */

/** Lists the names of ports, as many as the text holds: inputs: "a", "b", …. */
static const char *list_ports(char *text, size_t bytes, const plan_port *ports, size_t n,
                              const char *what) {
  static const char more[] = ", …";
  size_t used = (size_t)snprintf(text, bytes, "%ss: %s", what, n ? "" : "none");
  for (size_t i = 0; i < n; i++) {
    size_t room = bytes - used - sizeof more;
    int length = snprintf(text + used, room, "%s\"%s\"", i ? ", " : "", ports[i].name);
    if (length < 0 || (size_t)length >= room) {
      snprintf(text + used, bytes - used, "%s", i ? more : "…");
      break;
    }
    used += (size_t)length;
  }
  return text;
}

static size_t find_port(tn_binding *b, const plan_port *ports, const string_map *of,
                        const char *name, const char *what) {
  const plan_port *p = name ? string_map_get(of, name) : NULL;
  char list[256];
  if (p) return (size_t)(p - ports);
  if (name)
    diag_set(&b->diag, TN_ERR_ARGUMENT, "there is no %s \"%.200s\"; %s", what, name,
             list_ports(list, sizeof list, ports, of->entries.n, what));
  else
    diag_set(&b->diag, TN_ERR_ARGUMENT, "the name of the %s is NULL", what);
  return SIZE_MAX;
}

static size_t find_input(tn_binding *b, const char *name) {
  return find_port(b, b->plan->ports.inputs, &b->plan->ports.input_of, name, "input");
}

static size_t find_output(tn_binding *b, const char *name) {
  return find_port(b, b->plan->ports.outputs, &b->plan->ports.output_of, name, "output");
}

/** A port's number, or SIZE_MAX where there is none of it. */
static size_t check_port(tn_binding *b, size_t i, size_t n, const char *what) {
  if (i < n) return i;
  diag_set(&b->diag, TN_ERR_ARGUMENT, "there is no %s %zu: there are %zu", what, i, n);
  return SIZE_MAX;
}

static size_t check_input(tn_binding *b, size_t i) {
  return check_port(b, i, b->plan->ports.n_inputs, "input");
}

static size_t check_output(tn_binding *b, size_t i) {
  return check_port(b, i, b->plan->ports.n_outputs, "output");
}

static tn_status check_dtype(tn_binding *b, tn_dtype t) {
  return tn_dtype_size(t) ? TN_OK
                          : diag_set(&b->diag, TN_ERR_DTYPE, "%s (%d) is no type of data",
                                     tn_dtype_name(t), (int)t);
}

static tn_status check_value(tn_binding *b, const plan_port *p, tn_shape shape, tn_dtype t,
                             const void *data, size_t bytes, uint64_t *count) {
  size_t size = tn_dtype_size(t);
  tn_status s = check_dtype(b, t);
  if (s == TN_OK) s = binding_check_shape(b, p, shape, size, count);
  if (s != TN_OK) return s;
  if (bytes != *count * size)
    return diag_set(&b->diag, TN_ERR_ARGUMENT, "input %s needs %llu bytes; the data has %zu",
                    p->name, (unsigned long long)(*count * size), bytes);
  if (!data && *count)
    return diag_set(&b->diag, TN_ERR_ARGUMENT, "input %s: the data is NULL", p->name);
  return TN_OK;
}

/** Sets an input. A refused value leaves the input without one, so that no run reads the value
    before. */
static tn_status set_input(tn_binding *b, size_t i, tn_shape shape, tn_dtype t, const void *data,
                           size_t bytes) {
  if (i == SIZE_MAX) return b->diag.status;
  const plan_port *p = &binding_ports(b)->ports.inputs[i];
  bound_input *in = &b->inputs[i];
  uint64_t count;
  tn_status s = check_value(b, p, shape, t, data, bytes, &count);
  in->is_set = s == TN_OK;
  in->is_fresh = true;
  in->is_copied = false;
  if (!in->is_set || in->data != data || in->count != count || in->dtype != (dtype)t)
    binding_set_memory(&in->imported, NULL);
  binding_set_memory(&in->carried_memory, NULL);
  if (s != TN_OK) return s;
  in->data = data;
  in->dtype = (dtype)t;
  in->count = count;
  in->rank = (size_t)shape.rank;
  for (size_t k = 0; k < in->rank; k++) in->size[k] = shape.size[k];
  return TN_OK;
}

tn_status tn_binding_input(tn_binding *b, const char *name, tn_shape shape, tn_dtype dtype,
                           const void *data, size_t bytes) {
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  s = set_input(b, find_input(b, name), shape, dtype, data, bytes);
  if (s != TN_OK) record_failure(b);
  binding_leave(b);
  return s;
}

tn_status tn_binding_input_at(tn_binding *b, size_t input, tn_shape shape, tn_dtype dtype,
                              const void *data, size_t bytes) {
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  s = set_input(b, check_input(b, input), shape, dtype, data, bytes);
  if (s != TN_OK) record_failure(b);
  binding_leave(b);
  return s;
}

static tn_status set_output(tn_binding *b, size_t i, tn_dtype t, void *data, size_t bytes) {
  if (i == SIZE_MAX) return b->diag.status;
  tn_status s = data ? check_dtype(b, t) : TN_OK;
  if (s != TN_OK) return s;
  b->outputs[i].data = data;
  b->outputs[i].dtype = (dtype)t;
  b->outputs[i].bytes = bytes;
  return TN_OK;
}

tn_status tn_binding_output(tn_binding *b, const char *name, tn_dtype dtype, void *data,
                            size_t bytes) {
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  s = set_output(b, find_output(b, name), dtype, data, bytes);
  if (s != TN_OK) record_failure(b);
  binding_leave(b);
  return s;
}

tn_status tn_binding_output_at(tn_binding *b, size_t output, tn_dtype dtype, void *data,
                               size_t bytes) {
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  s = set_output(b, check_output(b, output), dtype, data, bytes);
  if (s != TN_OK) record_failure(b);
  binding_leave(b);
  return s;
}

static tn_status refuse_ranks(tn_binding *b, const plan_port *from, const plan_port *to) {
  char output[256], input[256];
  return diag_set(&b->diag, TN_ERR_SHAPE,
                  "output %s has rank %zu, input %s has rank %zu: the shapes are %s and %s",
                  from->name, from->rank, to->name, to->rank,
                  plan_port_shape_text(from, output, sizeof output),
                  plan_port_shape_text(to, input, sizeof input));
}

tn_status binding_check_carry(tn_binding *b, const tn_plan *p, size_t o, size_t i) {
  const plan_port *from = &p->ports.outputs[o], *to = &p->ports.inputs[i];
  if (from->is_late) return TN_OK; /* the plan for the values of a run is checked */
  if (from->dtype != to->dtype)
    return diag_set(&b->diag, TN_ERR_DTYPE, "output %s is %s, input %s is %s", from->name,
                    dtype_name(from->dtype), to->name, dtype_name(to->dtype));
  if (from->rank != to->rank && !binding_ports(b)->ports.inputs[i].is_late)
    return refuse_ranks(b, from, to);
  return TN_OK;
}

static tn_status set_carry(tn_binding *b, size_t o, size_t i) {
  if (i == SIZE_MAX) return b->diag.status;
  tn_status s = binding_check_carry(b, b->plan, o, i);
  if (s == TN_OK) b->inputs[i].carried_output = o + 1;
  return s;
}

tn_status tn_binding_carry(tn_binding *b, const char *output, const char *input) {
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  size_t o = find_output(b, output);
  s = set_carry(b, o, o == SIZE_MAX ? SIZE_MAX : find_input(b, input));
  if (s != TN_OK) record_failure(b);
  binding_leave(b);
  return s;
}

tn_status tn_binding_carry_at(tn_binding *b, size_t output, size_t input) {
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  size_t o = check_output(b, output);
  s = set_carry(b, o, o == SIZE_MAX ? SIZE_MAX : check_input(b, input));
  if (s != TN_OK) record_failure(b);
  binding_leave(b);
  return s;
}

/* Running. */

tn_status tn_binding_run(tn_binding *b) {
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  b->has_run = false;
  s = binding_take_failure(b);
  if (s == TN_OK) {
    s = binding_show_failure(b, binding_run(b));
    b->has_run = s == TN_OK;
  }
  binding_leave(b);
  return s;
}

tn_status tn_binding_prepare(tn_binding *b) {
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  s = binding_check_caller(b);
  if (s == TN_OK) s = binding_prepare(b);
  binding_show_failure(b, s);
  binding_leave(b);
  return s;
}

int64_t tn_binding_variant(const tn_binding *b) {
  return !b || binding_is_running(b) || !b->has_run ? -1 : b->last_variant;
}

/* Results. */

tn_type tn_binding_type_at(const tn_binding *b, size_t i) {
  tn_type t = {TN_UNDEFINED, {0, {0}}};
  if (!b || binding_is_running(b) || !b->has_run || i >= b->plan->ports.n_outputs) return t;
  const bound_output *o = &b->outputs[i];
  t.dtype = (tn_dtype)o->type;
  t.shape.rank = (int32_t)o->rank;
  for (size_t k = 0; k < o->rank; k++) t.shape.size[k] = o->size[k];
  return t;
}

tn_type tn_binding_type(const tn_binding *b, const char *output) {
  const plan_ports *ports = b ? &binding_ports(b)->ports : NULL;
  const plan_port *p = b && output ? string_map_get(&ports->output_of, output) : NULL;
  return tn_binding_type_at(b, p ? (size_t)(p - ports->outputs) : SIZE_MAX);
}

static tn_status read_result(tn_binding *b, size_t i, tn_dtype t, void *data, size_t bytes) {
  if (i == SIZE_MAX) return b->diag.status;
  const char *name = b->plan->ports.outputs[i].name;
  if (!b->has_run)
    return diag_set(&b->diag, TN_ERR_ARGUMENT, "output %s has no value: no run, or one that failed",
                    name);
  tn_status s = check_dtype(b, t);
  if (s != TN_OK) return s;
  uint64_t need = b->outputs[i].count * tn_dtype_size(t);
  if (bytes != need)
    return diag_set(&b->diag, TN_ERR_ARGUMENT, "output %s needs %llu bytes; the buffer has %zu",
                    name, (unsigned long long)need, bytes);
  if (!data && need)
    return diag_set(&b->diag, TN_ERR_ARGUMENT, "output %s: the data is NULL", name);
  return binding_copy_output(b, i, (dtype)t, data);
}

/** Reads output `i`, or where that is SIZE_MAX the one of a name. */
static tn_status read_output(tn_binding *b, const char *name, size_t i, tn_dtype dtype, void *data,
                             size_t bytes) {
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  if (b->failures.first_is_run) {
    s = binding_take_failure(b);
  } else {
    s = read_result(b, i == SIZE_MAX ? find_output(b, name) : check_output(b, i), dtype, data,
                    bytes);
    binding_show_failure(b, s);
  }
  binding_leave(b);
  return s;
}

tn_status tn_binding_read(tn_binding *b, const char *output, tn_dtype dtype, void *data,
                          size_t bytes) {
  return read_output(b, output, SIZE_MAX, dtype, data, bytes);
}

tn_status tn_binding_read_at(tn_binding *b, size_t output, tn_dtype dtype, void *data,
                             size_t bytes) {
  return read_output(b, NULL, output, dtype, data, bytes);
}

/* Profiles. */

tn_status tn_binding_profile(tn_binding *b, bool on) {
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  b->is_profiled = on;
  if (b->execution) s = execution_set_profiling(b->execution, on, &b->diag);
  binding_show_failure(b, s);
  binding_leave(b);
  return s;
}

tn_status tn_binding_reuse(tn_binding *b, bool on) {
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  if (b->execution) s = execution_set_reuse(b->execution, on, &b->diag);
  for (size_t i = 0; i < b->plan->ports.n_inputs; i++) b->inputs[i].is_fresh = true;
  if (s == TN_OK) b->reuses = on;
  binding_show_failure(b, s);
  binding_leave(b);
  return s;
}

tn_status tn_binding_step(tn_binding *b, size_t i, tn_step *step) {
  execution_step found;
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  bool has_times = b->has_run && b->ran; /* not if a late plan has chosen another since */
  execution *of = has_times ? b->ran : b->execution;
  if (!of || !execution_step_at(of, i, &found)) {
    binding_leave(b);
    return TN_ERR_ARGUMENT;
  }
  tn_step given = {.size = sizeof given,
                   .name = found.name,
                   .kernel = found.kernel == SIZE_MAX ? -1 : (int64_t)found.kernel,
                   .operations = found.work.operations,
                   .bytes = found.work.bytes,
                   .steps = found.n_steps,
                   .times = found.times,
                   .device = found.device,
                   .library = found.library};
  if (has_times) given.begin = found.begin, given.end = found.end;
  s = descriptor_write(&b->diag, step, &given, sizeof given, "tn_step");
  binding_show_failure(b, s);
  binding_leave(b);
  return s;
}

tn_status tn_binding_memory(tn_binding *b, tn_memory *memory) {
  tn_memory found = TN_MEMORY_INIT;
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  s = binding_check_caller(b);
  if (s == TN_OK) s = binding_memory(b, &found);
  if (s == TN_OK) s = descriptor_write(&b->diag, memory, &found, sizeof found, "tn_memory");
  binding_show_failure(b, s);
  binding_leave(b);
  return s;
}
