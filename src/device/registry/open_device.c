/* Opens a device: allocates it together with its allocator and calls the backend's `open`. Closing
   frees the targets, whose compilers may use the device, before its memory and its state. */
#include "device/registry/open_device.h"

#include "device/core/device_target.h"
#include "device/memory/caching_allocator.h"
#include "device/stream/immediate_stream.h"

#include <stdio.h>

/** A device's block of memory. */
typedef struct device_block {
  tn_device device; /* first: the two have one address */
  caching_allocator allocator;
} device_block;

tn_status device_open(tn_device **device, registry *r, const mem *m, const tn_backend *b,
                      int32_t index, const tn_host *host, diag *d) {
  *device = NULL;
  device_block *block = mem_calloc(m, 1, sizeof *block);
  if (!block) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  tn_device *v = &block->device;
  v->registry = r, v->mem = m, v->backend = b, v->host = *host, v->index = index;
  snprintf(v->name, sizeof v->name, "%s:%d", b->name, (int)index);
  diag_clear(d);
  tn_status status = diag_complete(d, b->open(index, &v->host, &v->state, &d->failure));
  if (status) {
    diag_prefix(d, "device %s", v->name);
    mem_free(m, block, sizeof *block);
    return status;
  }
  v->allocator = &block->allocator;
  caching_allocator_init(v->allocator, m, b, v->state);
  mutex_init(&v->lock);
  mutex_init(&v->queues_lock);
  immediate_stream_init(v);
  *device = v;
  return TN_OK;
}

void device_close(tn_device *v) {
  immediate_stream_free(v);
  device_targets_free(v);
  caching_allocator_free(v->allocator);
  v->backend->close(v->state);
  mutex_free(&v->queues_lock);
  mutex_free(&v->lock);
  mem_free(v->mem, v, sizeof(device_block));
}
