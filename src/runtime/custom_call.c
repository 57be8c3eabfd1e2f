/* Runs the host steps of a plan: calls a CUSTOM node's host function, with host copies of the
   buffers that only the device can address, unless the function takes those itself. */
#include "runtime/custom_call.h"

#include "device/memory/span.h"

custom_call custom_call_open(arena *a, const executable *p, const executable_step *step,
                             const executable_host *host, const tn_span *spans) {
  return (custom_call){.p = p,
                       .step = step,
                       .host = host,
                       .spans = spans,
                       .data = arena_calloc(a, step->n_buffers, sizeof(void *)),
                       .bytes = arena_calloc(a, step->n_buffers, sizeof(uint64_t)),
                       .own = arena_calloc(a, step->n_buffers, sizeof(tn_span)),
                       .is_copied = arena_calloc(a, step->n_buffers, sizeof(bool))};
}

static const tn_span *operand_span(const custom_call *h, size_t k) {
  return &h->spans[h->step->buffers[k]];
}

static dtype operand_dtype(const custom_call *h, size_t k) {
  return h->p->buffers[h->step->buffers[k]].dtype;
}

static size_t operand_elements(const custom_call *h, size_t k) {
  return (size_t)h->bytes[k] / dtype_bytes(operand_dtype(h, k));
}

/** Finds or allocates a host pointer for each buffer: device-only memory gets a copy, which is
   filled before the call and written back after it, unless the function takes the span. */
static bool locate_data(custom_call *h) {
  const size_t n_spans = executable_host_facts_of(h->host, h->step->uid).n_spans;
  bool has_memory = true;
  for (size_t k = 0; k < h->step->n_buffers; k++) {
    const tn_span *at = operand_span(h, k);
    bool takes_span = k + 1 == h->step->n_buffers ? n_spans > 0 : k < n_spans;
    h->own[k] = *at;
    h->bytes[k] = at->bytes;
    h->data[k] = span_host_pointer(at);
    h->is_copied[k] = !h->data[k] && !takes_span;
    if (h->is_copied[k])
      has_memory &= (h->data[k] = mem_alloc(h->p->mem, (size_t)at->bytes)) != NULL;
  }
  return has_memory;
}

static tn_status read_inputs(custom_call *h, diag *d) {
  tn_status s = TN_OK;
  for (size_t k = 0; k + 1 < h->step->n_buffers && s == TN_OK; k++)
    if (h->is_copied[k])
      s = span_read(operand_span(h, k), operand_dtype(h, k), operand_dtype(h, k), h->data[k],
                    operand_elements(h, k), d);
  return s;
}

static tn_status write_result(custom_call *h, diag *d) {
  size_t k = h->step->n_buffers - 1;
  if (!h->is_copied[k]) return TN_OK;
  return span_write(operand_span(h, k), operand_dtype(h, k), operand_dtype(h, k), h->data[k],
                    operand_elements(h, k), d);
}

static void free_host_copies(custom_call *h) {
  for (size_t k = 0; k < h->step->n_buffers; k++)
    if (h->is_copied[k]) mem_free(h->p->mem, h->data[k], (size_t)h->bytes[k]);
}

tn_status custom_call_run(void *call, tn_failure *failure) {
  custom_call *h = call;
  diag d = {0};
  executable_call c = {h->step->uid, h->step->output, h->step->n_buffers - 1, h->data, h->bytes,
                       h->own,       h->spans};
  tn_status s = locate_data(h) ? read_inputs(h, &d) : diag_set(&d, TN_ERR_MEMORY, "out of memory");
  if (s == TN_OK) s = h->host->call(h->host->user, &c, &d.failure);
  if (s == TN_OK) s = write_result(h, &d);
  free_host_copies(h);
  h->is_done = s == TN_OK;
  if (s != TN_OK) *failure = d.failure;
  return s;
}
