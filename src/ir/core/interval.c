/* Implements interval arithmetic with saturation (an end that 64 bits cannot hold becomes
   unbounded), floor division and the greatest common divisor. */
#include "ir/core/interval.h"

int64_t floor_div(int64_t a, int64_t b) {
  if (b == -1) return (int64_t)(0 - (uint64_t)a);
  int64_t q = a / b;
  return a % b != 0 && (a % b < 0) != (b < 0) ? q - 1 : q;
}

int64_t floor_mod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

int64_t greatest_common_divisor(int64_t a, int64_t b) {
  while (b) {
    int64_t t = a % b;
    a = b;
    b = t;
  }
  return a < 0 ? -a : a;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/** Makes an interval; BOUND_HIGH as a lower end and BOUND_LOW as an upper one are cut to the
    nearest number, as they would read as unbounded. */
static interval interval_of_ends(int64_t lo, int64_t hi) {
  return (interval){least(lo, BOUND_HIGH - 1), most(hi, BOUND_LOW + 1)};
}

static bool is_unbounded(int64_t a) { return a == BOUND_LOW || a == BOUND_HIGH; }

/** a + b for two ends of one side; `none` is the unbounded end of that side. */
static int64_t add_ends(int64_t a, int64_t b, int64_t none) {
  int64_t r;
  if (a == none || b == none) return none;
  if (__builtin_add_overflow(a, b, &r)) return a < 0 ? BOUND_LOW : BOUND_HIGH;
  return r;
}

static int64_t multiply_ends(int64_t a, int64_t b) {
  int64_t r;
  if (!a || !b) return 0;
  bool negative = (a < 0) != (b < 0);
  if (is_unbounded(a) || is_unbounded(b) || __builtin_mul_overflow(a, b, &r))
    return negative ? BOUND_LOW : BOUND_HIGH;
  return r;
}

static int64_t divide_ends(int64_t a, int64_t b) {
  if (is_unbounded(a)) return a;
  if (b == BOUND_HIGH) return a < 0 ? -1 : 0;
  return floor_div(a, b);
}

interval interval_of_type(dtype t) {
  if (t != DT_BOOL && !dtype_is_int(t)) return (interval){BOUND_LOW, BOUND_HIGH};
  return (interval){dtype_min(t), dtype_max(t)};
}

bool interval_fits(interval a, dtype t) {
  interval all = interval_of_type(t);
  return !is_unbounded(a.lo) && !is_unbounded(a.hi) && a.lo >= all.lo && a.hi <= all.hi;
}

interval interval_add(interval a, interval b) {
  return interval_of_ends(add_ends(a.lo, b.lo, BOUND_LOW), add_ends(a.hi, b.hi, BOUND_HIGH));
}

interval interval_scale(interval a, int64_t by) {
  return by < 0 ? interval_of_ends(multiply_ends(a.hi, by), multiply_ends(a.lo, by))
                : interval_of_ends(multiply_ends(a.lo, by), multiply_ends(a.hi, by));
}

interval interval_sub(interval a, interval b) { return interval_add(a, interval_scale(b, -1)); }

interval interval_mul(interval a, interval b) {
  int64_t p = multiply_ends(a.lo, b.lo), q = multiply_ends(a.lo, b.hi),
          r = multiply_ends(a.hi, b.lo), s = multiply_ends(a.hi, b.hi);
  return interval_of_ends(least(least(p, q), least(r, s)), most(most(p, q), most(r, s)));
}

interval interval_floordiv(interval a, interval b) {
  return interval_of_ends(least(divide_ends(a.lo, b.lo), divide_ends(a.lo, b.hi)),
                          most(divide_ends(a.hi, b.lo), divide_ends(a.hi, b.hi)));
}

interval interval_mod(interval a, interval b) {
  int64_t hi = b.hi == BOUND_HIGH ? BOUND_HIGH : b.hi - 1;
  return (interval){0, a.lo >= 0 ? least(a.hi, hi) : hi};
}

interval interval_cdiv(interval a, interval b) {
  if (a.lo >= 0) return interval_floordiv(a, b);
  return (interval){a.lo, most(a.hi, 0)};
}

interval interval_cmod(interval a, interval b) {
  interval r = interval_mod((interval){0, BOUND_HIGH}, b);
  if (a.lo >= 0) return (interval){0, least(a.hi, r.hi)};
  return (interval){multiply_ends(r.hi, -1), r.hi};
}

interval interval_min(interval a, interval b) {
  return (interval){least(a.lo, b.lo), least(a.hi, b.hi)};
}

interval interval_max(interval a, interval b) {
  return (interval){most(a.lo, b.lo), most(a.hi, b.hi)};
}

interval interval_hull(interval a, interval b) {
  return (interval){least(a.lo, b.lo), most(a.hi, b.hi)};
}

interval interval_of_extent(interval extent) {
  return (interval){0, extent.hi == BOUND_HIGH ? BOUND_HIGH : most(extent.hi - 1, 0)};
}
