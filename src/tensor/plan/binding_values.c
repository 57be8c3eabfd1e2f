/* Bindings of late plans: reads the values that decide on the graph, and takes the plan for them.
 */
#include "device/memory/buffer_resize.h"
#include "device/memory/span.h"
#include "tensor/plan/binding.h"
#include "tensor/plan/late_plan.h"

#include <string.h>

tn_status binding_read_input(tn_binding *b, size_t i, dtype t, void *out) {
  bound_input *in = &b->inputs[i];
  tn_span span;
  tn_buffer *memory = in->carried_memory;
  tn_status s = TN_OK;
  if (!in->count) return s;
  if (!memory) {
    s = buffer_reserve(b->context->device, &in->copy, in->count * dtype_bytes(t), &b->diag);
    memory = in->copy;
  }
  if (s == TN_OK) s = buffer_span(memory, &span, &b->diag);
  if (s == TN_OK && !in->carried_memory)
    s = span_write(&span, t, in->dtype, in->data, (size_t)in->count, &b->diag);
  return s == TN_OK ? span_read(&span, t, t, out, (size_t)in->count, &b->diag) : s;
}

static tn_status read_value(void *user, size_t i, bool sizes_alone, plan_value *v) {
  tn_binding *b = user;
  bound_input *in = &b->inputs[i];
  const plan_port *port = &b->late->ports.inputs[i];
  v->rank = in->rank;
  memcpy(v->size, in->size, in->rank * sizeof *v->size);
  v->count = (size_t)in->count;
  if (sizes_alone) return TN_OK;
  v->data = mem_calloc(&b->context->mem, v->count * dtype_bytes(port->dtype) + 1, 1);
  if (!v->data) return diag_set(&b->diag, TN_ERR_MEMORY, "out of memory");
  return binding_read_input(b, i, port->dtype, v->data);
}

static tn_status check_carried(tn_binding *b, const tn_plan *p) {
  tn_status s = TN_OK;
  for (size_t i = 0; i < p->ports.n_inputs && s == TN_OK; i++) {
    size_t output = b->inputs[i].carried_output;
    if (output) s = binding_check_carry(b, p, output - 1, i);
  }
  return s;
}

/** Makes a plan the one in use, and takes the reference to it. */
static tn_status take_plan(tn_binding *b, tn_plan *p) {
  const mem *m = &b->context->mem;
  tn_plan *old = b->plan;
  int64_t *numbers = mem_calloc(m, binding_numbers(p), sizeof *numbers);
  tn_status s = numbers ? check_carried(b, p) : diag_set(&b->diag, TN_ERR_MEMORY, "out of memory");
  if (s != TN_OK) {
    mem_free(m, numbers, binding_numbers(p) * sizeof *numbers);
    plan_release(p);
    return s;
  }
  binding_leave_plan(b);
  mem_free(m, b->facts, binding_numbers(old) * sizeof *b->facts);
  b->plan = p;
  binding_set_numbers(b, numbers);
  b->has_sizes = false;
  if (old != b->late) plan_release(old);
  return TN_OK;
}

tn_status binding_choose_plan(tn_binding *b) {
  tn_plan *p;
  if (!b->late) return TN_OK;
  tn_status s = late_plan_find(b->late, b->wants_exact, read_value, b, &b->diag, &p);
  if (s != TN_OK) return s;
  if (p != b->plan) return take_plan(b, p);
  plan_release(p); /* the binding has a reference */
  return s;
}
