/* Inserts copies of arrays where a SET (a partial write in place) may not write over the old
   contents, or others still read them. A copy is an identity SLICE that is written to memory. */
#ifndef TENON_SCHEDULE_VALUES_VERSIONS_H
#define TENON_SCHEDULE_VALUES_VERSIONS_H

#include "schedule/values/normalise.h"

/** Inserts copies where a SET may not write over the old contents, or a root is an input. */
void versions_insert_copies(ir *g, const schedule_request *r, normalised *n);

/** A copy of x: a SLICE of all of it. */
const node *versions_identity_slice(ir *g, const node *x);

/** Makes all other readers of the arrays that these SETs change read a copy, made before: the first
    SET of an array keeps it, and each further one changes a copy of its own. */
void versions_copy_for_readers(ir *g, normalised *n, const node *const sets[], size_t n_sets);

#endif
