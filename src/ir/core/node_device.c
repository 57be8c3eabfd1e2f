/* Infers the devices of nodes when they are made. */
#include "ir/core/node_device.h"

/** Number of integers of a BUFFER or PARAM before its device. */
static size_t count_before_device(op o) { return o == OP_BUFFER ? 2 : 1; }

/** Says that two sources of a node are on different devices. */
_Noreturn static void raise_difference(ir *g, const node_spec *s, const node *a, const node *b) {
  diag_raise(ir_diag(g), TN_ERR_ARGUMENT,
             "%s of two devices: its operand %s (node %" PRIu64
             ") is on device %d, and its operand %s (node %" PRIu64 ") on device %d",
             op_name(s->op), op_name((op)a->op), a->id, a->device - 1, op_name((op)b->op), b->id,
             b->device - 1);
}

/** True for ops whose device is that of their sources. */
static bool is_joined(const node_spec *s) {
  switch (s->op) {
  case OP_BUFFER:
  case OP_PARAM:
  case OP_TO:
  case OP_GROUP:
  case OP_SINK: return false; /* the latter two are lists, of any nodes */
  default: return s->dtype != DT_INDEX;
  }
}

/** The device of all sources that are on one; *a and *b are two on different ones, or NULL. */
static uint8_t join(const node_spec *s, const node **a, const node **b) {
  *a = *b = NULL;
  for (size_t i = 0; i < s->n_src; i++) {
    const node *x = s->src[i];
    if (!x->device) continue;
    if (!*a) *a = x;
    if ((*a)->device != x->device && !*b) *b = x;
  }
  return *a ? (*a)->device : 0;
}

bool node_device_is_one(const node_spec *s) {
  const node *a, *b;
  return !is_joined(s) || (join(s, &a, &b), !b);
}

uint8_t node_device_infer(ir *g, const node_spec *s) {
  const node *a, *b;
  size_t n = count_before_device(s->op);
  if (s->op == OP_TO) return (uint8_t)(s->ints[0] + 1);
  if (s->op == OP_BUFFER || s->op == OP_PARAM) return s->n_int > n ? (uint8_t)(s->ints[n] + 1) : 1;
  uint8_t device = is_joined(s) ? join(s, &a, &b) : 0;
  if (device && b) raise_difference(g, s, a, b);
  return device;
}

bool node_device_is_named(const node_spec *s) {
  size_t n = count_before_device(s->op);
  if (s->op == OP_BUFFER || s->op == OP_PARAM) return s->n_int > n && s->ints[n] >= 0;
  return s->op == OP_TO;
}

size_t node_device_argument(uint8_t device, int64_t *to) {
  if (device <= 1) return 0;
  *to = device - 1;
  return 1;
}

size_t node_device_argument_in(const ir *g, uint8_t device, int64_t *to) {
  if (device == 1 || (!device && !ir_has_devices(g))) return 0;
  *to = (int64_t)device - 1;
  return 1;
}

size_t node_count_devices(const node *const nodes[], size_t n) {
  size_t most = 1;
  for (size_t i = 0; i < n; i++)
    if (nodes[i]->device > most) most = nodes[i]->device;
  return most;
}
