/* Numbers and blocks in a row of bytes, written and read again on the same machine. What is read is
   not trusted: a reader never goes past its end, and remembers that it would have. */
#ifndef TENON_BASE_WIRE_H
#define TENON_BASE_WIRE_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/** Appends a number, and a block with its length before it. */
void wire_add(str *to, uint64_t number);
void wire_add_block(str *to, const void *data, size_t bytes);
void wire_add_text(str *to, const char *text); /* a block, without its NUL */

typedef struct wire_reader {
  const unsigned char *at, *end;
  bool failed; /* something was not there: what was read since means nothing */
} wire_reader;

/** The next number; 0 once it failed. */
uint64_t wire_number(wire_reader *r);

/** The next number, which is less than `limit`; 0 once it failed. */
uint64_t wire_below(wire_reader *r, uint64_t limit);

/** The next block, in place; NULL and 0 once it failed. */
const void *wire_block(wire_reader *r, size_t *bytes);

/** The next block as a text, in the arena; fails for one with a NUL in it, and is "" then. */
const char *wire_text(wire_reader *r, arena *a);

/** A number of things that take at least `each` bytes: fails if there cannot be as many. */
size_t wire_count(wire_reader *r, size_t each);

#endif
