/* Pseudo-random numbers for choices and contents that need no more than variety (xorshift;
   Marsaglia, "Xorshift RNGs", 2003). Random tensors are made by other means. */
#ifndef TENON_BASE_RANDOM_H
#define TENON_BASE_RANDOM_H

#include <stdint.h>

/** The next number; *state is not 0, and is the number. */
static inline uint64_t random_next(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  return *state ^= *state << 17;
}

#endif
