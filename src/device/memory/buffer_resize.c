/* Grows buffers of device memory: replaces a buffer that is too small, after its successor has been
   allocated; copies a prefix between buffers. */
#include "device/memory/buffer_resize.h"

#include "device/memory/span.h"

tn_status buffer_reserve(tn_device *device, tn_buffer **at, uint64_t bytes, diag *d) {
  return buffer_reserve_on(device, at, bytes, NULL, d);
}

tn_status buffer_reserve_on(tn_device *device, tn_buffer **at, uint64_t bytes,
                            const tn_signal *timeline, diag *d) {
  tn_span span;
  if (*at && buffer_bytes(*at) >= bytes) return TN_OK;
  tn_buffer *fresh;
  tn_status s = buffer_open(device, bytes ? bytes : 1, &fresh, d);
  if (s != TN_OK) return s;
  s = buffer_span_on(fresh, timeline, &span, d);
  if (s != TN_OK) {
    buffer_release(fresh);
    return s;
  }
  if (*at) buffer_release(*at);
  *at = fresh;
  return TN_OK;
}

tn_status buffer_copy_prefix(tn_buffer *to, tn_buffer *from, uint64_t bytes, diag *d) {
  tn_span a, b;
  tn_status s = buffer_span(from, &b, d);
  if (s == TN_OK && bytes >= buffer_bytes(to)) buffer_forget_writes(to, NULL);
  if (s == TN_OK) s = buffer_span(to, &a, d);
  if (s != TN_OK) return s;
  if (a.bytes < bytes || b.bytes < bytes)
    return diag_set(
        d, TN_ERR_INTERNAL, "a copy of %llu bytes exceeds buffers of %llu and %llu bytes",
        (unsigned long long)bytes, (unsigned long long)b.bytes, (unsigned long long)a.bytes);
  a.bytes = b.bytes = bytes;
  return span_copy(&a, &b, d);
}
