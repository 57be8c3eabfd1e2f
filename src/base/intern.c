#include "base/intern.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t intern_hash(const void *at, size_t bytes, uint64_t seed) {
  return bytes ? XXH3_64bits_withSeed(at, bytes, seed) : seed * 0x9E3779B97F4A7C15u;
}

static size_t probe(const intern_table *t, uint32_t hash) { return hash & (t->cap - 1); }

static void reinsert(intern_table *to, void *entry, uint32_t hash) {
  size_t i = probe(to, hash);
  while (to->slot[i]) i = (i + 1) & (to->cap - 1);
  to->slot[i] = entry;
  to->hash[i] = hash;
}

static bool has_room(const intern_table *t) { return t->n * 4 < t->cap * 3; }

static intern_table larger_than(const intern_table *t) {
  return (intern_table){.n = t->n, .cap = t->cap ? t->cap * 2 : 64};
}

static void reinsert_all(intern_table *to, const intern_table *from) {
  for (size_t i = 0; i < from->cap; i++)
    if (from->slot[i]) reinsert(to, from->slot[i], from->hash[i]);
}

void intern_reserve(intern_table *t, const mem *m, diag *d) {
  if (has_room(t)) return;
  intern_table larger = larger_than(t);
  larger.slot = mem_calloc(m, larger.cap, sizeof *larger.slot);
  larger.hash = mem_calloc(m, larger.cap, sizeof *larger.hash);
  if (!larger.slot || !larger.hash) {
    intern_free(&larger, m);
    diag_raise(d, TN_ERR_MEMORY, "out of memory");
  }
  reinsert_all(&larger, t);
  intern_free(t, m);
  *t = larger;
}

void intern_reserve_in(intern_table *t, arena *a) {
  if (has_room(t)) return;
  intern_table larger = larger_than(t);
  larger.slot = arena_calloc(a, larger.cap, sizeof *larger.slot);
  larger.hash = arena_calloc(a, larger.cap, sizeof *larger.hash);
  reinsert_all(&larger, t);
  *t = larger;
}

void **intern_find(const intern_table *t, uint32_t hash, const void *wanted,
                   bool (*same)(const void *entry, const void *wanted)) {
  size_t i = probe(t, hash);
  while (t->slot[i] && !(t->hash[i] == hash && same(t->slot[i], wanted)))
    i = (i + 1) & (t->cap - 1);
  return &t->slot[i];
}

void intern_put(intern_table *t, void **slot, void *entry, uint32_t hash) {
  *slot = entry;
  t->hash[slot - t->slot] = hash;
  t->n++;
}

void intern_remove(intern_table *t, uint32_t hash, const void *entry) {
  size_t hole = probe(t, hash);
  while (t->slot[hole] != entry) hole = (hole + 1) & (t->cap - 1);
  t->n--;
  for (size_t i = (hole + 1) & (t->cap - 1); t->slot[i]; i = (i + 1) & (t->cap - 1)) {
    size_t home = probe(t, t->hash[i]);
    bool stays = hole < i ? home > hole && home <= i : home > hole || home <= i;
    if (stays) continue;
    t->slot[hole] = t->slot[i];
    t->hash[hole] = t->hash[i];
    hole = i;
  }
  t->slot[hole] = NULL;
}

void intern_free(intern_table *t, const mem *m) {
  mem_free(m, t->slot, t->cap * sizeof *t->slot);
  mem_free(m, t->hash, t->cap * sizeof *t->hash);
  *t = (intern_table){0};
}
