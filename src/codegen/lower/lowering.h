/* Internal header of the lowering of kernels, in which binders (loop nodes) become storage (ALLOC),
   LOADs, STOREs and loops: the state and functions that lower_binders.c, lower_arrays.c and
   lower_folds.c share. */
#ifndef TENON_CODEGEN_LOWER_LOWERING_H
#define TENON_CODEGEN_LOWER_LOWERING_H

#include "base/map.h"
#include "ir/core/binder.h"
#include "ir/core/topo_sort.h"

/** The array of one component of a lowered binder. */
typedef struct home {
  const node *storage; /* as readers access it: AFTER(ALLOC, effects …) */
  size_t rank;
  const node *const *extents;
} home;

typedef struct lowering {
  ir *g;
  arena *a;
  map image;    /* node → lowered node */
  map homes;    /* STAGE or FOLD → home[components] */
  map scans;    /* innermost RANGE of a FOLD → its state of lowering (lower_folds.c) */
  map direct;   /* STAGE that one OUT writes and nothing reads → OUT */
  map in_place; /* STAGEs whose loops write the states of their FOLD */
  map places;   /* STAGE or FOLD → range_set that its storage depends on */
  map lanes;    /* ranges that are vectors, or inside of vectors */
} lowering;

/* lower_arrays.c */

/** The lowered form of a node, or of several. */
const node *lower_node(lowering *l, const node *n);
const node **lower_nodes(lowering *l, const node *const *from, size_t n);

/** AFTER(storage, effects …, ranges …): the storage as seen after effects, inside of ranges. */
const node *lower_after(lowering *l, const node *storage, const node *const *effects, size_t n,
                        const node *const *ranges, size_t n_ranges);

const node *lower_load(lowering *l, dtype t, const node *storage, const node *address);
const node *lower_store(lowering *l, const node *storage, const node *address, const node *value);
const node *lower_group(lowering *l, const node_list *effects);

/** Closes the loops of `ranges`, the outermost first, around effects: the i-th effect is inside of
   the first levels[i] of them (NULL: of all). */
const node *lower_close_loops(lowering *l, const node *const *effects, const size_t *levels,
                              size_t n, const node *const *ranges, size_t n_ranges);

/** Scratch memory for an array of a binder, or a register for one element (rank 0). */
const node *lower_alloc(lowering *l, dtype t, const node *binder, size_t rank,
                        const node *const *extents);

/** The LOAD of an INDEX from its value's array. */
const node *lower_element_load(lowering *l, const node *n, const home *h);

/** The address at which a STAGE stores the i-th of its values. */
const node *lower_stage_address(lowering *l, const node *s, size_t i);

/** Loops that copy a lowered stage's array to other storage (o < 0), or combine both by an op, and
   that run where `reader` does. */
const node *lower_copy_array(lowering *l, const node *stage, size_t value, const node *reader,
                             const node *to, int64_t o);

/** Loops that fill an array with one value: those by which a stage's value writes all elements of
   it, or loops over the whole array (also for stage NULL). */
const node *lower_fill(lowering *l, const home *h, const node *to, const node *x, const node *stage,
                       size_t value, const node *reader);

/* lower_folds.c */

/** Registers a FOLD; has to be called for every FOLD before any node is lowered. */
void lower_fold_register(lowering *l, const node *fold);

/** Nodes to be lowered before a STATE: its FOLD's initial values, and for a state after the step
    the steps too. */
node_list lower_state_dependences(lowering *l, const node *n);

/** Lowers a STATE: initialises its FOLD's states, and steps them for a state after the step. */
void lower_state(lowering *l, const node *n);

/** The LOAD of an INDEX of a STATE. */
const node *lower_state_load(lowering *l, const node *n);

/** Closes a FOLD's loop and sets the arrays of its results. */
void lower_fold(lowering *l, const node *f);

#endif
