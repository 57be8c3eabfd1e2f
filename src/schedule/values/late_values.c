/* Implements the search for the ITEMs that values mention: in their bodies, sizes and ranges, in
   the sizes of arrays that they are stored to, and in loops. */
#include "schedule/values/late_values.h"

#include "ir/core/binder.h"

/** True for nodes below which a variable may be mentioned. Tensors that a body reads have values of
    their own; the coordinates at which it reads them are listed apart. */
static bool enters(const node *n, void *user) {
  (void)user;
  return n->op != OP_INDEX;
}

static void add_vars(ir *g, const normalised *in, const node_list *in_nodes, node_list *found) {
  arena *work = ir_scratch(g);
  node_list order = topo_sort(work, in_nodes->at, in_nodes->n, enters, NULL);
  map seen = {0};
  for (size_t i = 0; i < order.n; i++) {
    uintptr_t number = (uintptr_t)map_get(&in->items->of, order.at[i]);
    if (!number) continue;
    const node *value = in->roots[in->items->first + number - 1];
    if (!map_has(&seen, value)) vec_push(ir_arena(g), found, value);
    map_set(work, &seen, value, NULL);
  }
}

static void add_all(arena *a, node_list *to, size_t n, const node *const *nodes) {
  for (size_t i = 0; i < n; i++) vec_push(a, to, nodes[i]);
}

/** Lists the nodes in which a value may mention variables. */
static node_list nodes_of_value(arena *a, const normalised *in, const value *v) {
  node_list all = {0};
  if (v->body) vec_push(a, &all, v->body);
  for (size_t i = 0; i < v->inputs.elements.n; i++)
    add_all(a, &all, v->inputs.elements.at[i]->n_src - 1u, v->inputs.elements.at[i]->src + 1);
  add_all(a, &all, v->rank, v->dims);
  for (size_t i = 0; i < v->reduction.n && value_is_reduction(v); i++)
    vec_push(a, &all, v->reduction.ranges[i]);
  for (size_t i = 0; i < v->inputs.tensors.n; i++)
    add_all(a, &all, v->inputs.tensors.at[i]->rank, v->inputs.tensors.at[i]->dims);
  for (size_t i = 0; i < v->inputs.arrays.n; i++)
    add_all(a, &all, v->inputs.arrays.at[i]->rank, v->inputs.arrays.at[i]->dims);
  for (size_t i = 0; i < v->memory.stores.n; i++)
    add_all(a, &all, v->memory.stores.at[i].array->rank, v->memory.stores.at[i].array->dims);
  for (size_t i = 0; v->scan && i < v->scan->n; i++)
    add_all(a, &all, v->scan->state[i].rank, v->scan->state[i].dims);
  if (v->tensor->op == OP_RESULT && v->tensor->ints[2]) {
    const node_list *vars = &in->loop_vars.at[v->tensor->ints[2] - 1];
    add_all(a, &all, vars->n, vars->at);
  }
  return all;
}

void late_values_find(ir *g, const normalised *in, values *v) {
  arena *work = ir_scratch(g);
  for (size_t i = 0; in->items && i < v->at.n; i++) {
    arena_mark here = arena_save(work);
    value *at = v->at.at[i];
    node_list own = nodes_of_value(work, in, at), found = {0};
    add_vars(g, in, &own, &found);
    at->inputs.items = (node_list){0};
    for (size_t k = 0; k < found.n; k++)
      if (map_has(&v->of, found.at[k])) vec_push(ir_arena(g), &at->inputs.items, found.at[k]);
    arena_rewind(work, here);
  }
}

bool late_values_has_late_size(ir *g, const normalised *in, const node *tensor) {
  node_list found = {0}, sizes = {0};
  if (!in->items) return false;
  arena_mark here = arena_save(ir_scratch(g));
  add_all(ir_scratch(g), &sizes, tensor->rank, tensor->dims);
  add_vars(g, in, &sizes, &found);
  arena_rewind(ir_scratch(g), here);
  return found.n;
}
