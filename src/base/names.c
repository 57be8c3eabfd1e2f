#include "base/names.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static names_slot *find(const names *m, const char *key, uint64_t hash) {
  size_t i = hash & (m->cap - 1);
  while (m->slot[i].key && !(m->slot[i].hash == hash && !strcmp(m->slot[i].key, key)))
    i = (i + 1) & (m->cap - 1);
  return &m->slot[i];
}

static uint64_t hash_of(const char *key) { return XXH3_64bits(key, strlen(key)); }

void *names_get(const names *m, const char *key) {
  return m->n ? find(m, key, hash_of(key))->value : NULL;
}

static void grow(arena *a, names *m) {
  names old = *m;
  m->cap = old.cap ? old.cap * 2 : 16;
  m->slot = arena_calloc(a, m->cap, sizeof *m->slot);
  for (size_t i = 0; i < old.cap; i++)
    if (old.slot[i].key) *find(m, old.slot[i].key, old.slot[i].hash) = old.slot[i];
}

void names_set(arena *a, names *m, const char *key, void *value) {
  if (m->n * 2 >= m->cap) grow(a, m);
  uint64_t hash = hash_of(key);
  names_slot *s = find(m, key, hash);
  if (!s->key) m->n++;
  *s = (names_slot){key, hash, value};
}
