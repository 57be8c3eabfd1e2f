/* Transfers data between the host and spans of device memory: reads, writes and copies, with
   conversion of types, directly where the host sees the memory, else through staging memory. The
   caller sees to it that no command uses the span at the same time. */
#ifndef TENON_DEVICE_MEMORY_SPAN_H
#define TENON_DEVICE_MEMORY_SPAN_H

#include "device/core/device.h"
#include "ir/core/dtype.h"

/** The host's address of a span; NULL if the host does not see its memory. */
void *span_host_pointer(const tn_span *span);

/** The part of a span from `offset` on, of `bytes` bytes, which must be inside. */
tn_span span_slice(const tn_span *span, uint64_t offset, uint64_t bytes);

/** Writes `count` elements of type `from` into a span of elements of type `held`, converted as by
    scalar_cast; span_read reads elements, converted to `to`. More elements than the span holds are
    TN_ERR_SHAPE, and nothing is copied. A bool of the host's that is not 0 becomes 1. */
tn_status span_write(const tn_span *slot, dtype held, dtype from, const void *data, size_t count,
                     diag *d);
tn_status span_read(const tn_span *slot, dtype held, dtype to, void *data, size_t count, diag *d);

/** Copies bytes between spans of equal size, of any devices. */
tn_status span_copy(const tn_span *to, const tn_span *from, diag *d);

/** Sets all bytes of a span. */
tn_status span_fill(const tn_span *to, uint8_t byte, diag *d);

/** Fails unless the spans are of equal size, of devices of one registry. */
tn_status span_check_copy(const tn_span *to, const tn_span *from, diag *d);

/** The work by which a device copies between two spans; false if it cannot, as the memory of the
    other device is out of its reach and the host's. */
bool span_copy_work(const tn_device *device, const tn_span *to, const tn_span *from, tn_work *w);

#endif
