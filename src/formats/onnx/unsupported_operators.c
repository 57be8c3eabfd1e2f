/* Report of the operators and operator versions of a model that the importer does not support: one
   line for each operator, with the reason and the names of its first nodes. Covers the bodies of
   loops and functions, so that one attempt shows everything that a model needs. */
#include "formats/onnx/ops/op_table.h"

#include <string.h>

enum { NAMES_SHOWN = 3 };

static bool is_default_domain(const char *domain) { return !*domain || !strcmp(domain, "ai.onnx"); }

int64_t onnx_opset_of_domain(const onnx_opsets *opsets, const char *domain) {
  for (size_t i = 0; i < opsets->n; i++) {
    const onnx_opset *o = &opsets->at[i];
    bool same = !strcmp(o->domain, domain);
    if (same || (is_default_domain(o->domain) && is_default_domain(domain))) return o->version;
  }
  return 0;
}

/** The reason for an operator without a row in the table. */
static const char *missing_operator_reason(const char *op) {
  static const char *const data_dependent[] = {"Unique", "NonMaxSuppression"};
  for (size_t i = 0; i < sizeof data_dependent / sizeof *data_dependent; i++)
    if (!strcmp(op, data_dependent[i]))
      return "the operator is not supported because the size of its result depends on data";
  return "the operator is not supported";
}

static bool is_same_domain(const char *a, const char *b) {
  return !strcmp(a, b) || (is_default_domain(a) && is_default_domain(b));
}

const onnx_function *onnx_function_of_node(const onnx_model *m, const onnx_node *n) {
  for (size_t i = 0; i < m->functions.n; i++) {
    const onnx_function *f = &m->functions.at[i];
    if (!strcmp(f->name, n->op_type) && is_same_domain(f->domain, n->domain) &&
        !strcmp(f->overload, n->overload))
      return f;
  }
  return NULL;
}

const char *onnx_unsupported_reason(const onnx_model *m, const onnx_opsets *opsets,
                                    const onnx_node *n) {
  if (onnx_function_of_node(m, n)) return NULL;
  if (!op_table_has_domain(n->domain))
    return "operators of this domain are not supported, and the model has no function of the name";
  if (*n->overload) return "the overload is no function of the model";
  const onnx_op *row = op_table_find(n->domain, n->op_type);
  if (!row) return missing_operator_reason(n->op_type);
  if (!op_table_version(row, onnx_opset_of_domain(opsets, n->domain)))
    return "this version of the operator is older than the supported ones; convert the model to a "
           "newer opset";
  return NULL;
}

/** A node and the operator sets by which it is read. */
typedef struct listed_node {
  const onnx_node *node;
  const onnx_opsets *opsets;
} listed_node;

/** An unsupported operator and its nodes. */
typedef struct unsupported_op {
  const onnx_node *first;
  int64_t opset; /* of its domain */
  const char *reason;
  str nodes;    /* the names of the first ones */
  size_t count; /* of all its nodes */
} unsupported_op;

typedef VEC(unsupported_op *) unsupported_ops;

/** Finds the entry of a node's operator, or adds it. */
static unsupported_op *find_or_add(arena *a, string_map *seen, unsupported_ops *all,
                                   const listed_node *l, const char *reason) {
  const onnx_node *n = l->node;
  const char *domain = is_default_domain(n->domain) ? "" : n->domain;
  const char *key = arena_printf(a, "%s\n%s\n%s", domain, n->op_type, n->overload);
  unsupported_op *u = string_map_get(seen, key);
  if (u) return u;
  u = arena_copy(a,
                 &(unsupported_op){.first = n,
                                   .opset = onnx_opset_of_domain(l->opsets, n->domain),
                                   .reason = reason,
                                   .nodes = str_new(a)},
                 sizeof *u);
  string_map_set(a, seen, key, u);
  vec_push(a, all, u);
  return u;
}

static void report_operator(str *report, const unsupported_op *u) {
  const char *domain = u->first->domain, *overload = u->first->overload;
  str_addf(report, "%.100s%s%.100s (%.200s, opset %lld): %s: node%s", u->first->op_type,
           *overload ? ":" : "", overload, is_default_domain(domain) ? "ai.onnx" : domain,
           (long long)u->opset, u->reason, str_text(&u->nodes));
  if (u->count > NAMES_SHOWN) str_addf(report, " and %zu more", u->count - NAMES_SHOWN);
  str_add(report, "\n");
}

typedef struct node_lister {
  arena *a;
  const onnx_model *model;
  VEC(listed_node) all;
  map functions; /* those that are listed */
} node_lister;

static void list_function(node_lister *l, const onnx_node *call);

/** Lists nodes and those of their graphs, at most ONNX_NESTING_MAX deep; not those of branches, of
    which one alone is imported. */
static void list_nodes(node_lister *l, const onnx_nodes *nodes, const onnx_opsets *opsets) {
  for (size_t i = 0; i < nodes->n; i++) {
    const onnx_node *n = &nodes->at[i];
    vec_push(l->a, &l->all, (listed_node){n, opsets});
    bool is_branch = !strcmp(n->op_type, "If");
    list_function(l, n);
    for (size_t k = 0; !is_branch && op_table_find(n->domain, n->op_type) && k < n->attributes.n;
         k++)
      if (n->attributes.at[k].type == ONNX_ATTRIBUTE_GRAPH && n->attributes.at[k].g)
        list_nodes(l, &n->attributes.at[k].g->nodes, opsets);
  }
}

/** Lists the nodes of the function that a node calls, once for all its calls. */
static void list_function(node_lister *l, const onnx_node *call) {
  const onnx_function *f = onnx_function_of_node(l->model, call);
  if (!f || map_get(&l->functions, f)) return;
  map_set(l->a, &l->functions, f, (void *)f);
  list_nodes(l, &f->nodes, &f->opsets);
}

/** Reports opsets that are newer than the operators here, once each. */
static void report_new_opsets(str *report, const node_lister *l) {
  int64_t told = 0;
  for (size_t i = 0; i <= l->all.n; i++) {
    int64_t v = onnx_opset_of_domain(i ? l->all.at[i - 1].opsets : &l->model->opsets, "");
    if (v > ONNX_OPSET_MAX && v != told)
      str_addf(report, "opset %lld: the newest supported opset is %d\n", (long long)v,
               ONNX_OPSET_MAX);
    if (v > ONNX_OPSET_MAX) told = v;
  }
}

void report_unsupported_operators(const onnx_model *model, str *report) {
  arena *a = report->arena;
  node_lister l = {.a = a, .model = model};
  string_map seen = {0};
  unsupported_ops all = {0};
  list_nodes(&l, &model->graph->nodes, &model->opsets);
  report_new_opsets(report, &l);
  for (size_t i = 0; i < l.all.n; i++) {
    const onnx_node *n = l.all.at[i].node;
    const char *reason = onnx_unsupported_reason(model, l.all.at[i].opsets, n);
    if (!reason) continue;
    unsupported_op *u = find_or_add(a, &seen, &all, &l.all.at[i], reason);
    if (u->count++ < NAMES_SHOWN)
      str_addf(&u->nodes, "%s '%.200s'", u->count > 1 ? "," : "", onnx_node_name(n));
  }
  for (size_t i = 0; i < all.n; i++) report_operator(report, all.at[i]);
}
