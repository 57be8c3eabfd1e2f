/* What the files of the search share: grouping.c visits values and decides; uses.c keeps what
   groups read and have room for; options.c prices what can be done with a value inside a group;
   taking.c does it; writing.c finds who writes a value. */
#ifndef TENON_SCHEDULE_GROUPING_H
#define TENON_SCHEDULE_GROUPING_H

#include "schedule/groups.h"

enum { MOST_OPTIONS = 34, RECENT_GROUPS = 8 };

typedef struct option {
  double price;
  decision how;
  uint64_t shared;
} option;

typedef struct recent {
  group *at[RECENT_GROUPS];
  size_t next;
} recent;

typedef struct grouping {
  ir *g;
  arena *a;
  const grouping_request *request;
  const machine *m;
  values *values;
  groups groups;
  map recent; /* leading input → the last groups that have it */
  uint64_t random;
  bool tells; /* what is decided is told */
} grouping;

typedef struct options {
  option at[MOST_OPTIONS];
  size_t n;
  const char *refusal; /* why it cannot be computed where it is read; static; NULL: it can */
} options;

/* uses.c */

use *use_of(grouping *s, group *g, value *v);

/** What is held for a value in a group is its own from now on. */
void release(group *g, const value *v);

/** A group needs an element of v; `under`: the level of what its indices are computed from. */
void add_point_of(grouping *s, group *g, value *v, const node *index, size_t under);

/** What computing a value at a point reads is needed. */
void add_reads(grouping *s, group *g, const value *v, const point *p);

/** How many buffers a group has, if what it reads and is not decided becomes one each. */
size_t group_arguments(const group *g);

/** How many more it would have with v. */
size_t new_reads(const grouping *s, const group *g, const value *v);

/** What a group gets more of with a value. */
typedef struct demand {
  size_t nests, ranges;
  code code;  /* may be less than nothing */
  code whole; /* that, with all that follows if nothing is loaded */
} demand;

/** Whether a group that computes a value too may still have all it reads as arguments, and has room
    for the rest. */
bool has_room(const grouping *s, const group *g, const value *v, const demand *more);

/** Old contents are read before they are stored over: by groups of smaller keys; or by the group
    that stores, where it stores. At all points of a use; at one element of v; or wherever else. */
bool may_read_all(grouping *s, const use *u);
bool may_read_at(grouping *s, const group *g, const value *v, const node *index);
bool may_read_anywhere(const grouping *s, const group *g, const value *v);

/** The ranges of a group that coordinates of v depend on: those in the mask. */
range_mask dependence(const group *g, const value *v, const node *const coords[], uint64_t mask);

/* options.c */

/** Bytes of the array that a value is built in inside a kernel, of the axes that are not in the
    mask; 0: none, or the size varies. */
double stage_bytes(const value *v, uint64_t shared);

/** What can be done with a value inside a group that reads it. */
options options_of(grouping *s, const use *u);

/* telling.c */

/** Tells the request's watcher what is decided about v, before it is done. `must`: it has to be
    written, whatever that costs, `written`. */
void tell_decision(grouping *s, const value *v, const use *home, bool must, bool is_written,
                   double written);

/* cuts.c */

/** Marks values that are better written than what they are computed from, which the search has
   found to be written; false: there are none. */
bool move_cuts(grouping *s);

/* taking.c */

/** A fold of a group that runs where that of v at a point would, over the same sizes and at the
   same level: they share its loop. NULL: there is none. */
nest *fold_like(const grouping *s, const group *g, const value *v, const point *p);

/** The instructions that v at a point takes besides its own: a tile's, where its fold is a new one.
 */
double tile_code(const grouping *s, const group *g, const value *v, const point *p);

/** Computes a value in a group as an option says: what it reads is needed then. */
void take(grouping *s, use *u, const option *o);

/* writing.c */

/** A reader that computes v anyway at each of its elements and may write it; NULL: none. */
use *host_of(grouping *s, const value *v, const option *const best[]);

/** v is written: by `home`, its host, or NULL: by a group of its own kind or of its own. Other
    readers load it, or compute it again where that is cheaper. */
void write_value(grouping *s, value *v, const option *const best[], use *home);

#endif
