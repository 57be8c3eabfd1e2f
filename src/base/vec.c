/* Implements the growth of vectors, for elements of any size: extends the array to at least twice
   the capacity where nothing was allocated behind it, else copies it. */
#include "base/vec.h"

#include <string.h>

enum { FIRST_BYTES = 32 };

void *vec_grow(arena *a, void *at, size_t n, size_t size, size_t count, size_t *cap) {
  size_t larger = *cap ? *cap * 2 : FIRST_BYTES / size;
  if (larger < count) larger = count;
  if (larger > (size_t)-1 / size) diag_raise(a->diag, TN_ERR_MEMORY, "out of memory");
  void *to = arena_extend(a, at, *cap * size, larger * size) ? at : arena_alloc(a, larger * size);
  if (n && to != at) memcpy(to, at, n * size);
  *cap = larger;
  return to;
}
