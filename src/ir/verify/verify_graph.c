/* Implements the IR verifier: checks every node by the rule of its op, then the whole graph by the
   well-formedness laws of its pipeline stage. */
#include "ir/verify/verify_graph.h"

#include "ir/core/check_node.h"
#include "ir/core/ir.h"
#include "ir/verify/verifier.h"

/** False for nodes of a linear program whose sources are of earlier stages: PARAMs keep their
    shapes, and the SINK is the kernel before lowering. */
static bool enters(const node *n, void *user) {
  const verifier *v = user;
  return v->stage != LEVEL_LINEAR || (n->op != OP_PARAM && n->op != OP_SINK);
}

static void check_node(verifier *v, const node *n) {
  node_spec spec = node_spec_with_sources(n, n->src, n->n_src);
  const char *why = ir_check_spec(&spec);
  if (why) verify_fail(v, n, NULL, why);
  if (!(op_facts_of((op)n->op)->stages & v->stage))
    verify_fail(v, n, NULL, "the op does not belong to this stage");
  if (v->stage == LEVEL_TENSOR && n->lanes != 1)
    verify_fail(v, n, NULL, "a tensor graph has no lanes");
  if (v->stage == LEVEL_LINEAR && n->dtype == DT_INDEX)
    verify_fail(v, n, NULL, "an index is left without a width");
}

/** A number names one RANGE, one ALLOC or one PARAM of a kernel. */
static void check_number(verifier *v, map *numbers, const node *n) {
  const void *key = (const void *)((uintptr_t)n->ints[0] + 1);
  if (map_has(numbers, key))
    verify_fail(v, n, map_get(numbers, key), "the number belongs to another node too");
  map_set(&v->work, numbers, key, (void *)n);
}

static void check_nodes(verifier *v) {
  map ranges = {0}, allocs = {0}, slots = {0};
  for (size_t i = 0; i < v->order.n; i++) {
    const node *n = v->order.at[i];
    check_node(v, n);
    if (n->op == OP_RANGE) check_number(v, &ranges, n);
    if (n->op == OP_ALLOC) check_number(v, &allocs, n);
    if (n->op == OP_PARAM && v->stage != LEVEL_TENSOR) check_number(v, &slots, n);
  }
}

static bool is_memory_op(op o) {
  return o == OP_LOAD || o == OP_STORE || o == OP_PREFETCH || o == OP_AFTER;
}

/** True if node n may have its source i: PARAMs, STATEs and effects are no values. */
static bool may_use(const verifier *v, const node *n, uint32_t i) {
  op s = (op)n->src[i]->op;
  if (v->stage == LEVEL_KERNEL) {
    if (s == OP_PARAM) return (n->op == OP_INDEX && !i) || n->op == OP_OUT;
    if (n->op == OP_SINK) return s == OP_OUT;
    return s != OP_STATE || n->op == OP_INDEX;
  }
  if (s == OP_PARAM) return !i && is_memory_op((op)n->op);
  return n->op != OP_SINK || n->src[i]->dtype == DT_VOID;
}

static void check_uses(verifier *v) {
  for (size_t i = 0; i < v->order.n; i++) {
    const node *n = v->order.at[i];
    if (!enters(n, v)) continue;
    for (uint32_t k = 0; k < n->n_src; k++)
      if (!may_use(v, n, k)) verify_fail(v, n, n->src[k], "the op cannot take this source");
  }
}

static void check_graph(void *arg) {
  verifier *v = arg;
  v->order = topo_sort(&v->work, v->roots, v->n, enters, v);
  check_nodes(v);
  switch (v->stage) {
  case LEVEL_TENSOR: verify_tensors(v); return;
  case LEVEL_KERNEL:
    verify_binders(v);
    check_uses(v);
    verify_states(v);
    return;
  case LEVEL_LOWERED:
    verify_binders(v);
    check_uses(v);
    verify_effects(v);
    return;
  case LEVEL_LINEAR:
    check_uses(v);
    verify_linear(v);
    return;
  }
}

tn_status verify_graph(const node *const roots[], size_t n, enum stage stage, const mem *m,
                       diag *d) {
  verifier v = {.roots = roots, .n = n, .stage = stage};
  arena_init(&v.work, m, d);
  tn_status s = diag_catch(d, check_graph, &v);
  arena_free(&v.work);
  return s;
}

void verify_after_pass(ir *g, pass after, enum stage stage, const node *const roots[], size_t n) {
#ifdef TENON_VERIFY
  if (verify_graph(roots, n, stage, ir_mem(g), ir_diag(g)) == TN_OK) return;
  diag_prefix(ir_diag(g), "after %s", pass_name(after));
  diag_rethrow(ir_diag(g));
#else
  (void)g, (void)after, (void)stage, (void)roots, (void)n;
#endif
}
