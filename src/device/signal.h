/* Timeline signals, whosever they are. What the functions do stands in unstable/queue.h. */
#ifndef TENON_DEVICE_SIGNAL_H
#define TENON_DEVICE_SIGNAL_H

#include "device/device.h"

#include <stdatomic.h>

struct tn_signal {
  tn_device *device;
  const tn_signal_functions *functions;
  void *handle;
  atomic_size_t count;
};

tn_status signal_open(tn_device *device, uint64_t value, tn_signal **signal, diag *d);
tn_signal *signal_retain(tn_signal *s);
void signal_release(tn_signal *s); /* NULL is allowed */

static inline uint64_t signal_get(tn_signal *s) { return s->functions->get(s->handle); }
static inline void signal_set(tn_signal *s, uint64_t value) { s->functions->set(s->handle, value); }
static inline void signal_fail(tn_signal *s, uint64_t value, tn_status status, const char *text) {
  s->functions->fail(s->handle, value, status, text);
}
tn_status signal_wait(tn_signal *s, uint64_t value, int64_t timeout_ns, diag *d);

/** The library's own signals: a backend that has none gets these. */
extern const tn_signal_functions host_signal;

#endif
