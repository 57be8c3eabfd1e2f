/* Implements the growth of vectors, for elements of any size: copies the array to one of at least
   twice the capacity. */
#include "base/vec.h"

#include <string.h>

void *vec_grow(arena *a, void *at, size_t n, size_t size, size_t count, size_t *cap) {
  size_t larger = *cap ? *cap * 2 : 8;
  if (larger < count) larger = count;
  if (larger > (size_t)-1 / size) diag_raise(a->diag, TN_ERR_MEMORY, "out of memory");
  void *to = arena_alloc(a, larger * size);
  if (n) memcpy(to, at, n * size);
  *cap = larger;
  return to;
}
