#include "base/map.h"

#include <stdint.h>

static size_t start(const map *m, const void *key) {
  uint64_t h = (uint64_t)(uintptr_t)key * 0x9E3779B97F4A7C15u;
  return (size_t)(h >> 20) & (m->cap - 1);
}

static map_slot *find(const map *m, const void *key) {
  size_t i = start(m, key);
  while (m->slot[i].key && m->slot[i].key != key) i = (i + 1) & (m->cap - 1);
  return &m->slot[i];
}

void *map_get(const map *m, const void *key) { return m->n ? find(m, key)->value : NULL; }

int map_has(const map *m, const void *key) { return m->n && find(m, key)->key; }

static void rehash(arena *a, map *m) {
  map old = *m;
  m->cap = old.cap ? old.cap * 2 : 16;
  m->slot = arena_calloc(a, m->cap, sizeof *m->slot);
  for (size_t i = 0; i < old.cap; i++)
    if (old.slot[i].key) *find(m, old.slot[i].key) = old.slot[i];
}

void map_set(arena *a, map *m, const void *key, void *value) {
  if (m->n * 2 >= m->cap) rehash(a, m);
  map_slot *s = find(m, key);
  if (!s->key) m->n++;
  *s = (map_slot){key, value};
}
