/* Maps the identity of a node, BUFFER(uid, version) or CUSTOM(uid, output), to its position in a
   list: an array that is sorted once, then found by binary search. */
#ifndef TENON_RUNTIME_UID_INDEX_H
#define TENON_RUNTIME_UID_INDEX_H

#include <stddef.h>
#include <stdint.h>

typedef struct uid_index_entry {
  int64_t uid;
  int64_t version; /* of a BUFFER; the output number of a CUSTOM */
  size_t at;       /* position in the list */
} uid_index_entry;

/** Sorts entries by uid, then version. */
void uid_index_sort(uid_index_entry entries[], size_t n);

/** Position of (uid, version) among sorted entries; SIZE_MAX if there is none. */
size_t uid_index_find(const uid_index_entry entries[], size_t n, int64_t uid, int64_t version);

#endif
