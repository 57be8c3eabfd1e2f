/* Substitutes nodes of a graph by others and rebuilds the nodes above them in canonical form. */
#ifndef TENON_IR_TRANSFORM_SUBSTITUTE_H
#define TENON_IR_TRANSFORM_SUBSTITUTE_H

#include "base/map.h"
#include "ir/core/ir.h"

/** Replaces each key of `with` by its value in `root` and rebuilds the nodes above by
    subst_rebuild. Keys may be any nodes; ranges keep their ids when their extents change. */
const node *subst(ir *g, const node *root, const map *with);

/** Replaces RANGE keys. Nodes in which no key is free are not visited, so the binder of a key
    stays. */
const node *subst_ranges(ir *g, const node *root, const map *with);

/** As subst_ranges, for copies of code: ranges bound by binders that change get fresh ids. */
const node *subst_fresh_ranges(ir *g, const node *root, const map *with);

/** Remakes a node with other sources in `g`: index arithmetic and comparisons in canonical form,
    WHERE, PICK, AND and OR of constant conditions simplified, negative extents cut to 0. The node
   may be of another ir. */
const node *subst_rebuild(ir *g, const node *n, const node *const src[]);

/** Remakes the chain of movements from `old` up to `view` on top of `other`; works in `a`. */
const node *subst_view_base(ir *g, arena *a, const node *view, const node *old, const node *other);

#endif
