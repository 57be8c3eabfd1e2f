/* A map from pointers to pointers, in an arena (open addressing). Keys are compared by address;
   NULL is no key. Iterate with `for (size_t i = 0; i < m.cap; i++) if (m.slot[i].key) …`, in no
   order that anything may depend on. */
#ifndef TENON_BASE_MAP_H
#define TENON_BASE_MAP_H

#include "base/arena.h"

typedef struct map_slot {
  const void *key;
  void *value;
} map_slot;

typedef struct map {
  map_slot *slot;
  size_t n, cap;
} map;

/** The value of a key, or NULL. */
void *map_get(const map *m, const void *key);

/** Sets the value of a key, which is not NULL. Raises when there is no memory. */
void map_set(arena *a, map *m, const void *key, void *value);

/** Whether a key is there (its value may be NULL). */
int map_has(const map *m, const void *key);

#endif
