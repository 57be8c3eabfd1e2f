/* Import of a model's graph: into an ir of one import, then copied to the graph's own without what
   no output needs. Weights are read from the file when they are first used; of a mapped file they
   are imported without a copy if the device reads host memory. */
#include "formats/model/model_graph.h"

#include "base/memory_limit.h"
#include "device/memory/span.h"
#include "formats/model/host_loop.h"
#include "ir/transform/copy_graph.h"
#include "tensor/ops/operators.h"

#include <string.h>

typedef struct model_import {
  model_graph *g;
  model_graph_request *request;
  diag *d;
  arena work;
  ir *ir; /* of the importer */
  struct import importer;
  VEC(model_buffer) made;      /* by number of a BUFFER in the importer's ir */
  map weights;                 /* tensor of the file → the number of its buffer + 1 */
  const node **nodes;          /* inputs, outputs, then labelled nodes, in the importer's ir */
  const importer_sizes *tried; /* the failure is with these sizes too; NULL: with open ones */
} model_import;

/** The file's model, or the caller's. */
static const onnx_model *model_of(const model_import *j) {
  return j->request->onnx ? j->request->onnx : j->request->file->onnx;
}

/* Graph inputs and weights. */

static const node *node_of_buffer(model_import *j, size_t number, dtype t, size_t rank,
                                  const node *const dims[]) {
  return ir_node(j->ir, OP_BUFFER, t, dims, rank, (int64_t[]){(int64_t)number, 0}, 2);
}

static const node *make_buffer(model_import *j, model_buffer of, dtype t, size_t rank,
                               const node *const dims[]) {
  vec_push(&j->work, &j->made, of);
  return node_of_buffer(j, j->made.n - 1, t, rank, dims);
}

static const node *add_input(void *user, const char *name, dtype t, size_t rank,
                             const node *const dims[]) {
  model_import *j = user;
  if (rank > TN_MAX_RANK)
    diag_raise(j->d, TN_ERR_UNSUPPORTED,
               "input '%.200s' has %zu dimensions; at most %d are supported", name, rank,
               TN_MAX_RANK);
  return make_buffer(j, (model_buffer){.input = name}, t, rank, dims);
}

static void release_file(void *data) { model_file_release(data); }

/** True if a tensor's data is not the file's: a value that a run gave, or one that the importer
    computed. */
static bool is_apart(const model_import *j, const onnx_tensor *t) {
  const onnx_tensor *first = j->request->values;
  return t->is_computed || (j->request->n_values && t >= first && t < first + j->request->n_values);
}

/** A weight that is read from the file when its buffer is first used. */
typedef struct unread_weight {
  model_file *file;
  const onnx_tensor *tensor;
} unread_weight;

static void forget_weight(void *user) {
  unread_weight *w = user;
  model_file *file = w->file;
  mem_free(file->mem, w, sizeof *w);
  model_file_release(file);
}

/** Reads a tensor into memory of a device. */
static tn_status write_tensor(const model_file *file, const onnx_tensor *t, const tn_span *to,
                              diag *d) {
  void *at = span_host_pointer(to);
  if (at) return onnx_tensor_copy(model_file_of_tensors(file), t, 0, t->bytes, at, d);
  if (!t->unread) return span_write(to, (dtype)t->dtype, (dtype)t->dtype, t->data, t->elements, d);
  char none[MEMORY_LIMIT_TEXT_BYTES];
  void *copy = mem_alloc(file->mem, t->bytes);
  if (!copy)
    return diag_set(d, TN_ERR_MEMORY, "%s", memory_limit_exhausted_text(file->mem, t->bytes, none));
  tn_status s = onnx_tensor_copy(model_file_of_tensors(file), t, 0, t->bytes, copy, d);
  if (s == TN_OK) s = span_write(to, (dtype)t->dtype, (dtype)t->dtype, copy, t->elements, d);
  mem_free(file->mem, copy, t->bytes);
  return s;
}

static tn_status fill_weight(void *user, const tn_span *to, diag *d) {
  const unread_weight *w = user;
  return write_tensor(w->file, w->tensor, to, d);
}

static tn_status open_unread(model_import *j, const onnx_tensor *t, tn_buffer **out) {
  model_file *file = j->request->file;
  unread_weight *w = mem_alloc(file->mem, sizeof *w);
  if (!w) return diag_set(j->d, TN_ERR_MEMORY, "out of memory");
  *w = (unread_weight){file, t};
  atomic_fetch_add_explicit(&file->count, 1, memory_order_relaxed);
  return buffer_open_filled(j->request->device, t->bytes, fill_weight, forget_weight, w, out, j->d);
}

static tn_status import_file_memory(model_import *j, const onnx_tensor *t, tn_buffer **out) {
  model_file *file = j->request->file;
  if (j->request->copies_weights || is_apart(j, t)) return TN_ERR_UNSUPPORTED;
  if (t->unread) return open_unread(j, t, out);
  atomic_fetch_add_explicit(&file->count, 1, memory_order_relaxed);
  return buffer_import(j->request->device, (void *)t->data, t->bytes, release_file, file, out,
                       j->d);
}

/** Creates a weight's buffer: one that is read from the file when it is used, or over the file's
    bytes if the device reads host memory, else a copy. */
static tn_status open_weight_buffer(model_import *j, const onnx_tensor *t, tn_buffer **out) {
  tn_device *on = j->request->device;
  if (!t->bytes) return buffer_open(on, 1, out, j->d);
  tn_status s = import_file_memory(j, t, out);
  if (s != TN_ERR_UNSUPPORTED) return s;
  tn_span span;
  s = buffer_open(on, t->bytes, out, j->d);
  if (s != TN_OK) return s;
  s = buffer_span(*out, &span, j->d);
  if (s == TN_OK) s = write_tensor(j->request->file, t, &span, j->d);
  if (!is_apart(j, t)) onnx_tensor_drop_pages(model_file_of_tensors(j->request->file), t);
  if (s != TN_OK) buffer_release(*out);
  return s;
}

/** Makes the node of a weight. The graph may be imported several times: a weight of the file has
   one buffer in all of them. */
static const node *add_weight(void *user, const onnx_tensor *t, dtype type, size_t rank,
                              const node *const dims[]) {
  model_import *j = user;
  size_t known = (size_t)(uintptr_t)map_get(&j->weights, t);
  if (known) return node_of_buffer(j, known - 1, type, rank, dims);
  bool is_of_file = !is_apart(j, t);
  model_buffer made = {.tensor = is_of_file && !j->request->copies_weights ? t : NULL};
  const node *n = make_buffer(j, made, type, rank, dims);
  if (open_weight_buffer(j, t, &j->made.at[j->made.n - 1].memory) != TN_OK) {
    j->made.at[j->made.n - 1].memory = NULL;
    diag_rethrow(j->d);
  }
  if (is_of_file) map_set(&j->work, &j->weights, t, (void *)(uintptr_t)j->made.n);
  return n;
}

/* Ports. */

static void add_port(model_import *j, size_t i, const importer_port *p) {
  model_graph *g = j->g;
  g->names[i] = arena_printf(g->arena, "%s", p->port->name);
  g->is_string[i] = p->is_string;
  j->nodes[i] = p->node;
  builder b = {.arena = g->arena, .diag = j->d};
  for (size_t k = 0; k < p->node->rank && k < TN_MAX_RANK; k++)
    g->sizes[i][k] = size_user_text(&b, p->node->dims[k]);
}

static void add_ports(model_import *j) {
  model_graph *g = j->g;
  const import *im = &j->importer;
  size_t n = im->inputs.n + im->outputs.n;
  g->names = arena_calloc(g->arena, n + 1, sizeof *g->names);
  g->nodes = arena_calloc(g->arena, n + 1, sizeof *g->nodes);
  g->is_string = arena_calloc(g->arena, n + 1, sizeof *g->is_string);
  g->sizes = arena_calloc(g->arena, n + 1, sizeof *g->sizes);
  g->size_numbers = arena_calloc(g->arena, n + 1, sizeof *g->size_numbers);
  j->nodes = arena_calloc(&j->work, n + 1, sizeof *j->nodes);
  for (; g->n_inputs < im->inputs.n; g->n_inputs++)
    add_port(j, g->n_inputs, &im->inputs.at[g->n_inputs]);
  for (; g->n_outputs < im->outputs.n; g->n_outputs++)
    add_port(j, g->n_inputs + g->n_outputs, &im->outputs.at[g->n_outputs]);
  g->n_lists = im->lists.n;
  g->lists = arena_calloc(g->arena, g->n_lists + 1, sizeof *g->lists);
  for (size_t i = 0; i < g->n_lists; i++) g->lists[i] = im->lists.at[i];
}

/* Labels of graph nodes: the name of the file's node that computes them, or its operator's. Names
   of the file's values are not used, as exporters often number them. */

/** Labels a value if it is live and not labelled yet: an operator such as Identity returns the
    value of an earlier node. */
static void add_label(model_import *j, const onnx_node *producer, const node *value, map *live) {
  model_graph *g = j->g;
  if (!map_has(live, value) || map_get(live, value)) return;
  map_set(&j->work, live, value, (void *)producer);
  j->nodes[g->n_inputs + g->n_outputs + g->n_labels] = value;
  g->labels[g->n_labels++].text = *producer->name ? producer->name : producer->op_type;
}

/** The labelling of a graph's nodes. */
typedef struct labelling {
  map live; /* the outputs' dependences → their producer, NULL before they are labelled */
  map seen; /* nodes below outputs of nodes of the file so far */
} labelling;

static bool is_new(const node *n, void *seen) { return !map_has(seen, n); }

/** Labels the tensors whose elements are sizes (ITEMs) that an output depends on and earlier
   outputs do not: this node of the file makes or checks them. */
static void add_labels_of_sizes(model_import *j, const onnx_node *producer, const node *value,
                                labelling *l) {
  const node **from = arena_alloc(&j->work, (value->rank + 1u) * sizeof *from);
  memcpy(from, value->dims, value->rank * sizeof *from);
  from[value->rank] = value;
  node_list order = topo_sort(&j->work, from, value->rank + 1u, is_new, &l->seen);
  for (size_t i = 0; i < order.n; i++) {
    map_set(&j->work, &l->seen, order.at[i], NULL);
    if (order.at[i]->op == OP_ITEM) add_label(j, producer, order.at[i]->src[0], &l->live);
  }
}

/** Labels the value of a node's output, and those whose elements are sizes for it. */
static void add_labels_of_output(model_import *j, const onnx_node *producer, const char *output,
                                 labelling *l) {
  const importer_value *x = *output ? string_map_get(&j->importer.values, output) : NULL;
  if (!x || !x->v.node) return; /* no tensor, or not computed */
  add_label(j, producer, x->v.node, &l->live);
  if (ir_has_items(j->ir)) add_labels_of_sizes(j, producer, x->v.node, l);
}

/** Removes the longest prefix "a/b/" that all labels with a slash share. */
static void drop_common_prefix(model_graph *g) {
  const char *first = NULL;
  size_t common = 0;
  for (size_t i = 0; i < g->n_labels; i++) {
    const char *text = g->labels[i].text, *end = strrchr(text, '/');
    if (!end) continue;
    if (!first) first = text, common = (size_t)(end + 1 - text);
    while (strncmp(text, first, common)) common--;
  }
  while (common && first[common - 1] != '/') common--;
  for (size_t i = 0; i < g->n_labels; i++)
    if (strchr(g->labels[i].text, '/')) g->labels[i].text += common;
}

static void add_labels(model_import *j) {
  model_graph *g = j->g;
  const onnx_nodes *nodes = &model_of(j)->graph->nodes;
  size_t n = 0, ports = g->n_inputs + g->n_outputs;
  node_list order = topo_sort(&j->work, j->nodes + g->n_inputs, g->n_outputs, NULL, NULL);
  labelling l = {0};
  for (size_t i = 0; i < order.n; i++) {
    map_set(&j->work, &l.live, order.at[i], NULL);
    n += order.at[i]->op == OP_ITEM;
  }
  for (size_t i = 0; i < nodes->n; i++) n += nodes->at[i].outputs.n;
  g->labels = arena_calloc(g->arena, n + 1, sizeof *g->labels);
  const node **roots = arena_alloc(&j->work, (ports + n + 1) * sizeof *roots);
  memcpy(roots, j->nodes, ports * sizeof *roots);
  j->nodes = roots;
  for (size_t i = 0; i < nodes->n; i++)
    for (size_t k = 0; k < nodes->at[i].outputs.n; k++)
      add_labels_of_output(j, &nodes->at[i], nodes->at[i].outputs.at[k], &l);
  drop_common_prefix(g);
}

/* Copy to the graph's own ir. */

static const node *copy_graph_input(void *user, const node *n, const node *const src[]) {
  model_import *j = user;
  model_graph *g = j->g;
  if (n->op == OP_VAR) return importer_size_at_run(&j->importer, g->ir, n);
  if (n->op != OP_BUFFER) return NULL;
  const int64_t ints[] = {(int64_t)g->n_buffers, 0};
  model_buffer *made = &g->buffers[g->n_buffers++];
  *made = j->made.at[n->ints[0]];
  if (made->memory) buffer_retain(made->memory);
  return ir_node(g->ir, OP_BUFFER, (dtype)n->dtype, src, n->rank, ints, 2);
}

/** Numbers the varying sizes of ports. Equal sizes have the same number: interning makes them one
    node. */
static void number_sizes(model_import *j) {
  model_graph *g = j->g;
  map numbers = {0};
  uintptr_t n = 0;
  for (size_t i = 0; i < g->n_inputs + g->n_outputs; i++)
    for (size_t k = 0; k < g->nodes[i]->rank && k < TN_MAX_RANK; k++) {
      const node *size = g->nodes[i]->dims[k];
      bool is_number = node_is_const(size);
      if (!is_number && !map_has(&numbers, size)) map_set(&j->work, &numbers, size, (void *)++n);
      g->size_numbers[i][k] = is_number ? -1 : (int32_t)(uintptr_t)map_get(&numbers, size) - 1;
    }
}

static void copy_graph(model_import *j) {
  model_graph *g = j->g;
  size_t ports = g->n_inputs + g->n_outputs, n = ports + g->n_labels;
  const node **copies = arena_alloc(&j->work, (n + 1) * sizeof *copies);
  g->buffers = arena_calloc(g->arena, j->made.n + 1, sizeof *g->buffers);
  ir_copy(g->ir, &j->work, j->nodes, n, copy_graph_input, j, copies);
  memcpy(g->nodes, copies, ports * sizeof *copies);
  number_sizes(j);
  for (size_t i = 0; i < g->n_labels; i++) g->labels[i].node = copies[ports + i];
  g->order = topo_sort(ir_arena(g->ir), copies, n, NULL, NULL);
}

/* The import. */

static void import_nodes(void *arg) {
  model_import *j = arg;
  import_graph(&j->importer, model_of(j));
}

static importer_loop_body open_loop(void *user, const importer_loop *l) {
  const model_import *j = user;
  importer_loop_body made = host_loop_open(j->request, l, &j->g->host->arena, j->d);
  j->g->has_late_body |= made.reads_later;
  return made;
}

/** Prepares an import of the file. */
static void init_importer(model_import *j, import *im) {
  im->b = (builder){.ir = j->ir, .arena = &j->work, .diag = j->d};
  im->host = j->g->host;
  im->callbacks = (importer_callbacks){add_input, add_weight, open_loop, j};
  im->is_body = j->request->is_body;
  im->may_have_late_bodies = !j->request->is_open;
  im->tensors = model_file_of_tensors(j->request->file);
  im->size_constraints = j->request->sizes;
  im->n_size_constraints = j->request->n_sizes;
  im->is_told = j->request->is_told;
  im->leaves_out_sequences = j->request->leaves_out_sequences;
  im->given = j->request->values;
  im->n_given = j->request->n_values;
  im->given_sizes = j->request->input_sizes;
  im->varying = j->request->varying;
  im->n_varying = j->request->n_varying;
  im->least_size = j->request->least_size;
}

static void find_problems(void *arg) {
  model_import *j = arg;
  import *im = arena_calloc(&j->work, 1, sizeof *im);
  init_importer(j, im);
  if (j->tried) im->given_sizes = j->tried;
  import_find_problems(im, model_of(j));
  for (size_t i = 0; i < im->problems.n; i++) {
    const importer_problem *p = &im->problems.at[i];
    const tn_model_problem told = {.size = sizeof told,
                                   .text = importer_problem_text(&j->work, p),
                                   .op = p->op,
                                   .domain = p->domain,
                                   .opset = p->opset,
                                   .version = p->version,
                                   .newest = p->newest,
                                   .nodes = p->nodes.at,
                                   .n_nodes = p->nodes.n,
                                   .reason = p->reason,
                                   .nearest = p->nearest};
    j->request->problems->tell(j->request->problems->user, &told);
  }
}

/** Tells all problems of a file that cannot be imported; the failure remains the first one. */
static void tell_problems(model_import *j) {
  const tn_model_problems *to = j->request->problems;
  tn_failure first = j->d->failure;
  if (!to || !to->tell || stops_work(first.status) || first.status == TN_ERR_ARGUMENT) return;
  diag_clear(j->d);
  if (diag_catch(j->d, find_problems, j) != TN_ERR_MEMORY) j->d->failure = first;
}

/** Raises if an output is declared to be no tensor: how many ports it is depends on values. */
static void refuse_late_lists(model_import *j) {
  const onnx_values *outputs = &model_of(j)->graph->outputs;
  for (size_t i = 0; i < outputs->n; i++)
    if (outputs->at[i].type.kind > ONNX_TYPE_TENSOR)
      diag_raise(j->d, TN_ERR_UNSUPPORTED,
                 "output '%.200s' is a sequence or an optional value, and the value of input "
                 "'%.200s' decides on the model; give it when the model is loaded "
                 "(tn_model_desc.values)",
                 outputs->at[i].name, j->importer.deciding.at[0]);
}

/* Sizes that cannot be open. */

/** An import of the graph with numbers for all sizes that vary, or a bound. */
typedef struct trial_import {
  model_import *j;
  importer_sizes *sizes; /* by input; NULL: they are open, and at least 1 */
  import *importer;
  tn_failure failure; /* TN_OK also where values of inputs are lacking */
} trial_import;

/** A number as a size, or the nearest that is allowed. */
static int64_t nearest_size(const node *size, int64_t number) {
  return number < size->lo ? size->lo : number > size->hi ? size->hi : number;
}

/** A number for all sizes of an input that vary. */
static int64_t *sizes_of_number(arena *a, const node *input, int64_t number) {
  int64_t *sizes = arena_calloc(a, input->rank + 1, sizeof *sizes);
  for (size_t k = 0; k < input->rank; k++) sizes[k] = nearest_size(input->dims[k], number);
  return sizes;
}

static void import_trial(void *arg) {
  const trial_import *t = arg;
  init_importer(t->j, t->importer);
  t->importer->given_sizes = t->sizes;
  if (!t->sizes) t->importer->least_size = 1;
  import_graph(t->importer, model_of(t->j));
}

/** Imports with sizes; NULL: with open ones that are at least 1. */
static trial_import try_sizes(model_import *j, importer_sizes *sizes) {
  trial_import t = {j, sizes, arena_calloc(&j->work, 1, sizeof(import)), {0}};
  tn_status s = diag_catch(j->d, import_trial, &t);
  if (stops_work(s)) diag_rethrow(j->d);
  if (s != TN_OK && !importer_lacks_values(t.importer)) t.failure = j->d->failure;
  diag_clear(j->d);
  return t;
}

static trial_import try_number(model_import *j, int64_t number) {
  const import *open = &j->importer;
  importer_sizes *sizes = arena_calloc(&j->work, open->inputs.n + 1, sizeof *sizes);
  for (size_t i = 0; i < open->inputs.n; i++) {
    const importer_port *p = &open->inputs.at[i];
    sizes[i] = (importer_sizes){p->port->name, sizes_of_number(&j->work, p->node, number)};
  }
  return try_sizes(j, sizes);
}

static bool have_equal_sizes(const trial_import *x, const trial_import *y) {
  const import *open = &x->j->importer;
  bool are_equal = true;
  for (size_t i = 0; i < open->inputs.n; i++)
    for (size_t k = 0; k < open->inputs.at[i].node->rank; k++)
      are_equal &= x->sizes[i].size[k] == y->sizes[i].size[k];
  return are_equal;
}

/** True if two failures are about the same sizes; where these are not told apart from shapes, if
    their texts are equal. */
static bool blame_equal_sizes(const trial_import *x, const trial_import *y) {
  const named_sizes *a = &x->importer->b.named, *b = &y->importer->b.named;
  bool are_equal = a->single.n == b->single.n;
  if (!a->single.n || !b->single.n) return !strcmp(x->failure.text, y->failure.text);
  for (size_t i = 0; are_equal && i < a->single.n; i++)
    are_equal = a->single.at[i] == b->single.at[i];
  return are_equal;
}

/** True if a node fails alike with different sizes, which are not the cause then: it is not
    supported, or sizes are wrong that do not vary. */
static bool fail_alike(const trial_import *x, const trial_import *y) {
  tn_status s = x->failure.status;
  return s != TN_OK && s == y->failure.status && !have_equal_sizes(x, y) &&
         x->importer->failed == y->importer->failed &&
         (s == TN_ERR_UNSUPPORTED || blame_equal_sizes(x, y));
}

static bool has_lists(const model_import *j) {
  const onnx_values *outputs = &model_of(j)->graph->outputs;
  bool has = false;
  for (size_t i = 0; i < outputs->n; i++) has |= outputs->at[i].type.kind > ONNX_TYPE_TENSOR;
  return has;
}

static importer_sizes *copy_sizes(arena *a, const import *open, const importer_sizes *sizes) {
  importer_sizes *made = arena_copy(a, sizes, (open->inputs.n + 1) * sizeof *made);
  for (size_t i = 0; i < open->inputs.n; i++)
    made[i].size =
        arena_copy(a, sizes[i].size, (open->inputs.at[i].node->rank + 1) * sizeof *made[i].size);
  return made;
}

/** Sizes with a varying one as small as is allowed. */
static importer_sizes *lessen_size(model_import *j, const importer_sizes *sizes, const node *size) {
  const import *open = &j->importer;
  importer_sizes *made = copy_sizes(&j->work, open, sizes);
  for (size_t i = 0; i < open->inputs.n; i++)
    for (size_t k = 0; k < open->inputs.at[i].node->rank; k++)
      if (open->inputs.at[i].node->dims[k] == size)
        ((int64_t *)made[i].size)[k] = size->lo > 1 ? size->lo : 1;
  return made;
}

/** Keeps sizes for which the graph was imported: those of 1, if they fit, else a trial's, of which
    the first few above 2 are made smaller where they fit then. Each costs an import; `one` is the
    trial of 1, NULL before it. */
static void keep_fitting_sizes(model_import *j, const trial_import *of, const trial_import *one) {
  const import *open = &j->importer;
  const trial_import tried = one ? *one : try_number(j, 1);
  bool fits_one = tried.failure.status == TN_OK;
  const importer_sizes *sizes = fits_one ? tried.sizes : of->sizes;
  size_t left = fits_one ? 0 : 8;
  for (size_t i = 0; i < open->inputs.n; i++)
    for (size_t k = 0; k < open->inputs.at[i].node->rank && left; k++) {
      const node *size = open->inputs.at[i].node->dims[k];
      if (node_is_const(size) || sizes[i].size[k] <= 2 || sizes[i].size[k] == size->lo) continue;
      const trial_import less = try_sizes(j, lessen_size(j, sizes, size));
      if (less.failure.status == TN_OK) sizes = less.sizes;
      left--;
    }
  j->g->fitting = copy_sizes(j->g->arena, open, sizes);
}

/** Keeps the types of the outputs of a trial that succeeded. */
static void keep_types(model_import *j, const import *m) {
  model_graph *g = j->g;
  importer_type *types = arena_alloc(g->arena, (m->outputs.n + 1) * sizeof *types);
  if (m->outputs.n != model_of(j)->graph->outputs.n) return; /* values are lacking */
  for (size_t i = 0; i < m->outputs.n; i++) {
    const importer_port *p = &m->outputs.at[i];
    types[i] = (importer_type){(dtype)p->node->dtype, p->node->rank, p->is_string};
  }
  g->late_types = types;
}

static void keep_trial(model_import *j, const trial_import *t, const trial_import *one) {
  keep_types(j, t->importer);
  keep_fitting_sizes(j, t, one);
}

/** The constant size that the failure of the open import compares sizes with, as the rows of a
    weight; 0: none, or several. */
static int64_t compared_number(const import *open) {
  const named_sizes *told = &open->b.named;
  int64_t number = 0;
  for (size_t i = 0; i < told->single.n; i++) {
    if (!node_is_const(told->single.at[i])) continue;
    if (number) return 0;
    number = node_int(told->single.at[i]);
  }
  return number;
}

/** Imports with that constant for the sizes which the failure names, and with 1 for all others, and
    keeps the sizes if they fit. Where no input has such a size, this is the trial of 1 again. */
static void try_compared_number(model_import *j, int64_t number, const trial_import *one) {
  const import *open = &j->importer;
  const named_sizes *told = &open->b.named;
  importer_sizes *sizes = arena_calloc(&j->work, open->inputs.n + 1, sizeof *sizes);
  for (size_t i = 0; i < open->inputs.n; i++) {
    const importer_port *p = &open->inputs.at[i];
    int64_t *size = sizes_of_number(&j->work, p->node, 1);
    for (size_t k = 0; k < p->node->rank; k++)
      if (nodes_contain(told->single.at, told->single.n, p->node->dims[k]))
        size[k] = nearest_size(p->node->dims[k], number);
    sizes[i] = (importer_sizes){p->port->name, size};
  }
  if (have_equal_sizes(&(trial_import){.j = j, .sizes = sizes}, one)) return;
  const trial_import of = try_sizes(j, sizes);
  if (of.failure.status == TN_OK) keep_trial(j, &of, one);
}

/** The first trial that fails as an earlier one does; NULL: there is none, or some trial succeeds,
    whose sizes are kept. The numbers are small and large, even and odd, 1, the size of many a
    batch, and one that is divided by all up to 8; the last trial takes the constant of the failure.
 */
static const trial_import *find_wrong_trial(model_import *j) {
  enum { TRIALS = 5, ONE = 3 };
  static const int64_t numbers[TRIALS] = {2, 64, 63, [ONE] = 1, 840};
  trial_import *all = arena_calloc(&j->work, TRIALS, sizeof *all);
  const trial_import *wrong = NULL;
  for (size_t i = 0; i < TRIALS; i++) {
    all[i] = try_number(j, numbers[i]);
    if (all[i].failure.status == TN_OK) {
      keep_trial(j, &all[i], i < ONE ? NULL : &all[ONE]);
      return NULL;
    }
    for (size_t k = 0; k < i && !wrong; k++)
      if (fail_alike(&all[k], &all[i])) wrong = &all[k];
  }
  int64_t number = compared_number(&j->importer);
  if (!wrong && number) try_compared_number(j, number, &all[ONE]);
  return wrong;
}

/** True if the graph could not be imported because sizes vary, and may be for those of a run, as
    trials with numbers tell. Otherwise the failure becomes the one that stays. */
static bool waits_for_sizes(model_import *j) {
  const tn_failure open = j->d->failure;
  if (!j->request->may_be_exact || !j->importer.asks_exact_sizes || has_lists(j)) return false;
  diag_clear(j->d);
  const trial_import *wrong = find_wrong_trial(j);
  bool is_of_open_sizes = !wrong || wrong->importer->failed == j->importer.failed;
  if (!is_of_open_sizes) j->tried = wrong->sizes;
  j->d->failure = is_of_open_sizes ? open : wrong->failure;
  return !wrong;
}

static void forget_outputs(model_import *j) {
  j->importer.outputs.n = j->importer.lists.n = 0;
  j->g->is_late = true;
}

/** Notes why sizes cannot be open, which the failure says, and whether they can be from 1 on; in
   the body of a loop, which runs import for the shapes of its states, they are not. */
static void keep_reason(model_import *j) {
  const tn_failure open = j->d->failure;
  diag_clear(j->d);
  j->g->fits_open_from_one = !j->request->is_body && try_sizes(j, NULL).failure.status == TN_OK;
  j->g->exact_reason = arena_printf(j->g->arena, "%s", open.text);
}

/** Keeps the inputs alone where nodes depend on their values or sizes. */
static void settle_late(model_import *j) {
  bool lacks_values = importer_lacks_values(&j->importer);
  if (!lacks_values && !waits_for_sizes(j)) {
    tell_problems(j);
    diag_rethrow(j->d);
  }
  if (!lacks_values) keep_reason(j);
  diag_clear(j->d);
  if (lacks_values)
    refuse_late_lists(j);
  else
    import_inputs(&j->importer);
  forget_outputs(j);
}

/** Imports the inputs alone, of a graph that is known to be late. */
static void import_late(model_import *j) {
  const char *reason = j->request->late_reason;
  j->importer.model = model_of(j);
  if (reason) j->g->exact_reason = arena_printf(j->g->arena, "%s", reason);
  import_inputs(&j->importer);
  forget_outputs(j);
}

static void list_deciding(model_import *j) {
  model_graph *g = j->g;
  const onnx_names *deciding = &j->importer.deciding;
  g->deciding = arena_calloc(g->arena, g->n_inputs + 1, sizeof *g->deciding);
  for (size_t i = 0; g->is_late && i < g->n_inputs; i++)
    for (size_t k = 0; k < deciding->n; k++)
      if (!strcmp(g->names[i], deciding->at[k])) g->deciding[i] = true;
}

static void import_body(void *arg) {
  model_import *j = arg;
  init_importer(j, &j->importer);
  if (j->request->is_late)
    import_late(j);
  else if (diag_catch(j->d, import_nodes, j) != TN_OK)
    settle_late(j);
  add_ports(j);
  list_deciding(j);
  add_labels(j);
  copy_graph(j);
}

tn_status model_graph_import(model_graph *g, model_graph_request *request, diag *d) {
  model_import j = {.g = g, .request = request, .d = d};
  diag *before = g->arena->diag;
  g->arena->diag = d;
  j.ir = ir_new(request->mem, d, false);
  g->ir = ir_new(request->mem, d, false);
  g->host = host_steps_open(request->mem, request->file->strings, d);
  arena_init(&j.work, request->mem, d);
  const stop_condition *outer = d->stop;
  d->stop = &request->stop;
  tn_status s = j.ir && g->ir && g->host ? diag_catch(d, import_body, &j)
                                         : diag_set(d, TN_ERR_MEMORY, "out of memory");
  d->stop = outer;
  request->blames_sizes = s != TN_OK && j.importer.blames_sizes;
  for (size_t i = 0; i < j.made.n; i++)
    if (j.made.at[i].memory) buffer_release(j.made.at[i].memory);
  ir_free(j.ir);
  arena_free(&j.work);
  if (g->host && !g->host->all.n) {
    host_steps_release(g->host);
    g->host = NULL;
  }
  g->arena->diag = before;
  return s;
}

void model_graph_free(model_graph *g) {
  for (size_t i = 0; i < g->n_buffers; i++)
    if (g->buffers[i].memory) buffer_release(g->buffers[i].memory);
  ir_free(g->ir);
  host_steps_release(g->host);
}

/* Plans. */

static tn_status call_host(void *user, const executable_call *c, tn_failure *failure) {
  const host_arrays a = {c->n_inputs, c->data, c->bytes, c->run};
  return host_steps_run(user, c->uid, &a, failure);
}

static void release_host(void *user) { host_steps_release(user); }

static executable_host_facts host_facts(void *user, int64_t uid) {
  const char *what = host_steps_what(user, uid);
  return what ? (executable_host_facts){what, 0} : executable_host_usual_facts();
}

/** The steps of the host, with a reference for the plan. */
static executable_host host_of_graph(const model_graph *g) {
  if (!g->host) return (executable_host){0};
  return (executable_host){call_host, release_host, host_steps_retain(g->host), host_facts};
}

static plan_source source_of_buffer(void *user, const node *buffer) {
  const model_graph *g = user;
  const model_buffer *l = &g->buffers[buffer->ints[0]];
  return (plan_source){.input = l->input, .memory = l->memory, .weight = l->tensor};
}

static bool is_unread(void *user, const void *weight) {
  (void)user;
  return ((const onnx_tensor *)weight)->unread != NULL;
}

static tn_status read_weight(void *user, const void *weight, size_t offset, size_t bytes, void *to,
                             diag *d) {
  const model_file *file = user;
  return onnx_tensor_copy(model_file_of_tensors(file), weight, offset, bytes, to, d);
}

/** Evicts a weight's pages of the mapped file: packed weights replace them. */
static void drop_weight_pages(void *user, const void *weight) {
  const model_file *data = user;
  onnx_tensor_drop_pages(model_file_of_tensors(data), weight);
}

plan_graph model_graph_of_plan(const model_graph *g, model_file *file) {
  atomic_fetch_add_explicit(&file->count, 1, memory_order_relaxed);
  return (plan_graph){.title = file->title,
                      .order = &g->order,
                      .inputs = g->nodes,
                      .n_inputs = g->n_inputs,
                      .outputs = g->nodes + g->n_inputs,
                      .output_names = g->names + g->n_inputs,
                      .n_outputs = g->n_outputs,
                      .labels = g->labels,
                      .n_labels = g->n_labels,
                      .folds_constants = true,
                      .source_of = source_of_buffer,
                      .user = (void *)g,
                      .host = host_of_graph(g),
                      .file = {drop_weight_pages, is_unread, read_weight, release_file, file}};
}
