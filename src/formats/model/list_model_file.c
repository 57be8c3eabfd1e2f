/* Lists the contents of an ONNX file (tenon inspect): operators by frequency, constants, declared
   inputs and outputs, and unsupported operators. Parsing makes all lists, so that reading them
   needs neither memory nor a lock. */
#include "base/map.h"
#include "formats/model/declared_type.h"
#include "formats/onnx/file/onnx_file.h"
#include "formats/onnx/importer/importer.h"
#include "tensor/context/descriptor.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/unstable/model_file.h>

typedef struct operator_count {
  const char *name; /* "domain.op", without the default domain */
  uint64_t count;
} operator_count;

typedef VEC(tn_declared_port) declared_ports;

struct tn_model_file {
  arena arena; /* of everything below */
  onnx_model *model;
  tn_model_file_info info;
  VEC(operator_count) operators;
  declared_ports inputs, outputs;
  VEC(const char *) unsupported;
  VEC(tn_model_node) nodes;
};

typedef struct listing {
  tn_model_file *file;
  const void *data;
  size_t bytes;
  string_map operator_numbers;    /* name → its index in the file's operators + 1 */
  VEC(const onnx_graph *) graphs; /* worklist of nested graphs */
} listing;

/* Counting. */

/** "domain.op", without the default domain. */
static const char *operator_name(arena *a, const onnx_node *n) {
  bool is_default = !*n->domain || !strcmp(n->domain, "ai.onnx");
  return is_default ? n->op_type : arena_printf(a, "%s.%s", n->domain, n->op_type);
}

static void count_node(listing *l, const onnx_node *n) {
  tn_model_file *f = l->file;
  arena *a = &f->arena;
  const char *name = operator_name(a, n);
  size_t number = (size_t)(uintptr_t)string_map_get(&l->operator_numbers, name);
  if (!number) {
    vec_push(a, &f->operators, (operator_count){name, 0});
    number = f->operators.n;
    string_map_set(a, &l->operator_numbers, name, (void *)(uintptr_t)number);
  }
  f->operators.at[number - 1].count++;
  f->info.nodes++;
}

static void count_nodes(listing *l, const onnx_nodes *nodes) {
  for (size_t i = 0; i < nodes->n; i++) {
    const onnx_node *n = &nodes->at[i];
    count_node(l, n);
    for (size_t k = 0; k < n->attributes.n; k++) {
      const onnx_attribute *attribute = &n->attributes.at[k];
      if (attribute->g) vec_push(&l->file->arena, &l->graphs, attribute->g);
      for (size_t j = 0; j < attribute->graphs.n; j++)
        vec_push(&l->file->arena, &l->graphs, attribute->graphs.at[j]);
    }
  }
}

static void count_constants(tn_model_file_info *info, const onnx_graph *g) {
  for (size_t i = 0; i < g->initializers.n; i++) {
    const onnx_tensor *t = g->initializers.at[i];
    info->tensors++;
    info->elements += t->elements;
    info->bytes += t->bytes;
    for (size_t k = 0; k < t->strings.n; k++) info->bytes += t->strings.at[k].n;
  }
}

/** Orders operators by descending count, then by name. */
static int compare_counts(const void *a, const void *b) {
  const operator_count *x = a, *y = b;
  return x->count != y->count ? (x->count < y->count) - (x->count > y->count)
                              : strcmp(x->name, y->name);
}

static void count_contents(listing *l) {
  tn_model_file *f = l->file;
  const onnx_model *m = f->model;
  f->info = (tn_model_file_info){.size = sizeof f->info,
                                 .ir_version = m->ir_version,
                                 .producer = m->producer_name,
                                 .producer_version = m->producer_version,
                                 .external = m->external.n};
  vec_push(&f->arena, &l->graphs, m->graph);
  for (size_t i = 0; i < m->functions.n; i++) count_nodes(l, &m->functions.at[i].nodes);
  while (l->graphs.n) {
    const onnx_graph *g = vec_pop(&l->graphs);
    count_constants(&f->info, g);
    count_nodes(l, &g->nodes);
  }
  if (f->operators.n)
    qsort(f->operators.at, f->operators.n, sizeof *f->operators.at, compare_counts);
  f->info.kinds = f->operators.n;
}

/* Ports. */

static void add_port(tn_model_file *f, declared_ports *to, const onnx_value *v, bool is_weight) {
  arena *a = &f->arena;
  const onnx_type *t = &v->type;
  bool is_tensor = t->kind == ONNX_TYPE_TENSOR, has_rank = is_tensor && t->has_shape;
  tn_declared_port p = {.size = sizeof p,
                        .name = v->name,
                        .type = declared_type_text(a, t),
                        .is_tensor = is_tensor,
                        .dtype = is_tensor ? t->dtype : 0,
                        .dtype_name = is_tensor ? onnx_dtype_name(t->dtype) : NULL,
                        .rank = has_rank ? (int64_t)t->dims.n : -1,
                        .is_weight = is_weight};
  int64_t *sizes = arena_alloc(a, (t->dims.n + 1) * sizeof *sizes);
  const char **size_names = arena_alloc(a, (t->dims.n + 1) * sizeof *size_names);
  for (size_t i = 0; i < t->dims.n; i++) {
    sizes[i] = t->dims.at[i].value >= 0 ? t->dims.at[i].value : -1;
    size_names[i] = t->dims.at[i].param ? t->dims.at[i].param : "";
  }
  p.sizes = sizes;
  p.names = size_names;
  vec_push(a, to, p);
}

static void list_ports(tn_model_file *f) {
  const onnx_graph *g = f->model->graph;
  string_map weights = {0};
  for (size_t i = 0; i < g->initializers.n; i++)
    string_map_set(&f->arena, &weights, g->initializers.at[i]->name, f);
  for (size_t i = 0; i < g->inputs.n; i++)
    add_port(f, &f->inputs, &g->inputs.at[i], string_map_get(&weights, g->inputs.at[i].name));
  for (size_t i = 0; i < g->outputs.n; i++) add_port(f, &f->outputs, &g->outputs.at[i], false);
}

/* Nodes. */

typedef struct name_list {
  arena *a;
  string_map seen;
  onnx_names names;
} name_list;

static void add_name(void *user, const char *name) {
  name_list *l = user;
  if (string_map_get(&l->seen, name)) return;
  string_map_set(l->a, &l->seen, name, l);
  vec_push(l->a, &l->names, name);
}

static void add_node(tn_model_file *f, const onnx_node *n) {
  arena *a = &f->arena;
  name_list inputs = {.a = a}, outputs = {.a = a};
  onnx_node_for_names(a, n, add_name, &inputs);
  for (size_t i = 0; i < n->outputs.n; i++)
    if (*n->outputs.at[i]) add_name(&outputs, n->outputs.at[i]);
  tn_model_node made = {.size = sizeof made,
                        .name = onnx_node_name(n),
                        .op = operator_name(a, n),
                        .inputs = inputs.names.at,
                        .n_inputs = inputs.names.n,
                        .outputs = outputs.names.at,
                        .n_outputs = outputs.names.n};
  vec_push(a, &f->nodes, made);
}

static void list_nodes(tn_model_file *f) {
  const onnx_nodes *nodes = &f->model->graph->nodes;
  for (size_t i = 0; i < nodes->n; i++) add_node(f, &nodes->at[i]);
}

/* Unsupported parts. */

static void list_unsupported(tn_model_file *f) {
  const importer_problems all = list_unsupported_operators(f->model, &f->arena);
  for (size_t i = 0; i < all.n; i++)
    vec_push(&f->arena, &f->unsupported, importer_problem_text(&f->arena, &all.at[i]));
}

/* Public interface. */

static void parse_body(void *arg) {
  listing *l = arg;
  tn_model_file *f = l->file;
  if (onnx_parse_model(&f->model, l->data, l->bytes, &f->arena, f->arena.diag))
    diag_rethrow(f->arena.diag);
  count_contents(l);
  list_ports(f);
  list_nodes(f);
  list_unsupported(f);
}

tn_status tn_model_file_parse(const void *data, size_t bytes, tn_model_file **file,
                              tn_failure *failure) {
  if (file) *file = NULL;
  if (!file || (!data && bytes))
    return tn_fail(failure, TN_ERR_ARGUMENT, "the %s is NULL",
                   file ? "model" : "output pointer for the model file");
  diag d = {0};
  tn_model_file *f = mem_calloc(&mem_system, 1, sizeof *f);
  if (!f) return tn_fail(failure, TN_ERR_MEMORY, "out of memory");
  arena_init(&f->arena, &mem_system, &d);
  listing l = {.file = f, .data = data, .bytes = bytes};
  tn_status s = diag_catch(&d, parse_body, &l);
  f->arena.diag = NULL;
  if (s != TN_OK) {
    tn_model_file_free(f);
    if (failure) *failure = d.failure;
    return s;
  }
  *file = f;
  return s;
}

void tn_model_file_free(tn_model_file *f) {
  if (!f) return;
  arena_free(&f->arena);
  mem_free(&mem_system, f, sizeof *f);
}

tn_status tn_model_file_get(const tn_model_file *f, tn_model_file_info *info) {
  diag unreported = {0};
  if (!f) return TN_ERR_ARGUMENT;
  return descriptor_write(&unreported, info, &f->info, sizeof f->info, "tn_model_file_info");
}

tn_status tn_model_file_opset(const tn_model_file *f, size_t i, const char **domain,
                              int64_t *version) {
  if (!f || i >= f->model->opsets.n) return TN_ERR_ARGUMENT;
  const onnx_opset *o = &f->model->opsets.at[i];
  *domain = *o->domain ? o->domain : "ai.onnx";
  *version = o->version;
  return TN_OK;
}

tn_status tn_model_file_operator(const tn_model_file *f, size_t i, const char **name,
                                 uint64_t *count) {
  if (!f || i >= f->operators.n) return TN_ERR_ARGUMENT;
  *name = f->operators.at[i].name;
  *count = f->operators.at[i].count;
  return TN_OK;
}

tn_status tn_model_file_port(const tn_model_file *f, tn_port_kind kind, size_t i,
                             tn_declared_port *port) {
  diag unreported = {0};
  if (!f || (kind != TN_PORT_INPUT && kind != TN_PORT_OUTPUT)) return TN_ERR_ARGUMENT;
  const declared_ports *ports = kind == TN_PORT_INPUT ? &f->inputs : &f->outputs;
  if (i >= ports->n) return TN_ERR_ARGUMENT;
  return descriptor_write(&unreported, port, &ports->at[i], sizeof *port, "tn_declared_port");
}

tn_status tn_model_file_node(const tn_model_file *f, size_t i, tn_model_node *node) {
  diag unreported = {0};
  if (!f || i >= f->nodes.n) return TN_ERR_ARGUMENT;
  return descriptor_write(&unreported, node, &f->nodes.at[i], sizeof *node, "tn_model_node");
}

tn_status tn_model_file_unsupported(const tn_model_file *f, size_t i, const char **line) {
  if (!f || i >= f->unsupported.n) return TN_ERR_ARGUMENT;
  *line = f->unsupported.at[i];
  return TN_OK;
}
