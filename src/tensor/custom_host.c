/* Host functions: their lives, and their calls as steps of an executable. */
#include "tensor/custom_host.h"

#include "device/failure.h"
#include "tensor/leaf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tn_call {
  size_t n_in, n_out;
  tn_array in[CUSTOM_MOST_INPUTS], out[CUSTOM_MOST_OUTPUTS];
  char text[1024];
};

custom_host *custom_hold(custom_host *h) {
  atomic_fetch_add_explicit(&h->count, 1, memory_order_relaxed);
  return h;
}

static size_t forms_bytes(const custom_host *h) { return (h->n_in + h->n_out) * sizeof *h->forms; }

void custom_drop(custom_host *h) {
  if (!h || atomic_fetch_sub_explicit(&h->count, 1, memory_order_acq_rel) > 1) return;
  const mem *m = &h->context->mem;
  callbacks_destroy(h->context, h->destroy, h->user);
  mutex_free(&h->lock);
  mem_strfree(m, h->name);
  mem_free(m, h->forms, forms_bytes(h));
  mem_free(m, h, sizeof *h);
}

tn_status custom_host_open(tn_context *c, const tn_custom_desc *desc, size_t n_in, size_t n_told,
                           size_t n_out, custom_host **out) {
  custom_host *h = mem_calloc(&c->mem, 1, sizeof *h);
  if (!h) return diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  atomic_init(&h->count, 1);
  h->context = c;
  mutex_init(&h->lock);
  h->n_in = n_in;
  h->n_out = n_out;
  h->n_told = n_told;
  h->writes = desc->writes;
  h->run = desc->run;
  h->user = desc->user;
  h->forms = mem_calloc(&c->mem, 1, forms_bytes(h));
  h->name = mem_strdup(&c->mem, desc->name ? desc->name : "custom");
  if (!h->forms || !h->name) {
    custom_drop(h);
    return diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  }
  h->destroy = desc->destroy;
  *out = h;
  return TN_OK;
}

/* Running. */

static tn_array array_of(const shape_form *f, const int64_t varying[]) {
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

static uint64_t aligned(uint64_t bytes) {
  return (bytes + CUSTOM_ALIGN - 1) / CUSTOM_ALIGN * CUSTOM_ALIGN;
}

/** Where each output lies in the result; see pack_sizes. */
static bool place_outputs(const custom_host *h, tn_call *call, tn_array all[], char *at,
                          uint64_t bytes) {
  uint64_t offset = 0;
  bool mixed = false;
  for (size_t i = 1; i < h->n_out; i++) mixed |= all[i].type.dtype != all[0].type.dtype;
  for (size_t i = 0; i < h->n_out; i++) {
    all[i].data = at + offset;
    offset += mixed ? aligned(bytes_of(&all[i])) : bytes_of(&all[i]);
  }
  for (size_t i = 0; i < call->n_out; i++) call->out[i] = all[i];
  return offset == bytes;
}

static bool fill_call(const custom_host *h, const executable_call *c, tn_call *call) {
  int64_t varying[CUSTOM_MOST_INPUTS + CUSTOM_MOST_OUTPUTS] = {0};
  tn_array all[CUSTOM_MOST_OUTPUTS];
  for (size_t i = 0; i < h->n_varying; i++)
    memcpy(&varying[i], c->data[h->n_in + i], sizeof varying[i]);
  for (size_t i = 0; i < h->n_in; i++) {
    call->in[i] = array_of(&h->forms[i], varying);
    call->in[i].data = c->data[i];
    if (bytes_of(&call->in[i]) != c->bytes[i]) return false;
  }
  for (size_t i = 0; i < h->n_out; i++) all[i] = array_of(&h->forms[h->n_in + i], varying);
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

static tn_status call_host(custom_host *h, const executable_call *c, tn_failure *failure) {
  const mem *m = &h->context->mem;
  tn_call *call = mem_calloc(m, 1, sizeof *call);
  if (!call) return tn_fail(failure, TN_ERR_MEMORY, "out of memory");
  call->n_in = h->n_in;
  call->n_out = h->n_told;
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

/* The host functions of an executable. */

typedef struct listed_host {
  int64_t uid;
  custom_host *host;
} listed_host;

typedef struct host_list {
  tn_context *context;
  size_t n;
  listed_host at[]; /* by uid */
} host_list;

static size_t list_bytes(size_t n) { return sizeof(host_list) + n * sizeof(listed_host); }

static int by_uid(const void *a, const void *b) {
  const listed_host *x = a, *y = b;
  return (x->uid > y->uid) - (x->uid < y->uid);
}

static tn_status call_listed(void *user, const executable_call *c, tn_failure *failure) {
  const host_list *l = user;
  const listed_host key = {c->uid, NULL};
  const listed_host *found = bsearch(&key, l->at, l->n, sizeof key, by_uid);
  if (!found)
    return tn_fail(failure, TN_ERR_INTERNAL, "no custom operation %lld", (long long)c->uid);
  callback k;
  callback_begin(&k, l->context, VISIT_HOST);
  tn_status s = call_host(found->host, c, failure);
  callback_end(&k);
  return s;
}

static void release_list(void *user) {
  host_list *l = user;
  for (size_t i = 0; i < l->n; i++) custom_drop(l->at[i].host);
  mem_free(&l->context->mem, l, list_bytes(l->n));
}

tn_status custom_host_of(tn_context *c, const node_list *order, const int64_t uids[],
                         executable_host *out) {
  size_t n = 0;
  *out = (executable_host){0};
  for (size_t i = 0; i < order->n; i++) n += order->at[i]->op == OP_CUSTOM;
  if (!n) return TN_OK;
  host_list *l = mem_calloc(&c->mem, 1, list_bytes(n));
  if (!l) return diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  l->context = c;
  for (size_t i = 0; i < order->n; i++)
    if (order->at[i]->op == OP_CUSTOM) {
      l->at[l->n].uid = uids ? uids[l->n] : order->at[i]->ints[0];
      l->at[l->n++].host = custom_hold(leaf_of(c, order->at[i])->custom);
    }
  qsort(l->at, l->n, sizeof *l->at, by_uid);
  *out = (executable_host){call_listed, release_list, l};
  return TN_OK;
}
