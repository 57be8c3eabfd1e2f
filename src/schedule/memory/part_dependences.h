/* Finds which steps that access parts of one array depend on each other: one writes elements that
   another one accesses. */
#ifndef TENON_SCHEDULE_MEMORY_PART_DEPENDENCES_H
#define TENON_SCHEDULE_MEMORY_PART_DEPENDENCES_H

#include "schedule/memory/array_parts.h"

/** The parts of an array that a step accesses. */
typedef struct part_use {
  size_t step;
  const array_accesses *parts;
} part_use;

typedef VEC(part_use) part_uses;

/** A step that another one waits for: an edge of the graph of dependences. */
typedef struct step_edge {
  size_t from, to;
} step_edge;

typedef VEC(step_edge) step_edges;

/** Adds an edge from the earlier to the later of any two steps that access the same elements of one
    array, unless both read; there may be several between two steps. */
void part_dependences_add(arena *a, const part_uses *uses, step_edges *all);

#endif
