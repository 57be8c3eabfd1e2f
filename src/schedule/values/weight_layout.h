/* Prepacks weights: gives constants that contractions read a layout whose last axis is the one to
   be vectorised. */
#ifndef TENON_SCHEDULE_VALUES_WEIGHT_LAYOUT_H
#define TENON_SCHEDULE_VALUES_WEIGHT_LAYOUT_H

#include "schedule/values/constant_folding_state.h"

/** Adds to the stand-ins, for each constant that contractions would read with their lanes far
   apart, a permuted copy with the axis of the lanes last, in blocks of a vector, or of a
   few where long rows are no whole number of vectors, where rows are many. */
void weight_layouts_find(constant_folding *f);

#endif
