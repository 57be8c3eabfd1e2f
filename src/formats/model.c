/* Models: an ONNX file imported into the context's graph, its inputs as the inputs of a plan and
   its weights as tensors over the mapped file. */
#include "formats/model.h"

#include "device/buffer.h"
#include "device/span.h"
#include "formats/onnx/import.h"
#include "ir/subst.h"
#include "tensor/build.h"
#include "tensor/desc.h"
#include "tensor/leaf.h"
#include "tensor/plan.h"

#include <string.h>
#include <time.h>

/* Leaves. */

typedef struct loading {
  tn_context *c;
  tn_model *m;
import import;
} loading;

static const node *open_leaf(loading *l, leaf_kind kind, dtype t, size_t rank,
                             const node *const dims[]) {
  const node *made;
  if (leaf_open(l->c, kind, t, rank, dims, &made) != TN_OK) diag_rethrow(&l->c->diag);
  ir_release(l->c->ir, made); /* it is new, and so held until the call ends */
  return made;
}

static const node *input_leaf(void *user, const char *name, dtype t, size_t rank,
                              const node *const dims[]) {
  loading *l = user;
  if (rank > TN_MAX_RANK)
    diag_raise(&l->c->diag, TN_ERR_UNSUPPORTED, "input '%.200s' has rank %zu", name, rank);
  const node *n = open_leaf(l, LEAF_INPUT, t, rank, dims);
  leaf *of = leaf_of(l->c, n);
  of->name = mem_strdup(&l->c->mem, name);
  if (!of->name) diag_raise(&l->c->diag, TN_ERR_MEMORY, "out of memory");
  return n;
}

static void release_data(void *data) { model_data_release(data); }

/** The file's own bytes where the device sees the host's memory, else a copy. */
static tn_status weight_memory(loading *l, const onnx_tensor *t, tn_buffer **out) {
  tn_context *c = l->c;
  model_data *data = l->m->data;
  atomic_fetch_add_explicit(&data->count, 1, memory_order_relaxed);
  tn_status s =
      buffer_import(c->device, (void *)t->data, t->bytes, release_data, data, out, &c->diag);
  if (s != TN_ERR_UNSUPPORTED) return s;
  tn_span span;
  s = buffer_open(c->device, t->bytes, out, &c->diag);
  if (s == TN_OK) s = buffer_span(*out, &span, &c->diag);
  if (s == TN_OK)
    s = span_write(&span, (dtype)t->dtype, (dtype)t->dtype, t->data, t->elements, &c->diag);
  if (s != TN_OK) buffer_release(*out);
  return s;
}

static const node *weight_leaf(void *user, const onnx_tensor *t, dtype type, size_t rank,
                               const node *const dims[]) {
  loading *l = user;
  tn_buffer *memory;
  const node *n = open_leaf(l, LEAF_DATA, type, rank, dims);
  tn_status s =
      t->bytes ? weight_memory(l, t, &memory) : buffer_open(l->c->device, 1, &memory, &l->c->diag);
  if (s != TN_OK) diag_rethrow(&l->c->diag);
  leaf_set_memory(l->c, n, memory);
  buffer_release(memory);
  return n;
}

/* Ports. */

/** A size in words: "224", "batch", "2*batch + 1". */
static const char *size_text(arena *a, const node *n) {
  if (node_is_const(n)) return arena_printf(a, "%lld", (long long)node_int(n));
  str s = str_new(a);
  for (size_t i = 0; i < ix_terms(n); i++) {
    if (ix_atom(n, i)->op != OP_VAR) return "?";
    if (i) str_add(&s, " + ");
    if (ix_factor(n, i) != 1) str_addf(&s, "%lld*", (long long)ix_factor(n, i));
    str_add(&s, ix_atom(n, i)->text);
  }
  if (ix_offset(n)) str_addf(&s, " + %lld", (long long)ix_offset(n));
  return str_text(&s);
}

static void add_port(loading *l, size_t i, const import_port *p) {
  tn_model *m = l->m;
  m->names[i] = p->port->name;
  m->nodes[i] = ir_retain(p->node);
  for (size_t k = 0; k < p->node->rank && k < TN_MAX_RANK; k++)
    m->sizes[i][k] = size_text(&m->data->arena, p->node->dims[k]);
}

static void load_body(void *arg) {
  loading *l = arg;
  tn_model *m = l->m;
  import *im = &l->import;
  im->b = context_builder(l->c);
  im->leaves = (import_leaves){input_leaf, weight_leaf, l};
  import_graph(im, m->data->onnx);
  size_t n = im->inputs.n + im->outputs.n;
  arena *a = &m->data->arena;
  a->diag = &l->c->diag;
  m->names = arena_calloc(a, n + 1, sizeof *m->names);
  m->name = *m->data->onnx->graph->name ? m->data->onnx->graph->name : "model";
  m->nodes = arena_calloc(a, n + 1, sizeof *m->nodes);
  m->sizes = arena_calloc(a, n + 1, sizeof *m->sizes);
  for (; m->n_inputs < im->inputs.n; m->n_inputs++)
    add_port(l, m->n_inputs, &im->inputs.at[m->n_inputs]);
  for (; m->n_outputs < im->outputs.n; m->n_outputs++)
    add_port(l, m->n_inputs + m->n_outputs, &im->outputs.at[m->n_outputs]);
}

/* Loading. */

/** Called in the taken context. */
static void destroy(attachment *of) {
  tn_model *m = (tn_model *)of;
  for (size_t i = 0; i < m->n_inputs + m->n_outputs; i++) ir_release(m->context->ir, m->nodes[i]);
  plan_drop(m->plan);
  mutex_free(&m->lock);
  model_data_release(m->data);
  mem_free(&m->context->mem, m, sizeof *m);
}

static tn_status load(tn_context *c, tn_model *m, const char *path, const void *data, size_t bytes,
                      const char *folder) {
  loading l = {.c = c, .m = m};
  tn_status s = model_data_open(&m->data, path, data, bytes, folder, &c->mem, &c->diag);
  if (s != TN_OK) return s;
  s = diag_catch(&c->diag, load_body, &l);
  m->data->arena.diag = &m->data->diag;
  if (s != TN_OK && s != TN_ERR_MEMORY) diag_prefix(&c->diag, "%s", path ? path : "the model");
  return s;
}

static tn_status open_model(tn_context *c, const char *path, const void *data, size_t bytes,
                            const tn_model_desc *desc, tn_model **out) {
  if (!out) return TN_ERR_ARGUMENT;
  *out = NULL;
  if (!path && !data) return TN_ERR_ARGUMENT;
  tn_status s = context_enter(c);
  if (s != TN_OK) return s;
  tn_model *m = mem_calloc(&c->mem, 1, sizeof *m);
  if (m) {
    m->context = c;
    m->attachment.destroy = destroy;
    mutex_init(&m->lock);
    tn_model_desc own = TN_MODEL_DESC_INIT;
    s = desc_read(&c->diag, &own, desc, sizeof own, "tn_model_desc");
    if (s == TN_OK) s = load(c, m, path, data, bytes, own.folder);
    if (s == TN_OK)
      context_attach(c, &m->attachment);
    else
      destroy(&m->attachment);
  } else {
    s = diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  }
  if (s == TN_OK)
    *out = m;
  else
    context_fail(c, NULL, NULL, 0);
  context_leave(c);
  return s;
}

tn_status tn_model_load(tn_context *c, const char *path, const tn_model_desc *desc, tn_model **m) {
  return open_model(c, path, NULL, 0, desc, m);
}

tn_status tn_model_load_bytes(tn_context *c, const void *data, size_t bytes,
                              const tn_model_desc *desc, tn_model **m) {
  return open_model(c, NULL, data, bytes, desc, m);
}

/** Takes the context as soon as no other call has it. */
static void wait_for(tn_context *c) {
  while (context_take(c) == TN_ERR_BUSY) nanosleep(&(struct timespec){0, 50000}, NULL);
}

void tn_model_free(tn_model *m) {
  if (!m) return;
  tn_context *c = m->context;
  wait_for(c);
  context_detach(&m->attachment);
  destroy(&m->attachment);
  context_leave(c);
}

/* Bindings. The first one compiles, for all sizes at once. */

static tn_status compile(tn_model *m) {
  tn_context *c = m->context;
  plan_source s = {.name = m->name,
                   .inputs = m->nodes,
                   .n_inputs = m->n_inputs,
                   .outputs = m->nodes + m->n_inputs,
                   .output_names = m->names + m->n_inputs,
                   .n_outputs = m->n_outputs};
  wait_for(c);
  tn_status status = plan_compile_source(c, &s, &m->plan);
  if (status != TN_OK) context_fail(c, NULL, NULL, 0);
  context_leave(c);
  return status;
}

tn_status tn_model_bind(tn_model *m, tn_binding **binding) {
  if (binding) *binding = NULL;
  if (!m || !binding) return TN_ERR_ARGUMENT;
  mutex_lock(&m->lock);
  tn_status s = m->plan ? TN_OK : compile(m);
  mutex_unlock(&m->lock);
  return s == TN_OK ? tn_plan_bind(m->plan, binding) : s;
}

/* Ports. */

tn_status tn_model_port(const tn_model *m, tn_port_kind kind, size_t i, tn_port *port) {
  if (!m || !port) return TN_ERR_ARGUMENT;
  size_t n = kind == TN_PORT_INPUT ? m->n_inputs : kind == TN_PORT_OUTPUT ? m->n_outputs : 0;
  if (i >= n || port->size < sizeof *port) return TN_ERR_ARGUMENT;
  if (kind == TN_PORT_OUTPUT) i += m->n_inputs;
  const node *x = m->nodes[i];
  *port = (tn_port){.size = port->size, .name = m->names[i]};
  port->type.dtype = (tn_dtype)x->dtype;
  port->type.shape.rank = x->rank <= TN_MAX_RANK ? x->rank : -1;
  for (int32_t k = 0; k < port->type.shape.rank; k++) {
    port->type.shape.size[k] = node_is_const(x->dims[k]) ? node_int(x->dims[k]) : -1;
    port->sizes[k] = m->sizes[i][k];
  }
  return TN_OK;
}

/* Models as operations. */

/** What stands for an input's sizes: a variable is the operand's size, a number must agree. */
static void bind_sizes(builder *b, const tn_model *m, size_t i, const node *x, map *with) {
  const node *port = m->nodes[i];
  if (x->rank != port->rank)
    diag_raise(b->diag, TN_ERR_SHAPE, "input '%s' has %u dimensions, not %u", m->names[i],
               port->rank, x->rank);
  for (size_t k = 0; k < x->rank; k++) {
    const node *size = port->dims[k], *known = map_get(with, size);
    if (size->op == OP_VAR && !known)
      map_set(b->arena, with, size, (void *)x->dims[k]);
    else if ((known ? known : size) != x->dims[k])
      diag_raise(b->diag, TN_ERR_SHAPE, "input '%s' has another size %zu than %s", m->names[i], k,
                 m->sizes[i][k]);
  }
}

static void apply(builder *b, const value in[], size_t n, const void *options, value out[],
                  size_t n_out) {
  const tn_model *m = options;
  map with = {0};
  if (n != m->n_inputs || n_out != m->n_outputs)
    diag_raise(b->diag, TN_ERR_ARGUMENT, "%s has %zu inputs and %zu outputs", m->name, m->n_inputs,
               m->n_outputs);
  for (size_t i = 0; i < n; i++) {
    value x = in[i].weak ? build_cast(b, in[i], (dtype)m->nodes[i]->dtype) : in[i];
    if (x.node->dtype != m->nodes[i]->dtype)
      diag_raise(b->diag, TN_ERR_DTYPE, "input '%s' is %s, not %s", m->names[i],
                 dtype_name((dtype)m->nodes[i]->dtype), dtype_name((dtype)x.node->dtype));
    bind_sizes(b, m, i, x.node, &with);
    map_set(b->arena, &with, m->nodes[i], (void *)x.node);
  }
  for (size_t i = 0; i < n_out; i++)
    out[i] = (value){subst(b->ir, m->nodes[m->n_inputs + i], &with), WEAK_NO};
}

void tn_model_apply(tn_model *m, tn_tensor *const in[], size_t n_in, tn_tensor *out[],
                    size_t n_out) {
  for (size_t i = 0; i < n_out; i++) out[i] = NULL;
  if (m) tensor_call_many(m->context, "model", in, n_in, 0, apply, m, out, n_out);
}
