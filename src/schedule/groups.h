/* Groups: the values that share a kernel, and where in it each is computed. */
#ifndef TENON_SCHEDULE_GROUPS_H
#define TENON_SCHEDULE_GROUPS_H

#include "schedule/nests.h"
#include "schedule/prices.h"

typedef struct group group;

/** An element of a value that a group needs. */
typedef struct point {
  const node *index; /* INDEX(tensor; e …) over the group's ranges */
  range_mask free;
  size_t under; /* the level of what the indices are computed from, at most */
  code code;    /* what reading it takes, if it is loaded */
  nest *fold;   /* of a reduction that is computed here: its nest, */
  size_t state; /* and which of the nest's states it is */
} point;

typedef enum decision {
  UNDECIDED,
  INLINED, /* computed where it is read */
  PLACED,  /* an array built in a nest inside the kernel */
  LOADED   /* from memory */
} decision;

/** A value in a group that reads it. */
typedef struct use {
  value *v;
  group *g;
  decision how;
  bool is_whole; /* read as a whole array: it can only be loaded */
  VEC(point) points;
  nest *stage;     /* PLACED: the nest that it is built in, */
  uint64_t shared; /* at the indices of these axes, which all points have alike; */
  point built;     /* the element built there */
} use;

/** A value written by a group, at a point over the root nest. */
typedef struct group_store {
  use *use;
  const node *index;
} group_store;

struct group {
  size_t key;    /* the position of its largest root: groups run in this order */
  value *custom; /* the value of a CUSTOM, KERNEL or RESULT, alone; else NULL */
  nests nests;
  nest *root;
  VEC(use *) uses;
  map use_of; /* value → use */
  map inputs; /* PARAMs it reads */
  map points; /* INDEX that it reads → its position in the points of its use + 1; of a PARAM: 1 */
  VEC(group_store) stores;
  size_t frontier; /* values that it reads and that are not decided yet, or loaded */
  size_t outputs;  /* arrays that it writes */
  size_t members;  /* values that it computes */
  value_room held; /* what bound values will need that are not decided */
  double scratch;  /* bytes of the arrays that it builds in nests */
  code code;       /* of all that it computes, if what is not decided is loaded; */
  double lanes;    /* in vectors of so many elements */
};

/** What is known of a value once it is decided. */
typedef struct value_places {
  VEC(use *) uses;
  group *home;            /* the group that writes it; NULL: none */
  const node *home_index; /* the point at which it does */
  bool is_free;           /* it does because it is cheaper; it need not be in memory */
} value_places;

typedef VEC(group *) groups;

/** The point of a use that an INDEX is; NULL: none. */
point *point_of(const use *u, const node *index);

/** What stands for a value's coordinates, and for the ranges it reduces over, at INDEX(tensor; e …)
    and in a fold's nest; `fold` NULL: for the coordinates alone. Of a scan also for coordinates of
    its states. */
map coords_at(arena *a, const value *v, const node *index, const nest *fold);

/** The point of a value at an INDEX: of a scan without what is read of which state. */
const node *point_index(ir *g, const value *v, const node *index);

typedef enum grouping_policy {
  GROUPING_PRICED,
  GROUPING_STAGED, /* every value in memory */
  GROUPING_RANDOM  /* any choice that is legal */
} grouping_policy;

typedef struct grouping_request {
  machine machine;
  size_t arguments; /* most buffers of a kernel */
  grouping_policy policy;
  uint64_t seed;
  void (*decided)(void *watcher, const schedule_decision *d); /* NULL: nobody is told */
  void *watcher;
} grouping_request;

/** grouping.c: decides about every value, from outputs to inputs, once. Groups in order of keys. */
groups schedule_groups(ir *g, const grouping_request *r, values *v);

/** kernels.c: the steps of a schedule and its buffers; the PARAMs of their kernels are numbered as
    the buffers. One that needs more than `arguments` buffers (0: any number) is refused. */
void schedule_kernels(ir *g, const normalised *in, const values *v, const groups *groups,
                      size_t arguments, schedule *s);

#endif
