/* Normalises a tensor graph: copies it into the scratch IR with its BUFFERs (graph inputs) as
   PARAMs (arguments by slot), numbered in order of first use, and simplifies it, so that equal
   graphs over other buffers are the same graph. */
#ifndef TENON_SCHEDULE_VALUES_NORMALISE_H
#define TENON_SCHEDULE_VALUES_NORMALISE_H

#include "schedule/core/schedule_types.h"

typedef struct normalised {
  const node **roots;
  size_t n_roots;
  const node **labelled;              /* the normalised node of each label of the request */
  VEC(const node *) origins;          /* the BUFFER behind each PARAM slot */
  map copies;                         /* nodes that copy their operand: kernels of their own */
  map n_copies;                       /* a node → the number of them */
  VEC(struct extracted_loop *) loops; /* of the RESULTs in it, by number − 1 */
  const schedule_items *items;        /* NULL: there are none */
  VEC(node_list) loop_sizes;          /* index expressions of each of the loops */
  size_t n_labelled;
  size_t device; /* of what is anybody's */
} normalised;

/** Normalises the roots and labelled nodes of a request into `g`. */
void normalise_graph(ir *g, const schedule_request *r, normalised *out);

#endif
