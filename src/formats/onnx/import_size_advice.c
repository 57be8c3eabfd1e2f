/* Suggestions in errors about varying sizes: the bound of a size that an operator needs, or the
   sizes that may have caused the error. */
#include "formats/onnx/graph_import.h"

#include "ir/core/var_names.h"
#include "tensor/ops/operators.h"

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

bool importer_suggest_sizes(import *m, const onnx_node *n) {
  enum { SHOWN = 4 };
  arena *a = m->b.arena;
  str list = str_new(a);
  size_t count = 0;
  if ((m->has_bound = suggest_bound(m))) return true;
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

void importer_blame_sizes(import *m, const onnx_node *n) {
  tn_status s = m->b.diag->status;
  const node *needed = m->b.needed;
  const tn_failure plain = m->b.diag->failure;
  if (s != TN_ERR_SHAPE && s != TN_ERR_UNSUPPORTED) return;
  m->blames_sizes = importer_suggest_sizes(m, n);
  if (m->is_body) m->b.diag->failure = plain; /* nobody constrains its sizes */
  bool may_be_bounded = m->has_bound && !m->is_body;
  m->asks_exact_sizes = m->blames_sizes && !may_be_bounded && !(needed && needed->hi < 0);
}
