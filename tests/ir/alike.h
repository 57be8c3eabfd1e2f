/* Compares kernels up to the ids of their ranges (loop indices), and checks that the printed
   schedule of a kernel, parsed and applied again, leads to the same kernel. */
#ifndef TENON_TESTS_IR_ALIKE_H
#define TENON_TESTS_IR_ALIKE_H

#include "ir/transform/substitute.h"
#include "laws/kernel_schedule.h"

#include <string.h>

/** Renumbers a kernel's ranges from `first` on, outer ones first. */
static inline const node *alike_renumbered(ir *g, const node *sink, int64_t first) {
  laws l = {.g = g};
  map with = {0};
  const node *none = ir_node(g, OP_SINK, DT_VOID, NULL, 0, NULL, 0);
  node_list ranges = law_find_new_ranges(&l, none, sink);
  for (size_t i = 0; i < ranges.n; i++) {
    const node *r = ranges.at[i], *extent = range_extent(r);
    if (!node_is_const(extent)) extent = subst_ranges(g, extent, &with);
    int64_t ints[] = {first + (int64_t)i, r->ints[1], r->ints[2], r->ints[3]};
    map_set(ir_arena(g), &with, r, (void *)ir_node(g, OP_RANGE, DT_INDEX, &extent, 1, ints, 4));
  }
  return subst(g, sink, &with);
}

/** True if two kernels are equal up to range numbers: renumbered in one graph they are the same
    node. */
static inline bool alike(ir *g, const node *a, const node *b) {
  enum { BEYOND = 1 << 30 }; /* above all range numbers in use */
  return alike_renumbered(g, a, BEYOND) == alike_renumbered(g, b, BEYOND);
}

/** Appends a line of a schedule to a str; a `law` callback of codegen_observer. */
static inline void alike_note(void *user, const char *line) {
  str_add(user, line);
  str_add(user, "\n");
}

/** Raises unless a schedule leads from one kernel to the other and survives printing and parsing.
    `workers`: of a group, 0: there are no teams; `warp`: of a warp. */
static inline void alike_replay_in_teams(ir *g, const node *from, const str *text, const node *to,
                                         uint32_t workers, uint32_t warp) {
  arena *a = ir_arena(g);
  laws l = {.g = g, .workers = workers, .warp = warp};
  str again = str_new(a);
  law_schedule parsed = law_schedule_parse(a, str_text(text), text->n);
  law_schedule_print(&again, &parsed);
  if (strcmp(str_text(text), str_text(&again)) != 0)
    diag_raise(ir_diag(g), TN_ERR_INTERNAL, "a schedule is\n%sand once parsed\n%s", str_text(text),
               str_text(&again));
  if (!alike(g, law_schedule_apply(&l, from, &parsed), to))
    diag_raise(ir_diag(g), TN_ERR_INTERNAL, "a schedule makes another kernel when replayed:\n%s",
               str_text(text));
}

static inline void alike_replay(ir *g, const node *from, const str *text, const node *to) {
  alike_replay_in_teams(g, from, text, to, 0, 0);
}

#endif
