/* Tensors on several devices: tn_to and tn_device_of. The context numbers devices in the order in
   which they are named, its own first; a device is opened, and its target chosen, when first
   named. */
#include "tensor/api/to_device.h"

#include "compile/target_rows.h"
#include "tensor/context/call.h"
#include "tensor/ops/op_call.h"
#include "tensor/state/handle_node.h"
#include "tensor/state/state.h"

#include <tenon/device.h>

tn_status context_choose_target(tn_context *c, tn_device *device, const device_target **target) {
  bool is_alike = device->backend == c->device->backend;
  const device_target_desc desc = {.pair = is_alike ? c->options.pair : NULL,
                                   .limit = is_alike ? c->options.cpu : NULL,
                                   .compiler = c->options.compiler_name};
  return target_rows_choose(device, &desc, c->disk, target, &c->diag);
}

/** Adds a device to those of the context. */
static void add_device(tn_context *c, tn_device *device) {
  context_devices *known = &c->devices;
  size_t n = atomic_load(&known->n_targets);
  if (n == sizeof known->targets / sizeof *known->targets)
    diag_raise(&c->diag, TN_ERR_UNSUPPORTED, "a context has at most %d devices", IR_MAX_DEVICES);
  if (context_choose_target(c, device, &known->targets[n]) != TN_OK) diag_rethrow(&c->diag);
  atomic_store(&known->n_targets, n + 1);
}

/** The number of a device among those of the context. */
static size_t number_of_device(tn_context *c, const char *name) {
  tn_device *device;
  if (!name) diag_raise(&c->diag, TN_ERR_ARGUMENT, "the name of the device is NULL");
  if (registry_open_device(c->registry, name, &device, &c->diag) != TN_OK) diag_rethrow(&c->diag);
  if (device == c->device) return 0;
  size_t n = atomic_load(&c->devices.n_targets);
  for (size_t i = 0; i < n; i++)
    if (c->devices.targets[i]->device == device) return i + 1;
  add_device(c, device);
  return n + 1;
}

static value build_to(builder *b, const value in[], size_t n, const void *options) {
  (void)n;
  const node *x = in[0].node;
  int64_t ints[] = {(int64_t)number_of_device(b->context, options)};
  if (x->device == ints[0] + 1) return (value){x, WEAK_NO};
  if (b->context->entry.n_loop_bodies)
    diag_raise(b->diag, TN_ERR_UNSUPPORTED,
               "the steps of a loop run on one device: move what they need before the loop");
  return (value){ir_node(b->ir, OP_TO, (dtype)x->dtype, &x, 1, ints, 1), WEAK_NO};
}

tn_tensor *tn_to(tn_tensor *x, const char *device) {
  return op_call("to", &x, 1, 0, build_to, device);
}

const char *tn_device_of(const tn_tensor *x) {
  if (!x || x->life != HANDLE_LIVE || context_acquire(x->context) != TN_OK) return NULL;
  const char *name = x->node ? context_device_of(x->context, x->node)->name : NULL;
  context_release(x->context);
  return name;
}
