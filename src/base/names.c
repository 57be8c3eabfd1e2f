#include "base/names.h"

#include <string.h>

typedef struct entry {
  const char *key;
  void *value;
} entry;

static bool is_of(const void *e, const void *key) { return !strcmp(((const entry *)e)->key, key); }

static uint32_t hash_of(const char *key) {
  uint64_t h = intern_hash(key, strlen(key), 0);
  return (uint32_t)(h ^ h >> 32);
}

void *names_get(const names *m, const char *key) {
  entry *e = m->table.n ? *intern_find(&m->table, hash_of(key), key, is_of) : NULL;
  return e ? e->value : NULL;
}

void names_set(arena *a, names *m, const char *key, void *value) {
  entry new = {key, value};
  intern_reserve_in(&m->table, a);
  uint32_t hash = hash_of(key);
  void **slot = intern_find(&m->table, hash, key, is_of);
  if (*slot)
    ((entry *)*slot)->value = value;
  else
    intern_put(&m->table, slot, arena_copy(a, &new, sizeof new), hash);
}
