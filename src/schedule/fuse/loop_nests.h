/* Loop nests of a kernel that fusion is building. A nest is the set of ranges of one binder (a loop
   node of the IR), in no order yet; each value placed inside constrains the order, kept as a chain
   of sets of outer ranges that only grows finer. */
#ifndef TENON_SCHEDULE_FUSE_LOOP_NESTS_H
#define TENON_SCHEDULE_FUSE_LOOP_NESTS_H

#include "base/map.h"
#include "ir/core/topo_sort.h"

typedef uint64_t range_mask; /* a set of ranges of a group, by number */

enum { MOST_RANGES = 64 };

typedef enum nest_kind { NEST_ROOT, NEST_STAGE, NEST_FOLD } nest_kind;

/** A reduction in the nest of a FOLD: a value at a point. */
typedef struct fold_state {
  const struct value *v;
  const struct point *point;
} fold_state;

typedef struct nest {
  nest_kind kind;
  range_mask own;         /* ranges that it binds */
  range_mask outer;       /* ranges around it that it depends on: its place */
  unsigned depth;         /* nests around it, itself included */
  size_t level;           /* reduction level of the values that it computes */
  VEC(fold_state) states; /* NEST_FOLD: reductions that share it, or one scan */
  struct nest **arrays;   /* of a scan: nests of the states that are arrays; else NULL */
  range_mask *chain;      /* sets of outermost ranges, each within the next */
  size_t n_order;         /* of them: no more than its ranges */
  size_t n_index;
  const node *const *index;   /* for each size: its RANGE, a sum of two, or 0 */
  const node *const *extents; /* the sizes it was opened for */
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

/** Opens a nest over sizes inside of the ranges `outer`; NULL: there would be too many ranges. A
   size in blocks[i] > 1 indices each becomes two ranges, over the blocks and within one. */
nest *nests_add(nests *s, nest_kind kind, size_t n, const node *const sizes[],
                const int64_t blocks[], range_mask outer);

/** The ranges of the group that are free in a node. */
range_mask nests_free_ranges(const nests *s, const node *n);

/** All loops around an expression with the free ranges `free`: of every nest on the way the
    outermost ranges that it needs, as far as the order is known. */
range_mask nests_enclosing(const nests *s, range_mask free);

/** Constrains the order such that an expression with these free ranges runs as far out as possible.
 */
void nests_fix_order(nests *s, range_mask free);

/** The product of the trip counts of these ranges. */
double nests_trip_count(const nests *s, range_mask open);

/** Lists the ranges of a nest from outer to inner. Returns their number. */
size_t nests_loop_order(const nests *s, const nest *n, const node *order[MOST_RANGES]);

/** The deepest nest that binds one of these ranges; NULL for none. */
nest *nests_deepest(const nests *s, range_mask free);

#endif
