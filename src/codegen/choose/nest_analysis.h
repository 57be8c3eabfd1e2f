/* Analyses one loop nest, a STAGE or FOLD (array or reduction) with everything computed in its
   loops, for the steps of the automatic scheduler: its nodes, its vector range, the reductions
   inside of it. */
#ifndef TENON_CODEGEN_CHOOSE_NEST_ANALYSIS_H
#define TENON_CODEGEN_CHOOSE_NEST_ANALYSIS_H

#include "ir/core/binder.h"
#include "ir/core/topo_sort.h"

/** The nodes that a binder computes in its loops, sources first, without its coordinates and
    extents. */
node_list nest_nodes(arena *a, const node *binder);

/** True if a node reads an element of a PARAM or a STAGE. */
bool nest_is_array_read(const node *n);

/** True if there is a reduction among nodes. */
bool nest_has_fold(const node_list *nodes);

/** True if `what` depends on a range of one of a nest's reductions. */
bool nest_varies_in_fold(const node_list *nest, const node *what);

/** True if a nest reads an array at consecutive addresses along a range. */
bool nest_has_consecutive_read(ir *g, const node_list *nest, const node *range);

/** The range whose indices are, or will become, the lanes of a FOLD's computation: a vector around
    it, or unrolled copies of it along which a read is consecutive; NULL: none. */
const node *nest_lane_range(ir *g, const node *fold, const node_list *nest);

/** True if a FOLD loads vectors that change along a range, or (`varies` false) that do not. */
bool nest_loads_vectors(ir *g, const node *fold, const node *range, bool varies);

/** True if a STAGE has unrolled copies. */
bool nest_is_unrolled(const node *stage);

/** Loops of a STAGE outside of its copies and lanes. */
size_t nest_count_loops(const node *stage);

/** The vector range of a STAGE; NULL: none. */
const node *nest_vector_range(const node *stage);

/** True if a STAGE copies a FOLD's array along a range, which the lowering leaves out where the
   range stays as it is (lower/output_arrays.c). */
bool nest_copies_along(const node *stage, const node *range);

#endif
