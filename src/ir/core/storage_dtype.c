/* Converts scalars of storage types: floats of 8 and 4 bits by their fields (OCP 8-bit floating
   point specification and microscaling formats, 2023; the types without -0 as in ONNX's Cast), and
   integers of 4 and 2 bits. This is the definition that the expressions of
   tensor/ops/storage_types.c are tested against. */
#include "ir/core/dtype.h"

#include <math.h>

/* Integers. */

uint64_t storage_to_int(dtype t, uint64_t bits) {
  int spare = 64 - dtype_value_bits(t);
  if (dtype_has_signs(t)) return (uint64_t)((int64_t)(bits << spare) >> spare);
  return bits << spare >> spare;
}

uint64_t storage_from_int(dtype t, uint64_t value) {
  return value & ((UINT64_C(1) << dtype_value_bits(t)) - 1);
}

static uint64_t int_from_double(dtype t, double value) {
  int bits = dtype_value_bits(t) - dtype_has_signs(t);
  double most = ldexp(1, bits) - 1, least = dtype_has_signs(t) ? -ldexp(1, bits) : 0;
  if (isnan(value)) return 0;
  return storage_from_int(t, (uint64_t)(int64_t)fmin(fmax(value, least), most));
}

/* Powers of two. */

static double scale_to_double(uint64_t bits) {
  return bits == 0xff ? NAN : ldexp(1, (int)bits - 127);
}

static uint64_t scale_from_double(double value, storage_rounding how) {
  int exponent;
  double part = frexp(value, &exponent) * 2; /* 1 <= part < 2 */
  if (isnan(value) || value < 0) return 0xff;
  if (isinf(value)) return how.saturates ? 0xfe : 0xff;
  if (value < 0x1p-127) return how.saturates ? 0 : 0xff;
  bool up =
      how.direction == STORAGE_UP ? part > 1 : how.direction == STORAGE_NEAREST && part >= 1.5;
  int64_t pattern = exponent - 1 + 127 + up;
  return pattern <= 0xfe ? (uint64_t)pattern : how.saturates ? 0xfe : 0xff;
}

/* Floats with a sign. */

/** Patterns without sign: of the greatest finite number, and of what is beyond it. */
typedef struct range {
  uint64_t sign, most, beyond, nan;
} range;

static range range_of(const dtype_facts *f) {
  uint64_t sign = UINT64_C(1) << (f->storage_bits - 1), last = sign - 1;
  uint64_t infinity = last - ((UINT64_C(1) << f->mantissa_bits) - 1);
  switch (f->specials) {
  case SPECIALS_NAN_LAST: return (range){sign, last - 1, last, last};
  case SPECIALS_NAN_SIGN: return (range){sign, last, sign, sign};
  case SPECIALS_IEEE:
    return (range){sign, infinity - 1, infinity, infinity | UINT64_C(1) << (f->mantissa_bits - 1)};
  default: return (range){sign, last, last, sign};
  }
}

static double signed_to_double(const dtype_facts *f, uint64_t bits) {
  range r = range_of(f);
  uint64_t pattern = bits & (r.sign - 1);
  uint64_t fraction = pattern & ((UINT64_C(1) << f->mantissa_bits) - 1);
  int exponent = (int)(pattern >> f->mantissa_bits);
  double size;
  if (f->specials == SPECIALS_NAN_SIGN && (bits & (2 * r.sign - 1)) == r.sign) return NAN;
  if (pattern > r.most)
    size = f->specials == SPECIALS_IEEE && pattern == r.beyond ? INFINITY : NAN;
  else if (exponent)
    size = ldexp((double)(fraction + (UINT64_C(1) << f->mantissa_bits)),
                 exponent - f->bias - f->mantissa_bits);
  else
    size = ldexp((double)fraction, 1 - f->bias - f->mantissa_bits);
  return bits & r.sign ? -size : size;
}

static uint64_t signed_from_double(const dtype_facts *f, double value, storage_rounding how) {
  range r = range_of(f);
  bool no_sign = f->specials == SPECIALS_NAN_SIGN, limited = f->specials == SPECIALS_FINITE;
  uint64_t sign = signbit(value) ? r.sign : 0, pattern;
  double size = fabs(value);
  int exponent = 1 - f->bias;
  if (isnan(value)) return limited || no_sign ? r.nan : sign | r.nan;
  if (size > 0 && isfinite(size) && ilogb(size) > exponent) exponent = ilogb(size);
  if (exponent > f->bias + 2 || isinf(size)) {
    pattern = r.most + 1;
  } else {
    double units = nearbyint(ldexp(size, f->mantissa_bits - exponent));
    pattern = (uint64_t)units + ((uint64_t)(exponent + f->bias - 1) << f->mantissa_bits);
  }
  if (pattern > r.most) pattern = how.saturates || limited ? r.most : r.beyond;
  if (no_sign && (!pattern || pattern == r.sign)) return pattern;
  return sign | pattern;
}

/* All. */

double storage_to_double(dtype t, uint64_t bits) {
  const dtype_facts *f = dtype_facts_of(t);
  if (f->specials == SPECIALS_SCALE) return scale_to_double(bits & 0xff);
  if (f->values == DC_FLOAT) return signed_to_double(f, bits);
  return (double)(int64_t)storage_to_int(t, bits);
}

uint64_t storage_from_double(dtype t, double value, storage_rounding how) {
  const dtype_facts *f = dtype_facts_of(t);
  if (f->specials == SPECIALS_SCALE) return scale_from_double(value, how);
  if (f->values == DC_FLOAT) return signed_from_double(f, value, how);
  return int_from_double(t, value);
}
