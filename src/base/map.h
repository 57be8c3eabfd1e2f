/* Insertion-ordered maps from pointers, or from strings, to pointers, in an arena. Iteration
   follows the array of entries, in the order in which the keys were first set; a hash index
   (hash_table.h) finds entries once there are more than a few. NULL is no key. */
#ifndef TENON_BASE_MAP_H
#define TENON_BASE_MAP_H

#include "base/hash_table.h"
#include "base/vec.h"

typedef struct map_entry {
  const void *key; /* of a string_map, a string that outlives the map */
  void *value;
} map_entry;

/** Keys are compared by address. Entries are m.at[0 … m.n − 1]. */
typedef struct map {
  map_entry *at;
  size_t n, cap;
  hash_table index; /* of entries' places + 1; empty while a search of the array is quicker */
} map;

/** The value of a key, or NULL. */
void *map_get(const map *m, const void *key);

/** Sets the value of a key, which is not NULL. Raises when there is no memory. */
void map_set(arena *a, map *m, const void *key, void *value);

/** True if a key is there (its value may be NULL). */
bool map_has(const map *m, const void *key);

/** Keys are compared as strings. */
typedef struct string_map {
  map entries;
} string_map;

/** The value of a key, or NULL. */
void *string_map_get(const string_map *m, const char *key);

/** Sets the value of a key, which must outlive the map. Raises when there is no memory. */
void string_map_set(arena *a, string_map *m, const char *key, void *value);

#endif
