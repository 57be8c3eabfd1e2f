/* Intervals of the scalar integers of a program: index arithmetic mostly, which is then written
   without the conversions that make overflow wrap. */
#include "ir/infer.h"
#include "render/c_plan.h"

typedef struct interval {
  int64_t lo, hi;
} interval;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static interval all_of(dtype t) {
  if (t == DT_BOOL) return (interval){0, 1};
  if (t == DT_U64 || !dtype_is_int(t)) return (interval){t == DT_U64 ? 0 : BOUND_LOW, BOUND_HIGH};
  return (interval){dtype_min(t), dtype_max(t)};
}

/** Whether the type holds every value of an interval. */
static bool holds(dtype t, interval i) {
  interval all = all_of(t);
  return i.lo > BOUND_LOW && i.hi < BOUND_HIGH && i.lo >= all.lo && i.hi <= all.hi;
}

static interval count_up_to(interval size) {
  return (interval){0, size.hi == BOUND_HIGH ? BOUND_HIGH : most(size.hi - 1, 0)};
}

static interval product(interval a, interval b) {
  int64_t p[4] = {bound_mul(a.lo, b.lo), bound_mul(a.lo, b.hi), bound_mul(a.hi, b.lo),
                  bound_mul(a.hi, b.hi)};
  return (interval){least(least(p[0], p[1]), least(p[2], p[3])),
                    most(most(p[0], p[1]), most(p[2], p[3]))};
}

static interval difference(interval a, interval b) {
  return (interval){bound_add(a.lo, bound_mul(b.hi, -1)), bound_add(a.hi, bound_mul(b.lo, -1))};
}

static interval modulus(dtype t, interval a, interval b) {
  if (b.lo <= 0 || b.hi == BOUND_HIGH) return all_of(t);
  interval r = {1 - b.hi, b.hi - 1};
  if (a.lo >= 0) r = (interval){0, least(a.hi, r.hi)};
  return r;
}

static interval of(const c_plan *p, const node *n) {
  interval i;
  c_plan_interval(p, n, &i.lo, &i.hi);
  return i;
}

static interval select_bounds(const c_plan *p, const node *n) {
  if (n->src[2]->op == OP_INVALID) return of(p, n->src[1]);
  interval a = of(p, n->src[1]), b = of(p, n->src[2]);
  return (interval){least(a.lo, b.lo), most(a.hi, b.hi)};
}

/** The exact result of an op, as if integers had no end. */
static interval infer(const c_plan *p, const node *n) {
  dtype t = (dtype)n->dtype;
  interval a = n->n_src ? of(p, n->src[0]) : all_of(t), b = n->n_src > 1 ? of(p, n->src[1]) : a;
  switch (n->op) {
  case OP_RANGE:
  case OP_SPECIAL: return count_up_to(a);
  case OP_NEG: return difference((interval){0, 0}, a);
  case OP_ADD: return (interval){bound_add(a.lo, b.lo), bound_add(a.hi, b.hi)};
  case OP_SUB: return difference(a, b);
  case OP_MUL: return product(a, b);
  case OP_CDIV: return a.lo >= 0 && b.lo > 0 ? (interval){0, a.hi} : all_of(t);
  case OP_CMOD: return modulus(t, a, b);
  case OP_MIN: return (interval){least(a.lo, b.lo), least(a.hi, b.hi)};
  case OP_MAX: return (interval){most(a.lo, b.lo), most(a.hi, b.hi)};
  case OP_WHERE: return select_bounds(p, n);
  case OP_CAST: return dtype_is_float(n->src[0]->dtype) ? all_of(t) : a;
  default: return all_of(t);
  }
}

void c_plan_bounds(const c_plan *p, const node *n, c_value *v) {
  dtype t = (dtype)n->dtype;
  if (n->lanes > 1 || (t != DT_BOOL && !dtype_is_int(t))) return;
  interval i = infer(p, n);
  v->exact = holds(t, i);
  if (!v->exact) i = all_of(t);
  v->lo = i.lo;
  v->hi = i.hi;
}

void c_plan_interval(const c_plan *p, const node *n, int64_t *lo, int64_t *hi) {
  interval i = all_of((dtype)n->dtype);
  const c_value *v = c_plan_value(p, n);
  if (v && n->lanes == 1)
    i = (interval){v->lo, v->hi};
  else if (n->op == OP_CONST && (n->dtype != DT_U64 || node_int(n) >= 0))
    i = (interval){node_int(n), node_int(n)};
  else if (n->op == OP_VAR && holds((dtype)n->dtype, (interval){n->ints[0], n->ints[1]}))
    i = (interval){n->ints[0], n->ints[1]};
  *lo = i.lo;
  *hi = i.hi;
}
