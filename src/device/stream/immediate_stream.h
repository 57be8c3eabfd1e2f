/* Work that the host waits for: a device with streams has one of its own for it, opened when first
   needed; a device without streams executes. Data that the host does not see passes through two
   pieces of staging memory by turns, so that a piece is converted, or on its way to another device,
   while the next is copied. Any thread may call the functions. */
#ifndef TENON_DEVICE_STREAM_IMMEDIATE_STREAM_H
#define TENON_DEVICE_STREAM_IMMEDIATE_STREAM_H

#include "device/core/device.h"

void immediate_stream_init(tn_device *device);

/** Waits for the stream, and frees it with the staging memory. */
void immediate_stream_free(tn_device *device);

/** Runs one work and returns when it is done. */
tn_status immediate_run(tn_device *device, const tn_work *work, tn_failure *failure);

/** Takes or fills the piece of data at `offset`. */
typedef void immediate_piece(void *user, void *piece, uint64_t offset, uint64_t bytes);

/** Copy a span to the host piece by piece, and from there. A piece is a multiple of 4096 bytes, the
    last one excepted. */
tn_status immediate_read(const tn_span *from, immediate_piece *take, void *user, diag *d);
tn_status immediate_write(const tn_span *to, immediate_piece *fill, void *user, diag *d);

/** Copies between equal spans of two devices that the host does not see. */
tn_status immediate_copy(const tn_span *to, const tn_span *from, diag *d);

#endif
