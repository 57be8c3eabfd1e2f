/* Implements the search for the ITEMs of steps: their variables are in the kernel, in the sizes of
   its buffers, or in a loop, and so is what bounds them. */
#include "schedule/kernels/item_steps.h"

#include "ir/core/ir.h"
#include "schedule/loops/outline_loops.h"

#include <stdlib.h>

/** The nodes in which a step may mention variables. */
static node_list nodes_of_step(arena *a, const normalised *in, const schedule *s,
                               const schedule_step *step) {
  node_list all = {0};
  if (step->kernel) vec_push(a, &all, step->kernel);
  if (step->guard) vec_push(a, &all, step->guard);
  for (size_t i = 0; i < step->n_buffers; i++)
    vec_push(a, &all, s->buffers.at[step->buffers[i]].size);
  for (size_t i = 0; i < in->loops.n; i++) {
    if (in->loops.at[i] != step->plan) continue;
    const node_list *vars = &in->loop_vars.at[i];
    for (size_t k = 0; k < vars->n; k++) vec_push(a, &all, vars->at[k]);
  }
  return all;
}

typedef VEC(size_t) item_list;

typedef struct item_search {
  arena *a;
  const schedule_items *items;
  item_list *bounds; /* of each ITEM: those that its bound mentions */
  size_t *found_in;  /* of each ITEM: 1 + the last step that needs it */
} item_search;

static item_list mentioned_items(const item_search *x, const node *const nodes[], size_t n) {
  node_list order = topo_sort(x->a, nodes, n, NULL, NULL);
  item_list found = {0};
  for (size_t i = 0; i < order.n; i++) {
    uintptr_t number = (uintptr_t)map_get(&x->items->of, order.at[i]);
    if (number) vec_push(x->a, &found, (size_t)number - 1);
  }
  return found;
}

static void add_new(item_search *x, size_t step, const item_list *of, item_list *to) {
  for (size_t i = 0; i < of->n; i++) {
    if (x->found_in[of->at[i]] == step + 1) continue;
    x->found_in[of->at[i]] = step + 1;
    vec_push(x->a, to, of->at[i]);
  }
}

static int compare_numbers(const void *a, const void *b) {
  size_t x = *(const size_t *)a, y = *(const size_t *)b;
  return (x > y) - (x < y);
}

/** The ITEMs that a step mentions, and those that bound them. */
static item_list items_of_step(item_search *x, const node_list *nodes, size_t step) {
  item_list mentioned = mentioned_items(x, nodes->at, nodes->n), all = {0};
  add_new(x, step, &mentioned, &all);
  for (size_t i = 0; i < all.n; i++) add_new(x, step, &x->bounds[all.at[i]], &all);
  if (all.n) qsort(all.at, all.n, sizeof *all.at, compare_numbers);
  return all;
}

void item_steps_find(ir *g, const normalised *in, schedule *s) {
  const schedule_items *items = s->items = in->items;
  item_search x = {.a = ir_scratch(g), .items = items};
  arena_mark outer = arena_save(x.a);
  x.bounds = arena_calloc(x.a, items->at.n + 1, sizeof *x.bounds);
  x.found_in = arena_calloc(x.a, items->at.n + 1, sizeof *x.found_in);
  for (size_t k = 0; k < items->at.n; k++)
    x.bounds[k] = mentioned_items(&x, &items->at.at[k].most, 1);
  for (size_t i = 0; i < s->steps.n; i++) {
    schedule_step *step = &s->steps.at[i];
    arena_mark here = arena_save(x.a);
    node_list nodes = nodes_of_step(x.a, in, s, step);
    item_list found = items_of_step(&x, &nodes, i);
    size_t *buffers = arena_alloc(ir_arena(g), (found.n + 1) * sizeof *buffers);
    for (size_t k = 0; k < found.n; k++) buffers[k] = s->outputs[items->first + found.at[k]];
    step->items = buffers;
    step->n_items = found.n;
    arena_rewind(x.a, here);
  }
  arena_rewind(x.a, outer);
}
