/* Host functions of custom operations, and the call of one as a step of an executable: the step's
   buffers become the arrays of the caller's function. Its outputs lie one after another in one
   buffer, which nodes slice apart (api/custom_op.c), as a node has one result. */
#include "tensor/context/host_function.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tn_call {
  size_t n_in, n_out;
  tn_array in[CUSTOM_MAX_INPUTS], out[CUSTOM_MAX_OUTPUTS];
  const tn_span *in_spans, *out_span; /* NULL: all memory is the host's */
  char text[1024];
};

host_function *host_function_retain(host_function *h) {
  atomic_fetch_add_explicit(&h->count, 1, memory_order_relaxed);
  return h;
}

static size_t arrays_bytes(const host_signature *s) {
  return (s->n_in + s->n_out) * sizeof *s->arrays;
}

void host_function_release(host_function *h) {
  if (!h || atomic_fetch_sub_explicit(&h->count, 1, memory_order_acq_rel) > 1) return;
  const mem *m = &h->context->mem;
  callbacks_destroy_payload(h->context, h->destroy, h->user);
  mutex_free(&h->lock);
  mem_strfree(m, h->name);
  mem_free(m, h->signature.arrays, arrays_bytes(&h->signature));
  mem_free(m, h, sizeof *h);
}

tn_status host_function_open(tn_context *c, const tn_custom_desc *desc, size_t n_in,
                             size_t n_public_out, size_t n_out, host_function **out) {
  host_function *h = mem_calloc(&c->mem, 1, sizeof *h);
  if (!h) return diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  atomic_init(&h->count, 1);
  h->context = c;
  mutex_init(&h->lock);
  h->signature = (host_signature){
      .n_in = n_in, .n_out = n_out, .n_public_out = n_public_out, .writes = desc->writes};
  h->run = desc->run;
  h->user = desc->user;
  h->what = "a host function";
  h->signature.arrays = mem_calloc(&c->mem, 1, arrays_bytes(&h->signature));
  h->name = mem_strdup(&c->mem, desc->name ? desc->name : "custom");
  if (!h->signature.arrays || !h->name) {
    host_function_release(h);
    return diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  }
  h->destroy = desc->destroy;
  *out = h;
  return TN_OK;
}

/* ---- Calls ---- */

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

/** Places the outputs one after another in the result, aligned if their types differ; false if they
    do not fill it. make_nodes in api/custom_op.c makes the same layout. */
static bool place_outputs(const host_signature *s, tn_call *call, tn_array all[], char *at,
                          uint64_t bytes) {
  uint64_t offset = 0;
  bool is_mixed = false;
  for (size_t i = 1; i < s->n_out; i++) is_mixed |= all[i].type.dtype != all[0].type.dtype;
  for (size_t i = 0; i < s->n_out; i++) {
    all[i].data = at ? at + offset : NULL; /* NULL: the only output, taken as a span */
    offset += bytes_of(&all[i]);
    if (is_mixed) offset = (offset + CUSTOM_ALIGN - 1) / CUSTOM_ALIGN * CUSTOM_ALIGN;
  }
  for (size_t i = 0; i < call->n_out; i++) call->out[i] = all[i];
  return offset == bytes;
}

/** Fills in the arrays of a call; false if their sizes are not those of the step's buffers. */
static bool fill_call(const host_signature *s, const executable_call *c, tn_call *call) {
  int64_t varying[CUSTOM_MAX_INPUTS + CUSTOM_MAX_OUTPUTS] = {0};
  tn_array all[CUSTOM_MAX_OUTPUTS];
  for (size_t i = 0; i < s->n_varying; i++)
    memcpy(&varying[i], c->data[s->n_in + i], sizeof varying[i]);
  for (size_t i = 0; i < s->n_in; i++) {
    call->in[i] = array_of(&s->arrays[i], varying);
    call->in[i].data = c->data[i];
    if (bytes_of(&call->in[i]) != c->bytes[i]) return false;
  }
  for (size_t i = 0; i < s->n_out; i++) all[i] = array_of(&s->arrays[s->n_in + i], varying);
  if (!place_outputs(s, call, all, c->data[c->n_inputs], c->bytes[c->n_inputs])) return false;
  for (size_t i = 0; i < s->n_in; i++)
    if (s->writes >> i & 1) {
      tn_array *to = &all[s->written[i]];
      memcpy(to->data, call->in[i].data, bytes_of(to));
      call->in[i].data = to->data;
    }
  return true;
}

/** The status of the caller's function; TN_ERR_INTERNAL for a number that is none. */
static tn_status known_status(tn_status s, tn_call *call) {
  switch (s) {
#define STATUS_CASE(name, number, text) case name:
    TN_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    return s;
  default:
    snprintf(call->text, sizeof call->text, "it returned %d, which is not a tn_status", (int)s);
    return TN_ERR_INTERNAL;
  }
}

tn_status host_function_call(host_function *h, const executable_call *c, tn_failure *failure) {
  const mem *m = &h->context->mem;
  tn_call *call = mem_calloc(m, 1, sizeof *call);
  if (!call) return tn_fail(failure, TN_ERR_MEMORY, "out of memory");
  call->n_in = h->signature.n_in;
  call->n_out = h->signature.n_public_out;
  call->in_spans = c->spans;
  call->out_span = c->spans ? &c->spans[c->n_inputs] : NULL;
  tn_status s = TN_ERR_INTERNAL;
  if (fill_call(&h->signature, c, call)) {
    mutex_lock(&h->lock);
    s = known_status(h->run(h->user, call), call);
    mutex_unlock(&h->lock);
  } else {
    snprintf(call->text, sizeof call->text,
             "the sizes of its arrays differ from those of their types");
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

const tn_span *host_function_in_span(const tn_call *call, size_t i) {
  return call->in_spans ? &call->in_spans[i] : NULL;
}

const tn_span *host_function_out_span(const tn_call *call) { return call->out_span; }

void tn_call_fail(tn_call *call, const char *text) {
  if (call && text) snprintf(call->text, sizeof call->text, "%s", text);
}
