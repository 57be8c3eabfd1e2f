/* A keyed hash function, SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF",
   2012), under a random 128-bit key of the process, so that names and values in a file cannot be
   chosen to collide. A hash means nothing in another process: the keys of cache files are hashed by
   compile/cache_keys.c. */
#ifndef TENON_BASE_HASH_H
#define TENON_BASE_HASH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The state of SipHash between two words. */
typedef struct hasher {
  uint64_t v0, v1, v2, v3;
} hasher;

/** The state for a key of 128 bits. */
hasher hash_begin_keyed(uint64_t k0, uint64_t k1);

/** The process's key, written once, when the first hash is begun. */
extern struct hash_process {
  hasher start; /* the state before the first word */
  atomic_bool is_drawn;
  pthread_once_t once;
} hash_process;
void hash_draw_key(void);

/** The state before the first word. */
static inline hasher hash_begin(void) {
  if (!atomic_load_explicit(&hash_process.is_drawn, memory_order_acquire)) hash_draw_key();
  return hash_process.start;
}

static inline uint64_t hash_rotate(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

static inline void hash_round(hasher *h) {
  h->v0 += h->v1;
  h->v2 += h->v3;
  h->v1 = hash_rotate(h->v1, 13) ^ h->v0;
  h->v3 = hash_rotate(h->v3, 16) ^ h->v2;
  h->v0 = hash_rotate(h->v0, 32);
  h->v2 += h->v1;
  h->v0 += h->v3;
  h->v1 = hash_rotate(h->v1, 17) ^ h->v2;
  h->v3 = hash_rotate(h->v3, 21) ^ h->v0;
  h->v2 = hash_rotate(h->v2, 32);
}

static inline void hash_add_word(hasher *h, uint64_t word) {
  h->v3 ^= word;
  hash_round(h);
  h->v0 ^= word;
}

/** Adds bytes and then their number, as SipHash ends a message. */
void hash_add_bytes(hasher *h, const void *at, size_t bytes);

static inline uint64_t hash_end(hasher *h) {
  h->v2 ^= 0xff;
  for (int i = 0; i < 3; i++) hash_round(h);
  return h->v0 ^ h->v1 ^ h->v2 ^ h->v3;
}

/** The hash of one word, such as a number or an address. */
static inline uint64_t hash_word(uint64_t word) {
  hasher h = hash_begin();
  hash_add_word(&h, word);
  return hash_end(&h);
}

uint64_t hash_bytes(const void *at, size_t bytes);
uint64_t hash_text(const char *text); /* without its NUL */

#endif
