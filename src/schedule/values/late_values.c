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

/** A search for ITEMs in the nodes of one value. */
typedef struct mentions {
  arena *a;
  const normalised *in;
  guard_table *t;
  map under; /* number of an ITEM + 1 → the guard of its last entry in `at` */
  VEC(value_item) at;
} mentions;

static void add_mention(mentions *m, size_t number, const guard *under) {
  void *key = (void *)(uintptr_t)(number + 1);
  const guard *known = map_get(&m->under, key), *all = guard_common(m->t, known, under);
  if (all == known) return;
  map_set(m->a, &m->under, key, (void *)all);
  const node *element = m->in->roots[m->in->items->first + number];
  vec_push(m->a, &m->at, (value_item){number, element, all});
}

/** Adds the ITEMs that nodes mention which are needed under a guard. */
static void add_mentions_of(mentions *m, const node *const nodes[], size_t n_nodes,
                            const guard *needed) {
  node_list order = topo_sort(m->a, nodes, n_nodes, enters, NULL);
  map under = {0};
  for (size_t i = 0; i < n_nodes; i++) map_set(m->a, &under, nodes[i], (void *)needed);
  for (size_t i = order.n; i-- > 0;) {
    const node *n = order.at[i];
    const guard *of = map_get(&under, n);
    uintptr_t number = (uintptr_t)map_get(&m->in->items->of, n);
    if (number) add_mention(m, (size_t)number - 1, of);
    for (size_t k = 0; enters(n, NULL) && k < n->n_src; k++) {
      const guard *known = map_get(&under, n->src[k]);
      known = guard_common(m->t, known, guard_of_source(m->t, of, n, k));
      map_set(m->a, &under, n->src[k], (void *)known);
    }
  }
}

/** Adds the ITEMs that nodes mention, and those that the bounds of ITEMs mention. */
static void add_mentions(mentions *m, const node_list *in_nodes) {
  add_mentions_of(m, in_nodes->at, in_nodes->n, guard_always(m->t));
  for (size_t i = 0; i < m->at.n; i++) {
    const schedule_item *item = &m->in->items->at.at[m->at.at[i].number];
    if (item->n_bounded_by) add_mentions_of(m, &item->most, 1, m->at.at[i].under);
  }
}

static void add_all(arena *a, node_list *to, size_t n, const node *const *nodes) {
  for (size_t i = 0; i < n; i++) vec_push(a, to, nodes[i]);
}

/** Adds where an array begins in those that it lies inside of. */
static void add_starts(arena *a, node_list *to, const values *of, const node *array) {
  for (const array_place *p; (p = map_get(&of->places, array)); array = p->array)
    vec_push(a, to, p->start);
}

/** Lists the nodes in which a value may mention variables. */
static node_list nodes_of_value(arena *a, const normalised *in, const values *of, const value *v) {
  node_list all = {0};
  const node *pick = map_get(&of->sides, v->tensor);
  if (pick) add_all(a, &all, pick->rank, pick->dims);
  if (v->body) vec_push(a, &all, v->body);
  for (size_t i = 0; i < v->inputs.elements.n; i++)
    add_all(a, &all, v->inputs.elements.at[i]->n_src - 1u, v->inputs.elements.at[i]->src + 1);
  add_all(a, &all, v->rank, v->dims);
  for (size_t i = 0; i < v->reduction.n && value_is_reduction(v); i++)
    vec_push(a, &all, v->reduction.ranges[i]);
  for (size_t i = 0; i < v->inputs.tensors.n; i++)
    add_all(a, &all, v->inputs.tensors.at[i]->rank, v->inputs.tensors.at[i]->dims);
  for (size_t i = 0; i < v->inputs.arrays.n && v->tensor->op != OP_PICK; i++)
    add_all(a, &all, v->inputs.arrays.at[i]->rank, v->inputs.arrays.at[i]->dims);
  for (size_t i = 0; i < v->memory.stores.n; i++) {
    const value_store *store = &v->memory.stores.at[i];
    add_all(a, &all, store->array->rank, store->array->dims);
    add_all(a, &all, store->rank, store->coords);
    add_starts(a, &all, of, store->array);
  }
  for (size_t i = 0; v->scan && i < v->scan->n; i++)
    add_all(a, &all, v->scan->state[i].rank, v->scan->state[i].dims);
  if (v->tensor->op == OP_PICK) vec_push(a, &all, v->tensor->src[0]);
  if (v->tensor->op == OP_RESULT && v->tensor->ints[2]) {
    const node_list *sizes = &in->loop_sizes.at[v->tensor->ints[2] - 1];
    add_all(a, &all, sizes->n, sizes->at);
  }
  return all;
}

static void add_items(ir *g, const values *all, value *v, const mentions *found) {
  for (size_t k = 0; k < found->at.n; k++)
    if (map_has(&all->of, found->at.at[k].element))
      vec_push(ir_arena(g), &v->inputs.items, found->at.at[k]);
}

void late_values_add(ir *g, const normalised *in, guard_table *t, const values *all, value *v,
                     const node *index) {
  node_list one = {0};
  mentions found = {.a = ir_scratch(g), .in = in, .t = t};
  if (!in->items) return;
  arena_mark here = arena_save(ir_scratch(g));
  vec_push(ir_scratch(g), &one, index);
  add_mentions(&found, &one);
  add_items(g, all, v, &found);
  arena_rewind(ir_scratch(g), here);
}

void late_values_find(ir *g, const normalised *in, guard_table *t, values *v) {
  for (size_t i = 0; in->items && i < v->at.n; i++) {
    arena_mark here = arena_save(ir_scratch(g));
    value *at = v->at.at[i];
    node_list own = nodes_of_value(ir_scratch(g), in, v, at);
    mentions found = {.a = ir_scratch(g), .in = in, .t = t};
    add_mentions(&found, &own);
    at->inputs.items.n = 0;
    add_items(g, v, at, &found);
    arena_rewind(ir_scratch(g), here);
  }
}

bool late_values_has_late_size(ir *g, const normalised *in, const node *tensor) {
  node_list sizes = {0};
  guard_table t = {.a = ir_scratch(g)};
  mentions found = {.a = t.a, .in = in, .t = &t};
  if (!in->items) return false;
  arena_mark here = arena_save(t.a);
  add_all(t.a, &sizes, tensor->rank, tensor->dims);
  add_mentions(&found, &sizes);
  arena_rewind(t.a, here);
  return found.at.n;
}
