/* The table behind interning: open addressing over entries that carry their own hash. */
#ifndef TENON_IR_INTERN_H
#define TENON_IR_INTERN_H

#include "base/diag.h"
#include "base/mem.h"

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

/** The slot of the entry that `same` finds equal to `wanted`, or the empty slot where it belongs.
 */
void **intern_find(const intern_table *t, uint32_t hash, const void *wanted,
                   bool (*same)(const void *entry, const void *wanted));

/** Fills a slot that intern_find gave; nothing was put or reserved in between. */
void intern_put(intern_table *t, void **slot, void *entry, uint32_t hash);

/** Takes an entry out. */
void intern_remove(intern_table *t, uint32_t hash, const void *entry);
void intern_free(intern_table *t, const mem *m);

#endif
