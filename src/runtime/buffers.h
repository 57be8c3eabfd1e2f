/* Memory of runs: grown where it is too small, and copied. */
#ifndef TENON_RUNTIME_BUFFERS_H
#define TENON_RUNTIME_BUFFERS_H

#include "device/buffer.h"

/** Memory of at least so many bytes in *at; what is there is kept if it is large enough, else
    released, and its contents lost. */
tn_status buffers_ensure(tn_device *device, tn_buffer **at, uint64_t bytes, diag *d);

/** Copies the first `bytes` bytes, between buffers of any devices. */
tn_status buffers_copy(tn_buffer *to, tn_buffer *from, uint64_t bytes, diag *d);

#endif
