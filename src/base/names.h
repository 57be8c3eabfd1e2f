/* A map from strings to pointers, in an arena. Keys are compared in full and must stay. */
#ifndef TENON_BASE_NAMES_H
#define TENON_BASE_NAMES_H

#include "base/arena.h"

#include <stdint.h>

typedef struct names_slot {
  const char *key;
  uint64_t hash;
  void *value;
} names_slot;

typedef struct names {
  names_slot *slot;
  size_t n, cap;
} names;

/** The value of a key, or NULL. */
void *names_get(const names *m, const char *key);

/** Sets the value of a key. Raises when there is no memory. */
void names_set(arena *a, names *m, const char *key, void *value);

#endif
