/* Host functions of custom operations, and the call of one as a step of an executable: the step's
   buffers become the arrays of the caller's function, and its outputs lie one after another in one
   buffer, which nodes cut apart (api/custom_op.c). */
#include "tensor/context/host_function.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tn_call {
  size_t n_in, n_out;
  tn_array in[CUSTOM_MAX_INPUTS], out[CUSTOM_MAX_OUTPUTS];
  char text[1024];
};

host_function *host_function_retain(host_function *h) {
  atomic_fetch_add_explicit(&h->count, 1, memory_order_relaxed);
  return h;
}

static size_t signatures_bytes(const host_function *h) {
  return (h->n_in + h->n_out) * sizeof *h->signatures;
}

void host_function_release(host_function *h) {
  if (!h || atomic_fetch_sub_explicit(&h->count, 1, memory_order_acq_rel) > 1) return;
  const mem *m = &h->context->mem;
  callbacks_destroy_payload(h->context, h->destroy, h->user);
  mutex_free(&h->lock);
  mem_strfree(m, h->name);
  mem_free(m, h->signatures, signatures_bytes(h));
  mem_free(m, h, sizeof *h);
}

tn_status host_function_open(tn_context *c, const tn_custom_desc *desc, size_t n_in,
                             size_t n_public_out, size_t n_out, host_function **out) {
  host_function *h = mem_calloc(&c->mem, 1, sizeof *h);
  if (!h) return diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  atomic_init(&h->count, 1);
  h->context = c;
  mutex_init(&h->lock);
  h->n_in = n_in;
  h->n_out = n_out;
  h->n_public_out = n_public_out;
  h->writes = desc->writes;
  h->run = desc->run;
  h->user = desc->user;
  h->signatures = mem_calloc(&c->mem, 1, signatures_bytes(h));
  h->name = mem_strdup(&c->mem, desc->name ? desc->name : "custom");
  if (!h->signatures || !h->name) {
    host_function_release(h);
    return diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  }
  h->destroy = desc->destroy;
  *out = h;
  return TN_OK;
}

/* Calls. */

static tn_array array_of(const array_signature *f, const int64_t varying[]) {
  tn_array a = {NULL, {(tn_dtype)f->dtype, {(int32_t)f->rank, {0}}}};
  for (size_t i = 0; i < f->rank; i++)
    a.type.shape.size[i] = f->varies[i] ? varying[f->size[i]] : f->size[i];
  return a;
}

static uint64_t bytes_of(const tn_array *a) {
  uint64_t n = tn_dtype_size(a->type.dtype);
  for (int32_t i = 0; i < a->type.shape.rank; i++) n *= (uint64_t)a->type.shape.size[i];
  return n;
}

static uint64_t align_bytes(uint64_t bytes) {
  return (bytes + CUSTOM_ALIGN - 1) / CUSTOM_ALIGN * CUSTOM_ALIGN;
}

/** Places the outputs one after another in the result, aligned if their types differ; false if they
    do not fill it. cut_row in api/custom_op.c makes the same layout. */
static bool place_outputs(const host_function *h, tn_call *call, tn_array all[], char *at,
                          uint64_t bytes) {
  uint64_t offset = 0;
  bool mixed = false;
  for (size_t i = 1; i < h->n_out; i++) mixed |= all[i].type.dtype != all[0].type.dtype;
  for (size_t i = 0; i < h->n_out; i++) {
    all[i].data = at + offset;
    offset += mixed ? align_bytes(bytes_of(&all[i])) : bytes_of(&all[i]);
  }
  for (size_t i = 0; i < call->n_out; i++) call->out[i] = all[i];
  return offset == bytes;
}

static bool fill_call(const host_function *h, const executable_call *c, tn_call *call) {
  int64_t varying[CUSTOM_MAX_INPUTS + CUSTOM_MAX_OUTPUTS] = {0};
  tn_array all[CUSTOM_MAX_OUTPUTS];
  for (size_t i = 0; i < h->n_varying; i++)
    memcpy(&varying[i], c->data[h->n_in + i], sizeof varying[i]);
  for (size_t i = 0; i < h->n_in; i++) {
    call->in[i] = array_of(&h->signatures[i], varying);
    call->in[i].data = c->data[i];
    if (bytes_of(&call->in[i]) != c->bytes[i]) return false;
  }
  for (size_t i = 0; i < h->n_out; i++) all[i] = array_of(&h->signatures[h->n_in + i], varying);
  if (!place_outputs(h, call, all, c->data[c->n_inputs], c->bytes[c->n_inputs])) return false;
  for (size_t i = 0; i < h->n_in; i++)
    if (h->writes >> i & 1) {
      tn_array *to = &all[h->written[i]];
      memcpy(to->data, call->in[i].data, bytes_of(to));
      call->in[i].data = to->data;
    }
  return true;
}

static tn_status known_status(tn_status s, tn_call *call) {
  switch (s) {
#define STATUS_CASE(name, number, text) case name:
    TN_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    return s;
  default:
    snprintf(call->text, sizeof call->text, "it returned %d, which is no status", (int)s);
    return TN_ERR_INTERNAL;
  }
}

tn_status host_function_call(host_function *h, const executable_call *c, tn_failure *failure) {
  const mem *m = &h->context->mem;
  tn_call *call = mem_calloc(m, 1, sizeof *call);
  if (!call) return tn_fail(failure, TN_ERR_MEMORY, "out of memory");
  call->n_in = h->n_in;
  call->n_out = h->n_public_out;
  tn_status s = TN_ERR_INTERNAL;
  if (fill_call(h, c, call)) {
    mutex_lock(&h->lock);
    s = known_status(h->run(h->user, call), call);
    mutex_unlock(&h->lock);
  } else {
    snprintf(call->text, sizeof call->text, "its arrays have other sizes than their types say");
  }
  if (s != TN_OK)
    tn_fail(failure, s, "custom operation %s: %s", h->name,
            call->text[0] ? call->text : tn_status_text(s));
  mem_free(m, call, sizeof *call);
  return s;
}

tn_array tn_call_in(const tn_call *call, size_t i) {
  return call && i < call->n_in ? call->in[i] : (tn_array){0};
}

tn_array tn_call_out(const tn_call *call, size_t i) {
  return call && i < call->n_out ? call->out[i] : (tn_array){0};
}

void tn_call_fail(tn_call *call, const char *text) {
  if (call && text) snprintf(call->text, sizeof call->text, "%s", text);
}
