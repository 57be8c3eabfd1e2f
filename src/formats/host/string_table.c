/* Implements the table of strings by a hash table of entries, and a list of them by number. */
#include "formats/host/string_table.h"

#include "base/hash_table.h"
#include "base/thread.h"

#include <string.h>

typedef struct entry {
  int64_t number;
  size_t n;
  char text[];
} entry;

struct string_table {
  const mem *mem;
  mutex lock; /* of all that follows */
  hash_table by_text;
  entry **at;
  size_t n, cap;
};

typedef struct wanted {
  const char *text;
  size_t n;
} wanted;

static bool is_same(const void *e_, const void *w_) {
  const entry *e = e_;
  const wanted *w = w_;
  return e->n == w->n && !memcmp(e->text, w->text, w->n);
}

string_table *string_table_open(const mem *m) {
  string_table *t = mem_calloc(m, 1, sizeof *t);
  if (!t) return NULL;
  t->mem = m;
  mutex_init(&t->lock);
  if (string_table_add(t, "", 0) == 0) return t;
  string_table_free(t);
  return NULL;
}

void string_table_free(string_table *t) {
  if (!t) return;
  for (size_t i = 0; i < t->n; i++) mem_free(t->mem, t->at[i], sizeof(entry) + t->at[i]->n + 1);
  mem_free(t->mem, t->at, t->cap * sizeof *t->at);
  hash_table_free(&t->by_text, t->mem);
  mutex_free(&t->lock);
  mem_free(t->mem, t, sizeof *t);
}

const mem *string_table_mem(const string_table *t) { return t->mem; }

static bool reserve_number(string_table *t) {
  size_t cap = t->cap ? 2 * t->cap : 16;
  if (t->n < t->cap) return true;
  entry **more = mem_resize(t->mem, t->at, t->cap * sizeof *t->at, cap * sizeof *t->at);
  if (!more) return false;
  t->at = more;
  t->cap = cap;
  return true;
}

/** Adds a string that is not there; the caller holds the lock, and has reserved its places. */
static int64_t add_entry(string_table *t, const wanted *w, uint64_t hash, hash_slot *slot) {
  entry *e = mem_alloc(t->mem, sizeof *e + w->n + 1);
  if (!e) return -1;
  e->number = (int64_t)t->n;
  e->n = w->n;
  if (w->n) memcpy(e->text, w->text, w->n);
  e->text[w->n] = 0;
  hash_table_insert(&t->by_text, slot, hash, e);
  t->at[t->n++] = e;
  return e->number;
}

int64_t string_table_add(string_table *t, const char *text, size_t n) {
  const wanted w = {text, n};
  uint64_t hash = hash_bytes(text, n);
  int64_t number = -1;
  mutex_lock(&t->lock);
  if (hash_table_try_reserve(&t->by_text, t->mem) && reserve_number(t)) {
    hash_slot *slot = hash_table_find(&t->by_text, hash, &w, is_same);
    number = slot->entry ? ((entry *)slot->entry)->number : add_entry(t, &w, hash, slot);
  }
  mutex_unlock(&t->lock);
  return number;
}

const char *string_table_get(string_table *t, int64_t number, size_t *n) {
  mutex_lock(&t->lock);
  const entry *e = number >= 0 && (uint64_t)number < t->n ? t->at[number] : NULL;
  mutex_unlock(&t->lock);
  if (e && n) *n = e->n;
  return e ? e->text : NULL;
}
