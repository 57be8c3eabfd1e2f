/* Internal header of the fusion search: state and functions shared by its source files. A group
   is the set of values that one fused kernel computes. The files: reads and resource limits of
   groups (group_reads.c), costed options to compute a value inside a consumer's group
   (fusion_options.c), applying one (inline_value.c), placing the store of a materialised value
   (store_placement.c), moving materialisation points (materialise.c), values that have to be stored
   (forced_stores.c), reporting (report_decision.c). */
#ifndef TENON_SCHEDULE_FUSE_SEARCH_STATE_H
#define TENON_SCHEDULE_FUSE_SEARCH_STATE_H

#include "schedule/fuse/fusion_search.h"

enum {
  FUSION_MOST_OPTIONS = 34,
  FUSION_RECENT_GROUPS = 8,
  FUSION_MOST_CHAIN = 8 /* longest chain of values that is followed */
};

typedef struct option {
  double cost; /* ns */
  decision how;
  uint64_t shared; /* PLACED: axes that the array lacks */
} option;

typedef struct options {
  option at[FUSION_MOST_OPTIONS];
  size_t n;
  const char *refusal; /* why it cannot be computed where it is read (static); NULL: it can */
} options;

/** The last groups with some leading input, round robin. */
typedef struct recent {
  group *at[FUSION_RECENT_GROUPS];
  size_t next;
} recent;

typedef struct grouping {
  ir *g;
  arena *a;    /* of the groups */
  arena *work; /* of the search */
  const fusion_request *request;
  const machine *m; /* of the value at hand */
  values *values;
  value_list *readers; /* of each value, by position */
  groups groups;
  map recent; /* leading input → the last groups that have it */
  uint64_t random;
  bool reports; /* decisions are reported */
} grouping;

/* group_reads.c */

/** The use of a value in a group, added if it is new. */
use *group_use_of(grouping *s, group *g, value *v);

/** Ends the reservation of a group for a value that it computes from now on. */
void group_end_reservation(group *g, const value *v);

/** Adds an element of v to those that a group reads; `under`: the highest reduction level of values
    that its indices are computed from. */
void group_add_point(grouping *s, group *g, value *v, const node *index, size_t under);

/** Adds the reads of a value computed at a point to those of a group. */
void group_add_reads(grouping *s, group *g, const value *v, const point *p);

/** Adds the elements that must be in memory before a group runs, as sizes of v follow from them. */
void group_add_items(grouping *s, group *g, const value *v);

/** The buffers of a group, if each undecided value that it reads becomes one. */
size_t group_count_arguments(const group *g);

/** The buffers that computing v would add. */
size_t group_count_new_reads(const grouping *s, const group *g, const value *v);

/** The resources that computing a value adds to a group. */
typedef struct demand {
  size_t nests, ranges;
  code code;     /* may be negative, as loads go */
  code whole;    /* including all operands, if nothing is loaded */
  size_t points; /* at which it would be computed */
} demand;

/** True if a group that also computes v stays within the limits of a kernel: arguments, loops,
    scratch memory, members and code. */
bool group_has_room(const grouping *s, const group *g, const value *v, const demand *more);

/** True if v, computed in a group, reads no array that is stored over before: groups of smaller
   keys than the storing group's may read it, and the storing group itself where it stores. At all
    points of a use; at one element of v; at any element. */
bool group_may_read_all(grouping *s, const use *u);
bool group_may_read_at(grouping *s, const group *g, const value *v, const node *index);
bool group_may_read_anywhere(const grouping *s, const group *g, const value *v);

/** The ranges of a group that the coordinates of v in the mask depend on. */
range_mask group_ranges_of_coords(const group *g, const value *v, const node *const coords[],
                                  uint64_t mask);

/* fusion_options.c */

/** Bytes of the array of a value inside a kernel, without the axes in the mask; 0: the size varies.
 */
double fusion_stage_bytes(const value *v, uint64_t shared);

/** The options for a value inside a group that reads it, with their costs. */
options fusion_options_of(grouping *s, const use *u);

/* report_decision.c */

/** Reports the decision about v to the request's observer, before it is carried out. `must`: v has
   to be written, at any cost; `written`: that cost, in ns. */
void report_decision(grouping *s, const value *v, const use *home, bool must, bool is_written,
                     double written);

/* materialise.c */

/** Marks values that are better written than the operand that the search wrote; false: none. */
bool materialise_move(grouping *s);

/* forced_stores.c */

/** Wishes stores of values whose repeated computation the search does not cost right.
 */
void fusion_force_stores(grouping *s);

/* inline_value.c */

/** The FOLD of a group at the same place as that of v at a point would be, over the same sizes and
   at the same reduction level: v shares its loop. NULL: none. */
nest *inline_find_fold(const grouping *s, const group *g, const value *v, const point *p);

/** The instructions of the register tile of v at a point, if its FOLD is a new one; else 0. */
double inline_tile_code(const grouping *s, const group *g, const value *v, const point *p);

/** Computes a value in a group as an option says, and adds its reads to the group. */
void inline_by_option(grouping *s, use *u, const option *o);

/* store_placement.c */

/** A reader that computes v anyway at each of its elements and may write it; NULL: none. */
use *store_find_host(grouping *s, const value *v, const option *const best[]);

/** Writes v: by `home`, its host, or, if NULL, by a group that it joins as a root, or by a new one.
    Other readers load it, or compute it again where that is cheaper. */
void store_write_value(grouping *s, value *v, const option *const best[], use *home);

#endif
