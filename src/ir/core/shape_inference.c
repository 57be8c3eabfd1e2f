/* Implements shape inference, by op, and the inference of value bounds by interval arithmetic over
   the bounds of a node's sources. */
#include "ir/core/shape_inference.h"

static bool contains(const int64_t *ints, size_t n, int64_t value) {
  for (size_t i = 0; i < n; i++)
    if (ints[i] == value) return true;
  return false;
}

/** The dimensions are the sources from `first` on. */
static inferred_shape shape_from_sources(const node_spec *s, size_t first) {
  return (inferred_shape){.rank = s->n_src - first, .first_source = first};
}

static inferred_shape shape_like(const node *n) {
  return (inferred_shape){.rank = n->rank, .like = n};
}

inferred_shape infer_shape(const node_spec *s) {
  switch (s->op) {
  case OP_RESHAPE:
  case OP_EXPAND: return shape_from_sources(s, 1);
  case OP_IOTA:
  case OP_BUFFER:
  case OP_PARAM: return shape_from_sources(s, 0);
  case OP_CUSTOM: return shape_from_sources(s, (size_t)s->ints[2]);
  case OP_KERNEL:
  case OP_RESULT: return shape_from_sources(s, (size_t)s->ints[1]);
  case OP_CARRY: return shape_from_sources(s, 1);
  case OP_PICK: return shape_from_sources(s, 3);
  case OP_SLICE: return shape_from_sources(s, 1 + (s->n_src - 1) / 2);
  case OP_PAD: return shape_from_sources(s, 2 + (s->n_src - 2) / 2);
  case OP_PERMUTE: return (inferred_shape){.rank = s->src[0]->rank, .own = true};
  case OP_REDUCE: return (inferred_shape){.rank = s->src[0]->rank - (s->n_int - 1), .own = true};
  case OP_GATHER: return s->n_src > 1 ? shape_like(s->src[1]) : (inferred_shape){0};
  case OP_SET:
  case OP_SCATTER:
  case OP_TO:
  case OP_SCAN: return shape_like(s->src[0]);
  default:
    if (op_is_elementwise(s->op) && s->n_src && s->op != OP_AFFINE) return shape_like(s->src[0]);
    return (inferred_shape){0};
  }
}

void infer_computed_dims(const node_spec *s, const node **dims) {
  const node *x = s->src[0];
  if (s->op == OP_PERMUTE)
    for (size_t i = 0; i < x->rank; i++) dims[i] = x->dims[s->ints[i]];
  else
    for (size_t i = 0, k = 0; i < x->rank; i++)
      if (!contains(s->ints + 1, s->n_int - 1, (int64_t)i)) dims[k++] = x->dims[i];
}

/* Bounds. */

interval infer_affine_bounds(int64_t offset, size_t n, const node *const atoms[],
                             const int64_t factors[]) {
  interval sum = {offset, offset};
  for (size_t i = 0; i < n; i++)
    sum = interval_add(sum, interval_scale(node_interval(atoms[i]), factors[i]));
  return sum;
}

/** Bounds of a WHERE; INVALID has no value. */
static interval select_bounds(const node *a, const node *b) {
  if (a->op == OP_INVALID || b->op == OP_INVALID) return node_interval(a->op == OP_INVALID ? b : a);
  return interval_hull(node_interval(a), node_interval(b));
}

static interval division_bounds(const node_spec *s, interval a, interval b) {
  if (b.lo <= 0) return interval_of_type(s->dtype);
  switch (s->op) {
  case OP_FLOORDIV: return interval_floordiv(a, b);
  case OP_MOD: return interval_mod(a, b);
  case OP_CDIV: return interval_cdiv(a, b);
  default: return interval_cmod(a, b);
  }
}

/** Bounds of an ITEM. A greatest value below the least one is found when it is read. */
static interval item_bounds(const node_spec *s) {
  int64_t lo = s->ints[0], hi = s->src[s->n_src - 1]->hi;
  return (interval){lo, hi < lo ? lo : hi};
}

/** Bounds of the exact result, before integers wrap to their type. */
static interval exact_bounds(const node_spec *s) {
  const node *const *src = s->src;
  interval all = interval_of_type(s->dtype), a = s->n_src > 0 ? node_interval(src[0]) : all,
           b = s->n_src > 1 ? node_interval(src[1]) : all;
  switch (s->op) {
  case OP_CONST:
    return s->dtype == DT_U64 && s->ints[0] < 0 ? all : (interval){s->ints[0], s->ints[0]};
  case OP_VAR: return (interval){s->ints[0], s->ints[1]};
  case OP_ITEM: return item_bounds(s);
  case OP_INVALID: return (interval){0, 0};
  case OP_DISTINCT: return a;
  case OP_RANGE:
  case OP_SPECIAL: return interval_of_extent(a);
  case OP_AFFINE: return infer_affine_bounds(s->ints[0], s->n_src, src, s->ints + 1);
  case OP_NEG: return interval_scale(a, -1);
  case OP_ADD: return interval_add(a, b);
  case OP_SUB: return interval_sub(a, b);
  case OP_MUL: return interval_mul(a, b);
  case OP_FLOORDIV:
  case OP_MOD:
  case OP_CDIV:
  case OP_CMOD: return division_bounds(s, a, b);
  case OP_MIN: return interval_min(a, b);
  case OP_MAX: return interval_max(a, b);
  case OP_WHERE: return select_bounds(src[1], src[2]);
  case OP_CAST: return dtype_is_float((dtype)src[0]->dtype) ? all : a;
  default: return all;
  }
}

static bool is_bounded_type(dtype t) { return dtype_is_int(t) || t == DT_BOOL; }

interval infer_bounds(const node_spec *s) {
  if (!is_bounded_type(s->dtype) && s->dtype != DT_INDEX) return interval_of_type(s->dtype);
  interval i = exact_bounds(s);
  return is_bounded_type(s->dtype) && !interval_fits(i, s->dtype) ? interval_of_type(s->dtype) : i;
}

bool infer_never_wraps(const node *n) {
  node_spec s = {.op = (op)n->op,
                 .dtype = (dtype)n->dtype,
                 .src = n->src,
                 .n_src = n->n_src,
                 .ints = n->ints,
                 .n_int = n->n_int};
  return is_bounded_type(s.dtype) && interval_fits(exact_bounds(&s), s.dtype);
}
