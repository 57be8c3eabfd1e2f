/* Models: an ONNX file imported into a graph of its own, its inputs as the inputs of a plan and its
   weights over the mapped file. Operations come from the context's graph, in which it is built and
   to which it is copied where it is applied. */
#include "formats/model.h"

#include "device/buffer.h"
#include "device/span.h"
#include "formats/declared.h"
#include "formats/onnx/import.h"
#include "ir/copy.h"
#include "tensor/build.h"
#include "tensor/desc.h"
#include "tensor/leaf.h"
#include "tensor/ops_common.h"
#include "tensor/plan.h"

#include <string.h>

/* Leaves. */

typedef struct loading {
  tn_context *c;
  tn_model *m;
import import;
  bool copy;        /* weights are copied */
  const node **all; /* inputs, then outputs, then what has labels, in the context's graph */
  arena work;
  map input_of; /* input of `all` → its name */
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

static tn_status import_data(loading *l, const onnx_tensor *t, tn_buffer **out) {
  model_data *data = l->m->data;
  if (l->copy) return TN_ERR_UNSUPPORTED;
  atomic_fetch_add_explicit(&data->count, 1, memory_order_relaxed);
  return buffer_import(l->c->device, (void *)t->data, t->bytes, release_data, data, out,
                       &l->c->diag);
}

/** The file's own bytes where the device sees the host's memory, else a copy. */
static tn_status weight_memory(loading *l, const onnx_tensor *t, tn_buffer **out) {
  tn_context *c = l->c;
  tn_status s = import_data(l, t, out);
  if (s != TN_ERR_UNSUPPORTED) return s;
  tn_span span;
  s = buffer_open(c->device, t->bytes, out, &c->diag);
  if (s == TN_OK) s = buffer_span(*out, &span, &c->diag);
  if (s == TN_OK)
    s = span_write(&span, (dtype)t->dtype, (dtype)t->dtype, t->data, t->elements, &c->diag);
  onnx_drop(l->m->data->onnx, t);
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

static void add_port(loading *l, size_t i, const import_port *p) {
  tn_model *m = l->m;
  arena *a = &m->data->arena;
  m->names[i] = p->port->name;
  l->all[i] = p->node;
  builder b = {.arena = a, .diag = a->diag};
  for (size_t k = 0; k < p->node->rank && k < TN_MAX_RANK; k++)
    m->sizes[i][k] = size_text(&b, p->node->dims[k]);
}

static size_t count_leaves(const loading *l, size_t n_ports) {
  node_list order = topo_sort(&l->c->arena, l->all, n_ports, NULL, NULL);
  size_t n = 0;
  for (size_t i = 0; i < order.n; i++) n += order.at[i]->op == OP_BUFFER;
  return n;
}

/* Labels: nodes of the file give the names of what outputs need of theirs, or else their operators'
   names: those of their outputs are often numbers. */

static void add_label(loading *l, const onnx_node *by, const char *output, map *needed) {
  tn_model *m = l->m;
  const import_value *x = *output ? names_get(&l->import.values, output) : NULL;
  if (!x || !map_has(needed, x->v.node) || map_get(needed, x->v.node)) return;
  map_set(&l->c->arena, needed, x->v.node, (void *)by); /* one that passes it on is not named */
  l->all[m->n_inputs + m->n_outputs + m->n_labels] = x->v.node;
  m->labels[m->n_labels++].text = *by->name ? by->name : by->op_type;
}

/** The folders that all names in folders begin with tell nothing apart. */
static void drop_common_folders(tn_model *m) {
  const char *first = NULL;
  size_t common = 0;
  for (size_t i = 0; i < m->n_labels; i++) {
    const char *text = m->labels[i].text, *end = strrchr(text, '/');
    if (!end) continue;
    if (!first) first = text, common = (size_t)(end + 1 - text);
    while (strncmp(text, first, common)) common--;
  }
  while (common && first[common - 1] != '/') common--;
  for (size_t i = 0; i < m->n_labels; i++)
    if (strchr(m->labels[i].text, '/')) m->labels[i].text += common;
}

static void add_labels(loading *l) {
  tn_model *m = l->m;
  arena *a = &l->c->arena;
  const onnx_nodes *nodes = &m->data->onnx->graph->nodes;
  size_t n = 0, ports = m->n_inputs + m->n_outputs;
  node_list order = topo_sort(a, l->all + m->n_inputs, m->n_outputs, NULL, NULL);
  map needed = {0};
  for (size_t i = 0; i < order.n; i++) map_set(a, &needed, order.at[i], NULL);
  for (size_t i = 0; i < nodes->n; i++) n += nodes->at[i].outputs.n;
  m->labels = arena_calloc(&m->data->arena, n + 1, sizeof *m->labels);
  const node **all = arena_alloc(a, (ports + n + 1) * sizeof *all);
  memcpy(all, l->all, ports * sizeof *all);
  l->all = all;
  for (size_t i = 0; i < nodes->n; i++)
    for (size_t k = 0; k < nodes->at[i].outputs.n; k++)
      add_label(l, &nodes->at[i], nodes->at[i].outputs.at[k], &needed);
  drop_common_folders(m);
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
  m->name = *m->data->onnx->graph->name ? m->data->onnx->graph->name : "model";
  m->names = arena_calloc(a, n + 1, sizeof *m->names);
  m->nodes = arena_calloc(a, n + 1, sizeof *m->nodes);
  m->sizes = arena_calloc(a, n + 1, sizeof *m->sizes);
  l->all = arena_calloc(&l->c->arena, n + 1, sizeof *l->all);
  for (; m->n_inputs < im->inputs.n; m->n_inputs++)
    add_port(l, m->n_inputs, &im->inputs.at[m->n_inputs]);
  for (; m->n_outputs < im->outputs.n; m->n_outputs++)
    add_port(l, m->n_inputs + m->n_outputs, &im->outputs.at[m->n_outputs]);
  m->leaves = arena_calloc(a, count_leaves(l, n) + 1, sizeof *m->leaves);
  add_labels(l);
}

/* The graph's own home. */

static const node *numbered_leaf(ir *g, const node *like, const node *const dims[], size_t number) {
  const int64_t ints[] = {(int64_t)number, 0};
  return ir_node(g, OP_BUFFER, (dtype)like->dtype, dims, like->rank, ints, 2);
}

static const node *move_leaf(void *user, const node *n, const node *const src[]) {
  loading *l = user;
  tn_model *m = l->m;
  if (n->op == OP_VAR) return import_size(&l->import, m->ir, n);
  if (n->op != OP_BUFFER) return NULL;
  model_leaf *made = &m->leaves[m->n_leaves];
  made->input = map_get(&l->input_of, n);
  if (!made->input) {
    made->memory = buffer_retain(leaf_of(l->c, n)->memory);
    made->tensor = map_get(&l->import.weights, n);
  }
  return numbered_leaf(m->ir, n, src, m->n_leaves++);
}

static void move_body(void *arg) {
  loading *l = arg;
  tn_model *m = l->m;
  size_t ports = m->n_inputs + m->n_outputs, n = ports + m->n_labels;
  for (size_t i = 0; i < m->n_inputs; i++)
    map_set(&l->work, &l->input_of, l->all[i], (void *)m->names[i]);
  const node **copies = arena_alloc(&l->work, (n + 1) * sizeof *copies);
  ir_copy(m->ir, &l->work, l->all, n, move_leaf, l, copies);
  memcpy(m->nodes, copies, ports * sizeof *copies);
  for (size_t i = 0; i < m->n_labels; i++) m->labels[i].node = copies[ports + i];
  m->order = topo_sort(ir_arena(m->ir), copies, n, NULL, NULL);
}

/** Moves the graph out of the context's, which forgets it at the end of the call. */
static tn_status move_graph(loading *l) {
  tn_model *m = l->m;
  m->ir = ir_new(&l->c->mem, &m->diag, false);
  if (!m->ir) return diag_set(&l->c->diag, TN_ERR_MEMORY, "out of memory");
  arena_init(&l->work, &l->c->mem, &m->diag);
  tn_status s = diag_catch(&m->diag, move_body, l);
  arena_free(&l->work);
  return s == TN_OK ? s : diag_set(&l->c->diag, s, "%s", m->diag.text);
}

/* What the file says of outputs is not relied on: it may be wrong. */

static void compare_outputs(void *arg) {
  const loading *l = arg;
  arena *a = &l->c->arena;
  const onnx_values *declared = &l->m->data->onnx->graph->outputs;
  tn_port port = TN_PORT_INIT;
  for (size_t i = 0; tn_model_port(l->m, TN_PORT_OUTPUT, i, &port) == TN_OK; i++) {
    const onnx_type *t = &declared->at[i].type;
    if (declared_fits(t, &port)) continue;
    const onnx_type given = declared_port(a, &port);
    context_log(l->c, TN_LOG_WARNING, "output %.200s is %s, where the file says %s", port.name,
                declared_text(a, &given), declared_text(a, t));
  }
}

/* Loading. */

static void destroy(attachment *of) {
  tn_model *m = (tn_model *)of;
  plan_drop(m->plan);
  for (size_t i = 0; i < m->n_leaves; i++)
    if (m->leaves[i].memory) buffer_release(m->leaves[i].memory);
  ir_free(m->ir);
  mutex_free(&m->lock);
  model_data_release(m->data);
  mem_free(&m->context->mem, m, sizeof *m);
}

static tn_status load(tn_context *c, tn_model *m, const char *path, const void *data, size_t bytes,
                      const tn_model_desc *desc) {
  loading l = {.c = c, .m = m, .copy = desc->copy};
  l.import.said = desc->sizes;
  l.import.n_said = desc->n_sizes;
  tn_status s = model_data_open(&m->data, path, data, bytes, desc->folder, &c->mem, &c->diag);
  if (s != TN_OK) return s;
  s = diag_catch(&c->diag, load_body, &l);
  m->data->arena.diag = &m->data->diag;
  if (s == TN_OK) s = move_graph(&l);
  if (s == TN_OK) s = diag_catch(&c->diag, compare_outputs, &l);
  if (desc->copy) onnx_close(m->data->onnx);
  if (s != TN_OK && s != TN_ERR_MEMORY) diag_prefix(&c->diag, "%.400s", path ? path : "the model");
  return s;
}

static tn_status open_model(tn_context *c, const char *path, const void *data, size_t bytes,
                            const tn_model_desc *desc, tn_model **out) {
  if (out) *out = NULL;
  tn_status s = context_enter(c);
  if (s != TN_OK) return s;
  bool given = out && (path || data);
  tn_model *m = given ? mem_calloc(&c->mem, 1, sizeof *m) : NULL;
  if (!given) {
    s = diag_set(&c->diag, TN_ERR_ARGUMENT, "the %s is NULL", out ? "file" : "place for the model");
  } else if (m) {
    m->context = c;
    m->attachment.destroy = destroy;
    mutex_init(&m->lock);
    tn_model_desc own = TN_MODEL_DESC_INIT;
    s = desc_read(&c->diag, &own, desc, sizeof own, "tn_model_desc");
    if (s == TN_OK) s = load(c, m, path, data, bytes, &own);
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

void tn_model_free(tn_model *m) {
  tn_context *c = m ? m->context : NULL;
  if (!m || context_begin_beside(c, VISIT_NONE) != TN_OK) return;
  context_detach(c, &m->attachment);
  destroy(&m->attachment);
  context_end_beside(c);
}

/* Bindings. The first one compiles, for all sizes at once. */

static plan_leaf leaf_in_plan(void *user, const node *buffer) {
  const tn_model *m = user;
  const model_leaf *l = &m->leaves[buffer->ints[0]];
  return (plan_leaf){.input = l->input, .memory = l->memory};
}

/** What other weights were made of it is in memory. */
static void drop_weight(void *user, const node *buffer) {
  const tn_model *m = user;
  onnx_drop(m->data->onnx, m->leaves[buffer->ints[0]].tensor);
}

typedef struct compiling {
  tn_model *m;
  ir *ir; /* of a copy of the graph, for passes mark nodes */
  const node **nodes;
  schedule_label *labels;
} compiling;

static void copy_graph(void *arg) {
  compiling *k = arg;
  const tn_model *m = k->m;
  arena *a = ir_arena(k->ir);
  size_t ports = m->n_inputs + m->n_outputs, n = ports + m->n_labels;
  const node **roots = arena_alloc(a, (n + 1) * sizeof *roots);
  memcpy(roots, m->nodes, ports * sizeof *roots);
  for (size_t i = 0; i < m->n_labels; i++) roots[ports + i] = m->labels[i].node;
  k->nodes = arena_alloc(a, (n + 1) * sizeof *k->nodes);
  ir_copy_sorted(k->ir, a, &m->order, roots, n, NULL, NULL, k->nodes);
  k->labels = arena_alloc(a, (m->n_labels + 1) * sizeof *k->labels);
  for (size_t i = 0; i < m->n_labels; i++)
    k->labels[i] = (schedule_label){k->nodes[ports + i], m->labels[i].text};
}

static tn_status compile_copy(compiling *k) {
  tn_model *m = k->m;
  plan_graph g = {.name = m->name,
                  .inputs = k->nodes,
                  .n_inputs = m->n_inputs,
                  .outputs = k->nodes + m->n_inputs,
                  .output_names = m->names + m->n_inputs,
                  .n_outputs = m->n_outputs,
                  .labels = k->labels,
                  .n_labels = m->n_labels,
                  .ir = k->ir,
                  .leaf = leaf_in_plan,
                  .was_read = drop_weight,
                  .user = m};
  return plan_make(m->context, &g, ir_arena(k->ir), &m->diag, &m->plan);
}

/** Under the lock. */
static tn_status compile(tn_model *m) {
  tn_context *c = m->context;
  compiling k = {.m = m, .ir = ir_new(&c->mem, &m->diag, false)};
  tn_status s = k.ir ? diag_catch(&m->diag, copy_graph, &k)
                     : diag_set(&m->diag, TN_ERR_MEMORY, "out of memory");
  if (s == TN_OK) s = compile_copy(&k);
  ir_free(k.ir);
  return s == TN_OK ? s : context_message(c, &m->diag);
}

static tn_status no_place(const tn_model *m) {
  diag d = {0};
  diag_set(&d, TN_ERR_ARGUMENT, "%s: model_bind: the place for the binding is NULL", m->name);
  return context_message(m->context, &d);
}

static tn_status bind(tn_model *m, tn_binding **binding) {
  if (!binding) return no_place(m);
  mutex_lock(&m->lock);
  tn_status s = m->plan ? TN_OK : compile(m);
  mutex_unlock(&m->lock);
  return s == TN_OK ? tn_plan_bind(m->plan, binding) : s;
}

tn_status tn_model_bind(tn_model *m, tn_binding **binding) {
  if (binding) *binding = NULL;
  if (!m) return TN_ERR_ARGUMENT;
  tn_context *c = m->context;
  tn_status s = context_begin_beside(c, VISIT_NONE);
  if (s != TN_OK) return s;
  s = bind(m, binding);
  context_end_beside(c);
  return s;
}

/* Ports. */

tn_status tn_model_port(const tn_model *m, tn_port_kind kind, size_t i, tn_port *port) {
  if (!m) return TN_ERR_ARGUMENT;
  size_t n = kind == TN_PORT_INPUT ? m->n_inputs : kind == TN_PORT_OUTPUT ? m->n_outputs : 0;
  if (i >= n) return TN_ERR_ARGUMENT;
  if (kind == TN_PORT_OUTPUT) i += m->n_inputs;
  const node *x = m->nodes[i];
  tn_port found = {.size = sizeof found, .name = m->names[i]};
  found.type.dtype = (tn_dtype)x->dtype;
  found.type.shape.rank = x->rank <= TN_MAX_RANK ? x->rank : -1;
  for (int32_t k = 0; k < found.type.shape.rank; k++) {
    found.type.shape.size[k] = node_is_const(x->dims[k]) ? node_int(x->dims[k]) : -1;
    found.sizes[k] = m->sizes[i][k];
  }
  diag unsaid = {0};
  return desc_give(&unsaid, port, &found, sizeof found, "tn_port");
}

/* Models as operations. */

static bool is_same_size(const node *port, const node *x) {
  return node_is_const(port) && node_is_const(x) && node_int(port) == node_int(x);
}

/** Whether a size has only values that a variable of the model has. That one of no bound ends
    somewhere does not count. */
static bool is_within(const node *size, const node *var) {
  return size->lo >= var->lo && (size->hi <= var->hi || var->hi == IMPORT_SIZE_MAX);
}

/** What stands for an input's sizes: a variable is the operand's size, a number must agree. */
static void bind_sizes(builder *b, const tn_model *m, size_t i, const node *x, map *with) {
  const node *port = m->nodes[i];
  if (x->rank != port->rank)
    diag_raise(b->diag, TN_ERR_SHAPE, "input '%s' has rank %u, not %u", m->names[i], x->rank,
               port->rank);
  for (size_t k = 0; k < x->rank; k++) {
    const node *size = port->dims[k], *known = map_get(with, size);
    if (size->op == OP_VAR && !is_within(x->dims[k], size))
      diag_raise(b->diag, TN_ERR_SHAPE, "input '%s': axis %zu has size %s, not within %lld … %lld",
                 m->names[i], k, size_text(b, x->dims[k]), (long long)size->lo,
                 (long long)size->hi);
    if (size->op == OP_VAR && !known)
      map_set(b->arena, with, size, (void *)x->dims[k]);
    else if (known ? known != x->dims[k] : !is_same_size(size, x->dims[k]))
      diag_raise(b->diag, TN_ERR_SHAPE, "input '%s': axis %zu has size %s, not %s%s", m->names[i],
                 k, size_text(b, x->dims[k]), size_text(b, known ? known : size),
                 known ? arena_printf(b->arena, ", as %s is", m->sizes[i][k]) : "");
  }
}

typedef struct applying {
  builder *b;
  const tn_model *m;
  map with; /* input or variable of the model → what stands for it */
} applying;

static void bind_inputs(applying *a, const value in[]) {
  builder *b = a->b;
  const tn_model *m = a->m;
  for (size_t i = 0; i < m->n_inputs; i++) {
    value x = in[i].weak ? build_cast(b, in[i], (dtype)m->nodes[i]->dtype) : in[i];
    if (x.node->dtype != m->nodes[i]->dtype)
      diag_raise(b->diag, TN_ERR_DTYPE, "input '%s' is %s, not %s", m->names[i],
                 dtype_name((dtype)x.node->dtype), dtype_name((dtype)m->nodes[i]->dtype));
    bind_sizes(b, m, i, x.node, &a->with);
    map_set(b->arena, &a->with, m->nodes[i], (void *)x.node);
  }
}

/** A weight in the context's graph, over the same memory. */
static const node *new_weight(applying *a, const node *n, const node *const dims[]) {
  tn_context *c = a->b->context;
  const node *made;
  if (leaf_open(c, LEAF_DATA, (dtype)n->dtype, n->rank, dims, &made) != TN_OK)
    diag_rethrow(a->b->diag);
  ir_release(c->ir, made); /* it is new, and so held until the call ends */
  leaf_set_memory(c, made, a->m->leaves[n->ints[0]].memory);
  return made;
}

static const node *apply_leaf(void *user, const node *n, const node *const src[]) {
  applying *a = user;
  const node *known = map_get(&a->with, n);
  return known || n->op != OP_BUFFER ? known : new_weight(a, n, src);
}

static void apply(builder *b, const value in[], size_t n, const void *options, value out[],
                  size_t n_out) {
  const tn_model *m = options;
  applying a = {.b = b, .m = m};
  if (n != m->n_inputs || n_out != m->n_outputs)
    diag_raise(b->diag, TN_ERR_ARGUMENT, "%s has %zu inputs and %zu outputs", m->name, m->n_inputs,
               m->n_outputs);
  bind_inputs(&a, in);
  const node **made = arena_alloc(b->arena, (n_out + 1) * sizeof *made);
  ir_copy_sorted(b->ir, b->arena, &m->order, m->nodes + m->n_inputs, n_out, apply_leaf, &a, made);
  for (size_t i = 0; i < n_out; i++) out[i] = (value){made[i], WEAK_NO};
}

void tn_model_apply(tn_model *m, tn_tensor *const in[], size_t n_in, tn_tensor *out[],
                    size_t n_out) {
  for (size_t i = 0; out && i < n_out; i++) out[i] = NULL;
  if (m) tensor_call_many(m->context, "model", in, n_in, 0, apply, m, out, n_out);
}
