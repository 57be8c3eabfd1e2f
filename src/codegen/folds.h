/* What lowering needs to know of a kernel's folds beforehand. */
#ifndef TENON_CODEGEN_FOLDS_H
#define TENON_CODEGEN_FOLDS_H

#include "base/map.h"
#include "ir/ir.h"

/** The kernel with what folds emit told apart from their steps: in an emitted value of a fold with
   n states, STATE {c} is STATE {n + c}, the state after the step, and binders with such a state in
    them are its own. No kernel of stage K any more. */
const node *folds_separate(ir *g, const node *sink);

/** Adds the STAGEs whose loops may write array states in place, as keys, for a separated kernel:
    steps of one fold that nothing else reads, that write no element twice, and whose states are
   read nowhere but at the elements that are written. */
void folds_in_place(arena *a, const node *sink, map *in_place);

/** Sets places: for each STAGE and FOLD the range_set that what it holds depends on. These are its
    free ranges, and where it reads a state of a fold around it, those of that fold and all that it
    binds: they are open there too, but only the innermost is a source of the STATE. */
void folds_places(ir *g, const node *sink, map *places);

#endif
