/* What the nests of a kernel do, for choosing how they run. */
#ifndef TENON_IR_WEIGH_H
#define TENON_IR_WEIGH_H

#include "ir/binder.h"
#include "ir/topo.h"

enum {
  WEIGH_SCATTERED =
      2, /* operations for an element that is loaded by itself and put into its lane */
  WEIGH_LANES_WANTED = 2 /* vectors that a reduction has at least for its lanes to pay */
};

/** What is left of work on elements in lanes: at consecutive addresses, or one by one. */
static inline double weigh_left(double work, bool is_streamed, double lanes) {
  return is_streamed ? work / lanes : WEIGH_SCATTERED * work;
}

/** Indices of a range: one that varies counts as a few. */
double weigh_indices(const node *range);

/** How often element operations are done at a node: once for all values of its free ranges. */
double weigh_node(const node *n);

/** What a binder computes in its loops, sources first, without its coordinates and sizes. */
node_list weigh_nest(arena *a, const node *binder);

/** The bytes of the widest element in a nest that depends on a range (NULL: of all), as it is
    computed. */
size_t weigh_widest(const node_list *nest, const node *range);

/** Whether an element of `extents` is at consecutive addresses, or the same one, along a range. */
bool weigh_streamed(ir *g, const node *range, size_t rank, const node *const extents[],
                    const node *const coords[]);

/** The same of an address (address_of). */
bool weigh_is_streamed(ir *g, const node *range, const node *address);

/** The same of an INDEX of a PARAM or a STAGE; others are registers, or small. */
bool weigh_reads_streamed(ir *g, const node *range, const node *index);

/** What is left of a node's work in lanes along a range that it depends on: an element at scattered
    addresses, or one that may be outside, is still loaded by itself and put into its lane, and
    indices are compared one by one. */
double weigh_in_lanes(ir *g, const node *n, const node *range, double lanes);

/** How often a STAGE writes an element of each of its arrays. */
double weigh_writes(const node *stage);

/** Bytes of a STAGE's arrays, at most. */
double weigh_bytes(const node *stage);

/** Whether the order of a FOLD's ranges is free, in this arithmetic (math_mode). */
bool weigh_is_free_order(const node *fold, int math);

/** Whether a node is an element of a PARAM or a STAGE. */
bool weigh_is_read(const node *n);

/** Whether something depends on a range of one of a nest's reductions. */
bool weigh_is_in_fold(const node_list *nest, const node *what);

/** Whether something in a nest reads consecutive elements along a range. */
bool weigh_has_streams(ir *g, const node_list *nest, const node *range);

/** The range whose indices are, or will be, the lanes of what a FOLD computes in its nest: a vector
    around it, or copies of it along which elements are consecutive; NULL: none. */
const node *weigh_lanes(ir *g, const node *fold, const node_list *nest);

/** A STAGE's range in lanes; NULL: it has none. */
const node *weigh_vector(const node *stage);

#endif
