/* Maps a node's (uid, version) to its position in a list, by a sorted array with binary search
   (qsort and bsearch). */
#include "runtime/uid_index.h"

#include <stdlib.h>

static int compare_entries(const void *a, const void *b) {
  const uid_index_entry *x = a, *y = b;
  if (x->uid != y->uid) return x->uid < y->uid ? -1 : 1;
  return (x->version > y->version) - (x->version < y->version);
}

void uid_index_sort(uid_index_entry entries[], size_t n) {
  qsort(entries, n, sizeof *entries, compare_entries);
}

size_t uid_index_find(const uid_index_entry entries[], size_t n, int64_t uid, int64_t version) {
  const uid_index_entry key = {uid, version, 0};
  const uid_index_entry *found = bsearch(&key, entries, n, sizeof key, compare_entries);
  return found ? found->at : SIZE_MAX;
}
