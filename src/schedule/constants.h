/* What of a graph depends on nothing but contents that never change, as a model's weights: it is
   computed once, before any run, and read as it was then. */
#ifndef TENON_SCHEDULE_CONSTANTS_H
#define TENON_SCHEDULE_CONSTANTS_H

#include "ir/topo.h"

/** A value to be computed once: `leaf`, a BUFFER of the new graph, stands for it. */
typedef struct constant {
  const node *leaf;
  const node *value; /* over BUFFERs of the old graph */
} constant;

typedef struct constants_request {
  const node *const *roots; /* of the ir that is handed along */
  size_t n_roots;
  bool (*is_constant)(void *user, const node *buffer);
  void *user;
  size_t vector; /* bytes of the widest vector; 0: there are none */
  int math;      /* math_mode */
} constants_request;

typedef struct constants {
  const node **roots; /* the same values, over the new leaves */
  VEC(constant) at;
} constants;

/** Finds them: what is computed from constants alone, if it is no larger than these; and constants
    that contractions would read with their lanes far apart, with the axis of the lanes last. Lists
    live in the ir's scratch memory. */
constants schedule_constants(ir *g, const constants_request *r);

#endif
