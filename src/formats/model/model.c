/* Models: files whose graph is imported once (model_graph.h), so that threads use a model without
   the context. Bindings share one plan; tn_model_apply inlines the graph as an operation. */
#include "formats/model/model.h"

#include "formats/model/declared_type.h"
#include "formats/model/given_inputs.h"
#include "formats/model/late_graph.h"
#include "formats/model/late_model.h"
#include "formats/model/model_part.h"
#include "formats/onnx/importer/importer.h"
#include "ir/transform/copy_graph.h"
#include "tensor/context/descriptor.h"
#include "tensor/ops/operators.h"
#include "tensor/plan/plan.h"
#include "tensor/state/graph_input.h"

#include <string.h>
#include <tenon/unstable/model_file.h>

/** Warns about outputs whose declared type is wrong; the computed one holds. */
static void warn_wrong_output_types(void *arg) {
  const tn_model *m = arg;
  tn_context *c = m->context;
  arena *a = &c->arena;
  const onnx_values *declared = &m->data->onnx->graph->outputs;
  tn_port port = TN_PORT_INIT;
  for (size_t i = 0, at = 0; tn_model_port(m, TN_PORT_OUTPUT, i, &port) == TN_OK; i++) {
    while (at < declared->n && strcmp(declared->at[at].name, port.name) != 0) at++;
    if (at == declared->n) at = 0; /* an element of a sequence */
    const onnx_type *t = &declared->at[at].type;
    if (strcmp(declared->at[at].name, port.name) != 0 || declared_type_fits(t, &port)) continue;
    const onnx_type computed = declared_type_of_port(a, &port);
    context_log(c, TN_LOG_WARNING, "output %.200s is %s, but the file declares %s", port.name,
                declared_type_text(a, &computed), declared_type_text(a, t));
  }
}

/* Loading. */

static void destroy_model(attachment *base) {
  tn_model *m = (tn_model *)base;
  plan_release(m->plan);
  model_graph_free(&m->graph);
  mutex_free(&m->lock);
  model_file_release(m->data);
  mem_free(&m->context->mem, m, sizeof *m);
}

static tn_status import_graph_of(tn_model *m, const tn_model_desc *desc) {
  model_graph_request r = {.mem = &m->context->mem,
                           .device = m->context->device,
                           .file = m->data,
                           .context = m->context,
                           .is_interpreted = m->is_interpreted,
                           .copies_weights = desc->copy,
                           .sizes = desc->sizes,
                           .n_sizes = desc->n_sizes,
                           .may_be_exact = true,
                           .leaves_out_sequences = desc->n_outputs,
                           .stop = stop_after(m->context->options.compile_seconds),
                           .problems = &desc->problems,
                           .is_told = desc->about_sizes};
  m->graph.arena = &m->data->arena;
  tn_status s = model_graph_import(&m->graph, &r, &m->diag);
  if (desc->about_sizes) *desc->about_sizes = r.blames_sizes;
  if (s == TN_OK && m->graph.is_late) s = late_model_open(m, desc->sizes, desc->n_sizes, &m->diag);
  bool reads_later = m->graph.is_late || m->graph.has_late_body;
  if (s == TN_OK && reads_later && desc->copy) s = onnx_model_detach(m->data->onnx, &m->diag);
  m->name = *m->data->onnx->graph->name ? m->data->onnx->graph->name : "model";
  if (s != TN_OK) m->context->diag.failure = m->diag.failure;
  return s;
}

static tn_status load_model(tn_context *c, tn_model *m, const char *path, const void *data,
                            size_t bytes, const tn_model_desc *desc) {
  const char *name = desc->name ? desc->name : path ? path : "the model";
  if (desc->about_sizes) *desc->about_sizes = false;
  onnx_access access = desc->map && !desc->copy ? ONNX_MAPPED : ONNX_IN_PARTS;
  tn_status s =
      model_file_open(&m->data, path, name, data, bytes, desc->folder, access, &c->mem, &c->diag);
  if (s != TN_OK) return s;
  s = onnx_take_part(m->data->onnx, desc, &m->data->arena, &c->diag);
  if (s == TN_OK) s = given_inputs_settle(m->data->onnx, desc, &m->data->arena, &c->diag);
  if (s == TN_OK) s = import_graph_of(m, desc);
  if (s == TN_OK && !m->graph.is_late && !desc->n_outputs)
    s = diag_catch(&c->diag, warn_wrong_output_types, m);
  bool reads_later = m->graph.is_late || m->graph.has_late_body;
  if (desc->copy && !reads_later) onnx_model_unmap(m->data->onnx);
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
    m->is_interpreted = copy.interpreted;
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
    context_fail_call(c, NULL);
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

static tn_status build_plan(tn_model *m) {
  plan_graph g = model_graph_of_plan(&m->graph, m->data);
  g.name = m->name;
  g.variants = m->variants;
  g.is_tunable = m->is_tunable;
  g.is_interpreted = m->is_interpreted;
  return plan_build(m->context, &g, &m->diag, &m->plan);
}

static tn_status make_late_plan(tn_model *m) {
  const late_graph of = {.context = m->context,
                         .file = m->data,
                         .graph = &m->graph,
                         .name = m->name,
                         .sizes = m->sizes,
                         .n_sizes = m->n_sizes,
                         .variants = m->variants,
                         .is_tunable = m->is_tunable,
                         .is_interpreted = m->is_interpreted};
  return late_graph_make_plan(&of, &m->diag, &m->plan);
}

/** Makes the plan; the caller holds the lock. */
static tn_status make_plan(tn_model *m) {
  tn_status s = m->graph.is_late ? make_late_plan(m) : build_plan(m);
  return s == TN_OK ? s : context_set_thread_message(m->context, &m->diag);
}

static tn_status bind_plan(tn_model *m, tn_binding **binding) {
  diag d = {0};
  if (!binding) {
    diag_set(&d, TN_ERR_ARGUMENT, "%.400s: model_bind: the output pointer for the binding is NULL",
             m->data->title);
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

static tn_status describe_late_output(const tn_model *m, size_t i, tn_port *port) {
  diag unreported = {0};
  if (i >= m->n_late_outputs) return TN_ERR_ARGUMENT;
  return descriptor_write(&unreported, port, &m->late_outputs[i], sizeof *port, "tn_port");
}

static int64_t example_size(const tn_model *m, size_t input, size_t axis) {
  const node *size = m->graph.nodes[input]->dims[axis];
  if (m->graph.fitting) return m->graph.fitting[input].size[axis];
  return plan_example_size(size->lo, size->hi);
}

tn_status tn_model_port(const tn_model *m, tn_port_kind kind, size_t i, tn_port *port) {
  if (!m) return TN_ERR_ARGUMENT;
  size_t n = kind == TN_PORT_INPUT    ? m->graph.n_inputs
             : kind == TN_PORT_OUTPUT ? m->graph.n_outputs
                                      : 0;
  if (kind == TN_PORT_OUTPUT && m->graph.is_late) return describe_late_output(m, i, port);
  if (i >= n) return TN_ERR_ARGUMENT;
  if (kind == TN_PORT_OUTPUT) i += m->graph.n_inputs;
  const node *x = m->graph.nodes[i];
  tn_port found = {.size = sizeof found, .name = m->graph.names[i]};
  found.type.dtype = (tn_dtype)x->dtype;
  found.type.shape.rank = x->rank <= TN_MAX_RANK ? x->rank : -1;
  for (int32_t k = 0; k < found.type.shape.rank; k++) {
    found.type.shape.size[k] = node_is_const(x->dims[k]) ? node_int(x->dims[k]) : -1;
    found.sizes[k] = m->graph.sizes[i][k];
    found.min[k] = x->dims[k]->lo;
    found.max[k] = x->dims[k]->hi;
    found.variable[k] = m->graph.size_numbers[i][k];
    if (kind == TN_PORT_INPUT) found.example[k] = example_size(m, i, (size_t)k);
  }
  found.is_string = m->graph.is_string[i];
  found.is_deciding = kind == TN_PORT_INPUT && m->graph.is_late && m->graph.deciding[i];
  diag unreported = {0};
  return descriptor_write(&unreported, port, &found, sizeof found, "tn_port");
}

int64_t tn_model_length(const tn_model *m, const char *output) {
  for (size_t i = 0; m && output && i < m->graph.n_lists; i++)
    if (!strcmp(m->graph.lists[i].name, output)) return m->graph.lists[i].length;
  for (size_t i = 0; m && output && !m->graph.is_late && i < m->graph.n_outputs; i++)
    if (!strcmp(m->graph.names[m->graph.n_inputs + i], output)) return 1;
  return -1;
}

const char *tn_model_data_file(const tn_model *m, size_t i) {
  const onnx_model *onnx = m ? m->data->onnx : NULL;
  return onnx && i < onnx->external_paths.n ? onnx->external_paths.at[i] : NULL;
}

/** The loop that *i counts down to, each before those in its body; NULL: *i remains. The recursion
    is as deep as graphs are nested. */
static const host_step *find_host_loop(const host_steps *h, size_t *i) {
  for (size_t k = 0; h && k < h->all.n; k++) {
    const host_step *step = &h->all.at[k];
    if (!step->what) continue;
    if (!(*i)--) return step;
    const host_step *found = step->inner ? find_host_loop(step->inner(step->options), i) : NULL;
    if (found) return found;
  }
  return NULL;
}

tn_status tn_model_host_loop(const tn_model *m, size_t i, const char **node, const char **what) {
  if (!node || !what) return TN_ERR_ARGUMENT;
  const host_step *found = find_host_loop(m ? m->graph.host : NULL, &i);
  if (!found) return TN_ERR_ARGUMENT;
  *node = found->name;
  *what = found->what;
  return TN_OK;
}

/* Strings. */

tn_status tn_model_string_number(tn_model *m, const char *text, size_t bytes, int64_t *number) {
  if (!m || !number || (!text && bytes)) return TN_ERR_ARGUMENT;
  int64_t found = string_table_add(m->data->strings, text, bytes);
  if (found < 0) return TN_ERR_MEMORY;
  *number = found;
  return TN_OK;
}

const char *tn_model_string(const tn_model *m, int64_t number, size_t *bytes) {
  return m ? string_table_get(m->data->strings, number, bytes) : NULL;
}

const char *tn_model_exact_sizes(const tn_model *m) { return m ? m->graph.exact_reason : NULL; }

bool tn_model_open_from_one(const tn_model *m) {
  bool may_vary = m && (m->variants == TN_VARIANTS_AUTO || m->variants == TN_VARIANTS_STEADY);
  return may_vary && m->graph.exact_reason && m->graph.fits_open_from_one;
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
  const node *port = m->graph.nodes[i];
  if (x->rank != port->rank) {
    const sizes given = sizes_of(x), wanted = sizes_of(port);
    diag_raise(b->diag, TN_ERR_SHAPE, "input '%s' has rank %u, not %u: its shape is %s, not %s",
               m->graph.names[i], x->rank, port->rank, sizes_text(b, &given),
               sizes_text(b, &wanted));
  }
  for (size_t k = 0; k < x->rank; k++) {
    const node *size = port->dims[k], *known = map_get(with, size);
    if (size->op == OP_VAR && !fits_bounds(x->dims[k], size))
      diag_raise(b->diag, TN_ERR_SHAPE, "input '%s': axis %zu has size %s, not within %lld … %lld",
                 m->graph.names[i], k, size_text(b, x->dims[k]), (long long)size->lo,
                 (long long)size->hi);
    if (size->op == OP_VAR && !known)
      map_set(b->arena, with, size, (void *)x->dims[k]);
    else if (known ? known != x->dims[k] : !is_same_size(size, x->dims[k]))
      diag_raise(b->diag, TN_ERR_SHAPE, "input '%s': axis %zu has size %s, not %s%s",
                 m->graph.names[i], k, size_text(b, x->dims[k]), size_text(b, known ? known : size),
                 known ? arena_printf(b->arena, ", the value of %s", m->graph.sizes[i][k]) : "");
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
  for (size_t i = 0; i < m->graph.n_inputs; i++) {
    value x = in[i].weak ? build_cast(b, in[i], (dtype)m->graph.nodes[i]->dtype) : in[i];
    if (x.node->dtype != m->graph.nodes[i]->dtype)
      diag_raise(b->diag, TN_ERR_DTYPE, "input '%s' is %s, not %s", m->graph.names[i],
                 dtype_name((dtype)x.node->dtype), dtype_name((dtype)m->graph.nodes[i]->dtype));
    bind_sizes(b, m, i, x.node, &a->with);
    map_set(b->arena, &a->with, m->graph.nodes[i], (void *)x.node);
  }
}

/** Creates a weight of the context's graph over the same memory. */
static const node *new_weight(model_apply *a, const node *n, const node *const dims[]) {
  tn_context *c = a->b->context;
  const node *made;
  if (graph_input_open(c, GRAPH_INPUT_DATA, 1, (dtype)n->dtype, n->rank, dims, &made) != TN_OK)
    diag_rethrow(a->b->diag);
  ir_release(c->ir, made); /* a new node stays alive until the call ends */
  graph_input_set_memory(c, made, a->m->graph.buffers[n->ints[0]].memory);
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
  if (m->graph.exact_reason)
    diag_raise(
        b->diag, TN_ERR_UNSUPPORTED,
        "%.400s cannot be part of an expression unless the sizes of its inputs are fixed when "
        "it is loaded (tn_model_desc.sizes): %.1000s",
        m->data->title, m->graph.exact_reason);
  if (m->graph.is_late)
    diag_raise(
        b->diag, TN_ERR_UNSUPPORTED,
        "%.400s cannot be part of an expression: the values of its inputs decide on its shapes",
        m->data->title);
  if (m->graph.host)
    diag_raise(b->diag, TN_ERR_UNSUPPORTED,
               "%.400s cannot be part of an expression: the host computes steps of it",
               m->data->title);
  if (n != m->graph.n_inputs || n_out != m->graph.n_outputs)
    diag_raise(b->diag, TN_ERR_ARGUMENT,
               "%.400s has %zu inputs and %zu outputs, but the call has %zu and %zu",
               m->data->title, m->graph.n_inputs, m->graph.n_outputs, n, n_out);
  bind_inputs(&a, in);
  const node **made = arena_alloc(b->arena, (n_out + 1) * sizeof *made);
  ir_copy_sorted(b->ir, b->arena, &m->graph.order, m->graph.nodes + m->graph.n_inputs, n_out,
                 replace_graph_input, &a, made);
  for (size_t i = 0; i < n_out; i++) out[i] = (value){made[i], WEAK_NO};
}

void tn_model_apply(tn_model *m, tn_tensor *const in[], size_t n_in, tn_tensor *out[],
                    size_t n_out) {
  for (size_t i = 0; out && i < n_out; i++) out[i] = NULL;
  if (m) op_call_many(m->context, "model", in, n_in, 0, apply_model, m, out, n_out);
}
