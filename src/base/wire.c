#include "base/wire.h"

#include <string.h>

void wire_add(str *to, uint64_t number) { str_add_bytes(to, (const char *)&number, sizeof number); }

void wire_add_block(str *to, const void *data, size_t bytes) {
  wire_add(to, bytes);
  if (bytes) str_add_bytes(to, data, bytes);
}

void wire_add_text(str *to, const char *text) { wire_add_block(to, text, strlen(text)); }

/** The next bytes, if there are as many. */
static const unsigned char *take(wire_reader *r, uint64_t bytes) {
  if (r->failed || bytes > (uint64_t)(r->end - r->at)) {
    r->failed = true;
    return NULL;
  }
  const unsigned char *at = r->at;
  r->at += bytes;
  return at;
}

uint64_t wire_number(wire_reader *r) {
  uint64_t number = 0;
  const unsigned char *at = take(r, sizeof number);
  if (at) memcpy(&number, at, sizeof number);
  return number;
}

uint64_t wire_below(wire_reader *r, uint64_t limit) {
  uint64_t number = wire_number(r);
  if (number < limit) return number;
  r->failed = true;
  return 0;
}

const void *wire_block(wire_reader *r, size_t *bytes) {
  uint64_t n = wire_number(r);
  const unsigned char *at = take(r, n);
  *bytes = at ? (size_t)n : 0;
  return at;
}

const char *wire_text(wire_reader *r, arena *a) {
  size_t n;
  const char *at = wire_block(r, &n);
  if (at && memchr(at, 0, n)) r->failed = true;
  return r->failed ? "" : arena_printf(a, "%.*s", (int)n, at);
}

size_t wire_count(wire_reader *r, size_t each) {
  uint64_t n = wire_number(r);
  if (!r->failed && n > (uint64_t)(r->end - r->at) / each) r->failed = true;
  return r->failed ? 0 : (size_t)n;
}
