/* Resolves the external functions that kernels may call, by name, and implements the conversions of
   16-bit floats in the calling conventions of several compilers' runtime libraries, as not every
   system has these. */
#include "device/cpu/kernel_imports.h"

#include "ir/core/dtype.h"

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
   earlier ones did. A struct of this form is returned in both registers. */
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

/** Rounds to odd: to double, with an odd last bit if inexact, so that a second rounding to a
   narrower type gives the same as one. */
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

/** NaNs of half become quiet, as the hardware's conversion makes them. */
static float half_bits_to_float(uint16_t bits) {
  float f = half_to_float(bits);
  uint32_t wide;
  if (!isnan(f)) return f;
  memcpy(&wide, &f, sizeof wide);
  wide |= 0x400000;
  memcpy(&f, &wide, sizeof f);
  return f;
}

static float half_argument_to_float(float sse) { return half_bits_to_float(narrow_argument(sse)); }
static double half_argument_to_double(float sse) { return half_argument_to_float(sse); }
static narrow float_to_half(float x) { return narrow_return(half_from_float(x)); }
static narrow double_to_half(double x) {
  return narrow_return((uint16_t)scalar_from_double(DT_F16, x));
}
static narrow extended_to_half(long double x) { return double_to_half(round_to_odd(x)); }

static float bfloat_argument_to_float(float sse) { return bfloat_to_float(narrow_argument(sse)); }
static narrow float_to_bfloat(float x) { return narrow_return(bfloat_from_float(x)); }
static narrow double_to_bfloat(double x) {
  return narrow_return((uint16_t)scalar_from_double(DT_BF16, x));
}
static narrow extended_to_bfloat(long double x) { return double_to_bfloat(round_to_odd(x)); }

#endif

#if defined(__GNUC__) && !defined(__clang__)
/* gcc knows the sanitizers' functions by their true types; only their addresses are used here. */
#pragma GCC diagnostic ignored "-Wbuiltin-declaration-mismatch"
#endif

typedef void function(void);

#define SYMBOL(name)
#define SYMBOL_RUNTIME(name) extern function name;
#define SYMBOL_OWN(name, f)
#include "device/cpu/kernel_imports.def"
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
#include "device/cpu/kernel_imports.def"
};

uint64_t kernel_import_address(const char *name) {
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
    if (!strcmp(symbols[i].name, name)) return (uintptr_t)symbols[i].address;
  return 0;
}

bool kernel_imports_accept_sanitizer(void) { return SYMBOLS_ADDRESS || SYMBOLS_THREAD; }
