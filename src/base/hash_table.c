/* Implements growth, deletion and iteration of hash tables with linear probing. Deletion moves
   later entries of the run back into the hole (Knuth, TAOCP 3, 6.4, algorithm R), so there are no
   tombstones. */
#include "base/hash_table.h"

enum { FIRST_SLOTS = 32 };

static bool has_room(const hash_table *t) { return t->n * 4 < t->cap * 3; }

static size_t larger_cap(const hash_table *t) { return t->cap ? t->cap * 2 : FIRST_SLOTS; }

/** Puts all entries into new slots, which are clear. */
static void move_to(hash_table *t, hash_slot *slot, size_t cap) {
  for (size_t i = 0; i < t->cap; i++) {
    if (!t->slot[i].entry) continue;
    size_t k = (size_t)t->slot[i].hash & (cap - 1);
    while (slot[k].entry) k = (k + 1) & (cap - 1);
    slot[k] = t->slot[i];
  }
  t->slot = slot;
  t->cap = cap;
}

bool hash_table_try_reserve(hash_table *t, const mem *m) {
  if (has_room(t)) return true;
  hash_table old = *t;
  size_t cap = larger_cap(t);
  hash_slot *slot = mem_calloc(m, cap, sizeof *slot);
  if (!slot) return false;
  move_to(t, slot, cap);
  hash_table_free(&old, m);
  return true;
}

void hash_table_reserve(hash_table *t, const mem *m, diag *d) {
  if (!hash_table_try_reserve(t, m)) diag_raise(d, TN_ERR_MEMORY, "out of memory");
}

void hash_table_reserve_in_arena(hash_table *t, arena *a) {
  if (has_room(t)) return;
  size_t cap = larger_cap(t);
  move_to(t, arena_calloc(a, cap, sizeof(hash_slot)), cap);
}

void hash_table_free(hash_table *t, const mem *m) {
  mem_free(m, t->slot, t->cap * sizeof *t->slot);
  *t = (hash_table){0};
}

void hash_table_remove(hash_table *t, uint64_t hash, const void *entry) {
  size_t mask = t->cap - 1, hole = (size_t)hash & mask;
  while (t->slot[hole].entry != entry) hole = (hole + 1) & mask;
  t->n--;
  for (size_t i = (hole + 1) & mask; t->slot[i].entry; i = (i + 1) & mask) {
    size_t from_home = (i - (size_t)t->slot[i].hash) & mask;
    if (from_home < ((i - hole) & mask)) continue; /* its probes begin after the hole */
    t->slot[hole] = t->slot[i];
    hole = i;
  }
  t->slot[hole] = (hash_slot){0};
}

void *hash_table_next(const hash_table *t, size_t *at) {
  while (*at < t->cap) {
    void *entry = t->slot[(*at)++].entry;
    if (entry) return entry;
  }
  return NULL;
}
