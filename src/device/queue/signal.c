/* Implements timeline signals: counts references, and calls the functions of the backend. */
#include "device/queue/signal.h"

tn_status signal_open(tn_device *device, uint64_t value, tn_signal **signal, diag *d) {
  *signal = NULL;
  tn_signal *s = mem_calloc(device->mem, 1, sizeof *s);
  if (!s) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  const tn_signal_functions *own = device->backend->signal;
  s->device = device;
  s->functions = own ? own : &host_signal_functions;
  atomic_init(&s->count, 1);
  diag_clear(d);
  void *state = own ? device->state : device;
  tn_status status = diag_complete(d, s->functions->open(state, value, &s->handle, &d->failure));
  if (status) {
    mem_free(device->mem, s, sizeof *s);
    return status;
  }
  *signal = s;
  return TN_OK;
}

tn_signal *signal_retain(tn_signal *s) {
  atomic_fetch_add_explicit(&s->count, 1, memory_order_relaxed);
  return s;
}

void signal_release(tn_signal *s) {
  if (!s || atomic_fetch_sub_explicit(&s->count, 1, memory_order_acq_rel) != 1) return;
  s->functions->free(s->handle);
  mem_free(s->device->mem, s, sizeof *s);
}

tn_status signal_wait(tn_signal *s, uint64_t value, int64_t timeout_ns, diag *d) {
  diag_clear(d);
  return diag_complete(d, s->functions->wait(s->handle, value, timeout_ns, &d->failure));
}

void *tn_signal_native(const tn_signal *s, const tn_backend *backend) {
  return s->device->backend == backend && backend->signal ? s->handle : NULL;
}
