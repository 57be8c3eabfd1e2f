/* Importer of ONNX graphs: defines inputs and initializers as graph inputs (import_ports.c), then
   calls each node's builder in the order of the file (import_nodes.c). Narrows the bounds of sizes
   as long as operators need it, and tells sizes of one name apart where the graph allows it.
   Reports all unsupported operators at once; every other error names its node or input, and
   suggests constraints where a varying size caused it. */
#include "formats/onnx/importer/importer.h"

#include "base/stop.h"
#include "formats/onnx/graph_import.h"
#include "formats/onnx/importer/input_sizes.h"
#include "tensor/ops/operators.h"

/** True if a name has a value that can be an output. */
static bool is_tensor(const import *m, const char *name) {
  const importer_value *x = string_map_get(&m->values, name);
  return !x || (x->v.node && !importer_find_sequence(m, x->v) && x->v.node->rank <= TN_MAX_RANK);
}

static void import_main_graph(void *arg) {
  graph_import *k = arg;
  import *m = k->m;
  const onnx_graph *g = m->model->graph;
  importer_add_graph_inputs(k);
  for (size_t i = 0; i < g->nodes.n; i++) importer_add_node(m, k->node = &g->nodes.at[i]);
  k->node = NULL;
  if (!g->outputs.n) diag_raise(m->b.diag, TN_ERR_UNSUPPORTED, "the graph has no outputs");
  for (size_t i = 0; i < g->outputs.n; i++) {
    const onnx_value *port = &g->outputs.at[i];
    if (m->leaves_out_sequences && !is_tensor(m, port->name)) continue;
    importer_add_output(k, port);
  }
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

void importer_reset(import *m) {
  m->values = m->sizes = (string_map){0};
  m->axes = m->nonzero = m->sequences = m->strings = (map){0};
  m->enclosing.n = m->inputs.n = m->outputs.n = m->lists.n = 0;
  m->graph = m->model->graph;
  m->call = NULL;
  m->opsets = &m->model->opsets;
  host_steps_clear(m->host);
  importer_reset_queries(m);
}

bool importer_fit_bounds(import *m, const graph_import *k) {
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
    if (!importer_fit_bounds(m, k)) return m->b.diag->status;
    diag_clear(m->b.diag);
    importer_reset(m);
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
  importer_reset(m);
  return false;
}

/** Imports the graph with separate sizes, else with those that have a name in common. */
static bool import_sizes(import *m, graph_import *k) {
  return import_with_separate_sizes(m) || import_with_needed_sizes(k) == TN_OK;
}

/** Imports the graph once more, with the host running the loops that a plan cannot, and then with
    runs importing their bodies; false: it did not help. */
static bool import_hosting_loops(import *m, graph_import *k) {
  while (m->refuses_loop && m->callbacks.loop && !importer_lacks_values(m)) {
    bool is_last = m->has_late_bodies || (m->hosts_loops && !m->may_have_late_bodies);
    if (is_last || stops_work(m->b.diag->status)) return false;
    diag_clear(m->b.diag);
    m->separates_names = false;
    input_sizes_forget_bounds(m);
    importer_reset(m);
    m->has_late_bodies = m->hosts_loops;
    m->hosts_loops = true;
    if (import_sizes(m, k)) return true;
  }
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
  m->graph = model->graph;
  m->opsets = &model->opsets;
  graph_import k = {.m = m};
  diag *d = m->b.diag;
  if (import_sizes(m, &k) || import_hosting_loops(m, &k)) return;
  if (k.node) importer_blame_sizes(m, k.node);
  m->failed = k.node;
  if (k.input && d->status != TN_ERR_MEMORY) diag_prefix(d, "input '%.200s'", k.input->name);
  if (k.node && d->status != TN_ERR_MEMORY)
    diag_prefix(d, "%.100s node '%.200s'", k.node->op_type, onnx_node_name(k.node));
  if (d->status == TN_ERR_ARGUMENT)
    d->status = TN_ERR_FORMAT; /* an argument error of an operation */
  diag_rethrow(d);
}

void import_inputs(import *m) {
  graph_import k = {.m = m};
  importer_reset(m);
  input_sizes_forget_bounds(m);
  m->separates_names = input_sizes_share_names(m);
  input_sizes_read(m);
  importer_add_graph_inputs(&k);
}
