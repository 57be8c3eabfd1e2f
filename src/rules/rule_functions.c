/* Implements the guards and builders that rule files declare: conditions on types, constants,
   shapes and indices that patterns cannot express, and results that templates cannot. rule_sets.h
   describes the rule language; simplifying_builder.h folds constants in whatever is built. */
#include "rules/rule_functions.h"

#include "ir/core/build.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "rules/rule_runtime.h"
#include "rules/simplifying_builder.h"

#include <math.h>

/* Types. */

/** Bits of the magnitude of an integer type. */
static int magnitude_bits(dtype t) { return dtype_bits(t) - dtype_is_signed(t); }

/** True if `to` represents every value of `from` exactly. */
static bool holds_all(dtype to, dtype from) {
  const dtype_facts *a = dtype_facts_of(from), *b = dtype_facts_of(to);
  if (to == from) return true;
  if (from == DT_INDEX || to == DT_INDEX || to == DT_BOOL) return false;
  if (from == DT_BOOL) return true;
  if (a->cls == DC_FLOAT)
    return b->cls == DC_FLOAT && b->exponent_bits >= a->exponent_bits &&
           b->mantissa_bits >= a->mantissa_bits;
  if (b->cls == DC_FLOAT)
    return magnitude_bits(from) <= b->mantissa_bits + 1 &&
           magnitude_bits(from) < 1 << (b->exponent_bits - 1);
  if (dtype_is_signed(from) && !dtype_is_signed(to)) return false;
  return magnitude_bits(from) <= magnitude_bits(to);
}

/** True if a target has values of a type as bit patterns only. */
static bool is_emulated(const rewriter *rw, dtype a) {
  const rule_target *t = rw->target;
  return t && ((a == DT_F16 && !t->f16) || (a == DT_BF16 && !t->bf16));
}

/** True if a target converts between two types by way of f32. */
static bool casts_through_f32(const rewriter *rw, dtype a, dtype b) {
  bool through = (is_emulated(rw, a) && b != DT_F32) || (is_emulated(rw, b) && a != DT_F32);
  return through && a != b;
}

bool guard_exact_cast(rewriter *rw, const node *n, const node *from, const node *to) {
  dtype a = (dtype)from->dtype, b = (dtype)to->dtype, c = (dtype)n->dtype;
  /* Out of range, an integer source wraps around; a float in between saturates. */
  bool saturates = dtype_is_int(a) && dtype_is_float(b) && dtype_is_int(c);
  return holds_all(b, a) && (!saturates || holds_all(c, a)) && !casts_through_f32(rw, a, c);
}

bool guard_no_wider(rewriter *rw, const node *n, const node *b, const node *a) {
  (void)rw, (void)n;
  return dtype_bits((dtype)b->dtype) <= dtype_bits((dtype)a->dtype);
}

static bool compares(const node *c, const node *x) {
  return op_facts_of((op)c->op)->type == TYPE_COMPARE && (c->src[0] == x || c->src[1] == x);
}

bool guard_tests(rewriter *rw, const node *n, const node *c, const node *x) {
  (void)rw, (void)n;
  return compares(c, x) || (c->op == OP_AND && (compares(c->src[0], x) || compares(c->src[1], x)));
}

/* Powers of two. */

bool guard_power_of_two(rewriter *rw, const node *n, const node *c) {
  (void)rw, (void)n;
  const node *k = simple_constant(c);
  dtype t = (dtype)c->dtype;
  if (!k) return false;
  uint64_t v = (uint64_t)node_int(k);
  if (dtype_is_signed(t) && node_int(k) <= 0) return false;
  if (!dtype_is_float(t)) return v && !(v & (v - 1));
  int exponent;
  double x = scalar_to_double(t, v);
  if (!isnormal(x) || frexp(fabs(x), &exponent) != 0.5) return false;
  const dtype_facts *f = dtype_facts_of(t);
  int limit = (1 << (f->exponent_bits - 1)) - 2; /* x and 1/x are normal */
  return exponent - 1 <= limit && exponent - 1 >= -limit;
}

const node *build_log2_of(rewriter *rw, const node *n, const node *c) {
  uint64_t v = (uint64_t)node_int(simple_constant(c));
  int64_t log = 0;
  while (v >>= 1) log++;
  return rule_int(rw, n, (dtype)c->dtype, log);
}

const node *build_reciprocal_of(rewriter *rw, const node *n, const node *c) {
  dtype t = (dtype)c->dtype;
  return rule_float(rw, n, t, 1 / scalar_to_double(t, (uint64_t)node_int(simple_constant(c))));
}

/* Movement. */

bool guard_same_shape(rewriter *rw, const node *n, const node *a, const node *b) {
  (void)rw, (void)n;
  return ir_same_shape(a, b);
}

bool guard_identity_axes(rewriter *rw, const node *n) {
  (void)rw;
  for (uint32_t i = 0; i < n->n_int; i++)
    if (n->ints[i] != (int64_t)i) return false;
  return true;
}

bool guard_whole_slice(rewriter *rw, const node *n, const node *x) {
  (void)rw;
  for (uint32_t i = 0; i < x->rank; i++)
    if (n->ints[i] != 1 || !node_is_bits(n->src[1 + i], 0)) return false;
  return ir_same_shape(n, x);
}

bool guard_no_padding(rewriter *rw, const node *n, const node *x) {
  (void)rw;
  for (uint32_t i = 0; i < x->rank; i++)
    if (!node_is_bits(n->src[2 + i], 0)) return false;
  return ir_same_shape(n, x);
}

bool guard_no_axes(rewriter *rw, const node *n) {
  (void)rw; /* a float sum starts at 0: the sum of −0 alone is 0 */
  return n->n_int == 1 && !(n->ints[0] == OP_ADD && dtype_is_float((dtype)n->dtype));
}

const node *build_composed_permute(rewriter *rw, const node *n, const node *outer,
                                   const node *inner, const node *x) {
  (void)n;
  int64_t axes[IR_MAX_RANK];
  for (uint32_t i = 0; i < x->rank; i++) axes[i] = inner->ints[outer->ints[i]];
  return ir_permute(rw->ir, x, axes);
}

const node *build_composed_slice(rewriter *rw, const node *n, const node *outer, const node *inner,
                                 const node *x) {
  (void)n;
  int64_t steps[IR_MAX_RANK];
  const node *starts[IR_MAX_RANK];
  for (uint32_t i = 0; i < x->rank; i++) {
    if (__builtin_mul_overflow(inner->ints[i], outer->ints[i], &steps[i])) return NULL;
    starts[i] =
        ix_add(rw->ir, inner->src[1 + i], ix_scale(rw->ir, outer->src[1 + i], inner->ints[i]));
  }
  return ir_slice(rw->ir, x, starts, outer->dims, steps);
}

const node *build_composed_pad(rewriter *rw, const node *n, const node *outer, const node *inner,
                               const node *x, const node *value) {
  (void)n;
  const node *lows[IR_MAX_RANK];
  for (uint32_t i = 0; i < x->rank; i++)
    lows[i] = ix_add(rw->ir, inner->src[2 + i], outer->src[2 + i]);
  return ir_pad(rw->ir, x, value, lows, outer->dims);
}

static bool all_ones(const node *n) {
  for (uint32_t i = 0; i < n->rank; i++)
    if (!node_is_bits(n->dims[i], 1)) return false;
  return true;
}

const node *build_filled(rewriter *rw, const node *n, const node *c) {
  if (n->op == OP_RESHAPE && n->src[0]->op == OP_CONST && all_ones(n)) return NULL;
  const node *k = simple_constant(c), *ones[IR_MAX_RANK];
  if (!n->rank || !all_ones(n)) return ir_fill(rw->ir, k, n->rank, n->dims);
  for (uint32_t i = 0; i < n->rank; i++) ones[i] = n->dims[i];
  return ir_reshape(rw->ir, k, n->rank, ones);
}

/* Indices. */

/* A comparison p holds if its gap, p.src[1] − p.src[0], is at least 1. */

bool guard_implies(rewriter *rw, const node *n, const node *p, const node *q) {
  (void)n;
  ir *g = rw->ir;
  const node *least = ix_difference_or_null(g, p->src[0], p->src[1]),
             *wanted = ix_difference_or_null(g, q->src[0], q->src[1]);
  return least && wanted && ix_prove_le(g, least, wanted);
}

bool guard_excludes(rewriter *rw, const node *n, const node *p, const node *q) {
  (void)n;
  ir *g = rw->ir;
  const node *first = ix_difference_or_null(g, p->src[0], p->src[1]),
             *against = ix_difference_or_null(g, q->src[1], q->src[0]);
  const node *rest = first && against ? ix_difference_or_null(g, first, against) : NULL;
  return rest && ix_prove_le(g, ix_const(g, -1), rest);
}

bool guard_fits(rewriter *rw, const node *n, const node *to, const node *from) {
  (void)rw, (void)n;
  dtype t = (dtype)to->dtype;
  return from->lo >= dtype_min(t) && from->hi <= dtype_max(t);
}

const node *build_known_equal(rewriter *rw, const node *n, const node *a, const node *b) {
  (void)n;
  ir *g = rw->ir;
  if (a == b) return ir_const_bits(g, DT_BOOL, 1);
  bool differ = ix_prove_lt(g, a, b) || ix_prove_lt(g, b, a);
  return differ ? ir_const_bits(g, DT_BOOL, 0) : NULL;
}

/* Lowering. */

bool guard_emulated(rewriter *rw, const node *n, const node *x) {
  (void)n;
  return is_emulated(rw, (dtype)x->dtype);
}

bool guard_emulated_cast(rewriter *rw, const node *n, const node *x) {
  return guard_emulated(rw, n, x) && !rw->target->f16_casts;
}

static bool is_constant_within(const node *n, uint64_t low, uint64_t high) {
  const node *c = simple_constant(n);
  return c && (uint64_t)node_int(c) >= low && (uint64_t)node_int(c) <= high;
}

bool guard_count_in_range(rewriter *rw, const node *n, const node *c) {
  (void)rw, (void)n;
  uint64_t last = (uint64_t)dtype_bits((dtype)c->dtype) - 1;
  return is_constant_within(c->op == OP_AND ? c->src[1] : c, 0, last);
}

/** True for a float constant within bounds. */
static bool is_float_within(const node *n, double low, double high) {
  const node *c = simple_constant(n);
  if (!c) return false;
  double v = scalar_to_double((dtype)c->dtype, (uint64_t)node_int(c));
  return v >= low && v <= high;
}

bool guard_in_integer_range(rewriter *rw, const node *n, const node *x) {
  (void)rw;
  dtype t = (dtype)n->dtype;
  double low = t == DT_U64 ? 0 : (double)dtype_min(t);
  double beyond = ldexp(1, magnitude_bits(t)), most = beyond - (beyond > 0x1p52 ? beyond / 4 : 1);
  const node *inside = x->op == OP_WHERE ? x->src[0] : NULL;
  if (!inside || inside->op != OP_AND || !is_float_within(x->src[2], low, most)) return false;
  const node *above = inside->src[0], *below = inside->src[1];
  return above->op == OP_LE && is_float_within(above->src[0], low, beyond) &&
         above->src[1] == x->src[1] && below->op == OP_LT && below->src[0] == x->src[1] &&
         is_float_within(below->src[1], low, beyond);
}

/* Trigonometric functions. */

enum { WINDOW_WORDS = 4, INDEX_BITS = 5 };

/** 64 zero bits, then the bits of 2/π. */
static const uint64_t two_over_pi[] = {0,
                                       UINT64_C(0xa2f9836e4e441529),
                                       UINT64_C(0xfc2757d1f534ddc0),
                                       UINT64_C(0xdb6295993c439041),
                                       UINT64_C(0xfe5163abdebbc561),
                                       UINT64_C(0xb7246e3a424dd2e0),
                                       UINT64_C(0x06492eea09d1921c),
                                       UINT64_C(0xfe1deb1cb129a73e),
                                       UINT64_C(0xe88235f52ebb4484),
                                       UINT64_C(0xe99c7026b45f7e41),
                                       UINT64_C(0x3991d639835339f4),
                                       UINT64_C(0x9c845f8bbdf9283b),
                                       UINT64_C(0x1ff897ffde05980f),
                                       UINT64_C(0xef2f118b5a0a6d1f),
                                       UINT64_C(0x6d367ecf27cb09b7),
                                       UINT64_C(0x4f463f669e5fea2d),
                                       UINT64_C(0x7527bac7ebe5f17b),
                                       UINT64_C(0x3d0739f78a5292ea),
                                       UINT64_C(0x6bfb5fb11f8d5d08),
                                       UINT64_C(0x56033046fc7b6bab)};

enum { TABLE_WORDS = sizeof two_over_pi / sizeof *two_over_pi };

/* A barrel shifter: the table moves down by 16, 8, 4, 2, 1 words where the index has that bit, so
   that word index + i ends up at i < WINDOW_WORDS. */
const node *build_two_over_pi_word(rewriter *rw, const node *n, const node *index,
                                   const node *word) {
  ir *g = rw->ir;
  const node *at[TABLE_WORDS];
  dtype t = (dtype)index->dtype;
  for (int i = 0; i < TABLE_WORDS; i++) at[i] = rule_int(rw, n, DT_U64, (int64_t)two_over_pi[i]);
  for (int bit = INDEX_BITS; bit-- > 0;) {
    int move = 1 << bit;
    const node *set = simple_op2(g, OP_NE, simple_op2(g, OP_AND, index, rule_int(rw, n, t, move)),
                                 rule_int(rw, n, t, 0));
    for (int i = 0; i < WINDOW_WORDS + move - 1; i++)
      if (i + move < TABLE_WORDS) at[i] = simple_op3(g, OP_WHERE, set, at[i + move], at[i]);
  }
  return at[node_int(simple_constant(word)) % WINDOW_WORDS];
}
