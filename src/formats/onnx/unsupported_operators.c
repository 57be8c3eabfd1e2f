/* Lists the operators and operator versions of a model that the importer does not support, with the
   reason, the nearest supported form and the nodes of each. Covers the bodies of loops and
   functions, so that one attempt shows everything that a model needs. */
#include "formats/onnx/ops/op_table.h"

#include <stdlib.h>
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
  if (!row) return "the operator is not supported";
  if (!op_table_version(row, onnx_opset_of_domain(opsets, n->domain)))
    return "the operator is newer than the model's opset; convert the model to a newer one";
  return NULL;
}

/** A node and the operator sets by which it is read. */
typedef struct listed_node {
  const onnx_node *node;
  const onnx_opsets *opsets;
} listed_node;

/* Nearest supported forms. */

/** The first or the newest version of an operator in the table. */
static int64_t end_version(const onnx_op *row, bool newest) {
  int64_t end = 0;
  for (const char *text = row->versions; *text;) {
    char *next;
    int64_t version = strtoll(text, &next, 10);
    if (!end || (newest ? version > end : version < end)) end = version;
    text = *next ? next + 1 : next;
  }
  return end;
}

/** The nearest form of an operator that is not supported; NULL: none is known. */
static const char *nearest_form(arena *a, const onnx_node *n) {
  const onnx_op *row = op_table_find(n->domain, n->op_type);
  const onnx_op *other = op_table_find_elsewhere(n->domain, n->op_type);
  if (row)
    return arena_printf(a, "supported from opset %lld on", (long long)end_version(row, false));
  if (other)
    return arena_printf(a, "%s has an operator of this name from opset %lld on",
                        *other->domain ? other->domain : "ai.onnx",
                        (long long)end_version(other, false));
  return NULL;
}

importer_problem importer_problem_of_node(arena *a, const onnx_opsets *opsets, const onnx_node *n,
                                          const char *reason) {
  const onnx_op *row = op_table_find(n->domain, n->op_type);
  importer_problem p = {.op = n->op_type,
                        .domain = is_default_domain(n->domain) ? "ai.onnx" : n->domain,
                        .opset = onnx_opset_of_domain(opsets, n->domain),
                        .newest = row ? end_version(row, true) : 0,
                        .reason = reason};
  p.version = row ? op_table_version(row, p.opset) : 0;
  vec_push(a, &p.nodes, onnx_node_name(n));
  return p;
}

/* Lists. */

typedef struct operator_list {
  string_map index; /* of an operator's problem, + 1 */
  importer_problems all;
} operator_list;

/** Notes a node of an operator that is not supported. */
static void note_operator(operator_list *k, arena *a, const listed_node *l, const char *reason) {
  const onnx_node *n = l->node;
  const char *domain = is_default_domain(n->domain) ? "" : n->domain;
  const char *op = *n->overload ? arena_printf(a, "%s:%s", n->op_type, n->overload) : n->op_type;
  const char *key = arena_printf(a, "%s\n%s", domain, op);
  size_t number = (size_t)(uintptr_t)string_map_get(&k->index, key);
  if (number) {
    vec_push(a, &k->all.at[number - 1].nodes, onnx_node_name(n));
    return;
  }
  importer_problem p = importer_problem_of_node(a, l->opsets, n, reason);
  p.is_of_operator = true;
  p.op = op;
  p.nearest = nearest_form(a, n);
  vec_push(a, &k->all, p);
  string_map_set(a, &k->index, key, (void *)(uintptr_t)k->all.n);
}

static const char *operator_problem_text(arena *a, const importer_problem *p) {
  str s = str_new(a);
  str_addf(&s, "%.200s (%.200s, opset %lld): %s%s%s: node", p->op, p->domain, (long long)p->opset,
           p->reason, p->nearest ? "; " : "", p->nearest ? p->nearest : "");
  for (size_t i = 0; i < p->nodes.n && i < NAMES_SHOWN; i++)
    str_addf(&s, "%s '%.200s'", i ? "," : "", p->nodes.at[i]);
  if (p->nodes.n > NAMES_SHOWN) str_addf(&s, " and %zu more", p->nodes.n - NAMES_SHOWN);
  return str_text(&s);
}

const char *importer_problem_text(arena *a, const importer_problem *p) {
  if (p->is_of_operator) return operator_problem_text(a, p);
  if (!p->op)
    return arena_printf(a, "%s%s%s", p->reason, p->nearest ? "; " : "",
                        p->nearest ? p->nearest : "");
  return arena_printf(a, "%.100s node '%.200s' (opset %lld): %s%s%s", p->op, p->nodes.at[0],
                      (long long)p->opset, p->reason, p->nearest ? "; " : "",
                      p->nearest ? p->nearest : "");
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

/** Notes opsets that are newer than the operators here, once each. */
static void note_new_opsets(importer_problems *all, const node_lister *l) {
  int64_t told = 0;
  for (size_t i = 0; i <= l->all.n; i++) {
    int64_t v = onnx_opset_of_domain(i ? l->all.at[i - 1].opsets : &l->model->opsets, "");
    if (v <= ONNX_OPSET_MAX || v == told) continue;
    told = v;
    const char *reason = arena_printf(l->a, "opset %lld: the newest supported opset is %d",
                                      (long long)v, ONNX_OPSET_MAX);
    vec_push(l->a, all, (importer_problem){.opset = v, .reason = reason});
  }
}

importer_problems list_unsupported_operators(const onnx_model *model, arena *a) {
  node_lister l = {.a = a, .model = model};
  operator_list operators = {0};
  list_nodes(&l, &model->graph->nodes, &model->opsets);
  note_new_opsets(&operators.all, &l);
  for (size_t i = 0; i < l.all.n; i++) {
    const onnx_node *n = l.all.at[i].node;
    const char *reason = onnx_unsupported_reason(model, l.all.at[i].opsets, n);
    if (reason) note_operator(&operators, a, &l.all.at[i], reason);
  }
  return operators.all;
}
