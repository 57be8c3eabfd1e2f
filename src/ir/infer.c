#include "ir/infer.h"

static bool listed(const int64_t *ints, size_t n, int64_t value) {
  for (size_t i = 0; i < n; i++)
    if (ints[i] == value) return true;
  return false;
}

static shape_rule from_sources(const node_spec *s, size_t first) {
  return (shape_rule){.rank = (uint16_t)(s->n_src - first), .first_source = first};
}

static shape_rule like(const node *n) { return (shape_rule){.rank = n->rank, .like = n}; }

shape_rule infer_shape(const node_spec *s) {
  switch (s->op) {
  case OP_RESHAPE:
  case OP_EXPAND: return from_sources(s, 1);
  case OP_IOTA:
  case OP_BUFFER:
  case OP_PARAM: return from_sources(s, 0);
  case OP_CUSTOM: return from_sources(s, (size_t)s->ints[2]);
  case OP_SLICE: return from_sources(s, 1 + (s->n_src - 1) / 2);
  case OP_PAD: return from_sources(s, 2 + (s->n_src - 2) / 2);
  case OP_PERMUTE: return (shape_rule){.rank = s->src[0]->rank, .own = true};
  case OP_REDUCE:
    return (shape_rule){.rank = (uint16_t)(s->src[0]->rank - (s->n_int - 1)), .own = true};
  case OP_GATHER: return s->n_src > 1 ? like(s->src[1]) : (shape_rule){0};
  case OP_SET: return like(s->src[0]);
  default:
    if (op_is_elementwise(s->op) && s->n_src && s->op != OP_AFFINE) return like(s->src[0]);
    return (shape_rule){0};
  }
}

void infer_own_dims(const node_spec *s, const node **dims) {
  const node *x = s->src[0];
  if (s->op == OP_PERMUTE)
    for (size_t i = 0; i < x->rank; i++) dims[i] = x->dims[s->ints[i]];
  else
    for (size_t i = 0, k = 0; i < x->rank; i++)
      if (!listed(s->ints + 1, s->n_int - 1, (int64_t)i)) dims[k++] = x->dims[i];
}

int64_t bound_add(int64_t a, int64_t b) {
  int64_t sum;
  if (a == BOUND_LOW || b == BOUND_LOW) return BOUND_LOW;
  if (a == BOUND_HIGH || b == BOUND_HIGH) return BOUND_HIGH;
  if (__builtin_add_overflow(a, b, &sum)) return a < 0 ? BOUND_LOW : BOUND_HIGH;
  return sum;
}

int64_t bound_mul(int64_t a, int64_t b) {
  int64_t product;
  if (!a || !b) return 0;
  bool negative = (a < 0) != (b < 0);
  bool unbounded = a == BOUND_LOW || a == BOUND_HIGH || b == BOUND_LOW || b == BOUND_HIGH;
  if (unbounded || __builtin_mul_overflow(a, b, &product)) return negative ? BOUND_LOW : BOUND_HIGH;
  return product;
}

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

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static void affine_bounds(const node_spec *s, int64_t *lo, int64_t *hi) {
  *lo = *hi = s->ints[0];
  for (size_t i = 0; i < s->n_src; i++) {
    int64_t c = s->ints[i + 1], a = s->src[i]->lo, b = s->src[i]->hi;
    *lo = bound_add(*lo, bound_mul(c, c > 0 ? a : b));
    *hi = bound_add(*hi, bound_mul(c, c > 0 ? b : a));
  }
}

static void product_bounds(const node *a, const node *b, int64_t *lo, int64_t *hi) {
  int64_t p[4] = {bound_mul(a->lo, b->lo), bound_mul(a->lo, b->hi), bound_mul(a->hi, b->lo),
                  bound_mul(a->hi, b->hi)};
  *lo = *hi = p[0];
  for (int i = 1; i < 4; i++) {
    *lo = least(*lo, p[i]);
    *hi = most(*hi, p[i]);
  }
}

static int64_t quotient(int64_t a, int64_t b) {
  if (a == BOUND_LOW || a == BOUND_HIGH) return a;
  if (b == BOUND_HIGH) return a < 0 ? -1 : 0;
  return floor_div(a, b);
}

/** Division by a positive divisor. */
static void quotient_bounds(const node *a, const node *b, int64_t *lo, int64_t *hi) {
  *lo = least(quotient(a->lo, b->lo), quotient(a->lo, b->hi));
  *hi = most(quotient(a->hi, b->lo), quotient(a->hi, b->hi));
}

static void modulus_bounds(const node *a, const node *b, int64_t *lo, int64_t *hi) {
  *lo = 0;
  *hi = b->hi == BOUND_HIGH ? BOUND_HIGH : b->hi - 1;
  if (a->lo >= 0) *hi = least(*hi, a->hi);
}

static void where_bounds(const node *a, const node *b, int64_t *lo, int64_t *hi) {
  const node *one = b->op == OP_INVALID ? a : a->op == OP_INVALID ? b : NULL;
  *lo = one ? one->lo : least(a->lo, b->lo);
  *hi = one ? one->hi : most(a->hi, b->hi);
}

static void extent_bounds(const node *extent, int64_t *lo, int64_t *hi) {
  *lo = 0;
  *hi = extent->hi == BOUND_HIGH ? BOUND_HIGH : most(extent->hi - 1, 0);
}

static void index_bounds(const node_spec *s, int64_t *lo, int64_t *hi) {
  const node *a = s->n_src > 0 ? s->src[0] : NULL, *b = s->n_src > 1 ? s->src[1] : NULL;
  switch (s->op) {
  case OP_CONST: *lo = *hi = s->ints[0]; return;
  case OP_VAR: *lo = s->ints[0], *hi = s->ints[1]; return;
  case OP_RANGE:
  case OP_SPECIAL: extent_bounds(a, lo, hi); return;
  case OP_AFFINE: affine_bounds(s, lo, hi); return;
  case OP_MUL: product_bounds(a, b, lo, hi); return;
  case OP_FLOORDIV:
    if (b->lo > 0) quotient_bounds(a, b, lo, hi);
    return;
  case OP_MOD:
    if (b->lo > 0) modulus_bounds(a, b, lo, hi);
    return;
  case OP_MIN: *lo = least(a->lo, b->lo), *hi = least(a->hi, b->hi); return;
  case OP_MAX: *lo = most(a->lo, b->lo), *hi = most(a->hi, b->hi); return;
  case OP_WHERE: where_bounds(b, s->src[2], lo, hi); return;
  case OP_CAST: *lo = a->lo, *hi = a->hi; return;
  case OP_INVALID: *lo = *hi = 0; return;
  default: return;
  }
}

void infer_bounds(const node_spec *s, int64_t *lo, int64_t *hi) {
  *lo = BOUND_LOW;
  *hi = BOUND_HIGH;
  if (s->dtype == DT_INDEX) {
    index_bounds(s, lo, hi);
  } else if (dtype_is_int(s->dtype) || s->dtype == DT_BOOL) {
    bool known = s->op == OP_CONST && !(s->dtype == DT_U64 && s->ints[0] < 0);
    *lo = known ? s->ints[0] : dtype_min(s->dtype);
    *hi = known ? s->ints[0] : dtype_max(s->dtype);
  }
}
