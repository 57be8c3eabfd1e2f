/* Internal header of the laws (schedule primitives), the functions that their source files share:
   refusing and recording a law (legality.c, law_trace.c), finding and rewriting nodes of a kernel
   (law_rewriting.c), and checking legality (legality.c). An "objection" is the static text of a
   refusal, NULL where the condition holds. */
#ifndef TENON_LAWS_LAW_SUPPORT_H
#define TENON_LAWS_LAW_SUPPORT_H

#include "laws/laws.h"

static inline int64_t law_range_id(const node *range) { return range->ints[0]; }

/** Stores the reason of a refusal in `l->refusal`; returns NULL. */
const node *law_refuse(laws *l, const char *why);

/** Appends a step to the log, if there is one: the kernel `from` became `to` by the law, with its
    arguments and the new ranges that its line names. Returns `to`; NULL where a kernel for teams
    could not run so (team_objection). */
const node *law_record(laws *l, const node *from, const node *to, law which, const law_args *args,
                       const node *const principals[]);

/* law_rewriting.c: finding. */

/** All STAGEs without ranges, users before operands: number i is written s<i> in a schedule. */
node_list law_scalar_stages(laws *l, const node *sink);

/** True if one of the ranges is free in an expression. */
bool law_depends_on_any(const node *const ranges[], size_t n, const node *expression);

/* law_rewriting.c: substituting. */

/** The kernel with one node replaced by another. */
const node *law_replace(laws *l, const node *sink, const node *from, const node *to);

/** A coordinate with nodes replaced. Cheap for the many coordinates that contain none of them: the
    cost does not grow with the size of the map. */
const node *law_replace_coordinate(ir *g, const node *x, const map *with);

/** Fresh copies of a binder's ranges, outermost first, with extents rewritten in terms of the
    copies. `copies` maps each range to its copy; a range that has one already keeps it. In the ir's
    scratch memory. */
const node **law_copy_ranges(ir *g, const node *const ranges[], size_t n, map *copies);

/** A source of a FOLD with STATE(from) renamed to STATE(to); a STATE is named by its FOLD's
    innermost range. */
const node *law_rename_state(ir *g, const node *source, const node *from, const node *to);

/** An expression in which reads of `array` (a STAGE or FOLD, or the innermost range of a FOLD for
    reads of its states) get n leading coordinates `first`, and read `replacement`, or the same
    array where that is NULL. */
const node *law_add_axes(ir *g, const node *root, const node *array, const node *replacement,
                         size_t n, const node *const first[]);

/** Array expansion (hoist_array.c): a STAGE below `root` built for all indices of `outer`, a range
   that is free in it; the copy `*own` of that range becomes its first dimension. */
const node *law_hoist_over(ir *g, const node *root, const node *stage, const node *outer,
                           const node **own);

/* legality.c, and hoist_array.c for law_hoist_objection. */

/** Objection to law_hoist_over, as far as the STAGE alone tells. */
const char *law_hoist_objection(const node *stage, const node *outer);

/** Objection to replacing the arrays of a STAGE or FOLD: a node other than INDEX uses them (an OUT,
    or a FOLD that starts from them or steps to them). `order`: all nodes of the kernel. */
const char *law_readers_objection(const node_list *order, const node *binder);

/** Objection to a STAGE that is not one array in memory whose coordinates are its ranges, of no
    kind. */
const char *law_plain_array_objection(const node *s);

/** True if a STAGE's elements are expressions over elements of buffers: no arrays, FOLDs or states
    are inside. */
bool law_computes_from_buffers(arena *a, const node *stage);

/** True if an expression reads a buffer that the kernel stores to. */
bool law_reads_output(laws *l, const node *sink, const node *expression);

/** Objection to running n of a STAGE's ranges, from `first` on, in another order (or, with
    `partitioned`, in separate loops): the STAGE updates a buffer in place, and an index reads
    elements that other indices of these ranges store. */
const char *law_in_place_objection(laws *l, const node *sink, const node *stage, size_t first,
                                   size_t n, bool partitioned);

/** Objection to evaluating an expression for other indices of ranges than the current ones: it
   reads a STATE of a FOLD over one of them. */
const char *law_carried_state_objection(laws *l, const node *sink, const node *expression,
                                        const node *const ranges[], size_t n);

/** True if an expression is inside another range, the extent of which depends on one of these. */
bool law_extent_depends(const node *const ranges[], size_t n, const node *expression);

/** Objection to moving a binder out of the ranges `outer`: it reads states, or is inside binders or
    extents, that exist for one index of them at a time. */
const char *law_move_out_objection(laws *l, const node *sink, const node *binder,
                                   const node *const outer[], size_t n);

/** True if one VECTOR range runs inside another, or would if `range` (NULL: none) were a VECTOR.
    Inside a range are the later ranges of its binder, and the binders in which one of these is
    free. */
bool law_has_nested_vectors(laws *l, const node *sink, const node *range);

#endif
