/* Reads, writes and copies spans of device memory: by the host's pointer if there is one, else by
   the backend's read and write, through a staging block of at most 1 MiB where types differ. */
#include "device/memory/span.h"

#include "device/memory/convert_elements.h"

#include <string.h>

void *span_host_pointer(const tn_span *s) {
  const tn_backend *b = s->device->backend;
  char *at = b->host ? b->host(s->device->state, s->memory) : NULL;
  return at ? at + s->offset : NULL;
}

/* Bytes that are staged at a time. */
enum { STAGE_BYTES = 1 << 20 };

/** A block of the host's memory, through which data of devices passes. */
typedef struct staging {
  const mem *mem;
  void *at;
  size_t bytes;
} staging;

static tn_status staging_open(staging *s, const mem *m, uint64_t bytes, diag *d) {
  s->mem = m;
  s->bytes = bytes < STAGE_BYTES ? (size_t)bytes : STAGE_BYTES;
  s->at = mem_alloc(m, s->bytes);
  char none[MEM_TEXT_BYTES];
  return s->at ? TN_OK : diag_set(d, TN_ERR_MEMORY, "%s", mem_exhausted_text(s->bytes, none));
}

static void staging_close(staging *s) { mem_free(s->mem, s->at, s->bytes); }

tn_span span_slice(const tn_span *span, uint64_t offset, uint64_t bytes) {
  tn_span part = *span;
  part.offset += offset;
  part.bytes = bytes;
  return part;
}

static tn_status read_bytes(const tn_span *from, uint64_t offset, void *to, uint64_t bytes,
                            diag *d) {
  const tn_device *v = from->device;
  diag_clear(d);
  return diag_complete(
      d, v->backend->read(v->state, to, from->memory, from->offset + offset, bytes, &d->failure));
}

static tn_status write_bytes(const tn_span *to, uint64_t offset, const void *from, uint64_t bytes,
                             diag *d) {
  const tn_device *v = to->device;
  diag_clear(d);
  return diag_complete(
      d, v->backend->write(v->state, to->memory, to->offset + offset, from, bytes, &d->failure));
}

/** Fails unless `count` elements of type `held` fit in a span. */
static tn_status check_count(const tn_span *slot, dtype held, size_t count, diag *d) {
  uint64_t most = slot->bytes / dtype_bytes(held);
  if (count <= most) return TN_OK;
  return diag_set(d, TN_ERR_SHAPE, "%zu elements of type %s do not fit in %llu bytes", count,
                  dtype_name(held), (unsigned long long)most);
}

static tn_status write_staged(const tn_span *slot, dtype held, dtype from, const void *data,
                              size_t count, diag *d) {
  staging s;
  size_t size = dtype_bytes(held);
  tn_status status = staging_open(&s, slot->device->mem, count * size, d);
  for (size_t done = 0, n; done < count && !status; done += n) {
    n = count - done < s.bytes / size ? count - done : s.bytes / size;
    convert(held, s.at, from, (const char *)data + done * dtype_bytes(from), n);
    status = write_bytes(slot, done * size, s.at, n * size, d);
  }
  staging_close(&s);
  return status;
}

tn_status span_write(const tn_span *slot, dtype held, dtype from, const void *data, size_t count,
                     diag *d) {
  tn_status status = check_count(slot, held, count, d);
  if (status || !count) return status;
  void *at = span_host_pointer(slot);
  if (!at && held == from && held != DT_BOOL)
    return write_bytes(slot, 0, data, count * dtype_bytes(held), d);
  if (!at) return write_staged(slot, held, from, data, count, d);
  convert(held, at, from, data, count);
  return TN_OK;
}

static tn_status read_staged(const tn_span *slot, dtype held, dtype to, void *data, size_t count,
                             diag *d) {
  staging s;
  size_t size = dtype_bytes(held);
  tn_status status = staging_open(&s, slot->device->mem, count * size, d);
  for (size_t done = 0, n; done < count && !status; done += n) {
    n = count - done < s.bytes / size ? count - done : s.bytes / size;
    status = read_bytes(slot, done * size, s.at, n * size, d);
    if (!status) convert(to, (char *)data + done * dtype_bytes(to), held, s.at, n);
  }
  staging_close(&s);
  return status;
}

tn_status span_read(const tn_span *slot, dtype held, dtype to, void *data, size_t count, diag *d) {
  tn_status status = check_count(slot, held, count, d);
  if (status || !count) return status;
  const void *at = span_host_pointer(slot);
  if (!at && held == to && held != DT_BOOL)
    return read_bytes(slot, 0, data, count * dtype_bytes(held), d);
  if (!at) return read_staged(slot, held, to, data, count, d);
  convert(to, data, held, at, count);
  return TN_OK;
}

/** Copies between two memories that the host does not see. */
static tn_status copy_staged(const tn_span *to, const tn_span *from, diag *d) {
  staging s;
  tn_status status = staging_open(&s, to->device->mem, to->bytes, d);
  for (uint64_t done = 0, n; done < to->bytes && !status; done += n) {
    n = to->bytes - done < s.bytes ? to->bytes - done : s.bytes;
    status = read_bytes(from, done, s.at, n, d);
    if (!status) status = write_bytes(to, done, s.at, n, d);
  }
  staging_close(&s);
  return status;
}

tn_status span_copy(const tn_span *to, const tn_span *from, diag *d) {
  if (to->bytes != from->bytes)
    return diag_set(d, TN_ERR_ARGUMENT,
                    "a copy of %llu bytes does not match the span of %llu bytes",
                    (unsigned long long)from->bytes, (unsigned long long)to->bytes);
  if (!to->bytes) return TN_OK;
  void *into = span_host_pointer(to);
  const void *out_of = span_host_pointer(from);
  if (into && out_of) {
    memcpy(into, out_of, to->bytes);
    return TN_OK;
  }
  if (into) return read_bytes(from, 0, into, to->bytes, d);
  if (out_of) return write_bytes(to, 0, out_of, to->bytes, d);
  return copy_staged(to, from, d);
}
