/* Ports of plans and bindings as tn_port describes them. A plan is immutable and a binding keeps
   its plan, so nothing here takes a lock. */
#include "tensor/plan/plan.h"

#include "tensor/context/descriptor.h"
#include "tensor/context/shape.h"
#include "tensor/plan/binding.h"

const char *plan_port_shape_text(const plan_port *p, char *text, size_t bytes) {
  const char *names[TN_MAX_RANK];
  for (size_t k = 0; k < p->rank; k++) names[k] = p->size[k].text;
  return shape_write_text(text, bytes, p->rank, names, NULL);
}

tn_status tn_plan_port(const tn_plan *p, tn_port_kind kind, size_t i, tn_port *port) {
  if (!p) return TN_ERR_ARGUMENT;
  const plan_port *ports = kind == TN_PORT_INPUT ? p->ports.inputs : p->ports.outputs;
  size_t n = kind == TN_PORT_INPUT    ? p->ports.n_inputs
             : kind == TN_PORT_OUTPUT ? p->ports.n_outputs
                                      : 0;
  if (i >= n) return TN_ERR_ARGUMENT;
  const plan_port *from = &ports[i];
  tn_port found = {.size = sizeof found, .name = from->name};
  found.type.dtype = (tn_dtype)from->dtype;
  found.type.shape.rank = from->is_late ? -1 : (int32_t)from->rank;
  for (size_t k = 0; k < from->rank; k++) {
    const port_size *size = &from->size[k];
    found.type.shape.size[k] = size->number < 0 ? size->min : -1;
    found.sizes[k] = size->text;
    found.min[k] = size->min;
    found.max[k] = size->max;
    found.variable[k] = size->number;
    if (kind == TN_PORT_INPUT) found.example[k] = plan_example_size(size->min, size->max);
  }
  diag unreported = {0};
  return descriptor_write(&unreported, port, &found, sizeof found, "tn_port");
}

tn_status tn_binding_port(const tn_binding *b, tn_port_kind kind, size_t i, tn_port *port) {
  return tn_plan_port(b ? binding_ports(b) : NULL, kind, i, port);
}

int64_t tn_binding_find(const tn_binding *b, tn_port_kind kind, const char *name) {
  if (!b || !name || (kind != TN_PORT_INPUT && kind != TN_PORT_OUTPUT)) return -1;
  bool is_input = kind == TN_PORT_INPUT;
  const plan_ports *ports = &binding_ports(b)->ports;
  const plan_port *p = string_map_get(is_input ? &ports->input_of : &ports->output_of, name);
  return p ? p - (is_input ? ports->inputs : ports->outputs) : -1;
}
