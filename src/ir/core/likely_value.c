/* Computes the likely value of a node from those of its sources, when the node is made, with
   saturation: an unbounded value stays unbounded. */
#include "ir/core/likely_value.h"

/** The likely value of a variable of which none is known: a batch or a sequence. */
enum { USUAL_SIZE = 64 };

static interval point(const node *n) {
  int64_t likely = node_likely(n);
  return (interval){likely, likely};
}

static interval affine_at(const node_spec *s) {
  interval sum = {s->ints[0], s->ints[0]};
  for (size_t i = 0; i < s->n_src; i++)
    sum = interval_add(sum, interval_scale(point(s->src[i]), s->ints[1 + i]));
  return sum;
}

/** Remainders are exact, unlike those of intervals; a divisor that may be 0 is none. */
static interval remainder_at(op o, int64_t a, int64_t b) {
  if (b <= 0) return (interval){0, 0};
  int64_t r = o == OP_MOD ? floor_mod(a, b) : a % b;
  return (interval){r, r};
}

/** The index in the middle of a range: blocks at the middle of what is cut in blocks are whole, and
    those of a triangle of the mean length. */
static interval middle_index(int64_t extent) {
  int64_t i = extent > 1 ? (extent - 1) / 2 : 0;
  return (interval){i, i};
}

static interval value_at(const node_spec *s) {
  const node *const *src = s->src;
  switch (s->op) {
  case OP_VAR: {
    int64_t likely = s->n_int > 2 ? s->ints[2] : USUAL_SIZE;
    return (interval){likely, likely};
  }
  case OP_ITEM: return point(s->src[s->n_src - 1]);
  case OP_AFFINE: return affine_at(s);
  case OP_DISTINCT: return point(src[0]);
  case OP_NEG: return interval_scale(point(src[0]), -1);
  case OP_ADD: return interval_add(point(src[0]), point(src[1]));
  case OP_SUB: return interval_sub(point(src[0]), point(src[1]));
  case OP_MUL: return interval_mul(point(src[0]), point(src[1]));
  case OP_FLOORDIV:
    if (node_likely(src[1]) > 0) return interval_floordiv(point(src[0]), point(src[1]));
    return (interval){0, 0};
  case OP_CDIV:
    if (node_likely(src[1]) > 0) return interval_cdiv(point(src[0]), point(src[1]));
    return (interval){0, 0};
  case OP_MOD:
  case OP_CMOD: return remainder_at(s->op, node_likely(src[0]), node_likely(src[1]));
  case OP_MIN: return interval_min(point(src[0]), point(src[1]));
  case OP_MAX: return interval_max(point(src[0]), point(src[1]));
  case OP_WHERE: return interval_max(point(src[1]), point(src[2]));
  case OP_CAST: return point(src[0]);
  case OP_RANGE: return middle_index(node_likely(src[0]));
  default: return (interval){0, 0};
  }
}

int64_t infer_likely(const node_spec *s, interval bounds) {
  int64_t value = value_at(s).hi;
  return value < bounds.lo ? bounds.lo : value > bounds.hi ? bounds.hi : value;
}
