/* Derives where the arrays of a kernel for teams of workers lie. A coordinate that is a digit of a
   worker's or group's number, and that every reader has as its own digit, is dropped: each worker
   holds its part. The widest kind of the digits that are left among the coordinates tells who
   shares the array:

     none    a worker's own: registers or scratch memory
     WARP    a warp's memory
     LOCAL   a group's memory
     GLOBAL  nobody's: groups cannot share an array of a kernel

   Coordinates of that kind and of narrower ones stay: the workers that share an array have one. */
#ifndef TENON_LAWS_TEAM_ARRAYS_H
#define TENON_LAWS_TEAM_ARRAYS_H

#include "laws/team_digits.h"

#include "base/map.h"

/** The array of one component of a STAGE or FOLD. */
typedef struct team_array {
  uint32_t dropped;  /* bit p: coordinate p */
  bool is_partial;   /* some workers have no part: the array is shorter than a digit */
  range_kind widest; /* of the digits among the other coordinates; KIND_LOOP: none */
} team_array;

typedef struct team_arrays {
  team_digits digits;
  map arrays; /* STAGE, FOLD → team_array[components] */
  map open;   /* STAGE, FOLD, OUT's STAGE → node_list of the ranges that it runs inside of */
} team_arrays;

/** The arrays of a kernel. In the ir's scratch memory. */
team_arrays team_arrays_of(ir *g, const node *sink);

/** The array of a component of a STAGE or FOLD. */
const team_array *team_arrays_find(const team_arrays *t, const node *binder, size_t component);

/** True if a binder computes something else for each index of a range around it: it depends on the
    range, or reads the state of a FOLD that it is inside of, which is each worker's own. */
bool team_differs_along(ir *g, const node *binder, const node *range);

/** The space of an array with some number of dimensions. */
storage_space team_array_space(const team_array *a, size_t rank);

/** NULL if a kernel with digits can run in teams as it stands; else the reason why it cannot: an
    array that groups would share, a place at which a team would have to meet and that some of it
    do not come by, a reduction over digits that has no tree, a buffer that workers read while
    others change it. */
const char *team_objection(ir *g, const node *sink);

#endif
