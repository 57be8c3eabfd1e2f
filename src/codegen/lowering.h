/* What lower.c, lower_arrays.c and lower_folds.c share: a kernel while it is lowered. */
#ifndef TENON_CODEGEN_LOWERING_H
#define TENON_CODEGEN_LOWERING_H

#include "base/map.h"
#include "ir/binder.h"
#include "ir/topo.h"

/** Where a component of a binder lives once it is lowered. */
typedef struct home {
  const node *storage; /* as a reader sees it: AFTER(…) */
  size_t rank;
  const node *const *extents;
} home;

typedef struct lowering {
  ir *g;
  arena *a;
  map image;    /* node → lowered node */
  map homes;    /* STAGE or FOLD → home[components] */
  map scans;    /* innermost RANGE of a fold → how far it is (lower_folds.c) */
  map direct;   /* STAGE that one OUT writes and nothing reads → OUT */
  map in_place; /* STAGEs that write states of their fold */
  map places;   /* STAGE or FOLD → the ranges of its storage */
  map lanes;    /* ranges that are, or are inside of, vectors */
} lowering;

/* lower_arrays.c */

/** What a node has become. */
const node *lowered(lowering *l, const node *n);
const node **lowered_all(lowering *l, const node *const *from, size_t n);

/** AFTER(storage, effects and ranges …). */
const node *lower_after(lowering *l, const node *storage, const node *const *what, size_t n,
                        const node *const *more, size_t n_more);

const node *lower_load(lowering *l, dtype t, const node *storage, const node *address);
const node *lower_store(lowering *l, const node *storage, const node *address, const node *value);
const node *lower_group(lowering *l, const node_list *effects);

/** Closes ranges around effects; an effect stands inside as many of them as its level says (NULL:
    all of them). */
const node *lower_close(lowering *l, const node *const *effects, const size_t *levels, size_t n,
                        const node *const *ranges, size_t n_ranges);

/** Storage for an array, or a register for one element. */
const node *lower_array(lowering *l, dtype t, const node *binder, size_t rank,
                        const node *const *extents);

/** What an INDEX loads from where its value lives. */
const node *lower_element(lowering *l, const node *n, const home *h);

/** Where a STAGE stores the i-th of its values. */
const node *lower_address(lowering *l, const node *s, size_t i);

/** Puts a stage's array, which is lowered, into other storage: o < 0, or what the op makes of both.
    The loops run where `reader` does. */
const node *lower_take(lowering *l, const node *stage, size_t value, const node *reader,
                       const node *to, int64_t o);

/** Fills an array with one value, by the loops of what a stage writes to it where these are all of
    its elements. stage NULL: there is none. */
const node *lower_fill(lowering *l, const home *h, const node *to, const node *x, const node *stage,
                       size_t value, const node *reader);

/* lower_folds.c */

/** For each FOLD, before any node is lowered. */
void lower_add_fold(lowering *l, const node *fold);

/** What a STATE comes after: the starts of its fold, and if it is one after the step, the steps. */
node_list lower_state_needs(lowering *l, const node *n);

/** The first load of a state, before or after its step, brings its fold so far. */
void lower_state(lowering *l, const node *n);

/** A load of a state. */
const node *lower_state_index(lowering *l, const node *n);

void lower_fold(lowering *l, const node *f);

#endif
