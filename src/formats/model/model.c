/* Models: imports an ONNX file into the context's graph, then copies it to a graph that the model
   owns, so that threads use the model without the context. Weights are imported from the mapped
   file without a copy if the device reads host memory. Bindings share one plan;
   tn_model_apply inlines the graph as an operation. */
#include "formats/model/model.h"

#include "device/memory/buffer.h"
#include "device/memory/span.h"
#include "formats/model/declared_type.h"
#include "formats/onnx/importer/importer.h"
#include "ir/transform/copy_graph.h"
#include "tensor/context/descriptor.h"
#include "tensor/ops/operators.h"
#include "tensor/plan/plan.h"
#include "tensor/state/graph_input.h"

#include <string.h>

/* Graph inputs and weights. */

/** The loading of a model. */
typedef struct model_load {
  tn_context *c;
  tn_model *m;
  struct import importer;
  const char *title;   /* of the model in messages; "": the graph's name */
  bool copies_weights; /* from the file, rather than importing its memory */
  const node **nodes;  /* inputs, outputs, then labelled nodes, in the context's graph */
  arena scratch;
  map input_names; /* input in `nodes` → name */
} model_load;

static const node *open_buffer_node(model_load *l, graph_input_kind kind, dtype t, size_t rank,
                                    const node *const dims[]) {
  const node *made;
  if (graph_input_open(l->c, kind, t, rank, dims, &made) != TN_OK) diag_rethrow(&l->c->diag);
  ir_release(l->c->ir, made); /* a new node stays alive until the call ends */
  return made;
}

static const node *add_input(void *user, const char *name, dtype t, size_t rank,
                             const node *const dims[]) {
  model_load *l = user;
  if (rank > TN_MAX_RANK)
    diag_raise(&l->c->diag, TN_ERR_UNSUPPORTED,
               "input '%.200s' has %zu dimensions; at most %d are supported", name, rank,
               TN_MAX_RANK);
  const node *n = open_buffer_node(l, GRAPH_INPUT_PLAN, t, rank, dims);
  graph_input *input = graph_input_of(l->c, n);
  input->name = mem_strdup(&l->c->mem, name);
  if (!input->name) diag_raise(&l->c->diag, TN_ERR_MEMORY, "out of memory");
  return n;
}

static void release_file(void *data) { model_file_release(data); }

static tn_status import_file_memory(model_load *l, const onnx_tensor *t, tn_buffer **out) {
  model_file *data = l->m->data;
  if (l->copies_weights) return TN_ERR_UNSUPPORTED;
  atomic_fetch_add_explicit(&data->count, 1, memory_order_relaxed);
  return buffer_import(l->c->device, (void *)t->data, t->bytes, release_file, data, out,
                       &l->c->diag);
}

/** Creates a weight's buffer: over the file's bytes if the device reads host memory, else a copy.
 */
static tn_status open_weight_buffer(model_load *l, const onnx_tensor *t, tn_buffer **out) {
  tn_context *c = l->c;
  tn_status s = import_file_memory(l, t, out);
  if (s != TN_ERR_UNSUPPORTED) return s;
  tn_span span;
  s = buffer_open(c->device, t->bytes, out, &c->diag);
  if (s == TN_OK) s = buffer_span(*out, &span, &c->diag);
  if (s == TN_OK)
    s = span_write(&span, (dtype)t->dtype, (dtype)t->dtype, t->data, t->elements, &c->diag);
  onnx_tensor_drop_pages(l->m->data->onnx, t);
  if (s != TN_OK) buffer_release(*out);
  return s;
}

static const node *add_weight(void *user, const onnx_tensor *t, dtype type, size_t rank,
                              const node *const dims[]) {
  model_load *l = user;
  tn_buffer *memory;
  const node *n = open_buffer_node(l, GRAPH_INPUT_DATA, type, rank, dims);
  tn_status s = t->bytes ? open_weight_buffer(l, t, &memory)
                         : buffer_open(l->c->device, 1, &memory, &l->c->diag);
  if (s != TN_OK) diag_rethrow(&l->c->diag);
  graph_input_set_memory(l->c, n, memory);
  buffer_release(memory);
  return n;
}

/* Ports. */

static void add_port(model_load *l, size_t i, const importer_port *p) {
  tn_model *m = l->m;
  arena *a = &m->data->arena;
  m->names[i] = p->port->name;
  l->nodes[i] = p->node;
  builder b = {.arena = a, .diag = a->diag};
  for (size_t k = 0; k < p->node->rank && k < TN_MAX_RANK; k++)
    m->sizes[i][k] = size_user_text(&b, p->node->dims[k]);
}

static size_t count_buffers(const model_load *l, size_t n_ports) {
  node_list order = topo_sort(&l->c->arena, l->nodes, n_ports, NULL, NULL);
  size_t n = 0;
  for (size_t i = 0; i < order.n; i++) n += order.at[i]->op == OP_BUFFER;
  return n;
}

/* Labels of graph nodes: the name of the file's node that computes them, or its operator's. Names
   of the file's values are not used, as exporters often number them. */

/** Labels the value of a node's output if it is live and not labelled yet: an operator such as
    Identity returns the value of an earlier node. `live`: the outputs' dependences → their
   producer, NULL before they are labelled. */
static void add_label(model_load *l, const onnx_node *producer, const char *output, map *live) {
  tn_model *m = l->m;
  const importer_value *x = *output ? string_map_get(&l->importer.values, output) : NULL;
  if (!x || !map_has(live, x->v.node) || map_get(live, x->v.node)) return;
  map_set(&l->c->arena, live, x->v.node, (void *)producer);
  l->nodes[m->n_inputs + m->n_outputs + m->n_labels] = x->v.node;
  m->labels[m->n_labels++].text = *producer->name ? producer->name : producer->op_type;
}

/** Removes the longest prefix "a/b/" that all labels with a slash share. */
static void drop_common_prefix(tn_model *m) {
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

static void add_labels(model_load *l) {
  tn_model *m = l->m;
  arena *a = &l->c->arena;
  const onnx_nodes *nodes = &m->data->onnx->graph->nodes;
  size_t n = 0, ports = m->n_inputs + m->n_outputs;
  node_list order = topo_sort(a, l->nodes + m->n_inputs, m->n_outputs, NULL, NULL);
  map live = {0};
  for (size_t i = 0; i < order.n; i++) map_set(a, &live, order.at[i], NULL);
  for (size_t i = 0; i < nodes->n; i++) n += nodes->at[i].outputs.n;
  m->labels = arena_calloc(&m->data->arena, n + 1, sizeof *m->labels);
  const node **roots = arena_alloc(a, (ports + n + 1) * sizeof *roots);
  memcpy(roots, l->nodes, ports * sizeof *roots);
  l->nodes = roots;
  for (size_t i = 0; i < nodes->n; i++)
    for (size_t k = 0; k < nodes->at[i].outputs.n; k++)
      add_label(l, &nodes->at[i], nodes->at[i].outputs.at[k], &live);
  drop_common_prefix(m);
}

static void import_body(void *arg) {
  model_load *l = arg;
  tn_model *m = l->m;
  import *im = &l->importer;
  im->b = context_builder(l->c);
  im->callbacks = (importer_callbacks){add_input, add_weight, l};
  import_graph(im, m->data->onnx);
  size_t n = im->inputs.n + im->outputs.n;
  arena *a = &m->data->arena;
  a->diag = &l->c->diag;
  m->name = *m->data->onnx->graph->name ? m->data->onnx->graph->name : "model";
  m->title = *l->title ? arena_printf(a, "%s", l->title) : m->name;
  m->names = arena_calloc(a, n + 1, sizeof *m->names);
  m->nodes = arena_calloc(a, n + 1, sizeof *m->nodes);
  m->sizes = arena_calloc(a, n + 1, sizeof *m->sizes);
  m->size_numbers = arena_calloc(a, n + 1, sizeof *m->size_numbers);
  l->nodes = arena_calloc(&l->c->arena, n + 1, sizeof *l->nodes);
  for (; m->n_inputs < im->inputs.n; m->n_inputs++)
    add_port(l, m->n_inputs, &im->inputs.at[m->n_inputs]);
  for (; m->n_outputs < im->outputs.n; m->n_outputs++)
    add_port(l, m->n_inputs + m->n_outputs, &im->outputs.at[m->n_outputs]);
  m->buffers = arena_calloc(a, count_buffers(l, n) + 1, sizeof *m->buffers);
  add_labels(l);
}

/* Copy to the model's own graph. */

static const node *numbered_buffer(ir *g, const node *like, const node *const dims[],
                                   size_t number) {
  const int64_t ints[] = {(int64_t)number, 0};
  return ir_node(g, OP_BUFFER, (dtype)like->dtype, dims, like->rank, ints, 2);
}

static const node *copy_graph_input(void *user, const node *n, const node *const src[]) {
  model_load *l = user;
  tn_model *m = l->m;
  if (n->op == OP_VAR) return importer_size_at_run(&l->importer, m->ir, n);
  if (n->op != OP_BUFFER) return NULL;
  model_buffer *made = &m->buffers[m->n_buffers];
  made->input = map_get(&l->input_names, n);
  if (!made->input) {
    made->memory = buffer_retain(graph_input_of(l->c, n)->memory);
    made->tensor = map_get(&l->importer.weights, n);
  }
  return numbered_buffer(m->ir, n, src, m->n_buffers++);
}

/** Numbers the varying sizes of ports. Equal sizes have the same number: interning makes them one
    node. */
static void number_sizes(model_load *l) {
  tn_model *m = l->m;
  map numbers = {0};
  uintptr_t n = 0;
  for (size_t i = 0; i < m->n_inputs + m->n_outputs; i++)
    for (size_t k = 0; k < m->nodes[i]->rank && k < TN_MAX_RANK; k++) {
      const node *size = m->nodes[i]->dims[k];
      bool is_number = node_is_const(size);
      if (!is_number && !map_has(&numbers, size)) map_set(&l->scratch, &numbers, size, (void *)++n);
      m->size_numbers[i][k] = is_number ? -1 : (int32_t)(uintptr_t)map_get(&numbers, size) - 1;
    }
}

static void copy_body(void *arg) {
  model_load *l = arg;
  tn_model *m = l->m;
  size_t ports = m->n_inputs + m->n_outputs, n = ports + m->n_labels;
  for (size_t i = 0; i < m->n_inputs; i++)
    map_set(&l->scratch, &l->input_names, l->nodes[i], (void *)m->names[i]);
  const node **copies = arena_alloc(&l->scratch, (n + 1) * sizeof *copies);
  ir_copy(m->ir, &l->scratch, l->nodes, n, copy_graph_input, l, copies);
  memcpy(m->nodes, copies, ports * sizeof *copies);
  number_sizes(l);
  for (size_t i = 0; i < m->n_labels; i++) m->labels[i].node = copies[ports + i];
  m->order = topo_sort(ir_arena(m->ir), copies, n, NULL, NULL);
}

/** Copies the graph out of the context's ir, which releases its nodes at the end of the call. */
static tn_status copy_to_model(model_load *l) {
  tn_model *m = l->m;
  m->ir = ir_new(&l->c->mem, &m->diag, false);
  if (!m->ir) return diag_set(&l->c->diag, TN_ERR_MEMORY, "out of memory");
  arena_init(&l->scratch, &l->c->mem, &m->diag);
  tn_status s = diag_catch(&m->diag, copy_body, l);
  arena_free(&l->scratch);
  return s == TN_OK ? s : diag_set(&l->c->diag, s, "%s", m->diag.text);
}

/** Warns about outputs whose declared type is wrong; the computed one holds. */
static void warn_wrong_output_types(void *arg) {
  const model_load *l = arg;
  arena *a = &l->c->arena;
  const onnx_values *declared = &l->m->data->onnx->graph->outputs;
  tn_port port = TN_PORT_INIT;
  for (size_t i = 0; tn_model_port(l->m, TN_PORT_OUTPUT, i, &port) == TN_OK; i++) {
    const onnx_type *t = &declared->at[i].type;
    if (declared_type_fits(t, &port)) continue;
    const onnx_type computed = declared_type_of_port(a, &port);
    context_log(l->c, TN_LOG_WARNING, "output %.200s is %s, but the file declares %s", port.name,
                declared_type_text(a, &computed), declared_type_text(a, t));
  }
}

/* Loading. */

static void destroy_model(attachment *base) {
  tn_model *m = (tn_model *)base;
  plan_release(m->plan);
  for (size_t i = 0; i < m->n_buffers; i++)
    if (m->buffers[i].memory) buffer_release(m->buffers[i].memory);
  ir_free(m->ir);
  mutex_free(&m->lock);
  model_file_release(m->data);
  mem_free(&m->context->mem, m, sizeof *m);
}

static tn_status load_model(tn_context *c, tn_model *m, const char *path, const void *data,
                            size_t bytes, const tn_model_desc *desc) {
  model_load l = {.c = c, .m = m, .copies_weights = desc->copy};
  l.importer.size_constraints = desc->sizes;
  l.importer.n_size_constraints = desc->n_sizes;
  const char *name = l.title = desc->name ? desc->name : path ? path : "the model";
  l.importer.is_told = desc->about_sizes;
  if (desc->about_sizes) *desc->about_sizes = false;
  tn_status s = model_file_open(&m->data, path, name, data, bytes, desc->folder, &c->mem, &c->diag);
  if (s != TN_OK) return s;
  s = diag_catch(&c->diag, import_body, &l);
  if (desc->about_sizes) *desc->about_sizes = s != TN_OK && l.importer.blames_sizes;
  m->data->arena.diag = &m->data->diag;
  if (s == TN_OK) s = copy_to_model(&l);
  if (s == TN_OK) s = diag_catch(&c->diag, warn_wrong_output_types, &l);
  if (desc->copy) onnx_model_unmap(m->data->onnx);
  if (s != TN_OK && s != TN_ERR_MEMORY && *name) diag_prefix(&c->diag, "%.400s", name);
  return s;
}

static tn_status open_model(tn_context *c, const char *path, const void *data, size_t bytes,
                            const tn_model_desc *desc, tn_model **out) {
  if (out) *out = NULL;
  tn_status s = context_acquire_valid(c);
  if (s != TN_OK) return s;
  bool has_arguments = out && (path || data);
  tn_model *m = has_arguments ? mem_calloc(&c->mem, 1, sizeof *m) : NULL;
  if (!has_arguments) {
    s = diag_set(&c->diag, TN_ERR_ARGUMENT, "the %s is NULL",
                 out ? "file" : "output pointer for the model");
  } else if (m) {
    m->context = c;
    m->attachment.destroy = destroy_model;
    mutex_init(&m->lock);
    tn_model_desc copy = TN_MODEL_DESC_INIT;
    s = descriptor_read(&c->diag, &copy, desc, sizeof copy, "tn_model_desc");
    m->variants = copy.variants;
    m->is_tunable = copy.tunable;
    if (s == TN_OK) s = plan_check_variants(copy.variants, &c->diag);
    if (s == TN_OK) s = load_model(c, m, path, data, bytes, &copy);
    if (s == TN_OK)
      context_attach(c, &m->attachment);
    else
      destroy_model(&m->attachment);
  } else {
    s = diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  }
  if (s == TN_OK)
    *out = m;
  else
    context_fail(c, NULL, NULL, 0);
  context_release(c);
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
  if (!m || context_begin_concurrent(c, REENTRANCY_NONE) != TN_OK) return;
  context_detach(c, &m->attachment);
  destroy_model(&m->attachment);
  context_end_concurrent(c);
}

/* Bindings. */

static plan_source source_of_buffer(void *user, const node *buffer) {
  const tn_model *m = user;
  const model_buffer *l = &m->buffers[buffer->ints[0]];
  return (plan_source){.input = l->input, .memory = l->memory, .weight = l->tensor};
}

/** Evicts a weight's pages of the mapped file: packed weights replace them. */
static void drop_weight_pages(void *user, const void *weight) {
  const model_file *data = user;
  onnx_tensor_drop_pages(data->onnx, weight);
}

/** Makes the plan; the caller holds the lock. */
static tn_status make_plan(tn_model *m) {
  atomic_fetch_add_explicit(&m->data->count, 1, memory_order_relaxed);
  plan_graph g = {.name = m->name,
                  .title = m->title,
                  .order = &m->order,
                  .inputs = m->nodes,
                  .n_inputs = m->n_inputs,
                  .outputs = m->nodes + m->n_inputs,
                  .output_names = m->names + m->n_inputs,
                  .n_outputs = m->n_outputs,
                  .labels = m->labels,
                  .n_labels = m->n_labels,
                  .folds_constants = true,
                  .variants = m->variants,
                  .is_tunable = m->is_tunable,
                  .source_of = source_of_buffer,
                  .user = m,
                  .file = {drop_weight_pages, release_file, m->data}};
  tn_status s = plan_build(m->context, &g, &m->diag, &m->plan);
  return s == TN_OK ? s : context_set_thread_message(m->context, &m->diag);
}

static tn_status bind_plan(tn_model *m, tn_binding **binding) {
  diag d = {0};
  if (!binding) {
    diag_set(&d, TN_ERR_ARGUMENT, "%.400s: model_bind: the output pointer for the binding is NULL",
             m->title);
    return context_set_thread_message(m->context, &d);
  }
  mutex_lock(&m->lock);
  tn_status s = m->plan ? TN_OK : make_plan(m);
  mutex_unlock(&m->lock);
  return s == TN_OK ? tn_plan_bind(m->plan, binding) : s;
}

tn_status tn_model_bind(tn_model *m, tn_binding **binding) {
  if (binding) *binding = NULL;
  if (!m) return TN_ERR_ARGUMENT;
  tn_context *c = m->context;
  tn_status s = context_begin_concurrent(c, REENTRANCY_NONE);
  if (s != TN_OK) return s;
  s = bind_plan(m, binding);
  context_end_concurrent(c);
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
    found.min[k] = x->dims[k]->lo;
    found.max[k] = x->dims[k]->hi;
    found.variable[k] = m->size_numbers[i][k];
  }
  diag unreported = {0};
  return descriptor_write(&unreported, port, &found, sizeof found, "tn_port");
}

const char *tn_model_data_file(const tn_model *m, size_t i) {
  const onnx_model *onnx = m ? m->data->onnx : NULL;
  return onnx && i < onnx->external_paths.n ? onnx->external_paths.at[i] : NULL;
}

/* Models as operations. */

static bool is_same_size(const node *port, const node *x) {
  return node_is_const(port) && node_is_const(x) && node_int(port) == node_int(x);
}

/** True if all values of a size are within a variable's bounds; ONNX_SIZE_MAX means unbounded. */
static bool fits_bounds(const node *size, const node *var) {
  return size->lo >= var->lo && (size->hi <= var->hi || var->hi == ONNX_SIZE_MAX);
}

/** Binds an input's sizes to the operand's: a variable takes the operand's size, a number must
   equal it. */
static void bind_sizes(builder *b, const tn_model *m, size_t i, const node *x, map *with) {
  const node *port = m->nodes[i];
  if (x->rank != port->rank)
    diag_raise(b->diag, TN_ERR_SHAPE, "input '%s' has rank %u, not %u", m->names[i], x->rank,
               port->rank);
  for (size_t k = 0; k < x->rank; k++) {
    const node *size = port->dims[k], *known = map_get(with, size);
    if (size->op == OP_VAR && !fits_bounds(x->dims[k], size))
      diag_raise(b->diag, TN_ERR_SHAPE, "input '%s': axis %zu has size %s, not within %lld … %lld",
                 m->names[i], k, size_text(b, x->dims[k]), (long long)size->lo,
                 (long long)size->hi);
    if (size->op == OP_VAR && !known)
      map_set(b->arena, with, size, (void *)x->dims[k]);
    else if (known ? known != x->dims[k] : !is_same_size(size, x->dims[k]))
      diag_raise(b->diag, TN_ERR_SHAPE, "input '%s': axis %zu has size %s, not %s%s", m->names[i],
                 k, size_text(b, x->dims[k]), size_text(b, known ? known : size),
                 known ? arena_printf(b->arena, ", the value of %s", m->sizes[i][k]) : "");
  }
}

typedef struct model_apply {
  builder *b;
  const tn_model *m;
  map with; /* input or variable of the model → node that replaces it */
} model_apply;

static void bind_inputs(model_apply *a, const value in[]) {
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

/** Creates a weight of the context's graph over the same memory. */
static const node *new_weight(model_apply *a, const node *n, const node *const dims[]) {
  tn_context *c = a->b->context;
  const node *made;
  if (graph_input_open(c, GRAPH_INPUT_DATA, (dtype)n->dtype, n->rank, dims, &made) != TN_OK)
    diag_rethrow(a->b->diag);
  ir_release(c->ir, made); /* a new node stays alive until the call ends */
  graph_input_set_memory(c, made, a->m->buffers[n->ints[0]].memory);
  return made;
}

static const node *replace_graph_input(void *user, const node *n, const node *const src[]) {
  model_apply *a = user;
  const node *known = map_get(&a->with, n);
  return known || n->op != OP_BUFFER ? known : new_weight(a, n, src);
}

static void apply_model(builder *b, const value in[], size_t n, const void *options, value out[],
                        size_t n_out) {
  const tn_model *m = options;
  model_apply a = {.b = b, .m = m};
  if (n != m->n_inputs || n_out != m->n_outputs)
    diag_raise(b->diag, TN_ERR_ARGUMENT,
               "%.400s has %zu inputs and %zu outputs, but the call has %zu and %zu", m->title,
               m->n_inputs, m->n_outputs, n, n_out);
  bind_inputs(&a, in);
  const node **made = arena_alloc(b->arena, (n_out + 1) * sizeof *made);
  ir_copy_sorted(b->ir, b->arena, &m->order, m->nodes + m->n_inputs, n_out, replace_graph_input, &a,
                 made);
  for (size_t i = 0; i < n_out; i++) out[i] = (value){made[i], WEAK_NO};
}

void tn_model_apply(tn_model *m, tn_tensor *const in[], size_t n_in, tn_tensor *out[],
                    size_t n_out) {
  for (size_t i = 0; out && i < n_out; i++) out[i] = NULL;
  if (m) op_call_many(m->context, "model", in, n_in, 0, apply_model, m, out, n_out);
}
