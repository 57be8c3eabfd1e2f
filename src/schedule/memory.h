/* The memory plan: where in one arena the buffers lie that live between steps. */
#ifndef TENON_SCHEDULE_MEMORY_H
#define TENON_SCHEDULE_MEMORY_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

enum { MEMORY_ALIGN = 64 };

/** A buffer that lives from step `first` to step `last`, both included. */
typedef struct memory_slot {
  size_t first, last;
  uint64_t bytes;
  uint64_t offset; /* the result, a multiple of MEMORY_ALIGN */
} memory_slot;

/** Gives slots offsets such that no two that live at once overlap: each the smallest hole that
   fits, in the order in which they come to life or from the largest on, whichever needs less.
   `slots` are sorted by `first`. Returns the bytes needed in all. Raises TN_ERR_MEMORY. */
uint64_t memory_place(arena *a, memory_slot slots[], size_t n);

/** Whether two slots live at once and overlap: what memory_place must never leave. */
bool memory_overlaps(const memory_slot slots[], size_t n);

#endif
