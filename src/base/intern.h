/* Hash tables of entries that hold their own keys (open addressing). A table lives on a mem, and is
   freed, or in an arena. */
#ifndef TENON_BASE_INTERN_H
#define TENON_BASE_INTERN_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct intern_table {
  void **slot;
  uint32_t *hash;
  size_t n, cap;
} intern_table;

uint64_t intern_hash(const void *at, size_t bytes, uint64_t seed);

/** Room for one more entry. Raises when there is no memory. */
void intern_reserve(intern_table *t, const mem *m, diag *d);
void intern_reserve_in(intern_table *t, arena *a);

/** The slot of the entry that `same` finds equal to `wanted`, or the empty slot where it belongs;
    the table has room. */
void **intern_find(const intern_table *t, uint32_t hash, const void *wanted,
                   bool (*same)(const void *entry, const void *wanted));

/** Fills a slot that intern_find gave; nothing was put or reserved in between. */
void intern_put(intern_table *t, void **slot, void *entry, uint32_t hash);

/** Takes an entry out. */
void intern_remove(intern_table *t, uint32_t hash, const void *entry);
void intern_free(intern_table *t, const mem *m);

#endif
