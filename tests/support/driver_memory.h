/* Tests that a limit on memory counts the memory of a device, for tests of backends with a maker's
   driver: what exceeds it is refused, freed blocks make room, and transfers need little. */
#ifndef TENON_TESTS_SUPPORT_DRIVER_MEMORY_H
#define TENON_TESTS_SUPPORT_DRIVER_MEMORY_H

#include "base/memory_limit.h"
#include "device/core/device.h"
#include "device/memory/buffer.h"
#include "device/memory/span.h"
#include "support/driver_kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static inline tn_status driver_memory_take(tn_device *v, uint64_t bytes, tn_buffer **b, diag *d) {
  tn_span span;
  tn_status status = buffer_open(v, bytes, b, d);
  return status ? status : buffer_span(*b, &span, d);
}

/** Writes to a block and reads it back. */
static inline void driver_memory_pass(tn_buffer *b, size_t n) {
  diag d;
  tn_span span;
  static uint8_t sent[2 << 20], got[2 << 20];
  assert_true(n <= sizeof sent);
  for (size_t i = 0; i < n; i++) sent[i] = (uint8_t)(i * 7 + i / 4096);
  if (buffer_span(b, &span, &d) || span_write(&span, DT_U8, DT_U8, sent, n, &d) ||
      span_read(&span, DT_U8, DT_U8, got, n, &d))
    fail_msg("%s", d.text);
  assert_memory_equal(sent, got, n);
}

/** Two blocks of a device within a limit of 32 MiB, and one beyond it. */
static inline void driver_memory_check(const tn_backend *backend) {
  enum { MIB = 1 << 20 };
  memory_limit l;
  mem m = memory_limit_begin(&l, mem_system, 32 * MIB, 0);
  registry *r;
  tn_device *v;
  tn_buffer *b[2];
  diag d;
  diag_clear(&d);
  if (registry_open(&r, &(registry_desc){.mem = &m, .threads = 1}, &d) ||
      registry_open_device(r, backend->name, &v, &d) || driver_memory_take(v, 16 * MIB, &b[0], &d))
    fail_msg("%s", d.text);
  uint64_t used = atomic_load(&l.used);
  assert_in_range(used, 16 * MIB, 18 * MIB);
  assert_int_equal(driver_memory_take(v, 18 * MIB, &b[1], &d), TN_ERR_MEMORY);
  assert_non_null(strstr(d.text, "out of memory (18.0 MiB)"));
  buffer_release(b[1]);
  driver_memory_pass(b[0], MIB);
  buffer_release(b[0]);
  if (driver_memory_take(v, 26 * MIB, &b[0], &d)) fail_msg("%s", d.text); /* frees the first one */
  driver_memory_pass(b[0], MIB);
  if (driver_memory_take(v, 2 * MIB, &b[1], &d)) fail_msg("%s", d.text);
  driver_memory_pass(b[1], 2 * MIB); /* in pieces of 1 MiB: two of 2 MiB exceed the limit */
  assert_in_range(atomic_load(&l.used), 30 * MIB, 32 * MIB);
  for (int i = 0; i < 2; i++) buffer_release(b[i]);
  registry_close(r);
  assert_int_equal(atomic_load(&l.used), 0);
}

#endif
