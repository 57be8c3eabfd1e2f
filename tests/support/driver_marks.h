/* Tests the marks of a backend's streams on its first device, for tests of backends with a maker's
   driver: what comes after a mark is seen once it is waited for, and marks have times. */
#ifndef TENON_TESTS_SUPPORT_DRIVER_MARKS_H
#define TENON_TESTS_SUPPORT_DRIVER_MARKS_H

#include "device/core/device.h"
#include "device/memory/span.h"
#include "support/driver_kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static inline void driver_marks_ok(const driver_kernels *k, tn_status status) {
  if (status) fail_msg("%s", k->diag.text);
}

/** Waits for marks without, with little and with much time. */
static inline void driver_marks_await(driver_kernels *k, void *const marks[], int n) {
  const tn_stream_functions *s = k->backend->streams;
  tn_failure timeout;
  tn_status status = s->sync(marks[n - 1], 0, &timeout);
  assert_true(status == TN_OK || status == TN_ERR_TIMEOUT);
  driver_marks_ok(k, s->sync(marks[n - 1], INT64_C(60000000000), &k->diag.failure));
  for (int i = 0; i < n; i++) driver_marks_ok(k, s->sync(marks[i], -1, &k->diag.failure));
}

/** Fills and reads memory three times, with a mark after each. */
static inline void driver_marks_check(driver_kernels *k) {
  const tn_stream_functions *s = k->backend->streams;
  enum { MARKS = 3, MARK_BYTES = 1 << 20 };
  static uint8_t seen[MARK_BYTES];
  void *stream, *marks[MARKS], *memory, *device = k->device->state;
  tn_failure *f = &k->diag.failure;
  driver_marks_ok(k, s->open(device, TN_QUEUE_COMPUTE, &stream, f));
  driver_marks_ok(k, k->backend->alloc(device, MARK_BYTES, TN_MEMORY_DEVICE, &memory, f));
  assert_null(k->backend->host(device, memory));
  const tn_span span = {k->device, memory, 0, MARK_BYTES};
  for (int i = 0; i < MARKS; i++) {
    const tn_work works[] = {
        {.kind = TN_WORK_FILL, .to = span, .fill = (uint8_t)(i + 1)},
        {.kind = TN_WORK_READ, .from = span, .host = seen},
    };
    driver_marks_ok(k, s->enqueue(stream, works, 2, f));
    driver_marks_ok(k, s->mark(stream, true, &marks[i], f));
    driver_marks_ok(k, s->await(stream, marks[i], f));
  }
  driver_marks_await(k, marks, MARKS);
  for (size_t i = 0; i < MARK_BYTES; i++) assert_int_equal(seen[i], MARKS);
  /* The last one is asked first: times do not depend on which one they are counted from. */
  int64_t last = s->time(marks[2]), first = s->time(marks[0]), between = s->time(marks[1]);
  assert_true(first > 0 && between >= first && last >= between);
  for (int i = 0; i < MARKS; i++) s->mark_free(marks[i]);
  s->free(stream);
  k->backend->free(device, memory, MARK_BYTES);
}

#endif
