/* Report of the operators and operator versions of a model that the importer does not support: one
   line for each operator, with the reason and the names of its first nodes. Covers the bodies of
   loops, so that one attempt shows everything that a model needs. */
#include "formats/onnx/ops/op_table.h"

#include <string.h>

enum { NAMES_SHOWN = 3 };

static bool is_default_domain(const char *domain) { return !*domain || !strcmp(domain, "ai.onnx"); }

int64_t onnx_opset_of_domain(const onnx_model *m, const char *domain) {
  for (size_t i = 0; i < m->opsets.n; i++) {
    const onnx_opset *o = &m->opsets.at[i];
    bool same = !strcmp(o->domain, domain);
    if (same || (is_default_domain(o->domain) && is_default_domain(domain))) return o->version;
  }
  return 0;
}

/** The reason for an operator without a row in the table. */
static const char *missing_operator_reason(const char *op) {
  static const char *const data_dependent[] = {"NonZero", "Unique", "Compress",
                                               "NonMaxSuppression"};
  for (size_t i = 0; i < sizeof data_dependent / sizeof *data_dependent; i++)
    if (!strcmp(op, data_dependent[i]))
      return "the operator is not supported because the size of its result depends on data";
  return "the operator is not supported";
}

const char *onnx_unsupported_reason(const onnx_node *n, int64_t opset) {
  if (!is_default_domain(n->domain)) return "operators of this domain are not supported";
  if (*n->overload) return "overloads, which are functions of the model, are not supported";
  const onnx_op *row = op_table_find(n->op_type);
  if (!row) return missing_operator_reason(n->op_type);
  if (!op_table_version(row, opset))
    return "this version of the operator is older than the supported ones; convert the model to a "
           "newer opset";
  return NULL;
}

/** An unsupported operator and its nodes. */
typedef struct unsupported_op {
  const onnx_node *first;
  const char *reason;
  str nodes;    /* the names of the first ones */
  size_t count; /* of all its nodes */
} unsupported_op;

typedef VEC(unsupported_op *) unsupported_ops;

/** Finds the entry of a node's operator, or adds it. */
static unsupported_op *find_or_add(arena *a, string_map *seen, unsupported_ops *all,
                                   const onnx_node *n, const char *reason) {
  const char *domain = is_default_domain(n->domain) ? "" : n->domain;
  const char *key = arena_printf(a, "%s\n%s\n%s", domain, n->op_type, n->overload);
  unsupported_op *u = string_map_get(seen, key);
  if (u) return u;
  u = arena_copy(a, &(unsupported_op){.first = n, .reason = reason, .nodes = str_new(a)},
                 sizeof *u);
  string_map_set(a, seen, key, u);
  vec_push(a, all, u);
  return u;
}

/** Maps the name of each domain to its first onnx_opset in the model. */
static string_map map_opsets(arena *a, const onnx_model *m) {
  string_map all = {0};
  for (size_t i = 0; i < m->opsets.n; i++)
    if (!string_map_get(&all, m->opsets.at[i].domain))
      string_map_set(a, &all, m->opsets.at[i].domain, &m->opsets.at[i]);
  return all;
}

static void report_operator(str *report, const unsupported_op *u, int64_t opset,
                            const string_map *opsets) {
  bool is_default = is_default_domain(u->first->domain);
  const onnx_opset *other = is_default ? NULL : string_map_get(opsets, u->first->domain);
  const char *overload = u->first->overload;
  str_addf(report, "%.100s%s%.100s (%.200s, opset %lld): %s: node%s", u->first->op_type,
           *overload ? ":" : "", overload, is_default ? "ai.onnx" : u->first->domain,
           (long long)(is_default ? opset
                       : other    ? other->version
                                  : 0),
           u->reason, str_text(&u->nodes));
  if (u->count > NAMES_SHOWN) str_addf(report, " and %zu more", u->count - NAMES_SHOWN);
  str_add(report, "\n");
}

typedef VEC(const onnx_node *) node_pointers;

/** Lists the nodes of a graph and of its nested graphs, at most ONNX_NESTING_MAX deep; not those of
    branches, of which one alone is imported. */
static void list_nodes(arena *a, const onnx_graph *g, node_pointers *all) {
  for (size_t i = 0; i < g->nodes.n; i++) {
    const onnx_node *n = &g->nodes.at[i];
    vec_push(a, all, n);
    bool is_branch = !strcmp(n->op_type, "If");
    for (size_t k = 0; !is_branch && op_table_find(n->op_type) && k < n->attributes.n; k++)
      if (n->attributes.at[k].type == ONNX_ATTRIBUTE_GRAPH && n->attributes.at[k].g)
        list_nodes(a, n->attributes.at[k].g, all);
  }
}

void report_unsupported_operators(const onnx_model *model, str *report) {
  arena *a = report->arena;
  node_pointers nodes = {0};
  int64_t opset = onnx_opset_of_domain(model, "");
  string_map seen = {0}, opsets = map_opsets(a, model);
  unsupported_ops all = {0};
  if (opset > ONNX_OPSET_MAX)
    str_addf(report, "opset %lld: the newest supported opset is %d\n", (long long)opset,
             ONNX_OPSET_MAX);
  list_nodes(a, model->graph, &nodes);
  for (size_t i = 0; i < nodes.n; i++) {
    const onnx_node *n = nodes.at[i];
    const char *reason = onnx_unsupported_reason(n, opset);
    if (!reason) continue;
    unsupported_op *u = find_or_add(a, &seen, &all, n, reason);
    if (u->count++ < NAMES_SHOWN)
      str_addf(&u->nodes, "%s '%.200s'", u->count > 1 ? "," : "", onnx_node_name(n));
  }
  for (size_t i = 0; i < all.n; i++) report_operator(report, all.at[i], opset, &opsets);
}
