/* The device of a node, which is that of its sources: BUFFERs and PARAMs name one, a TO moves its
   source to one, and constants, iotas and sizes are anybody's. A graph numbers devices as its owner
   does; device 0 is the one of BUFFERs and PARAMs that name none, which need no integer then. */
#ifndef TENON_IR_CORE_NODE_DEVICE_H
#define TENON_IR_CORE_NODE_DEVICE_H

#include "ir/core/ir.h"

/** Devices of a graph. */
enum { IR_MAX_DEVICES = 32 };

/** The device (node.device) of a node that is to be made. Raises TN_ERR_ARGUMENT, with both
    sources, where two are on different devices. */
uint8_t node_device_infer(ir *g, const node_spec *s);

/** True unless sources of a node are on different devices. */
bool node_device_is_one(const node_spec *s);

/** True if a node is one by which a graph has a device that is not number 0. */
bool node_device_is_named(const node_spec *s);

/** The device that a BUFFER or PARAM of a graph's owner is on, as integers behind the others of its
    argument. Returns how many were written: none for device 0. `device` is a node.device. */
size_t node_device_argument(uint8_t device, int64_t *to);

/** As node_device_argument, for an array of a compilation, which is anybody's if `device` says so.
    In a graph without named devices there is nothing to say. */
size_t node_device_argument_in(const ir *g, uint8_t device, int64_t *to);

/** The number of devices that nodes name, or 1. */
size_t node_count_devices(const node *const nodes[], size_t n);

/** Number of a node's device; that of anybody's is `otherwise`. */
static inline size_t node_device_number(const node *n, size_t otherwise) {
  return n->device ? n->device - 1u : otherwise;
}

#endif
