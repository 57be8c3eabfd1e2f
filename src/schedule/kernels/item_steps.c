/* Implements the search for the ITEMs of steps: their variables are in the kernel, in the sizes of
   its buffers, or in a loop, and so is what bounds them. */
#include "schedule/kernels/item_steps.h"

#include "ir/core/ir.h"
#include "schedule/loops/outline_loops.h"

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

/** Marks the ITEMs that nodes mention, and those that bound them. */
static void mark(arena *a, const schedule_items *items, const node_list *nodes, bool is_needed[]) {
  node_list order = topo_sort(a, nodes->at, nodes->n, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    uintptr_t number = (uintptr_t)map_get(&items->of, order.at[i]);
    if (number) is_needed[number - 1] = true;
  }
  for (size_t k = items->at.n; k-- > 0;) {
    if (!is_needed[k]) continue;
    order = topo_sort(a, &items->at.at[k].most, 1, NULL, NULL);
    for (size_t i = 0; i < order.n; i++) {
      uintptr_t number = (uintptr_t)map_get(&items->of, order.at[i]);
      if (number) is_needed[number - 1] = true;
    }
  }
}

void item_steps_find(ir *g, const normalised *in, schedule *s) {
  const schedule_items *items = s->items = in->items;
  for (size_t i = 0; i < s->steps.n; i++) {
    schedule_step *step = &s->steps.at[i];
    arena_mark here = arena_save(ir_scratch(g));
    bool *is_needed = arena_calloc(ir_scratch(g), items->at.n, sizeof *is_needed);
    node_list nodes = nodes_of_step(ir_scratch(g), in, s, step);
    mark(ir_scratch(g), items, &nodes, is_needed);
    step->items = arena_alloc(ir_arena(g), items->at.n * sizeof *step->items);
    step->n_items = 0;
    for (size_t k = 0; k < items->at.n; k++)
      if (is_needed[k]) step->items[step->n_items++] = s->outputs[items->first + k];
    arena_rewind(ir_scratch(g), here);
  }
}
