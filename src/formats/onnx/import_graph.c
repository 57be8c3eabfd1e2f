/* Importer of ONNX graphs: defines inputs and initializers as graph inputs, then calls each node's
   builder in the order of the file. A name resolves in its own graph first, then in the enclosing
   ones (bodies of loops). The nodes of the model's functions take the place of their calls. Reports
   all unsupported operators at once; every other error names its node or input, and suggests
   constraints where a varying size caused it. */
#include "formats/onnx/importer/importer.h"

#include "base/stop.h"
#include "base/str.h"
#include "formats/onnx/importer/input_sizes.h"
#include "formats/onnx/ops/op_table.h"
#include "ir/core/var_names.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/operators.h"

#include <string.h>

/** An import in progress, with the place that errors name. */
typedef struct graph_import {
  import *m;
  const onnx_node *node;   /* being imported; NULL: none */
  const onnx_value *input; /* being checked; NULL: none */
  bool restarts;           /* finding problems: bounds of a size were narrowed */
} graph_import;

static dtype check_dtype(import *m, int number, const char *kind, const char *name) {
  if (!dtype_is_data((dtype)number))
    diag_raise(m->b.diag, TN_ERR_UNSUPPORTED, "%s '%.200s' has type %s, which is not supported",
               kind, name, onnx_dtype_name(number) ? onnx_dtype_name(number) : "(unknown)");
  return (dtype)number;
}

/* Functions of the model. */

enum { CALLS_MAX = 64 };

/** The expansion of a function. */
typedef struct function_call {
  const onnx_function *f;
  const onnx_node *node; /* that calls it */
  size_t first_graph;    /* of the enclosing graphs that the function's nodes see */
  size_t depth;
  const struct function_call *caller;
} function_call;

static const onnx_attribute *find_attribute(const onnx_attribute *all, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++)
    if (!strcmp(all[i].name, name)) return &all[i];
  return NULL;
}

/** The attribute that a reference in a function stands for: that of the call, or a default; NULL if
    both leave it out. */
static const onnx_attribute *referred_attribute(const function_call *k, const char *name) {
  const onnx_attribute *a = find_attribute(k->node->attributes.at, k->node->attributes.n, name);
  return a ? a : find_attribute(k->f->defaults.at, k->f->defaults.n, name);
}

/** The node with the attributes that its references stand for. */
static const onnx_node *resolve_attributes(import *m, const onnx_node *n) {
  bool refers = false;
  for (size_t i = 0; i < n->attributes.n; i++) refers |= *n->attributes.at[i].ref_name != 0;
  if (!m->call || !refers) return n;
  onnx_node *copy = arena_copy(m->b.arena, n, sizeof *n);
  memset(&copy->attributes, 0, sizeof copy->attributes);
  for (size_t i = 0; i < n->attributes.n; i++) {
    onnx_attribute a = n->attributes.at[i];
    if (*a.ref_name) {
      const onnx_attribute *referred = referred_attribute(m->call, a.ref_name);
      if (!referred) continue;
      const char *name = a.name;
      a = *referred;
      a.name = name;
    }
    vec_push(m->b.arena, &copy->attributes, a);
  }
  return copy;
}

/* Names and values. */

const char *onnx_node_name(const onnx_node *n) {
  return *n->name ? n->name : n->outputs.n ? n->outputs.at[0] : "";
}

static void define_value(import *m, const char *name, importer_value v) {
  string_map_set(m->b.arena, &m->values, name, arena_copy(m->b.arena, &v, sizeof v));
}

static void define_output(import *m, const char *name, value v, const onnx_node *producer) {
  const importer_value *other = string_map_get(&m->values, name);
  if (other && other->producer)
    diag_raise(m->b.diag, TN_ERR_FORMAT,
               "output '%.200s' is already defined by %.100s node '%.200s'", name,
               other->producer->op_type, onnx_node_name(other->producer));
  if (other)
    diag_raise(m->b.diag, TN_ERR_FORMAT, "output '%.200s' has the same name as an %s", name,
               other->kind);
  define_value(m, name, (importer_value){.v = v, .producer = producer});
}

static const importer_value *find_value(import *m, const char *name) {
  const importer_value *x = string_map_get(&m->values, name);
  size_t first = m->call ? m->call->first_graph : 0;
  for (size_t i = m->enclosing.n; !x && i-- > first;) x = string_map_get(&m->enclosing.at[i], name);
  if (x && x->is_left_out) {
    m->meets_problem = true;
    diag_raise(m->b.diag, TN_ERR_UNSUPPORTED, "'%.200s' was left out", name);
  }
  if (!x)
    diag_raise(
        m->b.diag, TN_ERR_FORMAT,
        "no input, initializer or earlier node gives '%.200s'; nodes must be in topological order",
        name);
  if (!x->v.node && x->producer)
    diag_raise(m->b.diag, TN_ERR_UNSUPPORTED,
               "'%.200s' is used, but is an unsupported output of %.100s node '%.200s'", name,
               x->producer->op_type, onnx_node_name(x->producer));
  return x;
}

/** A value that a graph or function gives; raises if there is none. */
static value find_result(import *m, const char *name) {
  const importer_value *x = find_value(m, name);
  if (!x->v.node)
    diag_raise(m->b.diag, TN_ERR_FORMAT, "'%.200s' is given, but is an input that is left out",
               name);
  return x->v;
}

/* Graph inputs: weights and inputs. */

/** Operators add up to two axes to those of their operands. */
enum { WEIGHT_RANK_MAX = SIZES_MAX_RANK - 2 };

static void check_rank(import *m, const char *kind, const char *name, size_t rank, size_t most) {
  if (rank > most)
    diag_raise(m->b.diag, TN_ERR_UNSUPPORTED,
               "%s '%.200s' has %zu dimensions; at most %zu are supported", kind, name, rank, most);
}

/** Raises if the number of elements overflows 64 bits. Axes of size 0 are left out, because strides
    are products of the other sizes. */
static void check_element_count(import *m, const node *n) {
  const node *count = ix_const(m->b.ir, 1);
  for (size_t i = 0; i < n->rank; i++)
    if (!node_is_bits(n->dims[i], 0)) count = ix_mul(m->b.ir, count, n->dims[i]);
}

/** Finds the BUFFER of an earlier weight over the same bytes of the file (tied weights); NULL:
 * none.
 */
static const node *find_tied_weight(const import *m, const onnx_tensor *t, dtype type,
                                    const node *const dims[]) {
  const node *n = t->bytes ? map_get(&m->weights_by_data, t->data) : NULL;
  bool is_same = n && n->dtype == type && n->rank == t->dims.n;
  for (size_t i = 0; i < t->dims.n && is_same; i++) is_same = n->dims[i] == dims[i];
  return is_same ? n : NULL;
}

/** Imports a constant tensor: a scalar as a CONST, so that rules can fold it, others as weights. */
void importer_load_tensor(const import *m, const onnx_tensor *t) {
  if (onnx_tensor_load(m->model, t, m->b.diag) != TN_OK) diag_rethrow(m->b.diag);
}

static value import_constant(import *m, const onnx_tensor *t);

/** Raises unless the indices of a sparse tensor are inside of it. */
static void check_indices(import *m, const onnx_tensor *t) {
  size_t columns = t->indices->dims.n == 2 ? t->dims.n : 1;
  importer_load_tensor(m, t->indices);
  for (size_t i = 0; i < t->indices->elements; i++) {
    int64_t at = (int64_t)scalar_load(DT_I64, (const char *)t->indices->data + 8 * i);
    int64_t size = columns > 1 || t->dims.n == 1 ? t->dims.at[i % columns] : (int64_t)t->elements;
    if (at < 0 || at >= size)
      diag_raise(m->b.diag, TN_ERR_FORMAT,
                 "sparse tensor '%.200s': index %zu is %lld; it must be from 0 to %lld", t->name, i,
                 (long long)at, (long long)size - 1);
  }
}

/** Zeros with the values of a sparse tensor written at their places: dense once, as constants are.
 */
static value import_sparse(import *m, const onnx_tensor *t) {
  builder *b = &m->b;
  dtype type = check_dtype(m, (int)t->dtype, "constant", t->name);
  check_rank(m, "constant", t->name, t->dims.n, TN_MAX_RANK);
  sizes dense = {.rank = t->dims.n}, flat = {1, {ix_const(b->ir, (int64_t)t->elements)}};
  for (size_t i = 0; i < t->dims.n; i++) dense.at[i] = ix_const(b->ir, t->dims.at[i]);
  check_indices(m, t);
  value at = import_constant(m, t->indices), values = import_constant(m, t->values);
  bool is_linear = t->indices->dims.n == 1;
  if (is_linear) {
    sizes column = {2, {at.node->dims[0], ix_const(b->ir, 1)}};
    at = build_reshape(b, at, &column);
  }
  value zeros =
      build_expand(b, value_of(ir_const_bits(b->ir, type, 0)), is_linear ? &flat : &dense);
  value y = build_scatter_nd(b, zeros, at, values, OP_SET);
  return is_linear ? build_reshape(b, y, &dense) : y;
}

static value import_constant(import *m, const onnx_tensor *t) {
  if (t->values) return import_sparse(m, t);
  arena *a = m->b.arena;
  if (t->dtype == ONNX_STRING) return importer_add_strings(m, importer_string_constant(m, t).node);
  dtype type = check_dtype(m, (int)t->dtype, "constant", t->name);
  check_rank(m, "constant", t->name, t->dims.n, WEIGHT_RANK_MAX);
  if (!t->dims.n) importer_load_tensor(m, t);
  if (!t->dims.n) return (value){ir_const_bits(m->b.ir, type, scalar_load(type, t->data)), WEAK_NO};
  const node **dims = arena_alloc(a, t->dims.n * sizeof *dims);
  for (size_t i = 0; i < t->dims.n; i++) dims[i] = ix_const(m->b.ir, t->dims.at[i]);
  const node *n = find_tied_weight(m, t, type, dims);
  if (n) return (value){n, WEAK_NO};
  n = m->callbacks.weight(m->callbacks.user, t, type, t->dims.n, dims);
  map_set(a, &m->weights, n, (void *)t);
  if (t->bytes) map_set(a, &m->weights_by_data, t->data, (void *)n);
  return (value){n, WEAK_NO};
}

value onnx_constant_tensor(onnx_call *c, const onnx_tensor *t) { return import_constant(c->m, t); }

value onnx_computed_tensor(onnx_call *c, dtype t, const void *data, size_t rows, size_t columns) {
  arena *a = c->m->b.arena;
  size_t n = columns ? rows * columns : rows;
  onnx_tensor made = {.name = "",
                      .dtype = (onnx_dtype)t,
                      .elements = n,
                      .bytes = n * dtype_bytes(t),
                      .data = data,
                      .is_computed = true};
  vec_push(a, &made.dims, (int64_t)rows);
  if (columns) vec_push(a, &made.dims, (int64_t)columns);
  return import_constant(c->m, arena_copy(a, &made, sizeof made));
}

/** The value that is given to an input; NULL: it is unknown before a run. */
static const onnx_tensor *find_given(const import *m, const char *name) {
  for (size_t i = 0; i < m->n_given; i++)
    if (!strcmp(m->given[i].name, name)) return &m->given[i];
  return NULL;
}

static const int64_t *find_given_sizes(const import *m, const char *name) {
  for (const importer_sizes *s = m->given_sizes; s && s->name; s++)
    if (!strcmp(s->name, name)) return s->size;
  return NULL;
}

static void add_input(graph_import *k, const onnx_value *v) {
  import *m = k->m;
  bool is_other = v->type.kind != ONNX_TYPE_TENSOR && v->type.kind != ONNX_TYPE_NONE;
  if (is_other)
    diag_raise(
        m->b.diag, TN_ERR_UNSUPPORTED,
        "input '%.200s' is a sequence, an optional value or a map; of a sequence, say how many "
        "tensors it has when the model is loaded (tn_model_desc.lists)",
        v->name);
  if (v->type.kind != ONNX_TYPE_TENSOR || !v->type.has_shape)
    diag_raise(m->b.diag, TN_ERR_UNSUPPORTED,
               "input '%.200s' is not a tensor of known rank; export the model with the shapes of "
               "its inputs, naming sizes that vary",
               v->name);
  size_t rank = v->type.dims.n;
  check_rank(m, "input", v->name, rank, TN_MAX_RANK);
  const node **dims = arena_alloc(m->b.arena, (rank + 1) * sizeof *dims);
  const int64_t *sizes = find_given_sizes(m, v->name);
  for (size_t axis = 0; axis < rank; axis++)
    dims[axis] = sizes ? ix_const(m->b.ir, sizes[axis]) : input_sizes_axis(m, v, axis);
  bool is_string = v->type.dtype == ONNX_STRING;
  dtype t = is_string ? DT_I64 : check_dtype(m, v->type.dtype, "input", v->name);
  const node *n = m->callbacks.input(m->callbacks.user, v->name, t, rank, dims);
  vec_push(m->b.arena, &m->inputs, ((importer_port){v, n, is_string}));
  const onnx_tensor *given = find_given(m, v->name);
  value known = given ? import_constant(m, given) : (value){n, WEAK_NO};
  if (is_string) known = importer_add_strings(m, known.node);
  define_value(m, v->name, (importer_value){.v = known, .kind = "input"});
  k->input = v;
  check_element_count(m, n);
  k->input = NULL;
}

static void check_names_differ(import *m, const onnx_values *list, const char *kind) {
  string_map seen = {0};
  for (size_t i = 0; i < list->n; i++) {
    const onnx_value *v = &list->at[i], *other = string_map_get(&seen, v->name);
    if (other)
      diag_raise(m->b.diag, TN_ERR_FORMAT, "%s %zu and %zu are both named '%.200s'", kind,
                 (size_t)(other - list->at), i, v->name);
    string_map_set(m->b.arena, &seen, v->name, (void *)v);
  }
}

static void add_initializer(import *m, const onnx_tensor *t) {
  define_value(m, t->name, (importer_value){.v = import_constant(m, t), .kind = "initializer"});
}

static void add_initializers(import *m, const onnx_graph *g) {
  for (size_t i = 0; i < g->initializers.n; i++) add_initializer(m, g->initializers.at[i]);
}

/** Defines an input that is a map, of the inputs that its parts are. */
static void add_map_input(import *m, const onnx_map_input *map) {
  const importer_value *keys = string_map_get(&m->values, map->keys),
                       *values = string_map_get(&m->values, map->values);
  value both[2] = {keys->v, values->v};
  define_value(m, map->name, (importer_value){.v = importer_add_map(m, both), .kind = "input"});
}

/** Before IR version 4 each initializer is also an input, with a default value; such inputs are
   left out. */
static void add_graph_inputs(graph_import *k) {
  import *m = k->m;
  const onnx_graph *g = m->model->graph;
  check_names_differ(m, &g->inputs, "inputs");
  check_names_differ(m, &g->outputs, "outputs");
  add_initializers(m, g);
  for (size_t i = 0; i < g->inputs.n; i++)
    if (!string_map_get(&m->values, g->inputs.at[i].name)) add_input(k, &g->inputs.at[i]);
  for (size_t i = 0; i < g->maps.n; i++) add_map_input(m, &g->maps.at[i]);
}

/* Nodes. */

/** The number of inputs that an operator takes: "2", "1 to 3", "1 or more". */
static const char *input_count_text(const onnx_call *c, const onnx_op *row) {
  arena *a = c->m->b.arena;
  if (row->min_inputs == row->max_inputs) return arena_printf(a, "%u", row->min_inputs);
  if (row->max_inputs == UINT16_MAX) return arena_printf(a, "%u or more", row->min_inputs);
  return arena_printf(a, "%u to %u", row->min_inputs, row->max_inputs);
}

static void check_node(const onnx_call *c, const onnx_op *row) {
  const onnx_node *n = c->node;
  for (size_t i = 0; i < n->attributes.n; i++)
    if (!op_table_has_attribute(row, n->attributes.at[i].name))
      onnx_fail(c, TN_ERR_UNSUPPORTED, "unknown attribute '%.100s'", n->attributes.at[i].name);
  size_t length;
  const char *missing = op_table_missing_attribute(row, c->version, n, &length);
  if (missing)
    onnx_fail(c, TN_ERR_FORMAT, "required attribute '%.*s' is missing", (int)length, missing);
  if (c->n_inputs < row->min_inputs || c->n_inputs > row->max_inputs)
    onnx_fail(c, TN_ERR_FORMAT, "expected %s input%s, got %zu", input_count_text(c, row),
              row->max_inputs == 1 ? "" : "s", c->n_inputs);
  if (c->n_outputs > row->max_outputs)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "output '%.100s' is not supported",
              n->outputs.at[row->max_outputs]);
}

/** Clears the record of the elements that the node before read. */
static void reset_queries(import *m) {
  m->sizes_used.n = m->deciding.n = 0;
  m->uses_data = false;
  m->b.needed = NULL;
  m->b.named = (named_sizes){0};
}

static void call_function(import *m, const onnx_function *f, const onnx_node *n, const value in[],
                          value out[]);

static onnx_call call_of(import *m, const onnx_node *n) {
  const onnx_op *row = op_table_find(n->domain, n->op_type);
  int64_t opset = onnx_opset_of_domain(m->opsets, n->domain);
  return (onnx_call){.m = m,
                     .node = n,
                     .version = row ? op_table_version(row, opset) : 0,
                     .n_inputs = n->inputs.n,
                     .n_outputs = n->outputs.n};
}

/** Builds an operator. */
static void build_operator(import *m, const onnx_node *n, const value in[], value out[]) {
  const onnx_op *row = op_table_find(n->domain, n->op_type);
  onnx_call c = call_of(m, n);
  c.inputs = in;
  c.outputs = out;
  check_node(&c, row);
  reset_queries(m);
  if (!onnx_build_on_strings(&c, row)) row->build(&c);
}

/** The outputs that a node's operator may set: all that it has, also those that the node leaves
   out. A variable number is the node's. */
static size_t outputs_set(const onnx_node *n) {
  const onnx_op *row = op_table_find(n->domain, n->op_type);
  bool has_more = row && row->max_outputs != UINT16_MAX && row->max_outputs > n->outputs.n;
  return has_more ? row->max_outputs : n->outputs.n;
}

/** The outputs of an operator, or of a call of a function. */
static value *build_node(import *m, const onnx_node *n, const value in[]) {
  const onnx_function *f = onnx_function_of_node(m->model, n);
  value *out = arena_calloc(m->b.arena, (f ? n->outputs.n : outputs_set(n)) + 1, sizeof *out);
  if (f)
    call_function(m, f, n, in, out);
  else
    build_operator(m, n, in, out);
  return out;
}

static void add_node(import *m, const onnx_node *written) {
  const onnx_node *n = resolve_attributes(m, written);
  const char *reason = onnx_unsupported_reason(m->model, m->opsets, n); /* of a branch */
  if (reason) diag_raise(m->b.diag, TN_ERR_UNSUPPORTED, "%s", reason);
  value *in = arena_calloc(m->b.arena, n->inputs.n + 1, sizeof *in);
  for (size_t i = 0; i < n->inputs.n; i++)
    if (*n->inputs.at[i]) in[i] = find_value(m, n->inputs.at[i])->v;
  const value *out = build_node(m, n, in);
  for (size_t i = 0; i < n->outputs.n; i++) {
    if (out[i].node) check_element_count(m, out[i].node);
    if (*n->outputs.at[i]) define_output(m, n->outputs.at[i], out[i], n);
  }
}

/* Nodes that are built once more. */

const importer_value *onnx_named_value(onnx_call *c, const char *name) {
  return find_value(c->m, name);
}

const value *onnx_build_node(onnx_call *c, const onnx_node *n, const value in[]) {
  return build_node(c->m, n, in);
}

onnx_call onnx_call_of(onnx_call *c, const onnx_node *n) { return call_of(c->m, n); }

/* Bodies of loops, and branches. */

/** The import of a body. */
typedef struct body_import {
  import *m;
  const onnx_graph *g;
  const value *in;
  value *out;
  const onnx_node *node; /* being imported; NULL: none */
} body_import;

/** Raises if an output's size depends on the loop's index: a plan has one size for all iterations.
 */
static void check_sizes_invariant(import *m, const onnx_node *n) {
  for (size_t i = 0; i < n->outputs.n; i++) {
    const importer_value *x =
        *n->outputs.at[i] ? string_map_get(&m->values, n->outputs.at[i]) : NULL;
    for (size_t k = 0; x && x->v.node && k < x->v.node->rank; k++)
      if (build_depends_on_loop(&m->b, x->v.node->dims[k]))
        diag_raise(
            m->b.diag, TN_ERR_UNSUPPORTED,
            "output '%.200s' changes its size between loop iterations, which is not supported",
            n->outputs.at[i]);
  }
}

static void import_body(void *arg) {
  body_import *j = arg;
  import *m = j->m;
  const onnx_graph *g = j->g;
  check_names_differ(m, &g->inputs, "inputs");
  for (size_t i = 0; i < g->inputs.n; i++)
    define_value(m, g->inputs.at[i].name, (importer_value){.v = j->in[i], .kind = "input"});
  add_initializers(m, g);
  for (size_t i = 0; i < g->nodes.n; i++) {
    add_node(m, j->node = &g->nodes.at[i]);
    check_sizes_invariant(m, j->node);
  }
  j->node = NULL;
  for (size_t i = 0; i < g->outputs.n; i++) j->out[i] = find_result(m, g->outputs.at[i].name);
}

void onnx_import_branch(onnx_call *c, const onnx_graph *g, const value in[], value out[]) {
  import *m = c->m;
  body_import j = {.m = m, .g = g, .in = in, .out = out};
  string_map outer = m->values;
  vec_push(m->b.arena, &m->enclosing, outer);
  m->values = (string_map){0};
  tn_status s = diag_catch(m->b.diag, import_body, &j);
  m->enclosing.n--;
  m->values = outer;
  if (s == TN_OK) return;
  if (j.node && s != TN_ERR_MEMORY)
    diag_prefix(m->b.diag, "%.100s node '%.200s'", j.node->op_type, onnx_node_name(j.node));
  diag_rethrow(m->b.diag);
}

void onnx_import_body(onnx_call *c, const onnx_graph *g, const value in[], value out[]) {
  onnx_import_branch(c, g, in, out);
  for (size_t i = 0; i < g->outputs.n; i++)
    if (importer_find_sequence(c->m, out[i]) || importer_find_strings(c->m, out[i]))
      onnx_fail(c, TN_ERR_UNSUPPORTED, "output '%.200s' of the body is a sequence, or of strings",
                g->outputs.at[i].name);
}

/* Calls of functions. */

/** The import of a function's nodes. */
typedef struct function_import {
  import *m;
  const function_call *call;
  const value *in;
  value *out;
  const onnx_node *node; /* being imported; NULL: none */
} function_import;

static void import_function(void *arg) {
  function_import *j = arg;
  import *m = j->m;
  const onnx_function *f = j->call->f;
  for (size_t i = 0; i < f->inputs.n; i++) {
    value v = i < j->call->node->inputs.n ? j->in[i] : (value){0};
    define_value(m, f->inputs.at[i],
                 (importer_value){.v = v, .kind = v.node ? "input" : ONNX_ABSENT});
  }
  for (size_t i = 0; i < f->nodes.n; i++) add_node(m, j->node = &f->nodes.at[i]);
  j->node = NULL;
  for (size_t i = 0; i < j->call->node->outputs.n; i++)
    if (*j->call->node->outputs.at[i]) j->out[i] = find_result(m, f->outputs.at[i]);
}

static void check_call(import *m, const onnx_function *f, const onnx_node *n, size_t depth) {
  if (n->inputs.n > f->inputs.n || n->outputs.n > f->outputs.n)
    diag_raise(m->b.diag, TN_ERR_FORMAT,
               "the call has %zu inputs and %zu outputs, but the function %zu and %zu", n->inputs.n,
               n->outputs.n, f->inputs.n, f->outputs.n);
  if (depth > CALLS_MAX)
    diag_raise(m->b.diag, TN_ERR_FORMAT, "functions call each other deeper than %d", CALLS_MAX);
}

/** Imports the nodes of a function in place of a node that calls it. They see its inputs alone, and
    have operator sets of their own. */
static void call_function(import *m, const onnx_function *f, const onnx_node *n, const value in[],
                          value out[]) {
  function_call call = {.f = f,
                        .node = n,
                        .first_graph = m->enclosing.n + 1,
                        .depth = m->call ? m->call->depth + 1 : 1,
                        .caller = m->call};
  function_import j = {.m = m, .call = &call, .in = in, .out = out};
  string_map outer = m->values;
  const onnx_opsets *opsets = m->opsets;
  check_call(m, f, n, call.depth);
  vec_push(m->b.arena, &m->enclosing, outer);
  m->values = (string_map){0};
  m->call = &call;
  m->opsets = &f->opsets;
  tn_status s = diag_catch(m->b.diag, import_function, &j);
  m->enclosing.n--;
  m->values = outer;
  m->call = call.caller;
  m->opsets = opsets;
  if (s == TN_OK) return;
  if (j.node && s != TN_ERR_MEMORY)
    diag_prefix(m->b.diag, "%.100s node '%.200s'", j.node->op_type, onnx_node_name(j.node));
  diag_rethrow(m->b.diag);
}

/** True if a name has a value that can be an output. */
static bool is_tensor(const import *m, const char *name) {
  const importer_value *x = string_map_get(&m->values, name);
  return !x || (x->v.node && !importer_find_sequence(m, x->v) && x->v.node->rank <= TN_MAX_RANK);
}

static void add_tensor_output(import *m, const onnx_value *port, value v) {
  const node *numbers = importer_find_strings(m, v), *n = numbers ? numbers : v.node;
  check_rank(m, "output", port->name, n->rank, TN_MAX_RANK);
  vec_push(m->b.arena, &m->outputs, ((importer_port){port, n, numbers != NULL}));
}

/** Adds the tensors of a sequence "y" as the outputs "y[0]" …; of an absent value none. */
static void add_list_output(graph_import *k, const onnx_value *port, const importer_sequence *s) {
  import *m = k->m;
  arena *a = m->b.arena;
  if (m->n_given || m->given_sizes)
    diag_raise(m->b.diag, TN_ERR_UNSUPPORTED,
               "output '%.200s' is a sequence or an absent optional value; give the values that "
               "decide on it when the model is loaded (tn_model_desc.values)",
               port->name);
  vec_push(a, &m->lists, ((importer_list){port->name, s->is_absent ? -1 : (int64_t)s->n}));
  for (size_t i = 0; i < s->n; i++) {
    onnx_value element = {.name = arena_printf(a, "%s[%zu]", port->name, i)};
    add_tensor_output(m, arena_copy(a, &element, sizeof element), s->at[i]);
  }
}

/** Adds an output of the main graph. */
static void add_output(graph_import *k, const onnx_value *port) {
  import *m = k->m;
  if (!string_map_get(&m->values, port->name))
    diag_raise(m->b.diag, TN_ERR_FORMAT, "no node makes output '%.200s'", port->name);
  value v = find_result(m, port->name);
  const importer_sequence *s = importer_find_sequence(m, v);
  if (s && s->is_map)
    diag_raise(m->b.diag, TN_ERR_UNSUPPORTED, "output '%.200s' is a map", port->name);
  if (s)
    add_list_output(k, port, s);
  else
    add_tensor_output(m, port, v);
}

static void import_main_graph(void *arg) {
  graph_import *k = arg;
  import *m = k->m;
  const onnx_graph *g = m->model->graph;
  add_graph_inputs(k);
  for (size_t i = 0; i < g->nodes.n; i++) add_node(m, k->node = &g->nodes.at[i]);
  k->node = NULL;
  if (!g->outputs.n) diag_raise(m->b.diag, TN_ERR_UNSUPPORTED, "the graph has no outputs");
  for (size_t i = 0; i < g->outputs.n; i++) {
    const onnx_value *port = &g->outputs.at[i];
    if (m->leaves_out_sequences && !is_tensor(m, port->name)) continue;
    add_output(k, port);
  }
}

/* Suggestions in errors about varying sizes. */

static void add_input_sizes(import *m, const onnx_node *n) {
  for (size_t i = 0; i < n->inputs.n; i++) {
    const importer_value *x = string_map_get(&m->values, n->inputs.at[i]);
    for (size_t k = 0; x && x->v.node && k < x->v.node->rank; k++)
      vec_push(m->b.arena, &m->sizes_used, x->v.node->dims[k]);
  }
}

/** The place of size constraints in the library, for callers that do not name their own. */
static const char *place_of_sizes(const import *m) {
  return m->is_told ? "" : " in tn_model_desc.sizes";
}

/** Appends the bound of a size that would avoid the error; false if there is none. */
static bool suggest_bound(import *m) {
  int64_t bound;
  const node *needed = m->b.needed, *var = needed ? size_lower_bound_var(needed, &bound) : NULL;
  bool is_least = var;
  if (needed && !var) var = size_upper_bound_var(needed, &bound);
  if (!var || (is_least && bound <= var->lo) || (!is_least && bound >= var->hi) ||
      bound < var->lo || bound > var->hi)
    return false;
  diag_set(m->b.diag, m->b.diag->status, "%.1500s ('%.60s' varies; give it a %s of %lld%s)",
           m->b.diag->text, var_user_name(var->text), is_least ? "min" : "max", (long long)bound,
           place_of_sizes(m));
  return true;
}

/** Appends the varying sizes that may have caused the error, and how to constrain them: for shape
    errors, those that the message names. False if there are none. */
static bool suggest_size_constraints(import *m, const onnx_node *n) {
  enum { SHOWN = 4 };
  arena *a = m->b.arena;
  str list = str_new(a);
  size_t count = 0;
  if (suggest_bound(m)) return true;
  bool is_shape = m->b.diag->status == TN_ERR_SHAPE;
  if (is_shape) add_input_sizes(m, n);
  node_list all = topo_sort(a, m->sizes_used.at, m->sizes_used.n, NULL, NULL);
  const named_sizes *k = &m->b.named;
  node_list named = k->single.n ? topo_sort(a, k->single.at, k->single.n, NULL, NULL)
                                : topo_sort(a, k->of_shapes.at, k->of_shapes.n, NULL, NULL);
  for (size_t i = 0; i < all.n; i++)
    if (all.at[i]->op == OP_VAR && (!is_shape || nodes_contain(named.at, named.n, all.at[i])) &&
        count++ < SHOWN)
      str_addf(&list, "%s'%.60s'", list.n ? ", " : "", var_user_name(all.at[i]->text));
  if (!count) return false;
  if (count > SHOWN) str_addf(&list, " and %zu more", count - SHOWN);
  diag_set(m->b.diag, m->b.diag->status, "%.1500s (%s var%s; fix, bound or equate sizes%s)",
           m->b.diag->text, str_text(&list), count > 1 ? "y" : "ies", place_of_sizes(m));
  return true;
}

/** Raises with the report, cut so that a path and a label still fit: behind a whole line, unless
   the first one alone is too long. */
static _Noreturn void fail_unsupported(const import *m, const str *report) {
  enum { ROOM = 1100 };
  const char *text = str_text(report);
  size_t all = report->n - 1, shown = all, left = 0; /* without the last line's end */
  if (shown > ROOM)
    for (shown = ROOM; shown && text[shown] != '\n';) shown--;
  if (!shown) shown = ROOM;
  for (size_t i = shown; i < all; i++) left += text[i] == '\n';
  if (left)
    diag_raise(m->b.diag, TN_ERR_UNSUPPORTED, "not supported:\n%.*s\nand %zu more", (int)shown,
               text, left);
  diag_raise(m->b.diag, TN_ERR_UNSUPPORTED, "not supported:\n%.*s", (int)shown, text);
}

/** Forgets all but the weights, which are for each import of the file. */
static void reset_import(import *m) {
  m->values = m->sizes = (string_map){0};
  m->axes = m->nonzero = m->sequences = m->strings = (map){0};
  m->enclosing.n = m->inputs.n = m->outputs.n = m->lists.n = 0;
  m->call = NULL;
  m->opsets = &m->model->opsets;
  reset_queries(m);
}

/** Raises the minimum, or lowers the maximum, of the size that the operator which failed needs to
   be larger or smaller. */
static bool fit_bounds(import *m, const graph_import *k) {
  tn_status s = m->b.diag->status;
  int64_t bound;
  if (!k->node || !m->b.needed || (s != TN_ERR_SHAPE && s != TN_ERR_UNSUPPORTED)) return false;
  const node *var = size_lower_bound_var(m->b.needed, &bound);
  if (var) return input_sizes_raise_minimum(m, var, bound);
  var = size_upper_bound_var(m->b.needed, &bound);
  return var && input_sizes_lower_maximum(m, var, bound);
}

/** Imports the graph, again with narrower bounds of sizes as long as operators need them. */
static tn_status import_with_needed_sizes(graph_import *k) {
  import *m = k->m;
  for (;;) {
    *k = (graph_import){.m = m};
    input_sizes_read(m);
    if (diag_catch(m->b.diag, import_main_graph, k) == TN_OK) return TN_OK;
    if (!fit_bounds(m, k)) return m->b.diag->status;
    diag_clear(m->b.diag);
    reset_import(m);
  }
}

static void import_separated(void *arg) {
  graph_import *k = arg;
  if (import_with_needed_sizes(k) != TN_OK) diag_rethrow(k->m->b.diag);
}

/** Imports the graph with sizes of their own where dimensions have a name in common: exporters name
    alike what merely was equal. False: the nodes need equal sizes, or there is another failure. */
static bool import_with_separate_sizes(import *m) {
  graph_import k = {.m = m};
  diag *d = m->b.diag;
  if (!input_sizes_share_names(m)) return false;
  m->separates_names = true;
  if (diag_catch(d, import_separated, &k) == TN_OK) return true;
  if (stops_work(d->status)) diag_rethrow(d);
  diag_clear(d);
  m->separates_names = false;
  input_sizes_forget_bounds(m);
  reset_import(m);
  return false;
}

bool importer_lacks_values(const import *m) {
  return m->b.diag->status == TN_ERR_UNSUPPORTED && m->deciding.n && !m->uses_data;
}

void import_graph(import *m, const onnx_model *model) {
  arena *a = m->b.arena;
  str report = str_new(a);
  const importer_problems problems = list_unsupported_operators(model, a);
  for (size_t i = 0; i < problems.n; i++)
    str_addf(&report, "%s\n", importer_problem_text(a, &problems.at[i]));
  if (report.n) fail_unsupported(m, &report);
  m->model = model;
  m->opsets = &model->opsets;
  if (import_with_separate_sizes(m)) return;
  graph_import k = {.m = m};
  diag *d = m->b.diag;
  if (import_with_needed_sizes(&k) == TN_OK) return;
  if (k.node && (d->status == TN_ERR_SHAPE || d->status == TN_ERR_UNSUPPORTED))
    m->blames_sizes = suggest_size_constraints(m, k.node);
  if (k.input && d->status != TN_ERR_MEMORY) diag_prefix(d, "input '%.200s'", k.input->name);
  if (k.node && d->status != TN_ERR_MEMORY)
    diag_prefix(d, "%.100s node '%.200s'", k.node->op_type, onnx_node_name(k.node));
  if (d->status == TN_ERR_ARGUMENT)
    d->status = TN_ERR_FORMAT; /* an argument error of an operation */
  diag_rethrow(d);
}

/* Problems: whatever fails is left out, and so is what reads it. */

typedef enum problem_part {
  PART_NAMES,
  PART_WEIGHT,
  PART_INPUT,
  PART_NODE,
  PART_OUTPUT
} problem_part;

/** The import of one part of the main graph. */
typedef struct part_import {
  graph_import *k;
  problem_part part;
  const onnx_tensor *weight;
  const onnx_value *port;
  const onnx_node *node;
} part_import;

static void import_part(void *arg) {
  part_import *j = arg;
  import *m = j->k->m;
  const onnx_graph *g = m->model->graph;
  switch (j->part) {
  case PART_NAMES:
    check_names_differ(m, &g->inputs, "inputs");
    check_names_differ(m, &g->outputs, "outputs");
    if (!g->outputs.n) diag_raise(m->b.diag, TN_ERR_UNSUPPORTED, "the graph has no outputs");
    break;
  case PART_WEIGHT: add_initializer(m, j->weight); break;
  case PART_INPUT: add_input(j->k, j->port); break;
  case PART_NODE: add_node(m, j->node); break;
  case PART_OUTPUT: add_output(j->k, j->port); break;
  }
}

static void leave_out(import *m, const char *name) {
  if (*name && !string_map_get(&m->values, name))
    define_value(m, name, (importer_value){.kind = "input", .is_left_out = true});
}

/** The reason of a failure that is a problem of its own; NULL: the part reads what was left out, is
    listed with its operator, or waits for values of inputs. */
static const char *own_problem(import *m, const part_import *j) {
  bool is_of_operator = j->node && onnx_unsupported_reason(m->model, m->opsets, j->node);
  if (m->meets_problem || is_of_operator || (j->node && importer_lacks_values(m))) return NULL;
  bool may_be_sizes = m->b.diag->status == TN_ERR_SHAPE || m->b.diag->status == TN_ERR_UNSUPPORTED;
  if (j->node && may_be_sizes && suggest_size_constraints(m, j->node)) m->blames_sizes = true;
  const char *text = m->b.diag->text;
  return j->k->input ? arena_printf(m->b.arena, "input '%.200s': %s", j->k->input->name, text)
                     : arena_printf(m->b.arena, "%s", text);
}

/** The types that inputs and constants may have, if this one is none of them. */
static const char *supported_types(arena *a, int32_t number) {
  str s = str_new(a);
  if (number == ONNX_UNDEFINED || dtype_is_data((dtype)number)) return NULL;
  for (int i = ONNX_F32; i <= ONNX_F6E3M2; i++)
    if (dtype_is_data((dtype)i)) str_addf(&s, "%s%s", s.n ? ", " : "", onnx_dtype_name(i));
  return arena_printf(a, "types are %s", str_text(&s));
}

/** Imports a part of the main graph; notes the problem if it fails. */
static void try_part(graph_import *k, part_import j) {
  import *m = k->m;
  arena *a = m->b.arena;
  j.k = k;
  m->meets_problem = false;
  reset_queries(m);
  if (diag_catch(m->b.diag, import_part, &j) == TN_OK) return;
  if (stops_work(m->b.diag->status)) diag_rethrow(m->b.diag);
  k->node = j.node;
  if (j.node && fit_bounds(m, k)) { /* the graph is imported again */
    k->restarts = true;
    diag_rethrow(m->b.diag);
  }
  const char *reason = own_problem(m, &j);
  importer_problem p = {.reason = reason};
  bool is_tensor = j.port && j.port->type.kind == ONNX_TYPE_TENSOR;
  if (j.part == PART_INPUT && is_tensor) p.nearest = supported_types(a, j.port->type.dtype);
  if (j.weight) p.nearest = supported_types(a, j.weight->dtype);
  if (j.node && reason) p = importer_problem_of_node(a, m->opsets, j.node, reason);
  if (reason) vec_push(a, &m->problems, p);
  if (j.part == PART_INPUT) leave_out(m, j.port->name);
  if (j.weight) leave_out(m, j.weight->name);
  for (size_t i = 0; j.node && i < j.node->outputs.n; i++) leave_out(m, j.node->outputs.at[i]);
  k->input = NULL;
  diag_clear(m->b.diag);
}

static void import_parts(void *arg) {
  graph_import *k = arg;
  const onnx_graph *g = k->m->model->graph;
  input_sizes_read(k->m);
  try_part(k, (part_import){.part = PART_NAMES});
  for (size_t i = 0; i < g->initializers.n; i++)
    try_part(k, (part_import){.part = PART_WEIGHT, .weight = g->initializers.at[i]});
  for (size_t i = 0; i < g->inputs.n; i++)
    if (!string_map_get(&k->m->values, g->inputs.at[i].name))
      try_part(k, (part_import){.part = PART_INPUT, .port = &g->inputs.at[i]});
  for (size_t i = 0; i < g->nodes.n; i++)
    try_part(k, (part_import){.part = PART_NODE, .node = &g->nodes.at[i]});
  for (size_t i = 0; i < g->outputs.n; i++)
    try_part(k, (part_import){.part = PART_OUTPUT, .port = &g->outputs.at[i]});
}

/** Imports all parts, again with narrower bounds of sizes as long as operators need them. */
static void find_problems_of_parts(import *m, const importer_problems *of_operators) {
  graph_import k = {.m = m, .restarts = true};
  while (k.restarts) {
    k = (graph_import){.m = m};
    m->problems.n = 0;
    for (size_t i = 0; i < of_operators->n; i++)
      vec_push(m->b.arena, &m->problems, of_operators->at[i]);
    if (diag_catch(m->b.diag, import_parts, &k) == TN_OK) return;
    if (!k.restarts) diag_rethrow(m->b.diag);
    diag_clear(m->b.diag);
    reset_import(m);
  }
}

void import_find_problems(import *m, const onnx_model *model) {
  m->model = model;
  m->opsets = &model->opsets;
  const importer_problems operators = list_unsupported_operators(model, m->b.arena);
  m->separates_names = input_sizes_share_names(m);
  find_problems_of_parts(m, &operators);
  if (!m->separates_names || m->problems.n == operators.n) return;
  m->separates_names = false;
  input_sizes_forget_bounds(m);
  reset_import(m);
  find_problems_of_parts(m, &operators);
}
