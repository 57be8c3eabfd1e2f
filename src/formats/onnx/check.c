/* What of a model is not supported, all at once. */
#include "formats/onnx/table.h"

#include <string.h>

enum { NAMES_SHOWN = 3 };

static bool is_default_domain(const char *domain) { return !*domain || !strcmp(domain, "ai.onnx"); }

int64_t onnx_opset_of(const onnx_model *m, const char *domain) {
  for (size_t i = 0; i < m->opsets.n; i++) {
    const onnx_opset *o = &m->opsets.at[i];
    bool same = !strcmp(o->domain, domain);
    if (same || (is_default_domain(o->domain) && is_default_domain(domain))) return o->version;
  }
  return 0;
}

/** Why a node cannot be imported, as a static text; NULL if it can. */
static const char *objection(const onnx_model *m, const onnx_node *n) {
  if (!is_default_domain(n->domain)) return "operators of this domain are not supported";
  const onnx_op *row = table_find(n->op_type);
  if (!row) return "the operator is not supported";
  if (!table_version(row, onnx_opset_of(m, "")))
    return "the operator is not supported in so old an opset";
  return NULL;
}

static bool same_kind(const onnx_node *a, const onnx_node *b) {
  return !strcmp(a->op_type, b->op_type) && !strcmp(a->domain, b->domain);
}

static void add_names(const onnx_nodes *nodes, const onnx_node *like, str *report) {
  size_t count = 0;
  for (size_t i = 0; i < nodes->n; i++) {
    const onnx_node *n = &nodes->at[i];
    if (!same_kind(n, like)) continue;
    if (count++ < NAMES_SHOWN)
      str_addf(report, "%s '%.200s'", count > 1 ? "," : "", import_node_name(n));
  }
  if (count > NAMES_SHOWN) str_addf(report, " and %zu more", count - NAMES_SHOWN);
}

static bool is_first(const onnx_nodes *nodes, size_t i) {
  for (size_t k = 0; k < i; k++)
    if (same_kind(&nodes->at[k], &nodes->at[i])) return false;
  return true;
}

void import_check(const onnx_model *model, str *report) {
  const onnx_nodes *nodes = &model->graph->nodes;
  int64_t opset = onnx_opset_of(model, "");
  if (opset > ONNX_OPSET_MAX)
    str_addf(report, "opset %lld: the newest one supported is %d\n", (long long)opset,
             ONNX_OPSET_MAX);
  for (size_t i = 0; i < nodes->n; i++) {
    const onnx_node *n = &nodes->at[i];
    const char *why = objection(model, n);
    if (!why || !is_first(nodes, i)) continue;
    str_addf(report, "%.100s (%s, opset %lld): %s: node", n->op_type,
             is_default_domain(n->domain) ? "ai.onnx" : n->domain,
             (long long)onnx_opset_of(model, n->domain), why);
    add_names(nodes, n, report);
    str_add(report, "\n");
  }
}
