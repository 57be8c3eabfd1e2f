/* A hash table with open addressing and linear probing. An entry is an object of the user's that
   holds its own key; the table keeps its address and full 64-bit hash (hash.h). The slots come from
   a mem and are then freed by hash_table_free, or from an arena. map.h has pointers and strings as
   keys. */
#ifndef TENON_BASE_HASH_TABLE_H
#define TENON_BASE_HASH_TABLE_H

#include "base/arena.h"
#include "base/hash.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hash_slot {
  uint64_t hash;
  void *entry; /* NULL: the slot is free */
} hash_slot;

typedef struct hash_table {
  hash_slot *slot;
  size_t n, cap; /* cap: 0 or a power of two; at most 3/4 of the slots are in use */
} hash_table;

/** Makes sure that one more entry can be inserted. False, or raises, when there is no memory; the
    table is then as it was. */
bool hash_table_try_reserve(hash_table *t, const mem *m);
void hash_table_reserve(hash_table *t, const mem *m, diag *d);
void hash_table_reserve_in_arena(hash_table *t, arena *a);

void hash_table_free(hash_table *t, const mem *m);

/** The slot of the entry with this hash that `same` finds equal to `wanted`, or the free slot where
    such an entry belongs. The table was reserved. */
static inline hash_slot *hash_table_find(const hash_table *t, uint64_t hash, const void *wanted,
                                         bool (*same)(const void *entry, const void *wanted)) {
  for (size_t i = (size_t)hash;; i++) {
    hash_slot *s = &t->slot[i & (t->cap - 1)];
    if (!s->entry || (s->hash == hash && same(s->entry, wanted))) return s;
  }
}

/** The entry with this hash that `same` finds equal to `wanted`, or NULL. */
static inline void *hash_table_get(const hash_table *t, uint64_t hash, const void *wanted,
                                   bool (*same)(const void *entry, const void *wanted)) {
  return t->n ? hash_table_find(t, hash, wanted, same)->entry : NULL;
}

/** A free slot for an entry with this hash, also beside entries with equal keys; hash_table_find
    gives the one inserted first. The table was reserved. */
static inline hash_slot *hash_table_free_slot(const hash_table *t, uint64_t hash) {
  size_t i = (size_t)hash & (t->cap - 1);
  while (t->slot[i].entry) i = (i + 1) & (t->cap - 1);
  return &t->slot[i];
}

/** Fills a free slot, which hash_table_find or hash_table_free_slot gave; the table has not changed
    in between. */
static inline void hash_table_insert(hash_table *t, hash_slot *s, uint64_t hash, void *entry) {
  assert(!s->entry);
  *s = (hash_slot){hash, entry};
  t->n++;
}

/** Takes out an entry, which is there. */
void hash_table_remove(hash_table *t, uint64_t hash, const void *entry);

/** The next entry, from *at = 0 on; NULL after the last. The order differs from run to run:
    nothing but freeing and counting may go by it. */
void *hash_table_next(const hash_table *t, size_t *at);

#endif
