/* Reads, writes and copies spans of device memory: by the host's pointer if there is one, else by
   works of the device, through staging memory. */
#include "device/memory/span.h"

#include "device/memory/convert_elements.h"
#include "device/stream/immediate_stream.h"

#include <string.h>

void *span_host_pointer(const tn_span *s) {
  const tn_backend *b = s->device->backend;
  char *at = b->host(s->device->state, s->memory);
  return at ? at + s->offset : NULL;
}

tn_span span_slice(const tn_span *span, uint64_t offset, uint64_t bytes) {
  tn_span part = *span;
  part.offset += offset;
  part.bytes = bytes;
  return part;
}

/** Fails unless `count` elements of type `held` fit in a span. */
static tn_status check_count(const tn_span *slot, dtype held, size_t count, diag *d) {
  uint64_t most = slot->bytes / dtype_bytes(held);
  if (count <= most) return TN_OK;
  return diag_set(d, TN_ERR_SHAPE, "%zu elements of type %s do not fit in %llu bytes", count,
                  dtype_name(held), (unsigned long long)slot->bytes);
}

/** Elements that are converted on their way between the host and a device. */
typedef struct conversion {
  dtype held; /* type of the device's elements */
  dtype host;
  char *data; /* the host's */
} conversion;

static void convert_from_host(void *user, void *piece, uint64_t offset, uint64_t bytes) {
  const conversion *c = user;
  size_t size = dtype_bytes(c->held);
  convert(c->held, piece, c->host, c->data + offset / size * dtype_bytes(c->host),
          (size_t)bytes / size);
}

static void convert_to_host(void *user, void *piece, uint64_t offset, uint64_t bytes) {
  const conversion *c = user;
  size_t size = dtype_bytes(c->held);
  convert(c->host, c->data + offset / size * dtype_bytes(c->host), c->held, piece,
          (size_t)bytes / size);
}

tn_status span_write(const tn_span *slot, dtype held, dtype from, const void *data, size_t count,
                     diag *d) {
  tn_status status = check_count(slot, held, count, d);
  if (status || !count) return status;
  void *at = span_host_pointer(slot);
  if (at) {
    convert(held, at, from, data, count);
    return TN_OK;
  }
  conversion c = {held, from, (char *)data};
  const tn_span part = span_slice(slot, 0, count * dtype_bytes(held));
  return immediate_write(&part, convert_from_host, &c, d);
}

tn_status span_read(const tn_span *slot, dtype held, dtype to, void *data, size_t count, diag *d) {
  tn_status status = check_count(slot, held, count, d);
  if (status || !count) return status;
  const void *at = span_host_pointer(slot);
  if (at) {
    convert(to, data, held, at, count);
    return TN_OK;
  }
  conversion c = {held, to, data};
  const tn_span part = span_slice(slot, 0, count * dtype_bytes(held));
  return immediate_read(&part, convert_to_host, &c, d);
}

/* Copies. */

tn_status span_check_copy(const tn_span *to, const tn_span *from, diag *d) {
  if (to->bytes && !(to->memory && from->memory))
    return diag_set(d, TN_ERR_ARGUMENT, "a span to copy has no memory");
  if (to->device->registry != from->device->registry)
    return diag_set(d, TN_ERR_ARGUMENT, "devices %s and %s are of different contexts",
                    from->device->name, to->device->name);
  if (to->bytes == from->bytes) return TN_OK;
  return diag_set(d, TN_ERR_ARGUMENT, "a copy of %llu bytes does not match the span of %llu bytes",
                  (unsigned long long)from->bytes, (unsigned long long)to->bytes);
}

bool span_copy_work(const tn_device *device, const tn_span *to, const tn_span *from, tn_work *w) {
  const tn_device *a = to->device, *b = from->device, *other = a == device ? b : a;
  if (a != device && b != device) return false;
  if (other == device || (other->backend == device->backend && device->backend->peer &&
                          device->backend->peer(device->state, other->state) == TN_PEER_COPY)) {
    *w = (tn_work){.kind = TN_WORK_COPY, .to = *to, .from = *from};
    return true;
  }
  void *host = span_host_pointer(other == a ? to : from);
  if (!host) return false;
  *w = (tn_work){.kind = other == a ? TN_WORK_READ : TN_WORK_WRITE, .host = host};
  *(other == a ? &w->from : &w->to) = other == a ? *from : *to;
  return true;
}

tn_status span_copy(const tn_span *to, const tn_span *from, diag *d) {
  tn_status status = span_check_copy(to, from, d);
  if (status || !to->bytes) return status;
  void *into = span_host_pointer(to);
  const void *out_of = span_host_pointer(from);
  if (into && out_of) {
    memcpy(into, out_of, to->bytes);
    return TN_OK;
  }
  tn_work w;
  tn_device *device = into ? from->device : to->device;
  if (!span_copy_work(device, to, from, &w)) return immediate_copy(to, from, d);
  diag_clear(d);
  return diag_complete(d, immediate_run(device, &w, &d->failure));
}

tn_status span_fill(const tn_span *to, uint8_t byte, diag *d) {
  void *at = span_host_pointer(to);
  const tn_work w = {.kind = TN_WORK_FILL, .to = *to, .fill = byte};
  if (at) memset(at, byte, to->bytes);
  diag_clear(d);
  return at || !to->bytes ? TN_OK : diag_complete(d, immediate_run(to->device, &w, &d->failure));
}
