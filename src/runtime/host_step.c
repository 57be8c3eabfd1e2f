#include "runtime/host_step.h"

#include "device/failure.h"
#include "device/span.h"

host_step host_step_open(arena *a, const executable *p, const executable_step *step,
                         const executable_host *host, const tn_span *spans) {
  return (host_step){.p = p,
                     .step = step,
                     .host = host,
                     .spans = spans,
                     .data = arena_calloc(a, step->n_buffers, sizeof(void *)),
                     .bytes = arena_calloc(a, step->n_buffers, sizeof(uint64_t))};
}

static const tn_span *span_of(const host_step *h, size_t k) {
  return &h->spans[h->step->buffers[k]];
}

static dtype dtype_of(const host_step *h, size_t k) {
  return h->p->buffers[h->step->buffers[k]].dtype;
}

static size_t count_of(const host_step *h, size_t k) {
  return (size_t)h->bytes[k] / dtype_bytes(dtype_of(h, k));
}

/** Data that the host does not see is read and written around the call. */
static bool locate(host_step *h) {
  bool ok = true;
  for (size_t k = 0; k < h->step->n_buffers; k++) {
    const tn_span *at = span_of(h, k);
    h->bytes[k] = at->bytes;
    h->data[k] = device_host_pointer(at);
    if (!h->data[k]) ok &= (h->data[k] = mem_alloc(h->p->mem, (size_t)at->bytes)) != NULL;
  }
  return ok;
}

static tn_status read_inputs(host_step *h, diag *d) {
  tn_status s = TN_OK;
  for (size_t k = 0; k + 1 < h->step->n_buffers && s == TN_OK; k++)
    if (!device_host_pointer(span_of(h, k)))
      s = span_read(span_of(h, k), dtype_of(h, k), dtype_of(h, k), h->data[k], count_of(h, k), d);
  return s;
}

static tn_status write_result(host_step *h, diag *d) {
  size_t k = h->step->n_buffers - 1;
  if (device_host_pointer(span_of(h, k))) return TN_OK;
  return span_write(span_of(h, k), dtype_of(h, k), dtype_of(h, k), h->data[k], count_of(h, k), d);
}

static void free_copies(host_step *h) {
  for (size_t k = 0; k < h->step->n_buffers; k++)
    if (!device_host_pointer(span_of(h, k))) mem_free(h->p->mem, h->data[k], (size_t)h->bytes[k]);
}

tn_status host_step_call(void *step, tn_failure *failure) {
  host_step *h = step;
  diag d = {0};
  executable_call c = {h->step->uid, h->step->output, h->step->n_buffers - 1, h->data, h->bytes};
  tn_status s = locate(h) ? read_inputs(h, &d) : diag_set(&d, TN_ERR_MEMORY, "out of memory");
  bool is_called = s == TN_OK;
  if (is_called) s = h->host->call(h->host->user, &c, failure);
  bool has_failed = is_called && s != TN_OK;
  if (s == TN_OK) s = write_result(h, &d);
  free_copies(h);
  h->is_done = s == TN_OK;
  return s == TN_OK || has_failed ? s : tn_fail(failure, d.status, "%s", d.text);
}
