#include "device/cpu/symbols.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#ifdef __has_feature
#define FEATURE(name) __has_feature(name)
#else
#define FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || FEATURE(address_sanitizer)
#define SYMBOLS_ADDRESS 1
#else
#define SYMBOLS_ADDRESS 0
#endif

#if defined(__SANITIZE_THREAD__) || FEATURE(thread_sanitizer)
#define SYMBOLS_THREAD 1
#else
#define SYMBOLS_THREAD 0
#endif

#ifdef __x86_64__

/* Narrow floats in the two calling conventions that compilers have used for these functions: in the
   low 16 bits of an SSE register, as gcc 12 and LLVM 15 onwards do, and in an integer register, as
   earlier ones did. A struct of this form is returned in both registers at once. */
typedef struct narrow {
  float sse[2];
  uint64_t integer;
} narrow;

static narrow narrow_return(uint16_t bits) {
  narrow r = {.integer = bits};
  memcpy(r.sse, &bits, sizeof bits);
  return r;
}

static uint16_t narrow_argument(float sse) {
  uint16_t bits;
  memcpy(&bits, &sse, sizeof bits);
  return bits;
}

/** Rounds to the nearest float of 16 bits, ties to even. `fraction` bits: 10 for half, 7 for
    bfloat; `bias`: 15, 127. NaNs stay NaN, quiet, with the top of their payload. */
static uint16_t narrow_bits(double x, int fraction, int bias) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
  int wide = (int)(bits >> 52 & 0x7ff), drop = 52 - fraction, exponent = wide - 1023 + bias;
  uint64_t significand = bits & (((uint64_t)1 << 52) - 1);
  uint16_t infinity = (uint16_t)((2 * bias + 1) << fraction);
  if (wide == 0x7ff && significand)
    return (uint16_t)(sign | infinity | 1 << (fraction - 1) | significand >> drop);
  if (exponent > 2 * bias) return sign | infinity;
  if (exponent < -fraction) return sign;
  significand |= (uint64_t)1 << 52;
  if (exponent < 1) drop += 1 - exponent;
  uint64_t kept = significand >> drop, rest = significand - (kept << drop);
  uint64_t tie = (uint64_t)1 << (drop - 1);
  kept += rest > tie || (rest == tie && (kept & 1));
  if (exponent >= 1) kept += (uint64_t)(exponent - 1) << fraction; /* the leading bit adds one */
  return (uint16_t)(sign | kept);
}

/** To double with an odd last bit where inexact, so that rounding again is as rounding once. */
static double round_to_odd(long double x) {
  double near = (double)x;
  if (isnan(x) || isinf(near) || near == x || near == 0) return near;
  uint64_t bits;
  memcpy(&bits, &near, sizeof bits);
  if (fabsl(near) > fabsl(x)) bits--;
  bits |= 1;
  memcpy(&near, &bits, sizeof bits);
  return near;
}

static float half_bits_to_float(uint16_t bits) {
  uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023, sign = (uint32_t)(bits >> 15) << 31;
  uint32_t wide;
  float f;
  if (!exponent) {
    f = (float)fraction * 0x1p-24f;
    memcpy(&wide, &f, sizeof wide);
  } else if (exponent == 31)
    wide = 0x7f800000 | fraction << 13 | (fraction ? 0x400000u : 0);
  else
    wide = (exponent + 112) << 23 | fraction << 13;
  wide |= sign;
  memcpy(&f, &wide, sizeof f);
  return f;
}

static float half_to_float(float sse) { return half_bits_to_float(narrow_argument(sse)); }
static double half_to_double(float sse) { return half_to_float(sse); }
static narrow float_to_half(float x) { return narrow_return(narrow_bits(x, 10, 15)); }
static narrow double_to_half(double x) { return narrow_return(narrow_bits(x, 10, 15)); }
static narrow extended_to_half(long double x) { return double_to_half(round_to_odd(x)); }

static float bfloat_to_float(float sse) {
  uint32_t wide = (uint32_t)narrow_argument(sse) << 16;
  float f;
  memcpy(&f, &wide, sizeof f);
  return f;
}

static narrow float_to_bfloat(float x) { return narrow_return(narrow_bits(x, 7, 127)); }
static narrow double_to_bfloat(double x) { return narrow_return(narrow_bits(x, 7, 127)); }
static narrow extended_to_bfloat(long double x) { return double_to_bfloat(round_to_odd(x)); }

#endif

#if defined(__GNUC__) && !defined(__clang__)
/* gcc knows the sanitizers' functions by their true types; only their addresses are wanted. */
#pragma GCC diagnostic ignored "-Wbuiltin-declaration-mismatch"
#endif

typedef void function(void);

#define SYMBOL(name)
#define SYMBOL_RUNTIME(name) extern function name;
#define SYMBOL_OWN(name, f)
#include "device/cpu/symbols.def"
#undef SYMBOL
#undef SYMBOL_RUNTIME
#undef SYMBOL_OWN

static const struct {
  const char *name;
  function *address;
} symbols[] = {
#define SYMBOL(name)         {#name, (function *)name},
#define SYMBOL_RUNTIME(name) {#name, name},
#define SYMBOL_OWN(name, f)  {#name, (function *)f},
#include "device/cpu/symbols.def"
};

uint64_t symbol_address(const char *name) {
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
    if (!strcmp(symbols[i].name, name)) return (uintptr_t)symbols[i].address;
  return 0;
}

bool symbols_sanitized(void) { return SYMBOLS_ADDRESS || SYMBOLS_THREAD; }
