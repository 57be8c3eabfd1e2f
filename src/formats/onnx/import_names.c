/* Names of values in an import: a name resolves in its own graph first, then in the enclosing ones,
   of which a function sees none but its own. Names that are defined twice, that nothing defines, or
   whose value was left out, are errors. */
#include "formats/onnx/graph_import.h"

const char *onnx_node_name(const onnx_node *n) {
  return *n->name ? n->name : n->outputs.n ? n->outputs.at[0] : "";
}

void importer_define(import *m, const char *name, importer_value v) {
  string_map_set(m->b.arena, &m->values, name, arena_copy(m->b.arena, &v, sizeof v));
}

void importer_define_output(import *m, const char *name, value v, const onnx_node *producer) {
  const importer_value *other = string_map_get(&m->values, name);
  if (other && other->producer)
    diag_raise(m->b.diag, TN_ERR_FORMAT,
               "output '%.200s' is already defined by %.100s node '%.200s'", name,
               other->producer->op_type, onnx_node_name(other->producer));
  if (other)
    diag_raise(m->b.diag, TN_ERR_FORMAT, "output '%.200s' has the same name as an %s", name,
               other->kind);
  importer_define(m, name, (importer_value){.v = v, .producer = producer});
}

const importer_value *importer_find_value(import *m, const char *name) {
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

value importer_find_result(import *m, const char *name) {
  const importer_value *x = importer_find_value(m, name);
  if (!x->v.node)
    diag_raise(m->b.diag, TN_ERR_FORMAT, "'%.200s' is given, but is an input that is left out",
               name);
  return x->v;
}
