/* Timeline signals: counters that only rise, and that host and queues wait for (unstable/queue.h).
   A signal is a backend's own or the library's (host_signal.c), with a reference count. Any thread
   may call the functions. */
#ifndef TENON_DEVICE_QUEUE_SIGNAL_H
#define TENON_DEVICE_QUEUE_SIGNAL_H

#include "device/core/device.h"

#include <stdatomic.h>

struct tn_signal {
  tn_device *device;
  const tn_signal_functions *functions;
  void *handle;        /* the functions' */
  atomic_size_t count; /* references */
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

/** The library's own signals, for backends that have none. */
extern const tn_signal_functions host_signal_functions;

#endif
