/* Access to spans of device memory from the host, whether it sees that memory or not. The caller
   sees to it that no command uses the span at the same time. */
#ifndef TENON_DEVICE_SPAN_H
#define TENON_DEVICE_SPAN_H

#include "device/device.h"
#include "ir/dtype.h"

/** `bytes` bytes of a span, from `offset` on, which must be inside. */
tn_span span_part(const tn_span *span, uint64_t offset, uint64_t bytes);

/** Writes `count` elements of type `from` into a slot that holds elements of type `held`, converted
    as by scalar_cast; and reads them back, converted to `to`. More elements than the slot holds are
    TN_ERR_SHAPE, and nothing is copied. A bool of the host's counts as 1 if it is not 0. */
tn_status span_write(const tn_span *slot, dtype held, dtype from, const void *data, size_t count,
                     diag *d);
tn_status span_read(const tn_span *slot, dtype held, dtype to, void *data, size_t count, diag *d);

/** Copies bytes between spans of equal size, of any devices. */
tn_status span_copy(const tn_span *to, const tn_span *from, diag *d);

#endif
