/* Finds the devices of values: from what they read, and where that is anybody's, from their
   readers. */
#include "schedule/values/value_devices.h"

#include "ir/core/ir.h"

static uint8_t device_of_tensor(const values *all, const node *tensor) {
  const value *v = map_get(&all->of, tensor);
  return v ? v->device : tensor->device;
}

/** The device of what a value reads, unless it is a copy from another one. */
static uint8_t device_of_reads(const values *all, const value *v) {
  uint8_t device = v->tensor->device;
  for (size_t i = 0; i < v->inputs.tensors.n && !device; i++)
    device = device_of_tensor(all, v->inputs.tensors.at[i]);
  for (size_t i = 0; i < v->inputs.arrays.n && !device; i++)
    device = device_of_tensor(all, v->inputs.arrays.at[i]);
  return device;
}

/** Gives a value's device to the operands that no device has yet; a copy's come from another. */
static void set_device_of_reads(const values *all, const value *v) {
  bool is_copy = value_is_copy_between_devices(v);
  if (is_copy && v->tensor->n_int < 2) return;
  uint8_t device = is_copy ? (uint8_t)(v->tensor->ints[1] + 1) : v->device;
  const node_list *lists[] = {&v->inputs.tensors, &v->inputs.arrays};
  for (size_t l = 0; l < 2; l++)
    for (size_t i = 0; i < lists[l]->n; i++) {
      value *from = map_get(&all->of, lists[l]->at[i]);
      if (from && !from->device) from->device = device;
    }
}

/** Raises where a value would be read on another device than its own. */
static void check_reads(ir *g, const values *all, const value *v) {
  const node_list *lists[] = {&v->inputs.tensors, &v->inputs.arrays};
  for (size_t l = 0; l < 2 && !value_is_copy_between_devices(v); l++)
    for (size_t i = 0; i < lists[l]->n; i++) {
      uint8_t from = device_of_tensor(all, lists[l]->at[i]);
      if (from && from != v->device)
        diag_raise(ir_diag(g), TN_ERR_INTERNAL, "%s on device %d reads an array of device %d",
                   op_name((op)v->tensor->op), v->device - 1, from - 1);
    }
}

void values_set_devices(ir *g, const normalised *n, const values *v) {
  uint8_t otherwise = (uint8_t)(n->device + 1);
  for (size_t i = 0; i < v->at.n; i++) v->at.at[i]->device = device_of_reads(v, v->at.at[i]);
  for (size_t i = v->at.n; i-- > 0;) {
    value *at = v->at.at[i];
    if (!at->device) at->device = otherwise;
    set_device_of_reads(v, at);
  }
  for (size_t i = 0; i < v->at.n && ir_has_devices(g); i++) check_reads(g, v, v->at.at[i]);
}
