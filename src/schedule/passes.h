/* The passes of schedule_make, and what they hand on. */
#ifndef TENON_SCHEDULE_PASSES_H
#define TENON_SCHEDULE_PASSES_H

#include "ir/topo.h"
#include "schedule/schedule.h"

/** normalise.c: the graph copied into a scratch ir, BUFFERs as PARAMs numbered in order of
    appearance, and simplified. */
typedef struct normalised {
  const node **roots;
  size_t n_roots;
  VEC(const node *) origins; /* the BUFFER behind each PARAM slot */
  map copies;                /* nodes that copy what they move: kernels of their own */
} normalised;
void schedule_normalise(ir *g, const schedule_request *r, normalised *out);

/** versions.c: copies where a SET may not write over the old contents, or a root is an input. */
void schedule_versions(ir *g, const schedule_request *r, normalised *n);

/** versions.c: what a copy of an array is: a movement that changes nothing. */
const node *versions_identity(ir *g, const node *x);

/** versions.c: all other readers of what a SET changes read a copy, made before. */
void versions_copy_for_readers(ir *g, normalised *n, const node *set);

/** places.c: which values are written down: those with a kernel of their own. */
typedef struct places {
  node_list cuts; /* values that are written down, sources first; PARAMs are not among them */
  map is_cut;     /* node → itself */
} places;
void schedule_places(ir *g, const schedule_request *r, const normalised *in, places *out);

/** ranges.c: the element of a tensor value at given coordinates, as an expression over elements of
    PARAMs and of cut values: INDEX(value, coordinates). `value` itself is entered even if cut. */
const node *ranges_element(ir *g, const map *is_cut, const node *value, size_t rank,
                           const node *const coords[]);

/** ranges.c: the coordinates in x of element `coords` of a chain of movements that ends at x. */
void ranges_through(ir *g, const node *view, const node *x, const node *const coords[],
                    const node *into[]);

/** kernels.c: what makes each written-down value, and what it reads. */
typedef struct draft {
  const node *value;  /* a cut value */
  const node *kernel; /* SINK whose PARAM slots are buffer numbers; NULL for a CUSTOM */
  size_t into;        /* the buffer it writes */
  node_list uses;     /* PARAMs and cut values that it reads, each once */
} draft;
typedef struct drafts {
  VEC(draft) at;
  map buffer_of; /* PARAM or cut value → buffer number + 1 */
} drafts;
void schedule_kernels(ir *g, const normalised *in, places *p, schedule *s, drafts *out);

/** order.c: the steps in an order that respects every dependence, and the lifetimes of buffers.
    NULL; or, if there is no such order, a SET whose old contents are needed after it. */
const node *schedule_order(ir *g, const drafts *d, schedule *s);

/** steps.c: a kernel with its buffers numbered by position and its ranges by order, so that equal
    kernels are the same node. `buffers` gets the buffer number of each position. */
const node *kernel_renamed(ir *g, const node *sink, size_t **buffers, size_t *n);

#endif
