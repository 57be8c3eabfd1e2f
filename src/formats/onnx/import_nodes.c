/* Nodes of graphs: each node's builder is called in the order of the file, on the values of its
   inputs. The nodes of a body see the values of the enclosing graphs; the nodes of the model's
   functions take the place of their calls. */
#include "formats/onnx/graph_import.h"

#include "formats/onnx/ops/op_table.h"
#include "tensor/ops/operators.h"

#include <string.h>

/* Attributes of the nodes of a function. */

static const onnx_attribute *find_attribute(const onnx_attributes *all, const char *name) {
  for (size_t i = 0; i < all->n; i++)
    if (!strcmp(all->at[i].name, name)) return &all->at[i];
  return NULL;
}

/** The attribute that a reference in a function stands for: that of the call, or a default; NULL if
    both leave it out. */
static const onnx_attribute *referred_attribute(const import *m, const char *name) {
  if (!m->call) return find_attribute(&m->model->graph->given, name);
  const onnx_attribute *a = find_attribute(&m->call->node->attributes, name);
  return a ? a : find_attribute(&m->call->f->defaults, name);
}

bool onnx_is_in_function(const onnx_call *c) {
  return c->m->call || c->m->model->graph->is_of_function;
}

static void add_attributes(arena *a, onnx_attributes *to, const onnx_attributes *from) {
  for (size_t i = 0; i < from->n; i++)
    if (!find_attribute(to, from->at[i].name)) vec_push(a, to, from->at[i]);
}

onnx_attributes onnx_function_attributes(const onnx_call *c, arena *a) {
  const import *m = c->m;
  onnx_attributes all = {0};
  add_attributes(a, &all, m->call ? &m->call->node->attributes : &m->model->graph->given);
  if (m->call) add_attributes(a, &all, &m->call->f->defaults);
  return all;
}

/** The node with the attributes that its references stand for. */
static const onnx_node *resolve_attributes(import *m, const onnx_node *n) {
  bool refers = false;
  for (size_t i = 0; i < n->attributes.n; i++) refers |= *n->attributes.at[i].ref_name != 0;
  bool is_in_function = m->call || m->model->graph->is_of_function;
  if (!is_in_function || !refers) return n;
  onnx_node *copy = arena_copy(m->b.arena, n, sizeof *n);
  memset(&copy->attributes, 0, sizeof copy->attributes);
  for (size_t i = 0; i < n->attributes.n; i++) {
    onnx_attribute a = n->attributes.at[i];
    if (*a.ref_name) {
      const onnx_attribute *referred = referred_attribute(m, a.ref_name);
      if (!referred) continue;
      const char *name = a.name;
      a = *referred;
      a.name = name;
    }
    vec_push(m->b.arena, &copy->attributes, a);
  }
  return copy;
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

void importer_reset_queries(import *m) {
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
  importer_reset_queries(m);
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

void importer_add_node(import *m, const onnx_node *written) {
  const onnx_node *n = resolve_attributes(m, written);
  const char *reason = onnx_unsupported_reason(m->model, m->opsets, n); /* of a branch */
  if (reason) diag_raise(m->b.diag, TN_ERR_UNSUPPORTED, "%s", reason);
  value *in = arena_calloc(m->b.arena, n->inputs.n + 1, sizeof *in);
  for (size_t i = 0; i < n->inputs.n; i++)
    if (*n->inputs.at[i]) in[i] = importer_find_value(m, n->inputs.at[i])->v;
  const value *out = build_node(m, n, in);
  for (size_t i = 0; i < n->outputs.n; i++) {
    if (out[i].node) importer_check_element_count(m, out[i].node);
    if (*n->outputs.at[i]) importer_define_output(m, n->outputs.at[i], out[i], n);
  }
}

/* Outputs that are read. */

/** The outputs of a node that names were compared with so far. */
typedef struct output_search {
  const onnx_names *outputs;
  bool *is_read;
} output_search;

static void note_read(void *user, const char *name) {
  const output_search *s = user;
  for (size_t i = 0; i < s->outputs->n; i++)
    s->is_read[i] |= *name && !strcmp(s->outputs->at[i], name);
}

void onnx_find_read_outputs(const onnx_call *c, bool is_read[]) {
  const import *m = c->m;
  const onnx_graph *g = m->graph;
  const onnx_nodes *nodes = g ? &g->nodes : &m->call->f->nodes;
  output_search s = {&c->node->outputs, is_read};
  memset(is_read, 0, c->n_outputs * sizeof *is_read);
  for (size_t i = 0; i < nodes->n; i++)
    onnx_node_for_names(m->b.arena, &nodes->at[i], note_read, &s);
  for (size_t i = 0; g && i < g->outputs.n; i++) note_read(&s, g->outputs.at[i].name);
  for (size_t i = 0; !g && i < m->call->f->outputs.n; i++) note_read(&s, m->call->f->outputs.at[i]);
}

/* Nodes that are built once more. */

const importer_value *onnx_named_value(onnx_call *c, const char *name) {
  return importer_find_value(c->m, name);
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
            "output '%.200s' changes its size between loop iterations, of which a plan has one",
            n->outputs.at[i]);
  }
}

static void import_body(void *arg) {
  body_import *j = arg;
  import *m = j->m;
  const onnx_graph *g = j->g;
  importer_check_names_differ(m, &g->inputs, "inputs");
  for (size_t i = 0; i < g->inputs.n; i++)
    importer_define(m, g->inputs.at[i].name, (importer_value){.v = j->in[i], .kind = "input"});
  importer_add_initializers(m, g);
  for (size_t i = 0; i < g->nodes.n; i++) {
    importer_add_node(m, j->node = &g->nodes.at[i]);
    check_sizes_invariant(m, j->node);
  }
  j->node = NULL;
  for (size_t i = 0; i < g->outputs.n; i++)
    j->out[i] = importer_find_result(m, g->outputs.at[i].name);
}

void onnx_import_branch(onnx_call *c, const onnx_graph *g, const value in[], value out[]) {
  import *m = c->m;
  body_import j = {.m = m, .g = g, .in = in, .out = out};
  string_map outer = m->values;
  const onnx_graph *graph = m->graph;
  vec_push(m->b.arena, &m->enclosing, outer);
  m->values = (string_map){0};
  m->graph = g;
  tn_status s = diag_catch(m->b.diag, import_body, &j);
  m->enclosing.n--;
  m->values = outer;
  m->graph = graph;
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

enum { CALLS_MAX = 64 };

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
    importer_define(m, f->inputs.at[i],
                    (importer_value){.v = v, .kind = v.node ? "input" : ONNX_ABSENT});
  }
  for (size_t i = 0; i < f->nodes.n; i++) importer_add_node(m, j->node = &f->nodes.at[i]);
  j->node = NULL;
  for (size_t i = 0; i < j->call->node->outputs.n; i++)
    if (*j->call->node->outputs.at[i]) j->out[i] = importer_find_result(m, f->outputs.at[i]);
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
  const onnx_graph *graph = m->graph;
  check_call(m, f, n, call.depth);
  vec_push(m->b.arena, &m->enclosing, outer);
  m->values = (string_map){0};
  m->graph = NULL;
  m->call = &call;
  m->opsets = &f->opsets;
  tn_status s = diag_catch(m->b.diag, import_function, &j);
  m->enclosing.n--;
  m->values = outer;
  m->graph = graph;
  m->call = call.caller;
  m->opsets = opsets;
  if (s == TN_OK) return;
  if (j.node && s != TN_ERR_MEMORY)
    diag_prefix(m->b.diag, "%.100s node '%.200s'", j.node->op_type, onnx_node_name(j.node));
  diag_rethrow(m->b.diag);
}
