/* Implements the data types: the table made from dtypes.def, loads and stores of scalars, and
   conversions, in which integers wrap or saturate and floats round to nearest with ties to even,
   once (IEEE 754-2019, 5.4). */
#include "ir/core/dtype.h"

#include <math.h>
#include <string.h>

static const dtype_facts table[DT_LIMIT] = {
#define INT   DC_INT
#define UINT  DC_UINT
#define FLOAT DC_FLOAT
#define BOOL  DC_BOOL
#define NONE  DC_NONE
#define INDEX DC_INDEX
#define DTYPE(name, number, text, cls, bytes, exponent, mantissa) \
  [number] = {text, cls, bytes, exponent, mantissa, cls, 0, 0, SPECIALS_FINITE},
#define STORED(name, number, text, cls, bits, exponent, mantissa, bias, specials) \
  [number] = {text, DC_STORAGE, 1, exponent, mantissa, cls, bits, bias, SPECIALS_##specials},
#include "ir/core/dtypes.def"
#undef DTYPE
};

const dtype_facts *dtype_facts_of(int type) {
  static const dtype_facts none = {0};
  return type >= 0 && type < DT_LIMIT ? &table[type] : &none;
}

dtype dtype_from_name(const char *name, size_t length, bool *found) {
  for (int i = 0; i < DT_LIMIT; i++)
    if (table[i].name && strlen(table[i].name) == length && !memcmp(table[i].name, name, length)) {
      *found = true;
      return (dtype)i;
    }
  *found = false;
  return DT_VOID;
}

int64_t dtype_min(dtype t) {
  if (t == DT_INDEX) return INT64_MIN;
  if (!dtype_is_signed(t)) return 0;
  return (int64_t)(~UINT64_C(0) << (8 * dtype_bytes(t) - 1));
}

int64_t dtype_max(dtype t) {
  if (t == DT_BOOL) return 1;
  if (t == DT_INDEX || t == DT_U64 || t == DT_I64) return INT64_MAX;
  return (INT64_C(1) << (8 * dtype_bytes(t) - dtype_is_signed(t))) - 1;
}

/** Truncates an integer to the width of a type and extends it again. */
static uint64_t wrap(dtype t, uint64_t bits) {
  if (t == DT_BOOL) return bits != 0;
  int spare = 64 - 8 * (int)dtype_bytes(t);
  if (dtype_is_signed(t) || t == DT_INDEX) return (uint64_t)((int64_t)(bits << spare) >> spare);
  return bits << spare >> spare;
}

uint64_t scalar_load(dtype t, const void *at) {
  uint8_t b1;
  uint16_t b2;
  uint32_t b4;
  uint64_t b8;
  switch (dtype_bytes(t)) {
  case 1: memcpy(&b1, at, 1), b8 = b1; break;
  case 2: memcpy(&b2, at, 2), b8 = b2; break;
  case 4: memcpy(&b4, at, 4), b8 = b4; break;
  default: memcpy(&b8, at, 8); break;
  }
  return dtype_is_float(t) ? b8 : wrap(t, b8);
}

void scalar_store(dtype t, void *at, uint64_t bits) {
  uint8_t b1 = (uint8_t)bits;
  uint16_t b2 = (uint16_t)bits;
  uint32_t b4 = (uint32_t)bits;
  switch (dtype_bytes(t)) {
  case 1: memcpy(at, &b1, 1); break;
  case 2: memcpy(at, &b2, 2); break;
  case 4: memcpy(at, &b4, 4); break;
  default: memcpy(at, &bits, 8); break;
  }
}

static uint32_t float_bits(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}

static float bits_float(uint32_t u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}

/** Shifts right by n > 0, rounding to nearest, ties to even. */
static uint32_t round_shift(uint32_t v, int n) {
  if (n > 31) return 0;
  uint32_t half = UINT32_C(1) << (n - 1), rest = v & (half * 2 - 1);
  v >>= n;
  return v + (rest > half || (rest == half && (v & 1)));
}

float half_to_float(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 0x3ff;
  if (e == 31) return bits_float(sign | 0x7f800000 | m << 13);
  if (e) return bits_float(sign | (e + 112) << 23 | m << 13);
  float tiny = (float)m * 0x1p-24f; /* exact */
  return bits_float(sign | float_bits(tiny));
}

uint16_t half_from_float(float f) {
  uint32_t u = float_bits(f), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
  if (a > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (a >> 13 & 0x1ff));
  if (a >= 0x47800000) return (uint16_t)(sign | 0x7c00); /* at least 2^16, or infinity */
  if (a >= 0x38800000) return (uint16_t)(sign | round_shift(a - 0x38000000, 13));
  int e = (int)(a >> 23);
  return (uint16_t)(sign | round_shift((a & 0x7fffff) | 0x800000, 126 - e));
}

float bfloat_to_float(uint16_t h) { return bits_float((uint32_t)h << 16); }

uint16_t bfloat_from_float(float f) {
  uint32_t u = float_bits(f);
  if ((u & 0x7fffffff) > 0x7f800000) return (uint16_t)(u >> 16 | 0x40);
  return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

double scalar_to_double(dtype t, uint64_t bits) {
  double d;
  switch (t) {
  case DT_F16: return half_to_float((uint16_t)bits);
  case DT_BF16: return bfloat_to_float((uint16_t)bits);
  case DT_F32: return bits_float((uint32_t)bits);
  case DT_F64: memcpy(&d, &bits, 8); return d;
  default: break;
  }
  if (dtype_is_storage(t)) return storage_to_double(t, bits);
  return dtype_is_signed(t) || t == DT_INDEX ? (double)(int64_t)bits : (double)bits;
}

/** Rounds to odd, so that rounding the result again equals rounding once (Boldo and Melquiond,
    "Emulation of FMA and correctly rounded sums", 2008). */
static float round_to_odd(double v) {
  float f = (float)v;
  if (isnan(v) || isinf(f) || (double)f == v) return f;
  bool away = fabs((double)f) > fabs(v);
  uint32_t u = float_bits(f);
  if (away) u--;
  return bits_float(u | 1);
}

uint64_t scalar_from_double(dtype t, double value) {
  uint64_t u;
  switch (t) {
  case DT_F16: return half_from_float(round_to_odd(value));
  case DT_BF16: return bfloat_from_float(round_to_odd(value));
  case DT_F32: return float_bits((float)value);
  case DT_F64: memcpy(&u, &value, 8); return u;
  case DT_BOOL: return value != 0;
  default: break;
  }
  if (dtype_is_storage(t)) return storage_from_double(t, value, storage_rounding_usual);
  if (isnan(value)) return 0;
  double least = (double)dtype_min(t),
         beyond = ldexp(1, 8 * (int)dtype_bytes(t) - (dtype_is_signed(t) || t == DT_INDEX));
  if (value <= least) return (uint64_t)dtype_min(t);
  if (value >= beyond) return t == DT_U64 ? UINT64_MAX : (uint64_t)dtype_max(t);
  return t == DT_U64 ? (uint64_t)value : (uint64_t)(int64_t)value;
}

/** Converts an integer to a float with one rounding. */
static uint64_t float_from_int(dtype to, dtype from, uint64_t bits) {
  bool negative = (dtype_is_signed(from) || from == DT_INDEX) && (int64_t)bits < 0;
  uint64_t m = negative ? 0 - bits : bits;
  if (to == DT_F64) return scalar_from_double(to, negative ? -(double)m : (double)m);
  /* Beyond 2^53 the low bits are folded into one sticky bit below half a unit. */
  if (m >> 53) m = (m >> 11 | ((m & 0x7ff) != 0)) << 11;
  double exact = (double)(m >> 11) * 0x1p11 + (double)(m & 0x7ff);
  return scalar_from_double(to, negative ? -exact : exact);
}

uint64_t scalar_cast(dtype to, dtype from, uint64_t bits) {
  if (to == from) return bits;
  if (dtype_has_floats(from)) return scalar_from_double(to, scalar_to_double(from, bits));
  if (dtype_is_storage(from)) return scalar_cast(to, DT_I64, storage_to_int(from, bits));
  if (dtype_has_floats(to)) return float_from_int(to, from, bits);
  return dtype_is_storage(to) ? storage_from_int(to, bits) : wrap(to, bits);
}
