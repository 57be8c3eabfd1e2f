/* Draws random arguments of laws (schedule transformations), by the types that the table of laws
   gives them. */
#ifndef TENON_TESTS_IR_RANDOM_LAW_H
#define TENON_TESTS_IR_RANDOM_LAW_H

#include "../random/random.h"
#include "ir/core/tensor_rows.h"
#include "laws/kernel_schedule.h"

#include <string.h>

/** Picks a range of a kernel. */
static inline const node *random_range(laws *l, rng *r, const node *sink) {
  node_list order = topo_sort(ir_arena(l->g), &sink, 1, NULL, NULL), ranges = {0};
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_RANGE) vec_push(ir_arena(l->g), &ranges, order.at[i]);
  return ranges.n ? ranges.at[rng_below(r, ranges.n)] : NULL;
}

static inline const node *random_of(rng *r, const node_list *list) {
  return list->n ? list->at[rng_below(r, list->n)] : NULL;
}

/** Picks some of the ranges that a node depends on, as a list or a single one. */
static inline void random_around(laws *l, rng *r, const node *what, law_args *a) {
  node_list some = {0};
  for (uint32_t i = 0; what && i < what->free->n; i++)
    if (rng_chance(r, 60)) vec_push(ir_arena(l->g), &some, what->free->at[i]);
  a->list = some.at;
  a->n = some.n;
  a->other = random_of(r, &some);
}

/** Picks a STAGE, mostly a nested one, or the binder of the range. */
static inline const node *random_binder(laws *l, rng *r, const node *sink, const node *range) {
  node_list order = topo_sort(ir_arena(l->g), &sink, 1, NULL, NULL), inner = {0};
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_STAGE && !stage_is_cut(order.at[i]))
      vec_push(ir_arena(l->g), &inner, order.at[i]);
  bool any = !inner.n || rng_chance(r, 30);
  return any ? law_find_binder(l, sink, range) : random_of(r, &inner);
}

/** Makes arguments of the kinds that a law takes; no subject if the kernel has no range. */
static inline law_args random_args(laws *l, rng *r, law which, const node *sink) {
  const char *form = law_facts_of(which)->arguments;
  const node *range = random_range(l, r, sink);
  law_args a = {.subject = range, .number = rng_between(r, 0, 9)};
  if (!range) return a;
  node_list all = law_data_expressions(l, sink);
  if (strstr(form, "KIND")) a.number = (int64_t)rng_below(r, KIND_LIMIT);
  if (strstr(form, "to NUMBER")) a.number = rng_between(r, 0, 2);
  if (strstr(form, "ROW")) a.number = (int64_t)rng_below(r, TENSOR_ROWS);
  if (strstr(form, "SIDE")) a.number = rng_chance(r, 50);
  if (strstr(form, "POINT")) a.is_multiple = rng_chance(r, 50);
  if (strstr(form, "EXPRESSION") && all.n) a.subject = random_of(r, &all);
  if (strstr(form, "BINDER")) a.subject = random_binder(l, r, sink, range);
  random_around(l, r, *form == 'R' ? law_find_binder(l, sink, range) : a.subject, &a);
  if (strstr(form, "into") || (!a.other && strstr(form, "OUTER"))) a.other = range;
  return a;
}

#endif
