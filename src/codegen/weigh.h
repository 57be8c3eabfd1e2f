/* What the nests of a kernel do, for choosing how they run. */
#ifndef TENON_CODEGEN_WEIGH_H
#define TENON_CODEGEN_WEIGH_H

#include "ir/binder.h"
#include "ir/topo.h"

/** Operations for an element that is loaded by itself and put into its lane. */
enum { WEIGH_SCATTERED = 2 };

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

/** The same of an INDEX of a PARAM or a STAGE; others are registers, or small. */
bool weigh_reads_streamed(ir *g, const node *range, const node *index);

/** A STAGE's range in lanes; NULL: it has none. */
const node *weigh_vector(const node *stage);

#endif
