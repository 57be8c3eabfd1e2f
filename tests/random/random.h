/* Pseudo-random number generator with the same sequence on every machine: SplitMix64 (Steele, Lea
   and Flood, "Fast splittable pseudorandom number generators", 2014). */
#ifndef TENON_TESTS_RANDOM_H
#define TENON_TESTS_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rng {
  uint64_t state;
} rng;

static inline uint64_t rng_mix(uint64_t z) {
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static inline uint64_t rng_next(rng *r) {
  return rng_mix(r->state += UINT64_C(0x9e3779b97f4a7c15));
}

/** Draws a number from 0 to n − 1; 0 for n = 0. */
static inline size_t rng_below(rng *r, size_t n) { return n ? (size_t)(rng_next(r) % n) : 0; }

/** Draws a number from `low` to `high`, both included. */
static inline int64_t rng_between(rng *r, int64_t low, int64_t high) {
  return low + (int64_t)rng_below(r, (size_t)(high - low + 1));
}

/** Returns true with a probability of `percent` in a hundred. */
static inline bool rng_chance(rng *r, unsigned percent) { return rng_below(r, 100) < percent; }

#endif
