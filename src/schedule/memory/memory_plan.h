/* Plans memory: assigns buffers with known lifetimes offsets in one arena, by best fit (dynamic
   storage allocation). */
#ifndef TENON_SCHEDULE_MEMORY_MEMORY_PLAN_H
#define TENON_SCHEDULE_MEMORY_MEMORY_PLAN_H

#include "base/arena.h"
#include "target/machine.h"

#include <stdbool.h>
#include <stdint.h>

enum { MEMORY_PLAN_ALIGN = MACHINE_BUFFER_ALIGN_BYTES };

/** A buffer that lives from step `first` to step `last`, both included. */
typedef struct memory_plan_slot {
  size_t first, last;
  uint64_t bytes;
  uint64_t offset; /* the result, a multiple of MEMORY_PLAN_ALIGN */
} memory_plan_slot;

/** Gives slots offsets such that no two that live at once overlap: each goes into the smallest hole
    that fits, in order of birth or of decreasing size, whichever needs less. `slots` are sorted by
    `first`. Returns the bytes needed in all. Raises TN_ERR_MEMORY. */
uint64_t memory_plan_place(arena *a, memory_plan_slot slots[], size_t n);

/** True if two slots live at once and overlap: a check of memory_plan_place. */
bool memory_plan_overlaps(const memory_plan_slot slots[], size_t n);

#endif
