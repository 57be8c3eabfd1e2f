/* The laws of the kernel model: rewrites of one kernel (a SINK at stage K) that change how it runs
   and never what it computes. Each checks its own conditions; where they do not hold it returns
   NULL and says why. */
#ifndef TENON_LAWS_LAWS_H
#define TENON_LAWS_LAWS_H

#include "ir/binder.h"

typedef struct laws {
  ir *g;
  const char *refusal; /* why the last law that returned NULL did; static */
} laws;

/** SPLIT: r = r₀·factor + r₁ in the STAGE or FOLD that binds it; r₀ and r₁ take its place, in this
    order. The inner extent is `factor` where that is shown to divide the extent, else
    min(factor, extent − r₀·factor). A single block needs no outer range: *outer is NULL then. Only
    a LOOP range is split: kinds come last. */
const node *law_split(laws *l, const node *sink, const node *range, int64_t factor,
                      const node **outer, const node **inner);

/** NEST: a FOLD over ranges … r, s … becomes one over … r of FOLDs over s …: where all its states
   are scalars with an op, and it emits nothing. `range` is r. */
const node *law_nest(laws *l, const node *sink, const node *range);

/** PARTITION: the indices of a range of an OUT's STAGE that are below `at` in one nest, the others
    in a second one. 0 ≤ at ≤ extent must be provable, and neither part known to be empty. `low` and
   `high` are the two ranges, of the same kind; that of lanes or copies is not parted. */
const node *law_partition(laws *l, const node *sink, const node *range, const node *at,
                          const node **low, const node **high);

/** KIND: gives a range its kind. UNROLL and VECTOR need a constant extent. A VECTOR range must be
    its STAGE's only one and neither inside nor around another, and no extent of a range or
    array inside may depend on it. A THREAD range must belong to an OUT's STAGE that nothing else
   reads, be the only one of its nest, and have elements of every value to each of its indices. */
const node *law_kind(laws *l, const node *sink, const node *range, range_kind kind,
                     const node **changed);

/* What the laws share (common.c). */

/** The binder of a range below `sink`; NULL if there is none. */
const node *law_binder(laws *l, const node *sink, const node *range);

/** The OUT that writes a STAGE; NULL if none does. */
const node *law_out(laws *l, const node *sink, const node *stage);

/** The sink with one node replaced. */
const node *law_replace(laws *l, const node *sink, const node *what, const node *with);

/** A fold's source with STATE(from) named STATE(to). */
const node *state_renamed(ir *g, const node *n, const node *from, const node *to);

/** Refuses: keeps the reason, returns NULL. */
const node *law_refuse(laws *l, const char *why);

#endif
