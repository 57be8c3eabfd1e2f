/* Fusion groups: the sets of values that share a kernel, with the place in the kernel's loop nests
   where each value is computed, loaded or stored, and the kernel's resources that they take. */
#ifndef TENON_SCHEDULE_FUSE_FUSION_GROUP_H
#define TENON_SCHEDULE_FUSE_FUSION_GROUP_H

#include "schedule/fuse/cost_model.h"
#include "schedule/fuse/loop_nests.h"

typedef struct group group;

/** An element of a value that a group reads. */
typedef struct point {
  const node *index; /* INDEX(tensor; e …) over the group's ranges */
  range_mask free;
  size_t under; /* highest reduction level of values that the indices are computed from */
  code code;    /* instructions of its load */
  nest *fold;   /* of a reduction that is computed here: its nest */
  size_t state; /* and its position among the states of the nest */
} point;

typedef enum decision {
  FUSION_UNDECIDED,
  FUSION_INLINED, /* computed where it is read */
  PLACED,         /* built as an array in a nest inside the kernel */
  FUSION_LOADED   /* loaded from memory */
} decision;

/** The use of a value by a group that reads it. */
typedef struct use {
  value *v;
  group *g;
  decision how;
  bool is_whole; /* read as a whole array: can only be loaded */
  VEC(point) points;
  nest *stage;     /* PLACED: the nest that it is built in */
  uint64_t shared; /* PLACED: axes that the array lacks, as all points have the same index there */
  point built;     /* PLACED: the element that an iteration of the nest builds */
} use;

/** A value that a group writes, at an element over the root nest. */
typedef struct fusion_store {
  use *use;
  const node *index;
} fusion_store;

/** Resources that a group uses, of those that a kernel has. */
typedef struct group_resources {
  size_t frontier;        /* number of values that it reads, undecided or loaded */
  size_t outputs;         /* number of arrays that it writes */
  size_t members;         /* number of values that it computes */
  value_reserve reserved; /* for scans and values inside of them that are still undecided */
  double scratch;         /* bytes of the arrays built in its nests */
  code code;              /* instructions, if undecided values are loaded */
  double lanes;           /* elements of a vector */
} group_resources;

struct group {
  size_t key;    /* the largest position of the values it writes: groups run in this order */
  value *custom; /* the only value, if it is a CUSTOM, KERNEL or RESULT; else NULL */
  nests nests;
  nest *root;
  VEC(use *) uses;
  map use_of; /* value → use */
  map inputs; /* PARAMs it reads */
  map points; /* INDEX that it reads → its position in its use's points + 1; of a PARAM: 1 */
  VEC(fusion_store) stores;
  group_resources used;
};

/** The state of a value in the search. */
typedef struct value_placement {
  VEC(use *) uses;
  group *home;             /* the group that writes it; NULL: none */
  const node *store_index; /* the element at which it is written */
  bool is_free;            /* written by choice, not because a reader needs it */
} value_placement;

typedef VEC(group *) groups;

/** The guard of the values that a group writes, which all have the same; NULL: it runs always. */
static inline const struct guard *group_guard(const group *g) {
  return g->custom ? g->custom->guard : g->stores.n ? g->stores.at[0].use->v->guard : NULL;
}
/** The device of all values that a group computes, + 1; it writes one at least. */
static inline uint8_t group_device(const group *g) { return g->stores.at[0].use->v->device; }

/** The point of a use for an INDEX; NULL: none. */
point *use_find_point(const use *u, const node *index);

/** Maps the coordinates of a value to the indices of INDEX(tensor; e …), its reduced ranges to
   those of a FOLD's nest, and the coordinates of a scan's states to those of their nests; `fold`
   NULL: the coordinates alone. */
map value_point_coords(arena *a, const value *v, const node *index, const nest *fold);

/** The INDEX that identifies a point: for a scan without the state and its coordinates. */
const node *value_point_index(ir *g, const value *v, const node *index);

#endif
