/* Internal header of the choice of joins: state that its files share. Candidates are found in trees
   of selects (select_trees.c), judged (join_profit.c), and made if they are legal (joins.c). */
#ifndef TENON_SCHEDULE_VALUES_JOIN_SEARCH_H
#define TENON_SCHEDULE_VALUES_JOIN_SEARCH_H

#include "schedule/values/joins.h"

/** The elements of a tensor from one index of the join's axis up to another. */
typedef struct join_part {
  const node *x, *from, *to;
} join_part;

typedef VEC(join_part) join_parts;

/** A join that may be made. */
typedef struct join_candidate {
  const node *tensor;
  size_t axis, position; /* in the graph */
  join_parts parts;      /* x: the piece, of this size */
  double bytes;
} join_candidate;

typedef struct join_search {
  ir *g;
  arena *a; /* of the search */
  const joins_policy *policy;
  const normalised *in;
  const node_list *order;
  map *places;
  joins out;
  map in_graph, users;            /* nodes; node → number of nodes that read it */
  map owned, changed;             /* tensors that need an array of their own; that a SET changes */
  map joined;                     /* tensor → its candidate */
  VEC(join_candidate) candidates; /* from large to small */
} join_search;

/* select_trees.c */

/** Lists the selects of the graph that are not branches of others alone, with their parts, and
    counts the users of each node. */
void join_find_candidates(join_search *f);

/** The number of nodes that read one, and of roots that are it. */
uintptr_t join_count_uses(const join_search *f, const node *n);

/* joins.c */

/** True for a result of a step that reads whole arrays, and for a SET. */
bool join_is_opaque(const node *x);

/** True if a tensor may be written into an array that holds more. */
bool join_may_have_place(const join_search *f, const node *x);

/* join_profit.c */

/** True if writing the pieces into the join costs less than copying all of them there, or than
    selecting between them in readers, which reads as many bytes. */
bool join_is_gain(const join_search *f, const join_candidate *c);

/** Bytes of a tensor; a size that varies counts as a typical one. */
double join_bytes_of(const node *x);

#endif
