/* Bindings of the public kind: what they are given, and their results. */
#include "tensor/binding.h"

#include "tensor/desc.h"

/* Calls. */

void binding_leave(tn_binding *b) {
  tn_context *c = b->context;
  atomic_store_explicit(&b->entered, false, memory_order_release);
  context_end_beside(c);
}

tn_status binding_enter(tn_binding *b) {
  if (!b) return TN_ERR_ARGUMENT;
  tn_context *c = b->context;
  if (context_begin_beside(c, VISIT_HOST) != TN_OK) return TN_ERR_BUSY;
  if (atomic_exchange_explicit(&b->entered, true, memory_order_acquire)) {
    context_end_beside(c);
    return TN_ERR_BUSY;
  }
  if (binding_is_running(b)) {
    binding_leave(b);
    return TN_ERR_BUSY;
  }
  binding_collect(b);
  return TN_OK;
}

tn_status binding_take_kept(tn_binding *b) {
  tn_status s = b->kept.status;
  if (s != TN_OK) diag_copy(&b->message, &b->kept);
  diag_clear(&b->kept);
  b->kept_is_run = false;
  return s;
}

/** Tells a failure, which is kept for the next run. */
static tn_status fail(tn_binding *b) {
  diag_copy(&b->message, &b->diag);
  if (b->kept.status == TN_OK) diag_copy(&b->kept, &b->diag);
  return b->diag.status;
}

const char *tn_binding_message(const tn_binding *b) {
  return b ? b->message.text : "there is no binding";
}

/* Opening and freeing. */

void binding_destroy(tn_binding *b) {
  tn_plan *p = b->plan;
  const mem *m = &b->context->mem;
  binding_end_started(b);
  execution_close(b->execution);
  for (size_t i = 0; b->inputs && i < p->n_inputs; i++) {
    binding_set_memory(&b->inputs[i].imported, NULL);
    binding_set_memory(&b->inputs[i].own, NULL);
    binding_set_memory(&b->inputs[i].carried, NULL);
  }
  for (size_t i = 0; b->outputs && i < p->n_outputs; i++) {
    binding_set_memory(&b->outputs[i].memory, NULL);
    binding_set_memory(&b->outputs[i].other, NULL);
  }
  for (size_t i = 0; b->spares && i < p->n_states; i++) binding_set_memory(&b->spares[i], NULL);
  mem_free(m, b->inputs, p->n_inputs * sizeof *b->inputs);
  mem_free(m, b->outputs, p->n_outputs * sizeof *b->outputs);
  mem_free(m, b->spares, p->n_states * sizeof *b->spares);
  mem_free(m, b->turns, p->n_states * sizeof *b->turns);
  mem_free(m, b, sizeof *b);
  plan_drop(p);
}

static bool alloc_parts(tn_binding *b) {
  const mem *m = &b->context->mem;
  const tn_plan *p = b->plan;
  b->inputs = mem_calloc(m, p->n_inputs, sizeof *b->inputs);
  b->outputs = mem_calloc(m, p->n_outputs, sizeof *b->outputs);
  b->spares = mem_calloc(m, p->n_states, sizeof *b->spares);
  b->turns = mem_calloc(m, p->n_states, sizeof *b->turns);
  return b->inputs && b->outputs && b->spares && b->turns;
}

static tn_status open_parts(tn_binding *b, diag *d) {
  const tn_plan *p = b->plan;
  if (!alloc_parts(b)) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  for (size_t i = 0; i < p->n_states; i++) b->turns[i].store = p->states[i].store;
  tn_status s = execution_open(&b->execution, p->executable, NULL, d);
  for (size_t i = 0; i < p->n_values && s == TN_OK; i++)
    if (p->values[i].buffer != SIZE_MAX)
      s = execution_set_buffer(b->execution, p->values[i].buffer, p->values[i].memory, d);
  return s;
}

static void publish(tn_binding *b) {
  tn_context *c = b->context;
  mutex_lock(&c->lock);
  b->next = c->bindings;
  b->link = &c->bindings;
  if (b->next) b->next->link = &b->next;
  c->bindings = b;
  mutex_unlock(&c->lock);
}

static tn_status bind(tn_plan *p, tn_binding **out) {
  tn_context *c = p->context;
  diag d = {0};
  if (!out) {
    diag_set(&d, TN_ERR_ARGUMENT, "%s: plan_bind: the place for the binding is NULL", p->name);
    return context_message(c, &d);
  }
  tn_binding *b = mem_calloc(&c->mem, 1, sizeof *b);
  tn_status s = b ? TN_OK : diag_set(&d, TN_ERR_MEMORY, "out of memory");
  if (b) {
    b->context = c;
    b->plan = p;
    atomic_init(&b->entered, false);
    atomic_init(&b->started, 0);
    atomic_fetch_add_explicit(&p->count, 1, memory_order_relaxed);
    s = open_parts(b, &d);
    if (s != TN_OK) binding_destroy(b);
  }
  if (s != TN_OK) {
    diag_prefix(&d, "%s: plan_bind", p->name);
    return context_message(c, &d);
  }
  publish(b);
  *out = b;
  return s;
}

tn_status tn_plan_bind(tn_plan *p, tn_binding **out) {
  if (out) *out = NULL;
  if (!p) return TN_ERR_ARGUMENT;
  tn_context *c = p->context;
  tn_status s = context_begin_beside(c, VISIT_NONE);
  if (s != TN_OK) return s;
  s = bind(p, out);
  context_end_beside(c);
  return s;
}

static void free_binding(tn_binding *b) {
  tn_context *c = b->context;
  mutex_lock(&c->lock);
  *b->link = b->next;
  if (b->next) b->next->link = b->link;
  mutex_unlock(&c->lock);
  binding_destroy(b);
}

void tn_binding_free(tn_binding *b) {
  tn_context *c = b ? b->context : NULL;
  if (!b || context_begin_beside(c, VISIT_NONE) != TN_OK) return;
  free_binding(b);
  context_end_beside(c);
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
}

/* Ports. */

static size_t find_port(tn_binding *b, const plan_port *ports, const names *of, const char *name,
                        const char *what) {
  const plan_port *p = name ? names_get(of, name) : NULL;
  if (p) return (size_t)(p - ports);
  diag_set(&b->diag, TN_ERR_ARGUMENT, "%s has no %s %.200s", b->plan->name, what,
           name ? name : "NULL");
  return SIZE_MAX;
}

static size_t find_input(tn_binding *b, const char *name) {
  return find_port(b, b->plan->inputs, &b->plan->input_of, name, "input");
}

static size_t find_output(tn_binding *b, const char *name) {
  return find_port(b, b->plan->outputs, &b->plan->output_of, name, "output");
}

static tn_status check_dtype(tn_binding *b, tn_dtype t) {
  return tn_dtype_size(t) ? TN_OK
                          : diag_set(&b->diag, TN_ERR_DTYPE, "%s (%d) is no type of data",
                                     tn_dtype_name(t), (int)t);
}

static tn_status check_size(tn_binding *b, const plan_port *p, size_t axis, int64_t size) {
  const port_size *s = &p->size[axis];
  int64_t value;
  if (s->is_fixed && size != s->offset)
    return diag_set(&b->diag, TN_ERR_SHAPE, "input %s: axis %zu has size %lld, not %lld", p->name,
                    axis, (long long)size, (long long)s->offset);
  if (s->var != SIZE_MAX && !binding_solve(b->plan, s, size, &value))
    return binding_refuse_size(b, p, axis, size);
  return TN_OK;
}

static tn_status check_shape(tn_binding *b, const plan_port *p, tn_shape shape, size_t bytes,
                             uint64_t *count) {
  if (shape.rank < 0 || (size_t)shape.rank != p->rank)
    return diag_set(&b->diag, TN_ERR_SHAPE, "input %s has rank %d, not %zu", p->name,
                    (int)shape.rank, p->rank);
  if (!binding_count(shape, bytes, count))
    return diag_set(&b->diag, TN_ERR_SHAPE, "input %s: a size is no number, or too large", p->name);
  tn_status s = TN_OK;
  for (size_t i = 0; i < p->rank && s == TN_OK; i++) s = check_size(b, p, i, shape.size[i]);
  return s;
}

static tn_status check_value(tn_binding *b, const plan_port *p, tn_shape shape, tn_dtype t,
                             const void *data, size_t bytes, uint64_t *count) {
  size_t size = tn_dtype_size(t);
  tn_status s = check_dtype(b, t);
  if (s == TN_OK) s = check_shape(b, p, shape, size, count);
  if (s != TN_OK) return s;
  if (bytes != *count * size)
    return diag_set(&b->diag, TN_ERR_ARGUMENT, "input %s: %zu bytes are given; it has %llu",
                    p->name, bytes, (unsigned long long)(*count * size));
  if (!data && *count)
    return diag_set(&b->diag, TN_ERR_ARGUMENT, "input %s: the data is NULL", p->name);
  return TN_OK;
}

/** One that is refused leaves the input without a value: a run shall not read the one before. */
static tn_status set_input(tn_binding *b, const char *name, tn_shape shape, tn_dtype t,
                           const void *data, size_t bytes) {
  size_t i = find_input(b, name);
  if (i == SIZE_MAX) return b->diag.status;
  const plan_port *p = &b->plan->inputs[i];
  bound_input *in = &b->inputs[i];
  uint64_t count;
  tn_status s = check_value(b, p, shape, t, data, bytes, &count);
  in->given = s == TN_OK;
  if (!in->given || in->data != data || in->count != count || in->from != (dtype)t)
    binding_set_memory(&in->imported, NULL);
  binding_set_memory(&in->carried, NULL);
  if (s != TN_OK) return s;
  in->data = data;
  in->from = (dtype)t;
  in->count = count;
  for (size_t k = 0; k < p->rank; k++) in->size[k] = shape.size[k];
  return TN_OK;
}

tn_status tn_binding_input(tn_binding *b, const char *name, tn_shape shape, tn_dtype dtype,
                           const void *data, size_t bytes) {
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  s = set_input(b, name, shape, dtype, data, bytes);
  if (s != TN_OK) fail(b);
  binding_leave(b);
  return s;
}

static tn_status set_output(tn_binding *b, const char *name, tn_dtype t, void *data, size_t bytes) {
  size_t i = find_output(b, name);
  if (i == SIZE_MAX) return b->diag.status;
  tn_status s = data ? check_dtype(b, t) : TN_OK;
  if (s != TN_OK) return s;
  b->outputs[i].data = data;
  b->outputs[i].to = (dtype)t;
  b->outputs[i].bytes = bytes;
  return TN_OK;
}

tn_status tn_binding_output(tn_binding *b, const char *name, tn_dtype dtype, void *data,
                            size_t bytes) {
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  s = set_output(b, name, dtype, data, bytes);
  if (s != TN_OK) fail(b);
  binding_leave(b);
  return s;
}

static tn_status set_carry(tn_binding *b, const char *output, const char *input) {
  size_t o = find_output(b, output), i = o == SIZE_MAX ? SIZE_MAX : find_input(b, input);
  if (i == SIZE_MAX) return b->diag.status;
  const plan_port *from = &b->plan->outputs[o], *to = &b->plan->inputs[i];
  if (from->dtype != to->dtype)
    return diag_set(&b->diag, TN_ERR_DTYPE, "output %s is %s, input %s is %s", output,
                    dtype_name(from->dtype), input, dtype_name(to->dtype));
  if (from->rank != to->rank)
    return diag_set(&b->diag, TN_ERR_SHAPE, "output %s has rank %zu, input %s has rank %zu", output,
                    from->rank, input, to->rank);
  b->inputs[i].carry = o + 1;
  return TN_OK;
}

tn_status tn_binding_carry(tn_binding *b, const char *output, const char *input) {
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  s = set_carry(b, output, input);
  if (s != TN_OK) fail(b);
  binding_leave(b);
  return s;
}

/* Running. */

tn_status tn_binding_run(tn_binding *b) {
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  b->has_run = false;
  s = binding_take_kept(b);
  if (s == TN_OK) {
    s = binding_run(b);
    if (s != TN_OK) diag_copy(&b->message, &b->diag);
    b->has_run = s == TN_OK;
  }
  binding_leave(b);
  return s;
}

/* Results. */

tn_type tn_binding_type(const tn_binding *b, const char *output) {
  tn_type t = {TN_UNDEFINED, {0, {0}}};
  if (!b || binding_is_running(b) || !b->has_run || !output) return t;
  const plan_port *p = names_get(&b->plan->output_of, output);
  if (!p) return t;
  t.dtype = (tn_dtype)p->dtype;
  t.shape.rank = (int32_t)p->rank;
  for (size_t k = 0; k < p->rank; k++) t.shape.size[k] = b->outputs[p - b->plan->outputs].size[k];
  return t;
}

static tn_status read_result(tn_binding *b, const char *output, tn_dtype t, void *data,
                             size_t bytes) {
  size_t i = find_output(b, output);
  if (i == SIZE_MAX) return b->diag.status;
  if (!b->has_run)
    return diag_set(&b->diag, TN_ERR_ARGUMENT, "output %s has no value: no run, or one that failed",
                    output);
  tn_status s = check_dtype(b, t);
  if (s != TN_OK) return s;
  uint64_t need = b->outputs[i].count * tn_dtype_size(t);
  if (bytes != need)
    return diag_set(&b->diag, TN_ERR_ARGUMENT, "output %s has %llu bytes; %zu are given", output,
                    (unsigned long long)need, bytes);
  if (!data && need)
    return diag_set(&b->diag, TN_ERR_ARGUMENT, "output %s: the data is NULL", output);
  return binding_give(b, i, (dtype)t, data);
}

tn_status tn_binding_read(tn_binding *b, const char *output, tn_dtype dtype, void *data,
                          size_t bytes) {
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  if (b->kept_is_run) {
    s = binding_take_kept(b);
  } else {
    s = read_result(b, output, dtype, data, bytes);
    if (s != TN_OK) diag_copy(&b->message, &b->diag);
  }
  binding_leave(b);
  return s;
}

/* Profiles. */

tn_status tn_binding_profile(tn_binding *b, bool on) {
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  s = execution_profile(b->execution, on, &b->diag);
  if (s != TN_OK) diag_copy(&b->message, &b->diag);
  binding_leave(b);
  return s;
}

tn_status tn_binding_step(tn_binding *b, size_t i, tn_step *step) {
  execution_step found;
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  if (!execution_step_at(b->execution, i, &found)) {
    binding_leave(b);
    return TN_ERR_ARGUMENT;
  }
  tn_step given = {.size = sizeof given,
                   .name = found.name,
                   .kernel = found.kernel == SIZE_MAX ? -1 : (int64_t)found.kernel,
                   .operations = found.work.operations,
                   .bytes = found.work.bytes,
                   .steps = found.n_steps,
                   .times = found.times};
  if (b->has_run) given.begin = found.begin, given.end = found.end;
  s = desc_give(&b->diag, step, &given, sizeof given, "tn_step");
  if (s != TN_OK) diag_copy(&b->message, &b->diag);
  binding_leave(b);
  return s;
}

tn_status tn_binding_memory(tn_binding *b, tn_memory *memory) {
  tn_memory found = TN_MEMORY_INIT;
  tn_status s = binding_enter(b);
  if (s != TN_OK) return s;
  s = binding_memory(b, &found);
  if (s == TN_OK) s = desc_give(&b->diag, memory, &found, sizeof found, "tn_memory");
  if (s != TN_OK) diag_copy(&b->message, &b->diag);
  binding_leave(b);
  return s;
}
