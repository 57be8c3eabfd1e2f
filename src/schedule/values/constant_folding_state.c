/* Substitutes new constants for nodes of a graph, for constant folding and weight prepacking. */
#include "schedule/values/constant_folding_state.h"

#include "ir/core/build.h"
#include "ir/transform/copy_graph.h"

const node *constant_folding_add_constant(constant_folding *f, const node *value) {
  int64_t ints[] = {f->uids++, 0};
  const node *leaf =
      ir_node(f->g, OP_BUFFER, (dtype)value->dtype, value->dims, value->rank, ints, 2);
  vec_push(f->a, &f->out.at, ((constant){leaf, value}));
  map_set(f->a, &f->number, leaf, (void *)(uintptr_t)f->out.at.n);
  return leaf;
}

static const node *replace_node(void *user, const node *n, const node *const src[]) {
  (void)src;
  return map_get(&((constant_folding *)user)->stand_in, n);
}

void constant_folding_apply(constant_folding *f) {
  ir_copy(f->g, f->a, f->out.roots, f->request->n_roots, replace_node, f, f->out.roots);
  f->stand_in = (map){0};
}

bool constant_folding_is_given(const constant_folding *f, const node *n) {
  return n->op == OP_BUFFER && n->device == 1 && f->request->is_constant(f->request->user, n);
}

bool constant_folding_reads_elements(const node *n) {
  bool computes =
      op_is_elementwise((op)n->op) || n->op == OP_REDUCE || n->op == OP_SCATTER || n->op == OP_SCAN;
  return n->dtype != DT_INDEX && computes;
}

static bool is_pure(const node *n) {
  return op_is_elementwise((op)n->op) || op_is_movement((op)n->op) || n->op == OP_REDUCE ||
         n->op == OP_PAD || n->op == OP_CONST || n->op == OP_IOTA || n->op == OP_SCATTER ||
         n->op == OP_SCAN;
}

static bool is_constant(constant_folding *f, const map *known, const node *n) {
  if (n->op == OP_BUFFER) return constant_folding_is_given(f, n);
  for (uint32_t i = 0; i < n->n_src; i++)
    if (!map_has(known, n->src[i])) return false;
  return is_pure(n);
}

map constant_folding_known(constant_folding *f, const node_list *order) {
  map known = {0};
  for (size_t i = 0; i < order->n; i++)
    if (is_constant(f, &known, order->at[i])) map_set(f->a, &known, order->at[i], NULL);
  return known;
}

bool constant_folding_is_known(constant_folding *f, const node *n) {
  node_list order = topo_sort(f->a, &n, 1, NULL, NULL);
  map known = constant_folding_known(f, &order);
  return map_has(&known, n);
}
