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
  tn_buffer *base;      /* of a view: the buffer it is part of, which is no view; else NULL */
  uint64_t offset;      /* bytes, in the base */
  mutex lock;           /* of the allocation of `block`, and of `uses` */
  timeline_points uses; /* by queues */
  atomic_bool is_exposed;
  bool is_zeroed; /* its memory is set to 0 when it is allocated */
  block *block;
  void *imported; /* the host's memory, in place of `block`; NULL: none */
  tn_status (*fill)(void *user, const tn_span *to, diag *d); /* of a new block; NULL: nobody */
  void (*destroy)(void *user);
  void *user; /* of both */
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

void buffer_zero_first(tn_buffer *b) { b->is_zeroed = true; }

tn_status buffer_open_filled(tn_device *device, uint64_t bytes,
                             tn_status (*fill)(void *user, const tn_span *to, diag *d),
                             void (*destroy)(void *user), void *user, tn_buffer **buffer, diag *d) {
  *buffer = new_buffer(device, bytes, d);
  if (!*buffer) {
    destroy(user);
    return d->status;
  }
  (*buffer)->fill = fill;
  (*buffer)->destroy = destroy;
  (*buffer)->user = user;
  return TN_OK;
}

static tn_status import_memory(tn_buffer *b, void *data, diag *d) {
  const tn_backend *k = b->device->backend;
  if (!data) return diag_set(d, TN_ERR_ARGUMENT, "the memory to import is NULL");
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

/** Counts all that queues of the device were given as uses. */
static void add_unknown_uses(tn_buffer *b) {
  tn_device *v = b->device;
  mutex_lock(&v->queues_lock);
  for (device_queue *q = v->queues; q; q = q->next) {
    uint64_t value = q->busy_until(q);
    if (value) timeline_points_add(&b->uses, v->mem, q->timeline, value, POINT_READS);
  }
  mutex_unlock(&v->queues_lock);
}

/** Waits for the uses of the host's memory, which is the caller's again then. */
static void end_import(tn_buffer *b) {
  const tn_backend *k = b->device->backend;
  diag unread;
  diag_clear(&unread);
  timeline_points_wait(&b->uses, -1, &unread);
  if (k->import_end) k->import_end(b->device->state, b->imported);
}

/** Passes the uses of a buffer that goes to its block; the host's memory waits for them. */
static void pass_uses(tn_buffer *b) {
  if (atomic_load(&b->is_exposed)) add_unknown_uses(b);
  if (b->imported) end_import(b);
  if (!b->block) {
    timeline_points_clear(&b->uses, b->device->mem);
    return;
  }
  timeline_points_forget_writes(&b->uses, NULL);
  b->block->uses = b->uses;
  caching_allocator_release(b->device->allocator, b->block);
}

void buffer_release(tn_buffer *b) {
  while (b && atomic_fetch_sub_explicit(&b->count, 1, memory_order_acq_rel) == 1) {
    tn_buffer *base = b->base;
    pass_uses(b);
    if (b->destroy) b->destroy(b->user);
    mutex_free(&b->lock);
    mem_free(b->device->mem, b, sizeof *b);
    b = base;
  }
}

uint64_t buffer_bytes(const tn_buffer *b) { return b->bytes; }

tn_device *buffer_device(const tn_buffer *b) { return b->device; }

/** The buffer that a view is part of, or the buffer itself. */
static tn_buffer *base_of(tn_buffer *b) { return b->base ? b->base : b; }

/** Gives a new block its first contents. */
static tn_status fill_block(tn_buffer *b, diag *d) {
  const tn_span all = {b->device, b->block->memory, 0, b->bytes};
  tn_status status = b->fill ? b->fill(b->user, &all, d) : span_fill(&all, 0, d);
  if (!status) return TN_OK;
  caching_allocator_release(b->device->allocator, b->block);
  b->block = NULL;
  return status;
}

/** Under the lock. A block to be filled is one that no queue uses any more. */
static tn_status alloc_block(tn_buffer *b, const tn_signal *timeline, diag *d) {
  bool has_contents = b->is_zeroed || b->fill;
  if (has_contents) timeline = NULL;
  tn_status status =
      caching_allocator_alloc(b->device->allocator, b->bytes, timeline, &b->block, d);
  if (!status && has_contents) status = fill_block(b, d);
  if (!status) timeline_points_inherit(&b->uses, &b->block->uses);
  return status;
}

tn_status buffer_span_on(tn_buffer *b, const tn_signal *timeline, tn_span *span, diag *d) {
  tn_buffer *base = base_of(b);
  tn_status status = TN_OK;
  *span = (tn_span){.device = b->device, .offset = b->offset, .bytes = b->bytes};
  mutex_lock(&base->lock);
  if (!base->imported && !base->block) status = alloc_block(base, timeline, d);
  if (!status) span->memory = base->imported ? base->imported : base->block->memory;
  mutex_unlock(&base->lock);
  return status;
}

/** Waits for the uses so far, without the lock: other threads may add theirs meanwhile, unless
    memory is lacking. */
static tn_status await_uses(tn_buffer *b, diag *d) {
  timeline_points uses = {0};
  tn_status status = TN_OK;
  mutex_lock(&b->lock);
  bool is_copied = timeline_points_copy(&uses, &b->uses, b->device->mem);
  if (!is_copied) status = timeline_points_wait(&b->uses, -1, d);
  mutex_unlock(&b->lock);
  if (is_copied) status = timeline_points_wait(&uses, -1, d);
  timeline_points_clear(&uses, b->device->mem);
  return status;
}

tn_status buffer_span(tn_buffer *b, tn_span *span, diag *d) {
  tn_status status = buffer_span_on(b, NULL, span, d);
  return status ? status : await_uses(base_of(b), d);
}

/* Uses. */

void buffer_for_waits(tn_buffer *b, const tn_signal *timeline, bool reads,
                      void (*add)(void *user, tn_signal *timeline, uint64_t value, bool ends),
                      void *user) {
  b = base_of(b);
  mutex_lock(&b->lock);
  timeline_points_drop_reached(&b->uses);
  for (size_t i = 0; i < b->uses.n; i++) {
    const timeline_point *p = &b->uses.at[i];
    bool has_written = reads && p->written;
    if (has_written) add(user, p->timeline, p->written, false);
    if (p->timeline != timeline && !(has_written && p->written == p->value))
      add(user, p->timeline, p->value, true);
  }
  mutex_unlock(&b->lock);
}

void buffer_note_use(tn_buffer *b, tn_signal *timeline, uint64_t value, point_use use) {
  tn_buffer *base = base_of(b);
  if (use == POINT_WRITES && b->bytes < base->bytes) use = POINT_WRITES_PART;
  mutex_lock(&base->lock);
  timeline_points_add(&base->uses, base->device->mem, timeline, value, use);
  mutex_unlock(&base->lock);
}

void buffer_forget_writes(tn_buffer *b, const tn_signal *timeline) {
  tn_buffer *base = base_of(b);
  if (!timeline && b->bytes < base->bytes) return;
  mutex_lock(&base->lock);
  timeline_points_forget_writes(&base->uses, timeline);
  mutex_unlock(&base->lock);
}

void buffer_expose(tn_buffer *b) { atomic_store(&base_of(b)->is_exposed, true); }
