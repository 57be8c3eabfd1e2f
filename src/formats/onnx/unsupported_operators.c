/* Report of the operators, versions and attributes of a model that the importer does not support,
   grouped by operator, with the names of some nodes. */
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

/** Reason why an operator is not supported; NULL: none beyond its absence. */
static const char *absence_reason(const char *op) {
  static const char *const sized_by_data[] = {"NonZero", "Unique", "Compress", "NonMaxSuppression"};
  for (size_t i = 0; i < sizeof sized_by_data / sizeof *sized_by_data; i++)
    if (!strcmp(op, sized_by_data[i]))
      return "the operator is not supported: the size of its result depends on data";
  if (!strcmp(op, "If"))
    return "branches are not supported (where the condition is constant, onnxsim leaves the one "
           "that is taken)";
  return "the operator is not supported";
}

/** Reason why a node cannot be imported (static text); NULL if it can. */
static const char *objection(const onnx_node *n, int64_t opset) {
  if (!is_default_domain(n->domain)) return "operators of this domain are not supported";
  const onnx_op *row = op_table_find(n->op_type);
  if (!row) return absence_reason(n->op_type);
  if (!op_table_version(row, opset)) return "the operator is not supported in so old an opset";
  return NULL;
}

/** The nodes of one operator that is not supported. */
typedef struct kind {
  const onnx_node *first;
  const char *why;
  str nodes;
  size_t count;
} kind;

typedef VEC(kind *) kinds;

static kind *kind_of(arena *a, string_map *seen, kinds *all, const onnx_node *n, const char *why) {
  const char *domain = is_default_domain(n->domain) ? "" : n->domain;
  const char *key = arena_printf(a, "%s\n%s", domain, n->op_type);
  kind *k = string_map_get(seen, key);
  if (k) return k;
  k = arena_copy(a, &(kind){.first = n, .why = why, .nodes = str_new(a)}, sizeof *k);
  string_map_set(a, seen, key, k);
  vec_push(a, all, k);
  return k;
}

/** The opset of each domain, by its name: the first that a model imports. */
static string_map opsets_of(arena *a, const onnx_model *m) {
  string_map all = {0};
  for (size_t i = 0; i < m->opsets.n; i++)
    if (!string_map_get(&all, m->opsets.at[i].domain))
      string_map_set(a, &all, m->opsets.at[i].domain, &m->opsets.at[i]);
  return all;
}

static void report_kind(str *report, const kind *k, int64_t opset, const string_map *opsets) {
  bool is_default = is_default_domain(k->first->domain);
  const onnx_opset *other = is_default ? NULL : string_map_get(opsets, k->first->domain);
  str_addf(report, "%.100s (%.200s, opset %lld): %s: node%s", k->first->op_type,
           is_default ? "ai.onnx" : k->first->domain,
           (long long)(is_default ? opset
                       : other    ? other->version
                                  : 0),
           k->why, str_text(&k->nodes));
  if (k->count > NAMES_SHOWN) str_addf(report, " and %zu more", k->count - NAMES_SHOWN);
  str_add(report, "\n");
}

typedef VEC(const onnx_node *) node_pointers;

/** The nodes of a graph, and of the bodies of those that have some: these are nested no deeper than
    ONNX_NESTING_MAX. */
static void list_nodes(arena *a, const onnx_graph *g, node_pointers *all) {
  for (size_t i = 0; i < g->nodes.n; i++) {
    const onnx_node *n = &g->nodes.at[i];
    vec_push(a, all, n);
    for (size_t k = 0; op_table_find(n->op_type) && k < n->attributes.n; k++)
      if (n->attributes.at[k].type == ONNX_ATTRIBUTE_GRAPH && n->attributes.at[k].g)
        list_nodes(a, n->attributes.at[k].g, all);
  }
}

void report_unsupported_operators(const onnx_model *model, str *report) {
  arena *a = report->arena;
  node_pointers nodes = {0};
  int64_t opset = onnx_opset_of_domain(model, "");
  string_map seen = {0}, opsets = opsets_of(a, model);
  kinds all = {0};
  if (opset > ONNX_OPSET_MAX)
    str_addf(report, "opset %lld: the newest one supported is %d\n", (long long)opset,
             ONNX_OPSET_MAX);
  list_nodes(a, model->graph, &nodes);
  for (size_t i = 0; i < nodes.n; i++) {
    const onnx_node *n = nodes.at[i];
    const char *why = objection(n, opset);
    if (!why) continue;
    kind *k = kind_of(a, &seen, &all, n, why);
    if (k->count++ < NAMES_SHOWN)
      str_addf(&k->nodes, "%s '%.200s'", k->count > 1 ? "," : "", onnx_node_name(n));
  }
  for (size_t i = 0; i < all.n; i++) report_kind(report, all.at[i], opset, &opsets);
}
