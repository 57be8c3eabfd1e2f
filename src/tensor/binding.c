/* Bindings of the public kind. */
#include "device/span.h"
#include "tensor/dims.h"
#include "tensor/plan.h"
#include "tensor/realize.h"

#include <string.h>

typedef struct bound_input {
  bool given; /* by tn_binding_input */
  const void *data;
  dtype from;
  int64_t size[TN_MAX_RANK];
  uint64_t count;
  tn_buffer *imported; /* the caller's memory, where the device can use it as it is */
  tn_buffer *own;      /* else a copy */
  size_t carry;        /* the output that it takes over + 1 */
  tn_buffer *carried;  /* what that output was in the last run */
} bound_input;

typedef struct bound_output {
  void *data; /* the caller's; NULL: none */
  dtype to;
  size_t bytes;
  int64_t size[TN_MAX_RANK]; /* in the last run, or the one at hand */
  uint64_t count;
  tn_buffer *memory; /* of the last run */
  tn_buffer *other;  /* the one before, for a new value while an input reads the old one */
} bound_output;

struct tn_binding {
  tn_context *context;
  tn_plan *plan;
  tn_binding *next, **link; /* under the context's lock */
  atomic_bool entered;
  binding *binding;
  diag diag; /* of the call at hand */
  diag kept; /* the first failure since the last run */
  diag message;
  bool has_run; /* and the last run did not fail */
  bound_input *inputs;
  bound_output *outputs;
  tn_buffer **spares; /* of each state: memory for its next contents */
  turn *turns;
};

/* Calls. */

static tn_status enter(tn_binding *b) {
  if (!b) return TN_ERR_ARGUMENT;
  return atomic_exchange_explicit(&b->entered, true, memory_order_acquire) ? TN_ERR_BUSY : TN_OK;
}

static void leave(tn_binding *b) {
  atomic_store_explicit(&b->entered, false, memory_order_release);
}

static void copy_failure(diag *to, const diag *from) {
  diag_set(to, from->status, "%s", from->text);
}

/** Tells a failure, which is kept for the next run. */
static tn_status fail(tn_binding *b) {
  copy_failure(&b->message, &b->diag);
  if (b->kept.status == TN_OK) copy_failure(&b->kept, &b->diag);
  return b->diag.status;
}

const char *tn_binding_message(const tn_binding *b) {
  return b ? b->message.text : "there is no binding";
}

/* Opening and freeing. */

static void set_buffer(tn_buffer **slot, tn_buffer *with) {
  if (*slot) buffer_release(*slot);
  *slot = with;
}

void binding_destroy(tn_binding *b) {
  tn_plan *p = b->plan;
  const mem *m = &b->context->mem;
  binding_close(b->binding);
  for (size_t i = 0; b->inputs && i < p->n_inputs; i++) {
    set_buffer(&b->inputs[i].imported, NULL);
    set_buffer(&b->inputs[i].own, NULL);
    set_buffer(&b->inputs[i].carried, NULL);
  }
  for (size_t i = 0; b->outputs && i < p->n_outputs; i++) {
    set_buffer(&b->outputs[i].memory, NULL);
    set_buffer(&b->outputs[i].other, NULL);
  }
  for (size_t i = 0; b->spares && i < p->n_states; i++) set_buffer(&b->spares[i], NULL);
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
  tn_status s = binding_open(&b->binding, p->plan, NULL, d);
  for (size_t i = 0; i < p->n_values && s == TN_OK; i++)
    if (p->values[i].buffer != SIZE_MAX)
      s = binding_set_buffer(b->binding, p->values[i].buffer, p->values[i].memory, d);
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

tn_status tn_plan_bind(tn_plan *p, tn_binding **out) {
  if (out) *out = NULL;
  if (!p || !out) return TN_ERR_ARGUMENT;
  tn_context *c = p->context;
  diag d = {0};
  tn_binding *b = mem_calloc(&c->mem, 1, sizeof *b);
  tn_status s = b ? TN_OK : diag_set(&d, TN_ERR_MEMORY, "out of memory");
  if (b) {
    b->context = c;
    b->plan = p;
    atomic_init(&b->entered, false);
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

void tn_binding_free(tn_binding *b) {
  if (!b) return;
  tn_context *c = b->context;
  mutex_lock(&c->lock);
  *b->link = b->next;
  if (b->next) b->next->link = b->link;
  mutex_unlock(&c->lock);
  binding_destroy(b);
}

void plan_free_all(tn_context *c) {
  while (c->bindings) tn_binding_free(c->bindings);
  while (c->plans) tn_plan_free(c->plans);
}

/* Ports. */

static size_t find_port(tn_binding *b, const plan_port *ports, size_t n, const char *name,
                        const char *what) {
  for (size_t i = 0; name && i < n; i++)
    if (!strcmp(ports[i].name, name)) return i;
  diag_set(&b->diag, TN_ERR_ARGUMENT, "%s has no %s %.200s", b->plan->name, what,
           name ? name : "NULL");
  return SIZE_MAX;
}

static size_t find_input(tn_binding *b, const char *name) {
  return find_port(b, b->plan->inputs, b->plan->n_inputs, name, "input");
}

static size_t find_output(tn_binding *b, const char *name) {
  return find_port(b, b->plan->outputs, b->plan->n_outputs, name, "output");
}

static tn_status check_dtype(tn_binding *b, tn_dtype t) {
  return tn_dtype_size(t) ? TN_OK
                          : diag_set(&b->diag, TN_ERR_DTYPE, "%s (%d) is no type of data",
                                     tn_dtype_name(t), (int)t);
}

/** The number of elements of a shape with sizes that are numbers; false if they are none, or too
    many. */
static bool count_elements(tn_shape s, size_t bytes, uint64_t *count) {
  *count = 1;
  for (int32_t i = 0; i < s.rank; i++) {
    if (s.size[i] < 0 || s.size[i] >= DIM_NUMBER) return false;
    if (__builtin_mul_overflow(*count, (uint64_t)s.size[i], count)) return false;
  }
  return *count <= (uint64_t)PTRDIFF_MAX / bytes;
}

/** The value of the variable that a size tells; false if there is none that gives it. */
static bool solve(const tn_plan *p, const port_size *s, int64_t size, int64_t *value) {
  const tn_program_var *v = plan_var_at(p->plan, s->var);
  int64_t rest = size - s->offset;
  if (rest % s->scale) return false;
  *value = rest / s->scale;
  return *value >= v->min && *value <= v->max;
}

static tn_status check_shape(tn_binding *b, const plan_port *p, tn_shape shape) {
  int64_t value;
  if (shape.rank < 0 || (size_t)shape.rank != p->rank)
    return diag_set(&b->diag, TN_ERR_SHAPE, "input %s has rank %d, not %zu", p->name,
                    (int)shape.rank, p->rank);
  for (size_t i = 0; i < p->rank; i++)
    if (p->size[i].var != SIZE_MAX && !solve(b->plan, &p->size[i], shape.size[i], &value))
      return diag_set(&b->diag, TN_ERR_SHAPE,
                      "input %s: axis %zu of size %lld gives %s no value within its bounds",
                      p->name, i, (long long)shape.size[i],
                      plan_var_at(b->plan->plan, p->size[i].var)->name);
  return TN_OK;
}

static tn_status set_input(tn_binding *b, const char *name, tn_shape shape, tn_dtype t,
                           const void *data, size_t bytes) {
  size_t i = find_input(b, name);
  if (i == SIZE_MAX) return b->diag.status;
  const plan_port *p = &b->plan->inputs[i];
  tn_status s = check_dtype(b, t);
  if (s == TN_OK) s = check_shape(b, p, shape);
  if (s != TN_OK) return s;
  uint64_t count;
  size_t size = tn_dtype_size(t);
  if (!count_elements(shape, size, &count))
    return diag_set(&b->diag, TN_ERR_SHAPE, "input %s: a size is no number", name);
  if (bytes != count * size || (!data && count))
    return diag_set(&b->diag, TN_ERR_ARGUMENT, "input %s: %zu bytes are given; it has %llu", name,
                    data ? bytes : 0, (unsigned long long)(count * size));
  bound_input *in = &b->inputs[i];
  if (in->data != data || in->count != count || in->from != (dtype)t)
    set_buffer(&in->imported, NULL);
  set_buffer(&in->carried, NULL);
  in->given = true;
  in->data = data;
  in->from = (dtype)t;
  in->count = count;
  for (size_t k = 0; k < p->rank; k++) in->size[k] = shape.size[k];
  return TN_OK;
}

tn_status tn_binding_input(tn_binding *b, const char *name, tn_shape shape, tn_dtype dtype,
                           const void *data, size_t bytes) {
  tn_status s = enter(b);
  if (s != TN_OK) return s;
  s = set_input(b, name, shape, dtype, data, bytes);
  if (s != TN_OK) fail(b);
  leave(b);
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
  tn_status s = enter(b);
  if (s != TN_OK) return s;
  s = set_output(b, name, dtype, data, bytes);
  if (s != TN_OK) fail(b);
  leave(b);
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
  tn_status s = enter(b);
  if (s != TN_OK) return s;
  s = set_carry(b, output, input);
  if (s != TN_OK) fail(b);
  leave(b);
  return s;
}

/* A run: sizes. */

static tn_status check_given(tn_binding *b) {
  char names[512] = "";
  size_t n = 0;
  for (size_t i = 0; i < b->plan->n_inputs; i++) {
    if (b->inputs[i].given) continue;
    const char *name = b->plan->inputs[i].name, *between = n ? ", " : "";
    if (n + strlen(name) + 3 > sizeof names) break;
    n += strlen(strcat(strcat(names + n, between), name));
  }
  return n ? diag_set(&b->diag, TN_ERR_ARGUMENT, "%s: inputs without a value: %s", b->plan->name,
                      names)
           : TN_OK;
}

/** Each variable is read off the first size that tells it. */
static tn_status find_vars(tn_binding *b) {
  const tn_plan *p = b->plan;
  tn_status s = TN_OK;
  for (size_t v = 0; v < plan_vars(p->plan) && s == TN_OK; v++) {
    const char *name = plan_var_at(p->plan, v)->name;
    bool found = false;
    for (size_t i = 0; i < p->n_inputs && !found; i++)
      for (size_t k = 0; k < p->inputs[i].rank && !found; k++) {
        int64_t value;
        if (p->inputs[i].size[k].var != v) continue;
        if (!solve(p, &p->inputs[i].size[k], b->inputs[i].size[k], &value))
          return diag_set(&b->diag, TN_ERR_SHAPE, "input %s: axis %zu of size %lld does not fit %s",
                          p->inputs[i].name, k, (long long)b->inputs[i].size[k], name);
        found = true;
        s = binding_set_var(b->binding, name, value, &b->diag);
      }
    if (!found)
      return diag_set(&b->diag, TN_ERR_ARGUMENT, "%s: no input's shape tells the size %s", p->name,
                      name);
  }
  return s;
}

static tn_status check_inputs(tn_binding *b) {
  const tn_plan *p = b->plan;
  for (size_t i = 0; i < p->n_inputs; i++)
    for (size_t k = 0; k < p->inputs[i].rank; k++) {
      int64_t size;
      tn_status s = binding_size(b->binding, p->inputs[i].size[k].expression, &size, &b->diag);
      if (s != TN_OK) return s;
      if (size == b->inputs[i].size[k]) continue;
      return diag_set(&b->diag, TN_ERR_SHAPE, "input %s: axis %zu has size %lld, not %lld",
                      p->inputs[i].name, k, (long long)b->inputs[i].size[k], (long long)size);
    }
  return TN_OK;
}

static tn_status find_outputs(tn_binding *b) {
  const tn_plan *p = b->plan;
  for (size_t i = 0; i < p->n_outputs; i++) {
    bound_output *o = &b->outputs[i];
    tn_shape shape = {(int32_t)p->outputs[i].rank, {0}};
    for (size_t k = 0; k < p->outputs[i].rank; k++) {
      tn_status s =
          binding_size(b->binding, p->outputs[i].size[k].expression, &shape.size[k], &b->diag);
      if (s != TN_OK) return s;
      o->size[k] = shape.size[k];
    }
    if (!count_elements(shape, 8, &o->count))
      return diag_set(&b->diag, TN_ERR_SHAPE, "output %s is larger than memory",
                      p->outputs[i].name);
    if (o->data && o->count * dtype_bytes(o->to) > o->bytes)
      return diag_set(&b->diag, TN_ERR_SHAPE, "output %s needs %llu bytes; its memory has %zu",
                      p->outputs[i].name, (unsigned long long)(o->count * dtype_bytes(o->to)),
                      o->bytes);
  }
  return TN_OK;
}

/* A run: memory. */

/** A buffer of at least so many bytes, allocated, in a slot. */
static tn_status ensure(tn_binding *b, tn_buffer **slot, uint64_t bytes) {
  tn_span span;
  tn_status s = TN_OK;
  if (!*slot || buffer_bytes(*slot) < bytes) {
    tn_buffer *fresh;
    s = buffer_open(b->context->device, bytes, &fresh, &b->diag);
    if (s == TN_OK) set_buffer(slot, fresh);
  }
  return s == TN_OK ? buffer_span(*slot, &span, &b->diag) : s;
}

/** The caller's memory is used as it is where types agree and the device can. */
static bool import_input(tn_binding *b, bound_input *in, dtype t) {
  if (in->imported) return true;
  if (in->from != t || t == DT_BOOL || !in->count) return false;
  if (!b->context->device->backend->import || (uintptr_t)in->data % dtype_bytes(t)) return false;
  diag d = {0};
  return buffer_import(b->context->device, (void *)in->data, in->count * dtype_bytes(t), NULL, NULL,
                       &in->imported, &d) == TN_OK;
}

static tn_status place_input(tn_binding *b, size_t i) {
  bound_input *in = &b->inputs[i];
  const plan_port *p = &b->plan->inputs[i];
  if (p->buffer == SIZE_MAX) return TN_OK;
  tn_buffer *memory = in->carried;
  tn_status s = TN_OK;
  if (!memory && import_input(b, in, p->dtype)) memory = in->imported;
  if (!memory) {
    tn_span span;
    s = ensure(b, &in->own, in->count * dtype_bytes(p->dtype));
    if (s == TN_OK) s = buffer_span(in->own, &span, &b->diag);
    if (s == TN_OK)
      s = span_write(&span, p->dtype, in->from, in->data, (size_t)in->count, &b->diag);
    memory = in->own;
  }
  return s == TN_OK ? binding_set_buffer(b->binding, p->buffer, memory, &b->diag) : s;
}

static bool is_carried(const tn_binding *b, const tn_buffer *memory) {
  for (size_t i = 0; i < b->plan->n_inputs; i++)
    if (memory && b->inputs[i].carried == memory) return true;
  return false;
}

/** Whether an output is in a buffer that belongs to something else: then it is copied after the
    run. */
static bool is_shared(const tn_binding *b, size_t i) {
  const tn_plan *p = b->plan;
  size_t at = p->outputs[i].buffer;
  if (plan_buffer_at(p->plan, at)->role == ROLE_INPUT) return true;
  for (size_t k = 0; k < i; k++)
    if (p->outputs[k].buffer == at) return true;
  for (size_t k = 0; k < p->n_states; k++)
    if (p->states[k].out == at) return true;
  return false;
}

static tn_status place_output(tn_binding *b, size_t i) {
  bound_output *o = &b->outputs[i];
  const plan_port *p = &b->plan->outputs[i];
  if (is_carried(b, o->memory)) {
    tn_buffer *m = o->memory;
    o->memory = o->other;
    o->other = m;
  }
  tn_status s = ensure(b, &o->memory, o->count * dtype_bytes(p->dtype));
  if (s != TN_OK || is_shared(b, i)) return s;
  return binding_set_buffer(b->binding, p->buffer, o->memory, &b->diag);
}

static tn_status copy_memory(tn_binding *b, tn_buffer *to, tn_buffer *from, uint64_t bytes) {
  tn_span x, y;
  tn_status s = buffer_span(to, &x, &b->diag);
  if (s == TN_OK) s = buffer_span(from, &y, &b->diag);
  x.bytes = y.bytes = bytes;
  return s == TN_OK ? span_copy(&x, &y, &b->diag) : s;
}

/** In its turn: a state that is written in place, and that the context still reads, goes on in a
    copy. */
static tn_status place_state(tn_binding *b, size_t i) {
  const plan_state *p = &b->plan->states[i];
  store *t = p->store;
  tn_status s = TN_OK;
  mutex_lock(&b->context->lock);
  bool lent = t->lent;
  mutex_unlock(&b->context->lock);
  bool in_place = p->out != SIZE_MAX && p->out == p->in;
  if (p->out != SIZE_MAX && (!in_place || lent)) s = ensure(b, &b->spares[i], t->bytes);
  if (s == TN_OK && in_place && lent) {
    s = copy_memory(b, b->spares[i], t->memory, t->bytes);
    if (s != TN_OK) return s;
    mutex_lock(&b->context->lock);
    tn_buffer *old = t->memory;
    t->memory = b->spares[i];
    t->lent = false;
    mutex_unlock(&b->context->lock);
    b->spares[i] = NULL;
    buffer_release(old);
  }
  if (s == TN_OK && p->in != SIZE_MAX)
    s = binding_set_buffer(b->binding, p->in, t->memory, &b->diag);
  if (s == TN_OK && p->out != SIZE_MAX && !in_place &&
      plan_buffer_at(b->plan->plan, p->out)->role == ROLE_OUTPUT)
    s = binding_set_buffer(b->binding, p->out, b->spares[i], &b->diag);
  return s;
}

/** What was computed aside becomes the contents; the old memory is for the next time, unless the
    context reads it. */
static tn_status keep_state(tn_binding *b, size_t i) {
  const plan_state *p = &b->plan->states[i];
  if (p->out == SIZE_MAX || p->out == p->in) return TN_OK;
  tn_buffer *made = binding_buffer(b->binding, p->out);
  if (made != b->spares[i]) {
    tn_status s = copy_memory(b, b->spares[i], made, p->store->bytes);
    if (s != TN_OK) return s;
  }
  mutex_lock(&b->context->lock);
  tn_buffer *old = p->store->memory;
  p->store->memory = b->spares[i];
  b->spares[i] = p->store->lent ? NULL : old;
  bool lent = p->store->lent;
  p->store->lent = false;
  mutex_unlock(&b->context->lock);
  if (lent) buffer_release(old);
  return TN_OK;
}

/* A run. */

static tn_status copy_outputs(tn_binding *b) {
  tn_status s = TN_OK;
  for (size_t i = 0; i < b->plan->n_outputs && s == TN_OK; i++) {
    const plan_port *p = &b->plan->outputs[i];
    if (is_shared(b, i))
      s = copy_memory(b, b->outputs[i].memory, binding_buffer(b->binding, p->buffer),
                      b->outputs[i].count * dtype_bytes(p->dtype));
  }
  return s;
}

static tn_status run_in_turn(tn_binding *b) {
  const tn_plan *p = b->plan;
  tn_status s = turns_wait(b->turns, p->n_states, &b->diag);
  for (size_t i = 0; i < p->n_states && s == TN_OK; i++) s = place_state(b, i);
  if (s == TN_OK) s = binding_run(b->binding, &b->diag);
  if (s == TN_OK) s = copy_outputs(b);
  for (size_t i = 0; i < p->n_states && s == TN_OK; i++) s = keep_state(b, i);
  return s;
}

static tn_status read_output(tn_binding *b, size_t i, dtype to, void *data) {
  tn_span span;
  bound_output *o = &b->outputs[i];
  tn_status s = buffer_span(o->memory, &span, &b->diag);
  if (s != TN_OK || !o->count) return s;
  return span_read(&span, b->plan->outputs[i].dtype, to, data, (size_t)o->count, &b->diag);
}

static tn_status give_outputs(tn_binding *b) {
  tn_status s = TN_OK;
  for (size_t i = 0; i < b->plan->n_outputs && s == TN_OK; i++)
    if (b->outputs[i].data) s = read_output(b, i, b->outputs[i].to, b->outputs[i].data);
  return s;
}

/** The next run's inputs. */
static void carry(tn_binding *b) {
  for (size_t i = 0; i < b->plan->n_inputs; i++) {
    bound_input *in = &b->inputs[i];
    if (!in->carry) continue;
    const bound_output *o = &b->outputs[in->carry - 1];
    set_buffer(&in->carried, buffer_retain(o->memory));
    memcpy(in->size, o->size, sizeof in->size);
    in->count = o->count;
  }
}

static tn_status run(tn_binding *b) {
  const tn_plan *p = b->plan;
  tn_status s = check_given(b);
  if (s == TN_OK) s = find_vars(b);
  if (s == TN_OK) s = check_inputs(b);
  if (s == TN_OK) s = find_outputs(b);
  for (size_t i = 0; i < p->n_inputs && s == TN_OK; i++) s = place_input(b, i);
  for (size_t i = 0; i < p->n_outputs && s == TN_OK; i++) s = place_output(b, i);
  if (s != TN_OK) return s;
  turns_take(b->context, b->turns, p->n_states);
  s = run_in_turn(b);
  turns_end(b->turns, p->n_states);
  if (s == TN_OK) s = give_outputs(b);
  if (s == TN_OK) carry(b);
  return s;
}

/** Assigns that this thread made before, to states of the plan, come first. What another thread
   does in the context has no before; it is not to find its context busy. */
static tn_status run_pending(tn_binding *b) {
  tn_context *c = b->context;
  bool pending = false;
  mutex_lock(&c->lock);
  for (size_t i = 0; i < b->plan->n_states; i++) pending |= b->plan->states[i].store->pending;
  mutex_unlock(&c->lock);
  if (!pending || !context_is_mine(c) || context_take(c) != TN_OK) return TN_OK;
  tn_status s = realize(c, NULL, 0, REALIZE_ALL);
  if (s != TN_OK) copy_failure(&b->diag, &c->diag);
  if (s != TN_OK) context_fail(c, "binding_run", NULL, 0);
  context_leave(c);
  return s;
}

static void count_running(tn_context *c, bool more) {
  mutex_lock(&c->lock);
  c->running += more ? 1 : (size_t)-1;
  mutex_unlock(&c->lock);
}

tn_status tn_binding_run(tn_binding *b) {
  tn_status s = enter(b);
  if (s != TN_OK) return s;
  b->has_run = false;
  if (b->kept.status != TN_OK) {
    copy_failure(&b->message, &b->kept);
    s = b->kept.status;
    diag_clear(&b->kept);
  } else {
    count_running(b->context, true);
    s = run_pending(b);
    if (s == TN_OK) s = run(b);
    count_running(b->context, false);
    if (s != TN_OK) copy_failure(&b->message, &b->diag);
    b->has_run = s == TN_OK;
  }
  leave(b);
  return s;
}

/* Results. */

tn_type tn_binding_type(const tn_binding *b, const char *output) {
  tn_type t = {TN_UNDEFINED, {0, {0}}};
  if (!b || !b->has_run || !output) return t;
  for (size_t i = 0; i < b->plan->n_outputs; i++) {
    const plan_port *p = &b->plan->outputs[i];
    if (strcmp(p->name, output)) continue;
    t.dtype = (tn_dtype)p->dtype;
    t.shape.rank = (int32_t)p->rank;
    for (size_t k = 0; k < p->rank; k++) t.shape.size[k] = b->outputs[i].size[k];
  }
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
  if (bytes != need || (!data && need))
    return diag_set(&b->diag, TN_ERR_ARGUMENT, "output %s has %llu bytes; %zu are given", output,
                    (unsigned long long)need, data ? bytes : 0);
  return read_output(b, i, (dtype)t, data);
}

tn_status tn_binding_read(tn_binding *b, const char *output, tn_dtype dtype, void *data,
                          size_t bytes) {
  tn_status s = enter(b);
  if (s != TN_OK) return s;
  s = read_result(b, output, dtype, data, bytes);
  if (s != TN_OK) copy_failure(&b->message, &b->diag);
  leave(b);
  return s;
}
