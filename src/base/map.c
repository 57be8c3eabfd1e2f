/* Implements insertion-ordered maps: an array of entries that is searched linearly while it is
   short, and through a hash table of positions in it once it is longer. Pointer and string keys
   share the code, which is inlined for each. */
#include "base/map.h"

#include <string.h>

enum { SEARCHED_IN_FULL = 8 };

typedef struct probe {
  const map *m;
  const void *key;
} probe;

static map_entry *entry_at(const map *m, const void *place) { return &m->at[(uintptr_t)place - 1]; }

static bool same_address(const void *place, const void *wanted) {
  const probe *p = wanted;
  return entry_at(p->m, place)->key == p->key;
}

static bool same_text(const void *place, const void *wanted) {
  const probe *p = wanted;
  return !strcmp(entry_at(p->m, place)->key, p->key);
}

static inline uint64_t hash_key(const void *key, bool is_text) {
  return is_text ? hash_text(key) : hash_word((uintptr_t)key);
}

/** The entry of a key, or NULL. */
static inline map_entry *find_entry(const map *m, const void *key, bool is_text) {
  probe p = {m, key};
  if (m->n <= SEARCHED_IN_FULL) {
    for (size_t i = 0; i < m->n; i++)
      if (is_text ? !strcmp(m->at[i].key, key) : m->at[i].key == key) return &m->at[i];
    return NULL;
  }
  uint64_t hash = hash_key(key, is_text);
  void *place = hash_table_find(&m->index, hash, &p, is_text ? same_text : same_address)->entry;
  return place ? entry_at(m, place) : NULL;
}

static inline void index_entry(arena *a, map *m, size_t i, bool is_text) {
  uint64_t hash = hash_key(m->at[i].key, is_text);
  hash_table_reserve_in_arena(&m->index, a);
  hash_table_insert(&m->index, hash_table_free_slot(&m->index, hash), hash,
                    (void *)(uintptr_t)(i + 1));
}

static inline void set_value(arena *a, map *m, const void *key, void *value, bool is_text) {
  map_entry *e = find_entry(m, key, is_text);
  if (e) {
    e->value = value;
    return;
  }
  if (m->n >= SEARCHED_IN_FULL) {
    for (size_t i = m->index.n; i < m->n; i++) index_entry(a, m, i, is_text);
    hash_table_reserve_in_arena(&m->index, a);
  }
  vec_push(a, m, (map_entry){key, value});
  if (m->n > SEARCHED_IN_FULL) index_entry(a, m, m->n - 1, is_text);
}

void *map_get(const map *m, const void *key) {
  const map_entry *e = find_entry(m, key, false);
  return e ? e->value : NULL;
}

void map_set(arena *a, map *m, const void *key, void *value) { set_value(a, m, key, value, false); }

bool map_has(const map *m, const void *key) { return find_entry(m, key, false) != NULL; }

void *string_map_get(const string_map *m, const char *key) {
  const map_entry *e = find_entry(&m->entries, key, true);
  return e ? e->value : NULL;
}

void string_map_set(arena *a, string_map *m, const char *key, void *value) {
  set_value(a, &m->entries, key, value, true);
}
