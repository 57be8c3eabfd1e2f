/* Clears buffers and spans of device memory by copying zeros from host memory. */
#ifndef TENON_TESTS_ZERO_H
#define TENON_TESTS_ZERO_H

#include "device/memory/buffer.h"
#include "device/memory/span.h"

#include <stdlib.h>

static inline tn_status zero_span(const tn_span *span, diag *d) {
  void *zeros = calloc(1, span->bytes + 1);
  tn_status status = zeros ? span_write(span, DT_U8, DT_U8, zeros, span->bytes, d)
                           : diag_set(d, TN_ERR_MEMORY, "no memory for zeros");
  free(zeros);
  return status;
}

static inline tn_status zero_buffer(tn_buffer *b, diag *d) {
  tn_span span;
  tn_status status = buffer_span(b, &span, d);
  return status ? status : zero_span(&span, d);
}

#endif
