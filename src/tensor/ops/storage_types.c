/* Conversions of storage types (ir/core/dtypes.def) as expressions: patterns are made and taken
   apart by integer arithmetic, so that every device gives the same bits, those of
   ir/core/storage_dtype.c, and no renderer knows the types. Floats are converted from and to f32,
   in which each of their values is exact, and integers from and to 8 bits. */
#include "ir/index/build_tensor.h"
#include "tensor/ops/expressions.h"

#include <math.h>
#include <string.h>

enum { F32_MANTISSA = 23, F32_BIAS = 127 };
static const int64_t f32_infinity = 0x7f800000, f32_nan = 0x7fc00000, f32_size = 0x7fffffff;

static const node *with_int(builder *b, op o, const node *x, int64_t k) {
  return ex_binary(b, o, x, ex_int(b, x, k));
}

/** k < x or k <= x. */
static const node *above(builder *b, op o, int64_t k, const node *x) {
  return ex_binary(b, o, ex_int(b, x, k), x);
}

static const node *or_int(builder *b, const node *condition, int64_t k, const node *x) {
  return ex_where(b, condition, ex_int(b, x, k), x);
}

dtype storage_compute_type(dtype t) {
  return dtype_has_floats(t) ? DT_F32 : dtype_has_signs(t) ? DT_I8 : DT_U8;
}

/* ---- To f32, or 8 bits ---- */

static const node *widen_int(builder *b, const node *n, dtype t) {
  int spare = 8 - dtype_value_bits(t);
  const node *x = ir_bitcast(b->ir, n, storage_compute_type(t));
  return with_int(b, OP_SHR, with_int(b, OP_SHL, x, spare), spare);
}

/** f8e8m0 is the exponent of an f32, whose least one is that of a subnormal number. */
static const node *widen_scale(builder *b, const node *u) {
  const node *bits = with_int(b, OP_SHL, u, F32_MANTISSA);
  bits = or_int(b, with_int(b, OP_EQ, u, 0), 1 << (F32_MANTISSA - 1), bits);
  return or_int(b, with_int(b, OP_EQ, u, 0xff), f32_nan, bits);
}

/** The size is moved to f32's fields; the exponent 0 is that of multiples of one number. */
static const node *widen_float(builder *b, const node *u, const dtype_facts *f) {
  int m = f->mantissa_bits, width = f->storage_bits;
  int64_t sign = INT64_C(1) << (width - 1), last = sign - 1;
  int64_t infinity = last ^ ((INT64_C(1) << m) - 1);
  const node *size = with_int(b, OP_AND, u, last);
  const node *wide = with_int(b, OP_SHL, size, F32_MANTISSA - m);
  const node *bits = with_int(b, OP_ADD, wide, (int64_t)(F32_BIAS - f->bias) << F32_MANTISSA);
  const node *tiny =
      ex_binary_num(b, OP_MUL, ir_cast(b->ir, size, DT_F32), ldexp(1, 1 - f->bias - m));
  bits =
      ex_where(b, with_int(b, OP_LT, size, INT64_C(1) << m), ir_bitcast(b->ir, tiny, DT_U32), bits);
  if (f->specials == SPECIALS_IEEE) {
    const node *special = with_int(b, OP_OR, wide, f32_infinity);
    bits = ex_where(b, above(b, OP_LE, infinity, size), special, bits);
  }
  if (f->specials == SPECIALS_NAN_LAST)
    bits = or_int(b, with_int(b, OP_EQ, size, last), f32_nan, bits);
  const node *minus = with_int(b, OP_SHL, with_int(b, OP_AND, u, sign), 32 - width);
  bits = ex_binary(b, OP_OR, bits, minus);
  if (f->specials == SPECIALS_NAN_SIGN)
    bits = or_int(b, with_int(b, OP_EQ, u, sign), f32_nan, bits);
  return bits;
}

const node *storage_widen(builder *b, const node *n) {
  dtype t = (dtype)n->dtype;
  const dtype_facts *f = dtype_facts_of(t);
  if (!dtype_has_floats(t)) return widen_int(b, n, t);
  const node *u = ir_cast(b->ir, ir_bitcast(b->ir, n, DT_U8), DT_U32);
  const node *bits = f->specials == SPECIALS_SCALE ? widen_scale(b, u) : widen_float(b, u, f);
  return ir_bitcast(b->ir, bits, DT_F32);
}

/* ---- From f32, or integers ---- */

static const node *bytes_as(builder *b, const node *pattern, dtype t) {
  return ir_bitcast(b->ir, ir_cast(b->ir, pattern, DT_U8), t);
}

static const node *narrow_int(builder *b, const node *x, dtype t) {
  dtype wide = storage_compute_type(t);
  int bits = dtype_value_bits(t);
  int64_t count = INT64_C(1) << bits, least = dtype_has_signs(t) ? -count / 2 : 0;
  bool limits = dtype_is_float((dtype)x->dtype);
  x = ir_cast(b->ir, x, wide);
  if (limits) x = with_int(b, OP_MIN, with_int(b, OP_MAX, x, least), least + count - 1);
  return ir_bitcast(b->ir, with_int(b, OP_AND, ir_bitcast(b->ir, x, DT_U8), count - 1), t);
}

/** Rounds to f32 so that rounding the result again equals rounding once: to odd (Boldo and
    Melquiond, "Emulation of FMA and correctly rounded sums", 2008). */
static const node *f64_to_odd(builder *b, const node *d) {
  const node *f = ir_cast(b->ir, d, DT_F32), *back = ir_cast(b->ir, f, DT_F64);
  const node *u = ir_bitcast(b->ir, f, DT_U32);
  const node *size = ex_unary(b, OP_ABS, d), *back_size = ex_unary(b, OP_ABS, back);
  const node *fits = ex_binary_num(b, OP_LT, size, 0x1p128); /* false for NaN */
  const node *is_inexact = ex_binary(b, OP_AND, fits, ex_binary(b, OP_NE, back, d));
  const node *away = ir_cast(b->ir, ex_binary(b, OP_LT, size, back_size), DT_U32);
  const node *odd = with_int(b, OP_OR, ex_binary(b, OP_SUB, u, away), 1);
  return ex_where(b, is_inexact, ir_bitcast(b->ir, odd, DT_F32), f);
}

/** An integer as f64, of which bits beyond the 53 that it holds are made one, not 0 if they are. */
static const node *int_to_f64(builder *b, const node *x) {
  if (dtype_bytes((dtype)x->dtype) < 8) return ir_cast(b->ir, x, DT_F64);
  const node *low = with_int(b, OP_AND, x, 0x7ff), *high = with_int(b, OP_AND, x, -0x800);
  const node *sticky = or_int(b, with_int(b, OP_NE, low, 0), 0x800, low);
  const node *is_large = above(b, OP_LE, INT64_C(1) << 53, x);
  return ir_cast(b->ir, ex_where(b, is_large, ex_binary(b, OP_OR, high, sticky), x), DT_F64);
}

/** Integers beyond f32's 24 bits are beyond each type but f8e8m0, which depends on all bits. */
static const node *as_f32(builder *b, const node *x, dtype t) {
  dtype from = (dtype)x->dtype;
  bool is_scale = dtype_facts_of(t)->specials == SPECIALS_SCALE;
  if (is_scale && dtype_is_int(from) && dtype_bytes(from) > 2) x = int_to_f64(b, x);
  return x->dtype == DT_F64 ? f64_to_odd(b, x) : ir_cast(b->ir, x, DT_F32);
}

static const node *narrow_scale(builder *b, const node *u, storage_rounding how) {
  const int64_t one = INT64_C(1) << F32_MANTISSA, half = one / 2;
  const node *size = with_int(b, OP_AND, u, f32_size);
  const node *is_tiny =
      with_int(b, OP_LT, size, one); /* its leading bit is the last fraction bit */
  const node *tiny = with_int(b, OP_SHL, with_int(b, OP_AND, size, half - 1), 1);
  const node *fraction = ex_where(b, is_tiny, tiny, with_int(b, OP_AND, size, one - 1));
  const node *pattern = with_int(b, OP_SHR, size, F32_MANTISSA);
  if (how.direction != STORAGE_DOWN) {
    const node *up = above(b, OP_LE, how.direction == STORAGE_UP ? 1 : half, fraction);
    pattern = ex_binary(b, OP_ADD, pattern, ir_cast(b->ir, up, DT_U32));
  }
  pattern = or_int(b, above(b, OP_LT, 0xfe, pattern), how.saturates ? 0xfe : 0xff, pattern);
  pattern = or_int(b, with_int(b, OP_LT, size, half), how.saturates ? 0 : 0xff, pattern);
  const node *is_negative = ex_binary(b, OP_LT, size, u);
  is_negative = ex_binary(b, OP_AND, is_negative, with_int(b, OP_NE, size, 0));
  const node *none = ex_binary(b, OP_OR, is_negative, above(b, OP_LT, f32_infinity, size));
  return or_int(b, none, 0xff, pattern);
}

/** Patterns without sign: of the greatest number, and of what is beyond it. */
typedef struct limits {
  int64_t sign, most, beyond, nan;
} limits;

static limits limits_of(const dtype_facts *f) {
  int64_t sign = INT64_C(1) << (f->storage_bits - 1), last = sign - 1;
  int64_t infinity = last ^ ((INT64_C(1) << f->mantissa_bits) - 1);
  int64_t quiet = infinity | INT64_C(1) << (f->mantissa_bits - 1);
  switch (f->specials) {
  case SPECIALS_NAN_LAST: return (limits){sign, last - 1, last, last};
  case SPECIALS_NAN_SIGN: return (limits){sign, last, sign, sign};
  case SPECIALS_IEEE: return (limits){sign, infinity - 1, infinity, quiet};
  default: return (limits){sign, last, last, sign};
  }
}

/** Adding a power of two to a number below the least normal one leaves it, rounded, in the last
    bits, in units of the type's least number. */
static const node *narrow_tiny(builder *b, const node *size, const dtype_facts *f) {
  int exponent = F32_MANTISSA + 1 - f->bias - f->mantissa_bits;
  const node *sum = ex_binary_num(b, OP_ADD, ir_bitcast(b->ir, size, DT_F32), ldexp(1, exponent));
  int64_t base = (int64_t)(exponent + F32_BIAS) << F32_MANTISSA;
  return with_int(b, OP_SUB, ir_bitcast(b->ir, sum, DT_U32), base);
}

static const node *narrow_float(builder *b, const node *u, const dtype_facts *f,
                                storage_rounding how) {
  limits k = limits_of(f);
  int drop = F32_MANTISSA - f->mantissa_bits;
  int64_t rebias = (int64_t)(F32_BIAS - f->bias) << F32_MANTISSA;
  const node *size = with_int(b, OP_AND, u, f32_size);
  const node *v = with_int(b, OP_SUB, size, rebias);
  const node *tie = with_int(b, OP_AND, with_int(b, OP_SHR, v, drop), 1);
  const node *carry = with_int(b, OP_ADD, tie, (INT64_C(1) << (drop - 1)) - 1);
  const node *normal = with_int(b, OP_SHR, ex_binary(b, OP_ADD, v, carry), drop);
  const node *is_normal = above(b, OP_LE, rebias + (INT64_C(1) << F32_MANTISSA), size);
  const node *pattern = ex_where(b, is_normal, normal, narrow_tiny(b, size, f));
  bool keeps = how.saturates || f->specials == SPECIALS_FINITE;
  pattern = or_int(b, above(b, OP_LT, k.most, pattern), keeps ? k.most : k.beyond, pattern);
  pattern = or_int(b, above(b, OP_LT, f32_infinity, size), k.nan, pattern);
  const node *minus = with_int(b, OP_SHL, with_int(b, OP_SHR, u, 31), f->storage_bits - 1);
  const node *both = ex_binary(b, OP_OR, pattern, minus);
  if (f->specials != SPECIALS_NAN_SIGN) return both;
  const node *bare = with_int(b, OP_AND, pattern, k.sign - 1); /* 0 for 0 and for NaN */
  return ex_where(b, with_int(b, OP_EQ, bare, 0), pattern, both);
}

const node *storage_narrow(builder *b, const node *x, dtype t, storage_rounding how) {
  const dtype_facts *f = dtype_facts_of(t);
  if (!dtype_has_floats(t)) return narrow_int(b, x, t);
  const node *u = ir_bitcast(b->ir, as_f32(b, x, t), DT_U32);
  bool is_scale = f->specials == SPECIALS_SCALE;
  return bytes_as(b, is_scale ? narrow_scale(b, u, how) : narrow_float(b, u, f, how), t);
}

const node *ex_cast_by(builder *b, const node *n, dtype to, storage_rounding how) {
  if (n->dtype == to) return n;
  if (dtype_is_storage((dtype)n->dtype)) return ex_cast_by(b, storage_widen(b, n), to, how);
  return dtype_is_storage(to) ? storage_narrow(b, n, to, how) : ir_cast(b->ir, n, to);
}

const node *ex_cast(builder *b, const node *n, dtype to) {
  return ex_cast_by(b, n, to, storage_rounding_usual);
}
