/* The run of a binding.

   Nothing is looked up or compiled, and memory is allocated where sizes have grown. What locks it
   takes: the context's, for the turns of the plan's states and to exchange their memory, and not at
   all in a plan without states; those of its queue and signals; and the context itself where
   assigns to its states are pending. */
#include "tensor/binding.h"

#include "device/span.h"
#include "ir/var.h"
#include "runtime/buffers.h"
#include "tensor/dims.h"
#include "tensor/realize.h"

#include <stdio.h>
#include <string.h>

/* Sizes. */

bool binding_count(tn_shape s, size_t bytes, uint64_t *count) {
  *count = 1;
  for (int32_t i = 0; i < s.rank; i++) {
    if (s.size[i] < 0 || s.size[i] >= DIM_NUMBER) return false;
    if (__builtin_mul_overflow(*count, (uint64_t)s.size[i], count)) return false;
  }
  return *count <= (uint64_t)PTRDIFF_MAX / bytes;
}

bool binding_solve(const tn_plan *p, const port_size *s, int64_t size, int64_t *value) {
  const tn_program_var *v = executable_var_at(p->executable, s->var);
  int64_t rest;
  if (__builtin_sub_overflow(size, s->offset, &rest) || rest % s->scale) return false;
  *value = rest / s->scale;
  return *value >= v->min && *value <= v->max;
}

tn_status binding_refuse_size(tn_binding *b, const plan_port *p, size_t axis, int64_t size) {
  const tn_program_var *v = executable_var_at(b->plan->executable, p->size[axis].var);
  return diag_set(&b->diag, TN_ERR_SHAPE,
                  "input %s: axis %zu of size %lld gives %s no value from %lld to %lld", p->name,
                  axis, (long long)size, var_name(v->name), (long long)v->min, (long long)v->max);
}

enum { NAME_SHOWN = 100 };

/** Appends to a list of names, each cut if it is long, as far as there is room. */
static void list_name(char *text, size_t bytes, const char *name) {
  size_t n = strlen(text);
  bool is_long = strlen(name) > NAME_SHOWN;
  snprintf(text + n, bytes - n, "%s%.*s%s", n ? ", " : "", NAME_SHOWN, name, is_long ? "…" : "");
}

static tn_status check_given(tn_binding *b) {
  char names[512] = "";
  bool is_missing = false;
  for (size_t i = 0; i < b->plan->n_inputs; i++) {
    if (b->inputs[i].given) continue;
    is_missing = true;
    list_name(names, sizeof names, b->plan->inputs[i].name);
  }
  if (!is_missing) return TN_OK;
  return diag_set(&b->diag, TN_ERR_ARGUMENT, "%s: inputs without a value: %s", b->plan->name,
                  names);
}

static tn_status find_vars(tn_binding *b) {
  const tn_plan *p = b->plan;
  tn_status s = TN_OK;
  for (size_t v = 0; v < executable_vars(p->executable) && s == TN_OK; v++) {
    size_t i = p->vars[v].input, k = p->vars[v].axis;
    int64_t value;
    if (var_is_trip(executable_var_at(p->executable, v)->name)) continue;
    if (!binding_solve(p, &p->inputs[i].size[k], b->inputs[i].size[k], &value))
      return binding_refuse_size(b, &p->inputs[i], k, b->inputs[i].size[k]);
    s = execution_set_var(b->execution, v, value, &b->diag);
  }
  return s;
}

/** An input's size is not what the others make it: names the variable, and the input it was read
    off. */
static tn_status refuse_other(tn_binding *b, size_t input, size_t axis, int64_t size) {
  const tn_plan *p = b->plan;
  const plan_port *port = &p->inputs[input];
  const port_size *s = &port->size[axis];
  char why[256] = "as other sizes make it";
  int64_t value;
  if (s->var != SIZE_MAX && binding_solve(p, s, size, &value))
    snprintf(why, sizeof why, "as %.80s is %lld by axis %zu of input %.80s",
             var_name(executable_var_at(p->executable, s->var)->name), (long long)value,
             p->vars[s->var].axis, p->inputs[p->vars[s->var].input].name);
  return diag_set(&b->diag, TN_ERR_SHAPE, "input %s: axis %zu has size %lld, not %lld, %s",
                  port->name, axis, (long long)b->inputs[input].size[axis], (long long)size, why);
}

static tn_status check_inputs(tn_binding *b, const int64_t sizes[]) {
  const tn_plan *p = b->plan;
  for (size_t i = 0; i < p->n_inputs; i++)
    for (size_t k = 0; k < p->inputs[i].rank; k++) {
      int64_t size = sizes[p->inputs[i].size[k].expression];
      if (size != b->inputs[i].size[k]) return refuse_other(b, i, k, size);
    }
  return TN_OK;
}

static tn_status count_output(tn_binding *b, size_t i, const int64_t sizes[], tn_shape *shape,
                              uint64_t *count) {
  const plan_port *p = &b->plan->outputs[i];
  *shape = (tn_shape){.rank = (int32_t)p->rank};
  for (size_t k = 0; k < p->rank; k++) shape->size[k] = sizes[p->size[k].expression];
  if (binding_count(*shape, 8, count)) return TN_OK;
  return diag_set(&b->diag, TN_ERR_SHAPE, "output %s is larger than memory", p->name);
}

static tn_status size_outputs(tn_binding *b, const int64_t sizes[]) {
  const tn_plan *p = b->plan;
  for (size_t i = 0; i < p->n_outputs; i++) {
    bound_output *o = &b->outputs[i];
    tn_shape shape;
    tn_status s = count_output(b, i, sizes, &shape, &o->count);
    if (s != TN_OK) return s;
    memcpy(o->size, shape.size, sizeof o->size);
    if (o->data && o->count * dtype_bytes(o->to) > o->bytes)
      return diag_set(&b->diag, TN_ERR_SHAPE, "output %s needs %llu bytes; its memory has %zu",
                      p->outputs[i].name, (unsigned long long)(o->count * dtype_bytes(o->to)),
                      o->bytes);
  }
  return TN_OK;
}

static tn_status find_sizes(tn_binding *b, const int64_t **sizes) {
  tn_status s = check_given(b);
  if (s == TN_OK) s = find_vars(b);
  if (s == TN_OK) s = execution_sizes(b->execution, sizes, &b->diag);
  return s == TN_OK ? check_inputs(b, *sizes) : s;
}

/* Memory. */

static tn_status ensure(tn_binding *b, tn_buffer **slot, uint64_t bytes) {
  return buffers_ensure(b->context->device, slot, bytes, &b->diag);
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
  return s == TN_OK ? execution_set_buffer(b->execution, p->buffer, memory, &b->diag) : s;
}

static bool is_carried(const tn_binding *b, const tn_buffer *memory) {
  for (size_t i = 0; i < b->plan->n_inputs; i++)
    if (memory && b->inputs[i].carried == memory) return true;
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
  if (s != TN_OK) return diag_prefix(&b->diag, "output %s", p->name);
  if (p->is_shared) return s;
  return execution_set_buffer(b->execution, p->buffer, o->memory, &b->diag);
}

/** A copy becomes the contents; what the context still reads of the old ones stays. */
static tn_status go_on_in_copy(tn_binding *b, size_t i) {
  store *t = b->plan->states[i].store;
  tn_status s = ensure(b, &b->spares[i], t->bytes);
  if (s == TN_OK) s = buffers_copy(b->spares[i], t->memory, t->bytes, &b->diag);
  if (s == TN_OK) b->spares[i] = store_replace(t, b->spares[i]);
  return s;
}

/** In its turn. What is not written where it is read is computed aside. */
static tn_status place_state(tn_binding *b, size_t i) {
  const plan_state *p = &b->plan->states[i];
  store *t = p->store;
  bool is_aside = p->out != SIZE_MAX && !p->is_in_place;
  tn_status s = p->is_overwritten && b->turns[i].is_lent ? go_on_in_copy(b, i) : TN_OK;
  if (s == TN_OK && is_aside) s = ensure(b, &b->spares[i], t->bytes);
  if (s == TN_OK && p->in != SIZE_MAX)
    s = execution_set_buffer(b->execution, p->in, t->memory, &b->diag);
  if (s != TN_OK || !is_aside) return s;
  if (executable_buffer_at(b->plan->executable, p->out)->role != ROLE_OUTPUT) return s;
  return execution_set_buffer(b->execution, p->out, b->spares[i], &b->diag);
}

/** What was computed aside becomes the contents. */
static tn_status keep_state(tn_binding *b, size_t i) {
  const plan_state *p = &b->plan->states[i];
  if (p->out == SIZE_MAX || p->is_in_place) return TN_OK;
  tn_buffer *made = execution_buffer(b->execution, p->out);
  tn_status s = TN_OK;
  if (made != b->spares[i]) s = buffers_copy(b->spares[i], made, p->store->bytes, &b->diag);
  if (s == TN_OK) b->spares[i] = store_replace(p->store, b->spares[i]);
  return s;
}

/* A run. */

static tn_status copy_outputs(tn_binding *b) {
  tn_status s = TN_OK;
  for (size_t i = 0; i < b->plan->n_outputs && s == TN_OK; i++) {
    const plan_port *p = &b->plan->outputs[i];
    if (p->is_shared)
      s = buffers_copy(b->outputs[i].memory, execution_buffer(b->execution, p->buffer),
                       b->outputs[i].count * dtype_bytes(p->dtype), &b->diag);
  }
  return s;
}

static tn_status run_in_turn(tn_binding *b) {
  const tn_plan *p = b->plan;
  tn_status s = turns_wait(b->turns, p->n_states, &b->diag);
  for (size_t i = 0; i < p->n_states && s == TN_OK; i++) s = place_state(b, i);
  if (s == TN_OK) s = execution_run(b->execution, &b->diag);
  if (s == TN_OK) s = copy_outputs(b);
  for (size_t i = 0; i < p->n_states && s == TN_OK; i++) s = keep_state(b, i);
  return s;
}

tn_status binding_give(tn_binding *b, size_t i, dtype to, void *data) {
  tn_span span;
  bound_output *o = &b->outputs[i];
  tn_status s = buffer_span(o->memory, &span, &b->diag);
  if (s != TN_OK || !o->count) return s;
  return span_read(&span, b->plan->outputs[i].dtype, to, data, (size_t)o->count, &b->diag);
}

static tn_status give_outputs(tn_binding *b) {
  tn_status s = TN_OK;
  for (size_t i = 0; i < b->plan->n_outputs && s == TN_OK; i++)
    if (b->outputs[i].data) s = binding_give(b, i, b->outputs[i].to, b->outputs[i].data);
  return s;
}

/** The next run's inputs. */
static void carry(tn_binding *b) {
  for (size_t i = 0; i < b->plan->n_inputs; i++) {
    bound_input *in = &b->inputs[i];
    if (!in->carry) continue;
    const bound_output *o = &b->outputs[in->carry - 1];
    binding_set_memory(&in->carried, buffer_retain(o->memory));
    binding_set_memory(&in->imported, NULL); /* of another size, it may be */
    memcpy(in->size, o->size, sizeof in->size);
    in->count = o->count;
  }
}

static tn_status run(tn_binding *b) {
  const tn_plan *p = b->plan;
  const int64_t *sizes;
  tn_status s = find_sizes(b, &sizes);
  if (s == TN_OK) s = size_outputs(b, sizes);
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

tn_status binding_memory(tn_binding *b, tn_memory *m) {
  const tn_plan *p = b->plan;
  const int64_t *sizes;
  tn_status s = find_sizes(b, &sizes);
  for (size_t i = 0; i < p->n_outputs && s == TN_OK; i++) {
    tn_shape shape;
    uint64_t count = 0;
    s = count_output(b, i, sizes, &shape, &count);
    m->outputs += count * dtype_bytes(p->outputs[i].dtype);
  }
  if (s == TN_OK) s = execution_scratch(b->execution, &m->scratch, &b->diag);
  for (size_t i = 0; i < p->n_inputs && s == TN_OK; i++)
    m->inputs += b->inputs[i].count * dtype_bytes(p->inputs[i].dtype);
  for (size_t i = 0; i < p->n_values && s == TN_OK; i++)
    m->values += buffer_bytes(p->values[i].memory);
  for (size_t i = 0; i < p->n_states && s == TN_OK; i++) m->states += p->states[i].store->bytes;
  return s;
}

static bool has_pending(const tn_binding *b) {
  for (size_t i = 0; i < b->plan->n_states; i++)
    if (atomic_load(&b->plan->states[i].store->pending)) return true;
  return false;
}

static tn_status refuse_callback(tn_binding *b) {
  return diag_set(
      &b->diag, TN_ERR_BUSY,
      "%s: a callback of the context may not run what reads or writes a state, or calls a "
      "function of the host",
      b->plan->name);
}

/** Assigns that were made before, to states of the plan, come first. */
static tn_status run_pending(tn_binding *b) {
  tn_context *c = b->context;
  if (context_take_for_run(c) != TN_OK) return refuse_callback(b);
  tn_status s = realize(c, NULL, 0);
  if (s != TN_OK) diag_copy(&b->diag, &c->diag);
  if (s != TN_OK) context_fail(c, "binding_run", NULL, 0);
  context_leave(c);
  return s;
}

tn_status binding_check_caller(tn_binding *b) {
  bool may_wait = b->plan->n_states || b->plan->has_custom;
  return may_wait && visits_mine(&b->context->visits) != VISIT_NONE ? refuse_callback(b) : TN_OK;
}

tn_status binding_run(tn_binding *b) {
  tn_status s = binding_check_caller(b);
  if (s == TN_OK && has_pending(b)) s = run_pending(b);
  if (s == TN_OK) s = run(b);
  return s;
}
