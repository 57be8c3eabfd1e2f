/* Serialises integers and length-prefixed blocks of bytes in the machine's own byte order, for
   cache files that the same machine reads again. Input is not trusted: a reader stays within
   bounds, and after the first failure yields zeros and stays failed. */
#ifndef TENON_BASE_SERIALISE_H
#define TENON_BASE_SERIALISE_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/** Append a number, and a block after its length. */
void serialise_number(str *to, uint64_t number);
void serialise_block(str *to, const void *data, size_t bytes);
void serialise_text(str *to, const char *text); /* a block, without its NUL */

typedef struct deserialiser {
  const unsigned char *at, *end;
  bool failed; /* a value was missing or out of range; values read since then are 0 */
} deserialiser;

/** Reads a number; 0 on failure. */
uint64_t deserialise_number(deserialiser *r);

/** Reads a number and fails unless it is less than `limit`; 0 on failure. */
uint64_t deserialise_below(deserialiser *r, uint64_t limit);

/** Reads a block, which stays where it lies in the input; NULL and 0 bytes on failure. */
const void *deserialise_block(deserialiser *r, size_t *bytes);

/** Copies a block into the arena as a string; fails if the block holds a NUL; "" on failure. */
const char *deserialise_text(deserialiser *r, arena *a);

/** Reads the number of elements that follow, of at least `each` bytes each; fails if that many do
    not fit into the rest of the input, so that a caller may allocate them. */
size_t deserialise_count(deserialiser *r, size_t each);

#endif
