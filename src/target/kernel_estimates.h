/* Cost estimates of a kernel before it is lowered, which fusion's choice of layouts and code
   generation share: how many element operations a node of a loop nest takes, in scalars and in
   vectors along a range, and whether a range walks through memory at unit stride. Ranges of open
   size count as range_likely_trips says. */
#ifndef TENON_TARGET_KERNEL_ESTIMATES_H
#define TENON_TARGET_KERNEL_ESTIMATES_H

#include "ir/core/binder.h"
#include "ir/core/topo_sort.h"
#include "target/machine.h"
#include "target/target.h"

/** Operations that remain of `operations` on elements when they are computed in vectors of `lanes`
    elements: a fraction for elements at consecutive addresses, else one gather each. */
static inline double estimate_vectorised(double operations, bool is_consecutive, double lanes) {
  return is_consecutive ? operations / lanes : MACHINE_GATHER_OPERATIONS * operations;
}

/** Element operations of a node: one for every combination of its free ranges' indices. */
double estimate_node_operations(const node *n);

/** Element operations of a node in vectors along a range that it depends on. An element at a
   scattered address, or under a bounds check that depends on the range, is loaded by itself and
   inserted into its lane; elements at addresses that fall by one are loaded as a vector, and their
   order is reversed; indices are compared one by one. */
double estimate_node_vectorised(ir *g, const node *n, const node *range, double lanes);

/** Bytes of the widest element among nest nodes that depend on a range (NULL: among all), as it is
    computed: 16-bit floats count as f32. */
size_t estimate_widest_element(const node_list *nest, const node *range);

/** The index of a range at which a comparison of the range with a constant changes its result; 0:
    none. */
int64_t comparison_change_point(ir *g, const node *compare, const node *range);

/** True if a comparison, or a chain of ANDs of such, disappears once a binder's nest is split at
   the change points (index-set splitting), which loops of the reduction itself are not. */
bool comparison_splits_nest(ir *g, const node *compare, const node *binder);

/** Elements that a STAGE stores to each of its arrays. */
double estimate_stage_stores(const node *stage);

/** Upper bound of the bytes of a STAGE's arrays. */
double estimate_stage_bytes(const node *stage);

/** True if an address is stride · range plus terms free of the range; sets the stride in elements
    (0: the address does not depend on the range). */
bool address_has_stride(ir *g, const node *range, const node *address, int64_t *stride);

/** True if an address (row_major_address) has stride 0 or 1 along a range, and no mask that depends
    on the range. */
bool address_is_unit_stride(ir *g, const node *range, const node *address);

/** Vector accesses that elements at an address along a range take for each vector: 1, and 1 more to
    reverse their order where addresses fall; 0: they are scattered. */
int estimate_vector_accesses(ir *g, const node *range, const node *address);

/** True if the address of the element at some coordinates of an array has stride 0 or 1 along a
    range, and no mask that depends on the range. */
bool coordinates_are_unit_stride(ir *g, const node *range, size_t rank, const node *const extents[],
                                 const node *const coords[]);

/** The address that an INDEX of a PARAM or STAGE reads, masked or not; NULL for other nodes. */
const node *estimate_read_address(ir *g, const node *index);

/** True if the address that an INDEX of a PARAM or STAGE reads has stride 0 or 1 along a range, and
   no mask that depends on the range; other INDEXes read registers or small arrays: true. */
bool read_is_unit_stride(ir *g, const node *range, const node *index);

#endif
