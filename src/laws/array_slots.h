/* Arrays in slots (law DEPTH): iterations of a loop use the slots by turns, so an array can be
   built some iterations before the one that reads it. */
#ifndef TENON_LAWS_ARRAY_SLOTS_H
#define TENON_LAWS_ARRAY_SLOTS_H

#include "laws/team_arrays.h"

/** NULL if a STAGE of a kernel can be built ahead, else the reason why it cannot; the innermost
   loop around it in `*turn`. `t`: the arrays of the kernel. */
const char *array_slots_objection(ir *g, const node *sink, const team_arrays *t, const node *stage,
                                  const node **turn);

#endif
