/* Implements serialisation: appends values to a string builder, and reads them back with bounds
   checks. */
#include "base/serialise.h"

#include <string.h>

void serialise_number(str *to, uint64_t number) {
  str_add_bytes(to, (const char *)&number, sizeof number);
}

void serialise_block(str *to, const void *data, size_t bytes) {
  serialise_number(to, bytes);
  if (bytes) str_add_bytes(to, data, bytes);
}

void serialise_text(str *to, const char *text) { serialise_block(to, text, strlen(text)); }

/** Advances over `bytes` bytes and returns where they begin; NULL if fewer are left. */
static const unsigned char *read_bytes(deserialiser *r, uint64_t bytes) {
  if (r->failed || bytes > (uint64_t)(r->end - r->at)) {
    r->failed = true;
    return NULL;
  }
  const unsigned char *at = r->at;
  r->at += bytes;
  return at;
}

uint64_t deserialise_number(deserialiser *r) {
  uint64_t number = 0;
  const unsigned char *at = read_bytes(r, sizeof number);
  if (at) memcpy(&number, at, sizeof number);
  return number;
}

uint64_t deserialise_below(deserialiser *r, uint64_t limit) {
  uint64_t number = deserialise_number(r);
  if (number < limit) return number;
  r->failed = true;
  return 0;
}

const void *deserialise_block(deserialiser *r, size_t *bytes) {
  uint64_t n = deserialise_number(r);
  const unsigned char *at = read_bytes(r, n);
  *bytes = at ? (size_t)n : 0;
  return at;
}

const char *deserialise_text(deserialiser *r, arena *a) {
  size_t n;
  const char *at = deserialise_block(r, &n);
  if (at && memchr(at, 0, n)) r->failed = true;
  return r->failed ? "" : arena_printf(a, "%.*s", (int)n, at);
}

size_t deserialise_count(deserialiser *r, size_t each) {
  uint64_t n = deserialise_number(r);
  if (!r->failed && n > (uint64_t)(r->end - r->at) / each) r->failed = true;
  return r->failed ? 0 : (size_t)n;
}
