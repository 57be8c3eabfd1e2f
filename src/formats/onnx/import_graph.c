/* Importer of ONNX graphs: defines weights and inputs as graph inputs, then calls each node's
   builder in the order of the file. Values are found by name, in loop bodies also in the graphs
   around. Reports all unsupported operators at once, and names the node in every error. */
#include "formats/onnx/importer/importer.h"

#include "base/str.h"
#include "formats/onnx/importer/input_sizes.h"
#include "formats/onnx/ops/op_table.h"
#include "ir/core/var_names.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/operators.h"

/** Present node or value, for messages; NULL: none. */
typedef struct importing {
  import *m;
  const onnx_node *node;
  const onnx_value *input;
} importing;

static dtype type_of(import *m, int number, const char *what, const char *name) {
  if (!dtype_is_data((dtype)number))
    diag_raise(m->b.diag, TN_ERR_UNSUPPORTED, "%s '%.200s' has type %s, which is not supported",
               what, name, onnx_dtype_name(number) ? onnx_dtype_name(number) : "(unknown)");
  return (dtype)number;
}

/* Names and values. */

const char *onnx_node_name(const onnx_node *n) {
  return *n->name ? n->name : n->outputs.n ? n->outputs.at[0] : "";
}

static void define(import *m, const char *name, importer_value v) {
  string_map_set(m->b.arena, &m->values, name, arena_copy(m->b.arena, &v, sizeof v));
}

static void define_output(import *m, const char *name, value v, const onnx_node *by) {
  const importer_value *other = string_map_get(&m->values, name);
  if (other && other->by)
    diag_raise(m->b.diag, TN_ERR_FORMAT, "its output '%.200s' is one of %.100s node '%.200s' too",
               name, other->by->op_type, onnx_node_name(other->by));
  if (other)
    diag_raise(m->b.diag, TN_ERR_FORMAT, "its output '%.200s' has the name of an %s", name,
               other->kind);
  define(m, name, (importer_value){.v = v, .by = by});
}

static const importer_value *find(import *m, const char *name) {
  const importer_value *x = string_map_get(&m->values, name);
  for (size_t i = m->around.n; !x && i-- > 0;) x = string_map_get(&m->around.at[i], name);
  if (!x) diag_raise(m->b.diag, TN_ERR_FORMAT, "'%.200s' is used before anything gives it", name);
  if (!x->v.node)
    diag_raise(m->b.diag, TN_ERR_UNSUPPORTED,
               "'%.200s' is used, an output of %.100s node '%.200s' that is not supported", name,
               x->by->op_type, onnx_node_name(x->by));
  return x;
}

/* Leaves: weights and inputs. */

/** Operators add up to two axes to those of their operands. */
enum { WEIGHT_RANK_MAX = SIZES_MAX_RANK - 2 };

static void check_rank(import *m, const char *what, const char *name, size_t rank, size_t most) {
  if (rank > most)
    diag_raise(m->b.diag, TN_ERR_UNSUPPORTED,
               "%s '%.200s' has %zu dimensions; at most %zu are supported", what, name, rank, most);
}

/** Raises where the elements of a tensor cannot be counted. An axis without any does not help:
   places are reckoned with the others. */
static void check_count(import *m, const node *n) {
  const node *count = ix_const(m->b.ir, 1);
  for (size_t i = 0; i < n->rank; i++)
    if (!node_is_bits(n->dims[i], 0)) count = ix_mul(m->b.ir, count, n->dims[i]);
}

/** The leaf of another weight that is the same part of a file; NULL: there is none. */
static const node *tied(const import *m, const onnx_tensor *t, dtype type,
                        const node *const dims[]) {
  const node *n = t->bytes ? map_get(&m->placed, t->data) : NULL;
  bool is_same = n && n->dtype == type && n->rank == t->dims.n;
  for (size_t i = 0; i < t->dims.n && is_same; i++) is_same = n->dims[i] == dims[i];
  return is_same ? n : NULL;
}

static value weight(import *m, const onnx_tensor *t) {
  arena *a = m->b.arena;
  dtype type = type_of(m, (int)t->dtype, "constant", t->name);
  check_rank(m, "constant", t->name, t->dims.n, WEIGHT_RANK_MAX);
  const node **dims = arena_alloc(a, (t->dims.n + 1) * sizeof *dims);
  for (size_t i = 0; i < t->dims.n; i++) dims[i] = ix_const(m->b.ir, t->dims.at[i]);
  if (!t->dims.n) /* scalars are part of the arithmetic */
    return (value){ir_const_bits(m->b.ir, type, scalar_load(type, t->data)), WEAK_NO};
  const node *n = tied(m, t, type, dims);
  if (n) return (value){n, WEAK_NO};
  n = m->leaves.weight(m->leaves.user, t, type, t->dims.n, dims);
  map_set(a, &m->weights, n, (void *)t);
  if (t->bytes) map_set(a, &m->placed, t->data, (void *)n);
  return (value){n, WEAK_NO};
}

value onnx_constant_tensor(onnx_call *c, const onnx_tensor *t) { return weight(c->m, t); }

static void add_input(importing *k, const onnx_value *v) {
  import *m = k->m;
  if (v->type.kind != ONNX_TYPE_TENSOR || !v->type.has_shape)
    diag_raise(
        m->b.diag, TN_ERR_UNSUPPORTED,
        "input '%.200s' is no tensor of known rank: the file has to say its shape, with names for "
        "sizes that vary",
        v->name);
  size_t rank = v->type.dims.n;
  check_rank(m, "input", v->name, rank, TN_MAX_RANK);
  const node **dims = arena_alloc(m->b.arena, (rank + 1) * sizeof *dims);
  for (size_t axis = 0; axis < rank; axis++) dims[axis] = input_sizes_axis(m, v, axis);
  dtype t = type_of(m, v->type.dtype, "input", v->name);
  const node *n = m->leaves.input(m->leaves.user, v->name, t, rank, dims);
  vec_push(m->b.arena, &m->inputs, (importer_port){v, n});
  define(m, v->name, (importer_value){.v = {n, WEAK_NO}, .kind = "input"});
  k->input = v;
  check_count(m, n);
  k->input = NULL;
}

static void check_names(import *m, const onnx_values *list, const char *what) {
  string_map seen = {0};
  for (size_t i = 0; i < list->n; i++) {
    const onnx_value *v = &list->at[i], *other = string_map_get(&seen, v->name);
    if (other)
      diag_raise(m->b.diag, TN_ERR_FORMAT, "%s %zu and %zu are both named '%.200s'", what,
                 (size_t)(other - list->at), i, v->name);
    string_map_set(m->b.arena, &seen, v->name, (void *)v);
  }
}

/** Since IR version 4 initialisers need not be inputs; before, they are inputs with a value. */
static void add_leaves(importing *k) {
  import *m = k->m;
  const onnx_graph *g = m->model->graph;
  check_names(m, &g->inputs, "inputs");
  check_names(m, &g->outputs, "outputs");
  for (size_t i = 0; i < g->initializers.n; i++) {
    const onnx_tensor *t = g->initializers.at[i];
    define(m, t->name, (importer_value){.v = weight(m, t), .kind = "initializer"});
  }
  for (size_t i = 0; i < g->inputs.n; i++)
    if (!string_map_get(&m->values, g->inputs.at[i].name)) add_input(k, &g->inputs.at[i]);
}

/* Nodes. */

/** Number of inputs that belong to a node. */
static const char *inputs_text(const onnx_call *c, const onnx_op *row) {
  arena *a = c->m->b.arena;
  if (row->least == row->most) return arena_printf(a, "%u", row->least);
  if (row->most == UINT16_MAX) return arena_printf(a, "%u or more", row->least);
  return arena_printf(a, "%u to %u", row->least, row->most);
}

static void check_node(const onnx_call *c, const onnx_op *row) {
  const onnx_node *n = c->node;
  for (size_t i = 0; i < n->attributes.n; i++)
    if (!op_table_has_attribute(row, n->attributes.at[i].name))
      onnx_fail(c, TN_ERR_UNSUPPORTED, "attribute '%.100s' is not known", n->attributes.at[i].name);
  size_t length;
  const char *missing = op_table_missing_attribute(row, c->version, n, &length);
  if (missing) onnx_fail(c, TN_ERR_FORMAT, "attribute %.*s is missing", (int)length, missing);
  if (c->n_inputs < row->least || c->n_inputs > row->most)
    onnx_fail(c, TN_ERR_FORMAT, "it has %zu input%s, not %s", c->n_inputs,
              c->n_inputs == 1 ? "" : "s", inputs_text(c, row));
  if (c->n_outputs > row->outputs)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "output '%.100s' is not supported",
              n->outputs.at[row->outputs]);
}

static void add_node(import *m, const onnx_node *n) {
  arena *a = m->b.arena;
  const onnx_op *row = op_table_find(n->op_type);
  value *in = arena_calloc(a, n->inputs.n + 1, sizeof *in);
  value *out = arena_calloc(a, n->outputs.n + 1, sizeof *out);
  for (size_t i = 0; i < n->inputs.n; i++)
    if (*n->inputs.at[i]) in[i] = find(m, n->inputs.at[i])->v;
  onnx_call c = {.m = m,
                 .node = n,
                 .version = op_table_version(row, m->opset),
                 .n_inputs = n->inputs.n,
                 .n_outputs = n->outputs.n,
                 .inputs = in,
                 .outputs = out};
  check_node(&c, row);
  m->asked.n = 0;
  m->b.needed = NULL;
  m->b.named.n = 0;
  row->build(&c);
  for (size_t i = 0; i < n->outputs.n; i++) {
    if (out[i].node) check_count(m, out[i].node);
    if (*n->outputs.at[i]) define_output(m, n->outputs.at[i], out[i], n);
  }
}

/* Bodies of loops: graphs in which names are looked up before the graphs around them. */

typedef struct body_job {
  import *m;
  const onnx_graph *g;
  const value *in;
  value *out;
  const onnx_node *node; /* at hand */
} body_job;

/** The arrays of a loop are as large in each step. */
static void check_sizes_stay(import *m, const onnx_node *n) {
  for (size_t i = 0; i < n->outputs.n; i++) {
    const importer_value *x =
        *n->outputs.at[i] ? string_map_get(&m->values, n->outputs.at[i]) : NULL;
    for (size_t k = 0; x && x->v.node && k < x->v.node->rank; k++)
      if (build_depends_on_loop(&m->b, x->v.node->dims[k]))
        diag_raise(m->b.diag, TN_ERR_UNSUPPORTED,
                   "its output '%.200s' has another size in each step of a loop", n->outputs.at[i]);
  }
}

static void build_body(void *arg) {
  body_job *j = arg;
  import *m = j->m;
  const onnx_graph *g = j->g;
  check_names(m, &g->inputs, "inputs");
  for (size_t i = 0; i < g->inputs.n; i++)
    define(m, g->inputs.at[i].name, (importer_value){.v = j->in[i], .kind = "input"});
  for (size_t i = 0; i < g->initializers.n; i++) {
    const onnx_tensor *t = g->initializers.at[i];
    define(m, t->name, (importer_value){.v = weight(m, t), .kind = "initializer"});
  }
  for (size_t i = 0; i < g->nodes.n; i++) {
    add_node(m, j->node = &g->nodes.at[i]);
    check_sizes_stay(m, j->node);
  }
  j->node = NULL;
  for (size_t i = 0; i < g->outputs.n; i++) j->out[i] = find(m, g->outputs.at[i].name)->v;
}

void onnx_import_loop_body(onnx_call *c, const onnx_graph *g, const value in[], value out[]) {
  import *m = c->m;
  body_job j = {.m = m, .g = g, .in = in, .out = out};
  string_map own = m->values;
  vec_push(m->b.arena, &m->around, own);
  m->values = (string_map){0};
  tn_status s = diag_catch(m->b.diag, build_body, &j);
  m->around.n--;
  m->values = own;
  if (s == TN_OK) return;
  if (j.node && s != TN_ERR_MEMORY)
    diag_prefix(m->b.diag, "%.100s node '%.200s'", j.node->op_type, onnx_node_name(j.node));
  diag_rethrow(m->b.diag);
}

static void build(void *arg) {
  importing *k = arg;
  import *m = k->m;
  const onnx_graph *g = m->model->graph;
  add_leaves(k);
  for (size_t i = 0; i < g->nodes.n; i++) add_node(m, k->node = &g->nodes.at[i]);
  k->node = NULL;
  if (!g->outputs.n) diag_raise(m->b.diag, TN_ERR_UNSUPPORTED, "the graph has no outputs");
  for (size_t i = 0; i < g->outputs.n; i++) {
    const onnx_value *port = &g->outputs.at[i];
    const node *n = find(m, port->name)->v.node;
    check_rank(m, "output", port->name, n->rank, TN_MAX_RANK);
    vec_push(m->b.arena, &m->outputs, (importer_port){port, n});
  }
}

static void name_the_place(diag *d, const importing *k) {
  if (k->input) diag_prefix(d, "input '%.200s'", k->input->name);
  if (k->node) diag_prefix(d, "%.100s node '%.200s'", k->node->op_type, onnx_node_name(k->node));
}

static void add_inputs_sizes(import *m, const onnx_node *n) {
  for (size_t i = 0; i < n->inputs.n; i++) {
    const importer_value *x = string_map_get(&m->values, n->inputs.at[i]);
    for (size_t k = 0; x && k < x->v.node->rank; k++)
      vec_push(m->b.arena, &m->asked, x->v.node->dims[k]);
  }
}

static bool is_listed(const node_list *l, const node *n) {
  for (size_t i = 0; i < l->n; i++)
    if (l->at[i] == n) return true;
  return false;
}

/** One size that has to be larger. */
static bool name_the_least(import *m) {
  int64_t least;
  const node *var = m->b.needed ? size_lower_bound_var(m->b.needed, &least) : NULL;
  if (!var || least <= var->lo || least > var->hi) return false;
  const char *name = var_user_name(var->text);
  diag_set(m->b.diag, m->b.diag->status,
           "%.1500s ('%.60s' varies: the command's --size %.60s=%lld.., or a min of it in "
           "tn_model_desc.sizes, makes it large enough)",
           m->b.diag->text, name, name, (long long)least);
  return true;
}

/** Adds the sizes that vary and may be why a node is refused: of shapes that do not fit, those that
    the message names. */
static void name_the_sizes(import *m, const onnx_node *n) {
  enum { SHOWN = 4 };
  arena *a = m->b.arena;
  str list = str_new(a);
  size_t count = 0;
  if (name_the_least(m)) return;
  bool is_shape = m->b.diag->status == TN_ERR_SHAPE;
  if (is_shape) add_inputs_sizes(m, n);
  node_list all = topo_sort(a, m->asked.at, m->asked.n, NULL, NULL);
  node_list named = topo_sort(a, m->b.named.at, m->b.named.n, NULL, NULL);
  for (size_t i = 0; i < all.n; i++)
    if (all.at[i]->op == OP_VAR && (!is_shape || is_listed(&named, all.at[i])) && count++ < SHOWN)
      str_addf(&list, "%s'%.60s'", list.n ? ", " : "", var_user_name(all.at[i]->text));
  if (!count) return;
  if (count > SHOWN) str_addf(&list, " and %zu more", count - SHOWN);
  diag_set(m->b.diag, m->b.diag->status,
           "%.1500s (%s var%s: tn_model_desc.sizes, or the command's --size, can fix, bound or "
           "equate sizes)",
           m->b.diag->text, str_text(&list), count > 1 ? "y" : "ies");
}

/** With as many lines of a report as a message has room for beside a path and a label; there is
   room for the longest. */
static _Noreturn void refuse_model(const import *m, const str *report) {
  enum { ROOM = 1100 };
  const char *text = str_text(report);
  size_t shown = report->n, left = 0;
  if (shown > ROOM)
    for (shown = ROOM; text[shown - 1] != '\n';) shown--;
  for (size_t i = shown; i < report->n; i++) left += text[i] == '\n';
  if (left)
    diag_raise(m->b.diag, TN_ERR_UNSUPPORTED, "not supported:\n%.*sand %zu more", (int)shown, text,
               left);
  diag_raise(m->b.diag, TN_ERR_UNSUPPORTED, "not supported:\n%.*s", (int)shown - 1, text);
}

/** Turns argument errors of operations into errors of the file. */
void import_graph(import *m, const onnx_model *model) {
  str report = str_new(m->b.arena);
  report_unsupported_operators(model, &report);
  if (report.n) refuse_model(m, &report);
  m->model = model;
  m->opset = onnx_opset_of_domain(model, "");
  input_sizes_read(m);
  importing k = {.m = m};
  if (diag_catch(m->b.diag, build, &k) == TN_OK) return;
  tn_status s = m->b.diag->status;
  if (k.node && (s == TN_ERR_SHAPE || s == TN_ERR_UNSUPPORTED)) name_the_sizes(m, k.node);
  if (s != TN_ERR_MEMORY) name_the_place(m->b.diag, &k);
  if (m->b.diag->status == TN_ERR_ARGUMENT) m->b.diag->status = TN_ERR_FORMAT;
  diag_rethrow(m->b.diag);
}
