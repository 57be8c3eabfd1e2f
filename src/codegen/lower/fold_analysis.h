/* Analyses a kernel's FOLDs (the IR's reductions and scans) before lowering: which ranges their
   storage depends on, and which array states may be stepped in place; and separates their emitted
   values from their steps. */
#ifndef TENON_CODEGEN_LOWER_FOLD_ANALYSIS_H
#define TENON_CODEGEN_LOWER_FOLD_ANALYSIS_H

#include "base/map.h"
#include "ir/core/ir.h"

/** The kernel with emitted values separated from steps: in an emitted value of a FOLD of n states,
    STATE {c} becomes STATE {n + c}, the state after the step, and binders that contain one are
   copies of its own. The result is no legal kernel of stage K any more. */
const node *fold_analysis_separate_emits(ir *g, const node *sink);

/** Adds the STAGEs of a separated kernel whose loops may write array states in place, as keys:
   steps of one FOLD that nothing else reads, that write no element twice, and whose states are read
   at no other element than the one being written. */
void fold_analysis_in_place(arena *a, const node *sink, map *in_place);

/** Sets `places`: for each STAGE and FOLD the range_set that its contents depend on: its free
   ranges and, if it reads a state of a FOLD around it, all ranges of that FOLD and its free
   ranges: a STATE names the innermost range alone. */
void fold_analysis_scopes(ir *g, const node *sink, map *places);

#endif
