/* Loop nests of a kernel in the making. A nest is what a binder binds: ranges in no order yet. What
   is placed inside decides the order, as a chain of sets of outer ranges that only grows finer. */
#ifndef TENON_SCHEDULE_NESTS_H
#define TENON_SCHEDULE_NESTS_H

#include "base/map.h"
#include "ir/topo.h"

typedef uint64_t range_mask; /* ranges of a group, by number */

enum { MOST_RANGES = 64 };

typedef enum nest_kind { NEST_ROOT, NEST_STAGE, NEST_FOLD } nest_kind;

/** A reduction in a fold's nest: of a value, at a point. */
typedef struct fold_state {
  const struct value *v;
  const struct point *point;
} fold_state;

typedef struct nest {
  nest_kind kind;
  range_mask own;                /* what it binds */
  range_mask outer;              /* what is open around it: its place */
  unsigned depth;                /* nests around it, itself included */
  size_t level;                  /* reduction level of what it computes */
  VEC(fold_state) states;        /* NEST_FOLD: reductions that share it, or one scan, */
  struct nest **arrays;          /* and the nests of its states that are arrays; else NULL */
  range_mask chain[MOST_RANGES]; /* sets of ranges that are outermost, each within the next */
  size_t n_chain;
  size_t n_index;
  const node *const *index;   /* for each size it was opened for: its RANGE, or sum of two, or 0 */
  const node *const *extents; /* these sizes */
} nest;

/** The nests of one group, and its ranges. */
typedef struct nests {
  ir *g;
  VEC(nest *) at;
  const node *range[MOST_RANGES];
  nest *nest_of[MOST_RANGES];
  double size[MOST_RANGES];
  size_t n_ranges;
  map number; /* RANGE → number + 1 */
} nests;

/** Opens a nest over sizes inside of `outer`; NULL where there would be too many ranges. Of a size
    that consists of `blocks` of more than 1, the blocks and what is in one are a range each. */
nest *nest_open(nests *s, nest_kind kind, size_t n, const node *const sizes[],
                const int64_t blocks[], range_mask outer);

/** The ranges that are free in a node. */
range_mask nests_free(const nests *s, const node *n);

/** All ranges that are open where something with free ranges `free` runs: what is outermost of
    every nest on the way, as far as its order is known. */
range_mask nests_open(const nests *s, range_mask free);

/** Makes the order such that something with these free ranges runs as far out as it can. */
void nests_commit(nests *s, range_mask free);

/** How often what runs inside of these ranges runs. */
double nests_times(const nests *s, range_mask open);

/** The ranges of a nest from outer to inner. Returns how many. */
size_t nest_order(const nests *s, const nest *n, const node *order[MOST_RANGES]);

/** The deepest nest that binds one of these ranges; NULL of none. */
nest *nests_deepest(const nests *s, range_mask free);

#endif
