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
    const node_list *sizes = &in->loop_sizes.at[i];
    for (size_t k = 0; k < sizes->n; k++) vec_push(a, &all, sizes->at[k]);
  }
  return all;
}

typedef VEC(size_t) item_list;

typedef struct item_search {
  arena *a;
  const schedule_items *items;
  size_t *found_in; /* of each ITEM: 1 + the last step that needs it */
} item_search;

static void add_new(item_search *x, size_t step, size_t item, item_list *to) {
  if (x->found_in[item] == step + 1) return;
  x->found_in[item] = step + 1;
  vec_push(x->a, to, item);
}

static int compare_numbers(const void *a, const void *b) {
  size_t x = *(const size_t *)a, y = *(const size_t *)b;
  return (x > y) - (x < y);
}

/** The ITEMs that a step mentions, and those that bound them. */
static item_list items_of_step(item_search *x, const node_list *nodes, size_t step) {
  item_list all = {0};
  node_list order = topo_sort(x->a, nodes->at, nodes->n, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    uintptr_t number = (uintptr_t)map_get(&x->items->of, order.at[i]);
    if (number) add_new(x, step, (size_t)number - 1, &all);
  }
  for (size_t i = 0; i < all.n; i++) {
    const schedule_item *item = &x->items->at.at[all.at[i]];
    for (size_t k = 0; k < item->n_bounded_by; k++) add_new(x, step, item->bounded_by[k], &all);
  }
  if (all.n) qsort(all.at, all.n, sizeof *all.at, compare_numbers);
  return all;
}

void item_steps_find(ir *g, const normalised *in, schedule *s) {
  const schedule_items *items = s->items = in->items;
  item_search x = {.a = ir_scratch(g), .items = items};
  arena_mark outer = arena_save(x.a);
  x.found_in = arena_calloc(x.a, items->at.n + 1, sizeof *x.found_in);
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
