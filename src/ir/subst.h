/* Substitution. */
#ifndef TENON_IR_SUBST_H
#define TENON_IR_SUBST_H

#include "base/map.h"
#include "ir/ir.h"

/** `root` with nodes replaced: keys of `with` are nodes, values what stands for them. Index
    arithmetic is put in canonical form again, and WHERE, AND and OR of known conditions are
   decided. Replaces nodes whatever they are; ranges keep their identity when their extents change.
 */
const node *subst(ir *g, const node *root, const map *with);

/** Replaces RANGE nodes only: nodes in which no key is free are not entered, so binders of the key
    itself are untouched. */
const node *subst_ranges(ir *g, const node *root, const map *with);

/** As subst_ranges, for duplicating: every range bound by a binder (STAGE, FOLD, END) that changes
    gets a fresh identity. */
const node *subst_copy(ir *g, const node *root, const map *with);

/** A node with other sources, its own or such of another ir: index arithmetic and comparisons
    canonical, WHERE, AND and OR of known conditions decided, no range of negative extent. */
const node *subst_rebuild(ir *g, const node *n, const node *const src[]);

/** The chain of movements from `old` to `view`, of another array; the arena is for what it takes.
 */
const node *subst_view(ir *g, arena *a, const node *view, const node *old, const node *other);

#endif
