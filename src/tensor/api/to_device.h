/* Chooses targets of a context's devices: of those that tensors are moved to, and of those that are
   described. */
#ifndef TENON_TENSOR_API_TO_DEVICE_H
#define TENON_TENSOR_API_TO_DEVICE_H

#include "tensor/context/context.h"

/** The target of a device as the context's options ask for; those about a pair and a level count
   for devices of its own backend. */
tn_status context_choose_target(tn_context *c, tn_device *device, const device_target **target);

#endif
