/* Implements the keyed hash of bytes (SipHash-1-3) and draws the process's random key on first use
   by getrandom; where that fails, the key is the 16 random bytes that the kernel puts behind
   AT_RANDOM. */
#include "base/hash.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>

struct hash_process hash_process = {.once = PTHREAD_ONCE_INIT};

hasher hash_begin_keyed(uint64_t k0, uint64_t k1) {
  return (hasher){k0 ^ UINT64_C(0x736f6d6570736575), k1 ^ UINT64_C(0x646f72616e646f6d),
                  k0 ^ UINT64_C(0x6c7967656e657261), k1 ^ UINT64_C(0x7465646279746573)};
}

static void draw_key(void) {
  uint64_t key[2] = {0};
  const void *random = (const void *)getauxval(AT_RANDOM);
  if (getrandom(key, sizeof key, GRND_NONBLOCK) != (ssize_t)sizeof key && random)
    memcpy(key, random, sizeof key);
  hash_process.start = hash_begin_keyed(key[0], key[1]);
  atomic_store_explicit(&hash_process.is_drawn, true, memory_order_release);
}

void hash_draw_key(void) { pthread_once(&hash_process.once, draw_key); }

void hash_add_bytes(hasher *h, const void *at, size_t bytes) {
  const unsigned char *p = at;
  uint64_t word, last = (uint64_t)bytes << 56;
  hasher local = *h; /* in registers */
  for (size_t left = bytes / 8; left; left--, p += 8) {
    memcpy(&word, p, 8);
    hash_add_word(&local, word);
  }
  for (size_t i = 0; i < bytes % 8; i++) last |= (uint64_t)p[i] << 8 * i;
  hash_add_word(&local, last);
  *h = local;
}

uint64_t hash_bytes(const void *at, size_t bytes) {
  hasher h = hash_begin();
  hash_add_bytes(&h, at, bytes);
  return hash_end(&h);
}

uint64_t hash_text(const char *text) { return hash_bytes(text, strlen(text)); }
