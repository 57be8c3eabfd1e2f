#include "formats/onnx/import.h"

#include "base/str.h"
#include "formats/onnx/table.h"

#include <string.h>

typedef struct importing {
  import *m;
  const onnx_node *node; /* at hand */
} importing;

static dtype type_of(import *m, int number, const char *what, const char *name) {
  if (!dtype_is_data((dtype)number))
    diag_raise(m->b.diag, TN_ERR_UNSUPPORTED, "%s '%.200s' has type %s, which is not supported",
               what, name, onnx_dtype_name(number) ? onnx_dtype_name(number) : "(unknown)");
  return (dtype)number;
}

/* Names and values. */

static void define(import *m, const char *name, value v) {
  import_value *x = arena_calloc(m->b.arena, 1, sizeof *x);
  x->v = v;
  names_set(m->b.arena, &m->values, name, x);
}

static const import_value *find(import *m, const char *name) {
  const import_value *x = names_get(&m->values, name);
  if (!x) diag_raise(m->b.diag, TN_ERR_FORMAT, "'%.200s' is used before anything gives it", name);
  return x;
}

/* Leaves: weights and inputs. */

static value weight(import *m, const onnx_tensor *t) {
  arena *a = m->b.arena;
  dtype type = type_of(m, (int)t->dtype, "constant", t->name);
  const node **dims = arena_alloc(a, (t->dims.n + 1) * sizeof *dims);
  for (size_t i = 0; i < t->dims.n; i++) dims[i] = ix_const(m->b.ir, t->dims.at[i]);
  if (!t->dims.n) /* scalars are part of the arithmetic */
    return (value){ir_const_bits(m->b.ir, type, scalar_load(type, t->data)), WEAK_NO};
  const node *n = m->leaves.weight(m->leaves.user, t, type, t->dims.n, dims);
  map_set(a, &m->weights, n, (void *)t);
  return (value){n, WEAK_NO};
}

value onnx_constant(onnx_call *c, const onnx_tensor *t) { return weight(c->m, t); }

static const node *size_variable(import *m, const char *name) {
  const node *v = names_get(&m->params, name);
  if (v) return v;
  int64_t bounds[] = {0, IMPORT_SIZE_MAX};
  v = ir_make(m->b.ir, &(node_spec){.op = OP_VAR,
                                    .dtype = DT_INDEX,
                                    .ints = bounds,
                                    .n_int = 2,
                                    .text = name,
                                    .n_text = strlen(name)});
  names_set(m->b.arena, &m->params, name, (void *)v);
  return v;
}

/** A size of an input: a number or a variable; one without a name is called after its input and
    axis. */
static const node *size_of(import *m, const onnx_value *v, size_t axis) {
  const onnx_dim *d = &v->type.dims.at[axis];
  if (d->value >= 0) return ix_const(m->b.ir, d->value);
  const char *name = *d->param ? d->param : arena_printf(m->b.arena, "%s.%zu", v->name, axis);
  return size_variable(m, name);
}

static void add_input(import *m, const onnx_value *v) {
  if (v->type.kind != ONNX_TYPE_TENSOR || !v->type.has_shape)
    diag_raise(m->b.diag, TN_ERR_UNSUPPORTED, "input '%.200s' is no tensor of known rank", v->name);
  size_t rank = v->type.dims.n;
  const node **dims = arena_alloc(m->b.arena, (rank + 1) * sizeof *dims);
  for (size_t axis = 0; axis < rank; axis++) dims[axis] = size_of(m, v, axis);
  dtype t = type_of(m, v->type.dtype, "input", v->name);
  const node *n = m->leaves.input(m->leaves.user, v->name, t, rank, dims);
  vec_push(m->b.arena, &m->inputs, (import_port){v, n});
  define(m, v->name, (value){n, WEAK_NO});
}

/** Since IR version 4 initialisers need not be inputs; before, they are inputs with a value. */
static void add_leaves(import *m) {
  const onnx_graph *g = m->model->graph;
  for (size_t i = 0; i < g->initializers.n; i++)
    define(m, g->initializers.at[i]->name, weight(m, g->initializers.at[i]));
  for (size_t i = 0; i < g->inputs.n; i++)
    if (!names_get(&m->values, g->inputs.at[i].name)) add_input(m, &g->inputs.at[i]);
}

/* Nodes. */

static void check_node(const onnx_call *c, const onnx_op *row) {
  const onnx_node *n = c->node;
  for (size_t i = 0; i < n->attributes.n; i++)
    if (!table_has_attribute(row, n->attributes.at[i].name))
      onnx_fail(c, TN_ERR_UNSUPPORTED, "attribute '%.100s' is not known", n->attributes.at[i].name);
  if (c->n_inputs < row->least || c->n_inputs > row->most)
    onnx_fail(c, TN_ERR_FORMAT, "%zu inputs, where %u to %u belong", c->n_inputs, row->least,
              row->most);
  if (c->n_outputs > row->outputs)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "output '%.100s' is not supported",
              n->outputs.at[row->outputs]);
}

static void add_node(import *m, const onnx_node *n) {
  arena *a = m->b.arena;
  const onnx_op *row = table_find(n->op_type);
  value *in = arena_calloc(a, n->inputs.n + 1, sizeof *in);
  value *out = arena_calloc(a, n->outputs.n + 1, sizeof *out);
  for (size_t i = 0; i < n->inputs.n; i++)
    if (*n->inputs.at[i]) in[i] = find(m, n->inputs.at[i])->v;
  onnx_call c = {.m = m,
                 .node = n,
                 .version = table_version(row, m->opset),
                 .n_inputs = n->inputs.n,
                 .n_outputs = n->outputs.n,
                 .inputs = in,
                 .outputs = out};
  check_node(&c, row);
  row->build(&c);
  for (size_t i = 0; i < n->outputs.n; i++)
    if (*n->outputs.at[i]) define(m, n->outputs.at[i], out[i]);
}

static void build(void *arg) {
  importing *k = arg;
  import *m = k->m;
  const onnx_graph *g = m->model->graph;
  add_leaves(m);
  for (size_t i = 0; i < g->nodes.n; i++) add_node(m, k->node = &g->nodes.at[i]);
  k->node = NULL;
  for (size_t i = 0; i < g->outputs.n; i++) {
    const onnx_value *port = &g->outputs.at[i];
    vec_push(m->b.arena, &m->outputs, (import_port){port, find(m, port->name)->v.node});
  }
}

static void name_the_node(diag *d, const onnx_node *n) {
  const char *name = *n->name ? n->name : n->outputs.n ? n->outputs.at[0] : "";
  diag_prefix(d, "%.100s node '%.200s'", n->op_type, name);
}

void import_graph(import *m, const onnx_model *model) {
  str report = str_new(m->b.arena);
  import_check(model, &report);
  if (report.n)
    diag_raise(m->b.diag, TN_ERR_UNSUPPORTED, "not supported:\n%.*s", (int)report.n - 1,
               str_text(&report));
  m->model = model;
  m->opset = onnx_opset_of(model, "");
  importing k = {.m = m};
  if (diag_catch(m->b.diag, build, &k) == TN_OK) return;
  if (k.node && m->b.diag->status != TN_ERR_MEMORY) name_the_node(m->b.diag, k.node);
  diag_rethrow(m->b.diag);
}
