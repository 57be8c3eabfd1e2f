/* Implements buffers of device memory and views of them. A buffer takes its memory from the
   device's caching allocator when first used, or imports the host's. A view refers to the buffer
   itself, never to another view. */
#include "device/memory/buffer.h"

#include "device/memory/caching_allocator.h"
#include "device/memory/span.h"

#include <stdatomic.h>

struct tn_buffer {
  atomic_size_t count; /* references */
  tn_device *device;
  uint64_t bytes;
  tn_buffer *base; /* of a view: the buffer it is part of, which is no view; else NULL */
  uint64_t offset; /* bytes, in the base */
  mutex lock;      /* of the allocation of `block` */
  block *block;
  void *imported; /* the host's memory, in place of `block`; NULL: none */
  void (*destroy)(void *user);
  void *user;
};

static tn_buffer *new_buffer(tn_device *device, uint64_t bytes, diag *d) {
  tn_buffer *b = mem_calloc(device->mem, 1, sizeof *b);
  if (!b) {
    diag_set(d, TN_ERR_MEMORY, "out of memory");
    return NULL;
  }
  atomic_init(&b->count, 1);
  b->device = device;
  b->bytes = bytes;
  mutex_init(&b->lock);
  return b;
}

tn_status buffer_open(tn_device *device, uint64_t bytes, tn_buffer **buffer, diag *d) {
  *buffer = new_buffer(device, bytes, d);
  return *buffer ? TN_OK : d->status;
}

static tn_status import_memory(tn_buffer *b, void *data, diag *d) {
  const tn_backend *k = b->device->backend;
  if (!k->import)
    return diag_set(d, TN_ERR_UNSUPPORTED, "device %s cannot access host memory", b->device->name);
  diag_clear(d);
  return diag_complete(d, k->import(b->device->state, data, b->bytes, &b->imported, &d->failure));
}

tn_status buffer_import(tn_device *device, void *data, uint64_t bytes, void (*destroy)(void *user),
                        void *user, tn_buffer **buffer, diag *d) {
  *buffer = NULL;
  tn_buffer *b = new_buffer(device, bytes, d);
  if (!b) {
    if (destroy) destroy(user);
    return d->status;
  }
  b->destroy = destroy;
  b->user = user;
  tn_status status = import_memory(b, data, d);
  if (status)
    buffer_release(b);
  else
    *buffer = b;
  return status;
}

tn_status buffer_view(tn_buffer *base, uint64_t offset, uint64_t bytes, tn_buffer **buffer,
                      diag *d) {
  *buffer = NULL;
  if (offset > base->bytes || bytes > base->bytes - offset)
    return diag_set(
        d, TN_ERR_ARGUMENT, "a view of %llu bytes at offset %llu exceeds the buffer of %llu bytes",
        (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)base->bytes);
  tn_buffer *b = new_buffer(base->device, bytes, d);
  if (!b) return d->status;
  b->offset = base->offset + offset;
  b->base = buffer_retain(base->base ? base->base : base);
  *buffer = b;
  return TN_OK;
}

tn_buffer *buffer_retain(tn_buffer *b) {
  atomic_fetch_add_explicit(&b->count, 1, memory_order_relaxed);
  return b;
}

void buffer_release(tn_buffer *b) {
  while (b && atomic_fetch_sub_explicit(&b->count, 1, memory_order_acq_rel) == 1) {
    tn_buffer *base = b->base;
    caching_allocator_release(b->device->allocator, b->block);
    if (b->destroy) b->destroy(b->user);
    mutex_free(&b->lock);
    mem_free(b->device->mem, b, sizeof *b);
    b = base;
  }
}

uint64_t buffer_bytes(const tn_buffer *b) { return b->bytes; }

static tn_status get_memory(tn_buffer *b, void **memory, diag *d) {
  tn_status status = TN_OK;
  mutex_lock(&b->lock);
  if (!b->imported && !b->block)
    status = caching_allocator_alloc(b->device->allocator, b->bytes, &b->block, d);
  if (!status) *memory = b->imported ? b->imported : b->block->memory;
  mutex_unlock(&b->lock);
  return status;
}

tn_status buffer_span(tn_buffer *b, tn_span *span, diag *d) {
  *span = (tn_span){.device = b->device, .offset = b->offset, .bytes = b->bytes};
  return get_memory(b->base ? b->base : b, &span->memory, d);
}
