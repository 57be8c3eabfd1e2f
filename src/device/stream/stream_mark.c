/* Implements marks: counts references, and calls the functions of the backend. Whatever keeps a
   mark from being waited for is taken for the loss of its device, as nobody can tell what the
   device still does. */
#include "device/stream/stream_mark.h"

tn_status stream_mark_make(stream_mark **mark, tn_device *device, void *stream, bool timed,
                           tn_failure *f) {
  stream_mark *m = *mark = mem_calloc(device->mem, 1, sizeof *m);
  if (!m) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  atomic_init(&m->count, 1);
  m->device = device;
  tn_status status = device->backend->streams->mark(stream, timed, &m->handle, f);
  if (!status) return TN_OK;
  mem_free(device->mem, m, sizeof *m);
  *mark = NULL;
  return status;
}

stream_mark *stream_mark_retain(stream_mark *m) {
  atomic_fetch_add_explicit(&m->count, 1, memory_order_relaxed);
  return m;
}

void stream_mark_release(stream_mark *m) {
  if (!m || atomic_fetch_sub_explicit(&m->count, 1, memory_order_acq_rel) != 1) return;
  m->device->backend->streams->mark_free(m->handle);
  mem_free(m->device->mem, m, sizeof *m);
}

tn_status stream_mark_sync(const stream_mark *m, tn_failure *f) {
  diag d;
  diag_clear(&d);
  tn_status status = m->device->backend->streams->sync(m->handle, -1, &d.failure);
  if (!status) return TN_OK;
  diag_complete(&d, status);
  return tn_fail(f, TN_ERR_DEVICE, "device %s: %s", m->device->name, d.text);
}
