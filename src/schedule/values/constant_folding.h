/* Folds constants at load time: finds the parts of a graph that depend only on contents that never
   change, such as the weights of a model, to be computed once, before any run. */
#ifndef TENON_SCHEDULE_VALUES_CONSTANT_FOLDING_H
#define TENON_SCHEDULE_VALUES_CONSTANT_FOLDING_H

#include "ir/core/topo_sort.h"

/** A value to be computed once. */
typedef struct constant {
  const node *leaf;  /* the BUFFER that stands for it in the new graph */
  const node *value; /* over BUFFERs of the old graph */
} constant;

typedef struct constant_folding_request {
  const node *const *roots; /* of the ir `g` */
  size_t n_roots;
  bool (*is_constant)(void *user, const node *buffer);
  void *user;
  int64_t first_uid; /* of the new BUFFERs: no BUFFER of the graph has it or a larger one */
  size_t vector;     /* bytes of the widest vector; 0: there are none */
  double cache;      /* bytes of the last-level cache */
  int math;          /* math_mode */
  uint32_t rows;     /* a bit for each TENSOR_ROW that the target has */
} constant_folding_request;

typedef struct constants {
  const node **roots; /* the same roots, over the new BUFFERs */
  VEC(constant) at;
} constants;

/** Finds the values that are computed from constants alone and are no larger than these, and gives
    constants that contractions would read with their lanes far apart a layout with the axis of the
    lanes last. `is_constant`: true if a BUFFER's contents never change. The lists live in the arena
    of `g`. All nodes are on device 0, as a model's are: a constant would be placed there, whichever
    devices read it. */
constants constant_folding_find(ir *g, const constant_folding_request *r);

#endif
