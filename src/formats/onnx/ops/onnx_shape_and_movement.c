/* ONNX operators that move elements (Concat, Expand, Flatten, Reshape, Slice, Split, Squeeze, Tile,
   Transpose, Trilu, Unsqueeze) or return a shape (Shape). Shape inputs may be computed by the model
   (shape_tensors.c); every size must then be an index expression over sizes of inputs, or is an
   element that the run computes. */
#include "formats/onnx/ops/axis_arguments.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/core/affine.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/computed_sizes.h"
#include "tensor/ops/operators.h"

#include <math.h>

/** a / b if exact for all values of varying sizes; else NULL. */
static const node *exact_quotient(ir *g, const node *a, const node *b) {
  bool same = ix_terms(a) == 1 && ix_terms(b) == 1 && !ix_offset(a) && !ix_offset(b) &&
              ix_atom(a, 0) == ix_atom(b, 0);
  if (same)
    return ix_coefficient_at(a, 0) % ix_coefficient_at(b, 0)
               ? NULL
               : ix_const(g, ix_coefficient_at(a, 0) / ix_coefficient_at(b, 0));
  const node *q = b->lo > 0 ? ix_floordiv(g, a, b) : NULL;
  return q && ix_mul(g, q, b) == a ? q : NULL;
}

/** Infers the size of a -1 in the shape; NULL if unknown. Sizes in both shapes cancel first,
   because dividing by a varying size, which may be 0, is not exact. */
static const node *infer_size(onnx_call *c, const node *x, const sizes *to, size_t wildcard) {
  ir *g = onnx_builder(c)->ir;
  const node *numerator = ix_const(g, 1), *denominator = numerator;
  bool in_both[SIZES_MAX_RANK] = {false};
  for (size_t i = 0; i < x->rank; i++) {
    size_t k = 0;
    while (k < to->rank && (k == wildcard || in_both[k] || to->at[k] != x->dims[i])) k++;
    if (k < to->rank)
      in_both[k] = true;
    else
      numerator = ix_mul(g, numerator, x->dims[i]);
  }
  for (size_t k = 0; k < to->rank; k++)
    if (k != wildcard && !in_both[k]) denominator = ix_mul(g, denominator, to->at[k]);
  return exact_quotient(g, numerator, denominator);
}

/* Without allowzero a 0 in the shape copies the input's size at the same index. A computed size may
   be 0 only when the model runs, too late for that: its factors are required to be nonzero, unless
   the input's size is 0 with them. One that the run computes is a size of 0 then, and so is a sum
   of sizes, as past and new tokens: which of them was to be nonzero nobody says. So are sizes in a
   branch that a run may not take, as that of a decoder which has past tokens. */

/** True for sums of several sizes, which are 0 only where all of them are. */
static bool is_sum_of_sizes(const node *n) {
  if (n->op != OP_AFFINE || ix_terms(n) < 2 || ix_offset(n)) return false;
  for (size_t i = 0; i < ix_terms(n); i++)
    if (ix_coefficient_at(n, i) < 0 || ix_atom(n, i)->lo < 0) return false;
  return true;
}

/** Lists the non-constant factors of a product. */
static node_list list_factors(builder *b, const node *n) {
  node_list stack = {0}, factors = {0};
  vec_push(b->arena, &stack, n);
  while (stack.n) {
    const node *x = vec_pop(&stack);
    if (x->op == OP_AFFINE && ix_terms(x) == 1 && !ix_offset(x))
      vec_push(b->arena, &stack, ix_atom(x, 0));
    else if (x->op == OP_MUL)
      for (size_t i = 0; i < 2; i++) vec_push(b->arena, &stack, x->src[i]);
    else if (x->op != OP_CONST)
      vec_push(b->arena, &factors, x);
  }
  return factors;
}

/** Requires size i of the shape to be nonzero. `input_size`: the input's size at that index; NULL:
    none. */
static void require_nonzero_size(onnx_call *c, size_t i, const node *size, const node *input_size) {
  builder *b = onnx_builder(c);
  node_list factors = list_factors(b, size), input_factors = {0};
  if (input_size && node_is_bits(input_size, 0)) return;
  if (input_size) input_factors = list_factors(b, input_size);
  for (size_t k = 0; k < factors.n; k++) {
    const node *n = factors.at[k];
    if (n->lo > 0 || n->hi < 0 || size_is_computed(b, n) || is_sum_of_sizes(n) ||
        nodes_contain(input_factors.at, input_factors.n, n))
      continue;
    b->needed = ix_add_const(b->ir, n, -1);
    if (n->op != OP_VAR)
      onnx_fail_varying_size(
          c, n, "size %zu of the shape, %s, may be 0, which copies the input's size; set allowzero",
          i, size_text(b, size));
    onnx_require_nonzero(c, n);
  }
}

/** The shape of a Reshape, an attribute in version 1. */
static sizes read_target_shape(onnx_call *c) {
  if (c->version >= 5) return target_shape_argument(c, 1);
  const onnx_ints *l = onnx_ints_attribute(c, "shape");
  sizes s = {.rank = l ? l->n : 0};
  if (s.rank > SIZES_MAX_RANK)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "the shape has %zu dimensions", s.rank);
  for (size_t i = 0; i < s.rank; i++) s.at[i] = ix_const(onnx_builder(c)->ir, l->at[i]);
  return s;
}

void onnx_Reshape(onnx_call *c) {
  value x = onnx_input(c, 0);
  sizes to = read_target_shape(c);
  size_t wildcard = SIZE_MAX;
  bool zero_copies = !onnx_int_attribute(c, "allowzero", 0);
  for (size_t i = 0; i < to.rank; i++) {
    if (node_is_bits(to.at[i], 0) && zero_copies) {
      if (i >= x.node->rank)
        onnx_fail(c, TN_ERR_SHAPE, "size %zu of the shape is 0, but the input has no such axis", i);
      to.at[i] = x.node->dims[i];
    } else if (node_is_bits(to.at[i], (uint64_t)-1)) {
      if (wildcard != SIZE_MAX) onnx_fail(c, TN_ERR_SHAPE, "only one size of the shape may be -1");
      to.at[wildcard = i] = NULL;
    } else {
      shape_argument_check_size(c, &to, i);
    }
  }
  for (size_t i = 0; i < to.rank && zero_copies && !onnx_builder(c)->is_in_branch; i++)
    if (i != wildcard)
      require_nonzero_size(c, i, to.at[i], i < x.node->rank ? x.node->dims[i] : NULL);
  if (wildcard != SIZE_MAX) to.at[wildcard] = infer_size(c, x.node, &to, wildcard);
  c->outputs[0] = build_reshape(onnx_builder(c), x, &to);
}

/** Expand: broadcasts the input with the shape argument, so that a 1 keeps the input's size. */
void onnx_Expand(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  sizes from = sizes_of(x.node), shape = shape_argument(c, 1), to = {0};
  const node *one = ix_const(b->ir, 1);
  to.rank = shape.rank > from.rank ? shape.rank : from.rank;
  for (size_t i = 0; i < shape.rank; i++) shape_argument_check_size(c, &shape, i);
  for (size_t i = 0; i < to.rank; i++) {
    size_t new_axes = to.rank - from.rank, missing_axes = to.rank - shape.rank;
    const node *old_size = i < new_axes ? one : from.at[i - new_axes];
    const node *new_size = i < missing_axes ? one : shape.at[i - missing_axes];
    bool broadcasts = old_size == one || new_size == one;
    if (!broadcasts && !size_agreed(b, old_size, new_size))
      onnx_fail(c, TN_ERR_SHAPE, "cannot expand %s to %s: %s is not %s", sizes_text(b, &from),
                sizes_text(b, &shape), size_text(b, old_size), size_text(b, new_size));
    to.at[i] = new_size == one ? old_size : new_size;
  }
  c->outputs[0] = build_expand(b, x, &to);
}

void onnx_Shape(onnx_call *c) {
  builder *b = onnx_builder(c);
  const node *x = onnx_input(c, 0).node;
  int64_t rank = x->rank, start = onnx_int_attribute(c, "start", 0),
          end = onnx_int_attribute(c, "end", rank);
  start = start < -rank ? 0 : start < 0 ? start + rank : start > rank ? rank : start;
  end = end < -rank ? 0 : end < 0 ? end + rank : end > rank ? rank : end;
  value dims[SIZES_MAX_RANK];
  size_t n = 0;
  for (int64_t i = start; i < end; i++) dims[n++] = value_of(ir_cast(b->ir, x->dims[i], DT_I64));
  sizes none = {.rank = 1, .at = {ix_const(b->ir, 0)}};
  c->outputs[0] = n ? build_stack(b, dims, n, 0) : build_full(b, &none, DT_I64, 0);
}

void onnx_Concat(onnx_call *c) {
  onnx_require_same_types(c);
  value *inputs = arena_alloc(onnx_builder(c)->arena, c->n_inputs * sizeof *inputs);
  for (size_t i = 0; i < c->n_inputs; i++) inputs[i] = onnx_input(c, i);
  c->outputs[0] =
      build_concat(onnx_builder(c), inputs, c->n_inputs, onnx_int_attribute(c, "axis", 1));
}

void onnx_Transpose(onnx_call *c) {
  value x = onnx_input(c, 0);
  const onnx_ints *perm = onnx_ints_attribute(c, "perm");
  if (!perm)
    c->outputs[0] = build_transpose(onnx_builder(c), x);
  else
    c->outputs[0] = build_permute(onnx_builder(c), x, axes_from_list(c, perm->at, perm->n));
}

/** The product of the sizes of axes first … last − 1. */
static const node *size_product(ir *g, const node *x, size_t first, size_t last) {
  const node *n = ix_const(g, 1);
  for (size_t i = first; i < last; i++) n = ix_mul(g, n, x->dims[i]);
  return n;
}

/** Flatten: a matrix of the axes before and after one, which may be the rank. */
void onnx_Flatten(onnx_call *c) {
  ir *g = onnx_builder(c)->ir;
  value x = onnx_input(c, 0);
  size_t rank = x.node->rank;
  int64_t attribute = onnx_int_attribute(c, "axis", 1);
  size_t axis = attribute == (int64_t)rank ? rank : onnx_normalise_axis(c, attribute, rank);
  sizes to = {.rank = 2,
              .at = {size_product(g, x.node, 0, axis), size_product(g, x.node, axis, rank)}};
  c->outputs[0] = build_reshape(onnx_builder(c), x, &to);
}

/** Lists the axes of size 1; raises if a varying size may be 1. */
static tn_axes list_unit_axes(onnx_call *c, const node *x) {
  tn_axes axes = {0};
  for (size_t i = 0; i < x->rank; i++) {
    const node *size = x->dims[i];
    if (size->lo > 1 || size->hi < 1) continue;
    if (!node_is_bits(size, 1))
      onnx_fail_varying_size(c, size,
                             "axis %zu, of size %s, would be removed only if that is 1; add an "
                             "input or attribute axes",
                             i, size_text(onnx_builder(c), size));
    if (axes.count == TN_MAX_RANK)
      onnx_fail(c, TN_ERR_UNSUPPORTED, "more than %d axes have size 1", TN_MAX_RANK);
    axes.axis[axes.count++] = (int32_t)i;
  }
  return axes;
}

void onnx_Squeeze(onnx_call *c) {
  tn_axes axes;
  value x = onnx_input(c, 0);
  if (!axes_argument(c, 13, &axes)) axes = list_unit_axes(c, x.node);
  c->outputs[0] = build_squeeze(onnx_builder(c), x, axes);
}

void onnx_Unsqueeze(onnx_call *c) {
  tn_axes axes;
  if (!axes_argument(c, 13, &axes)) onnx_fail(c, TN_ERR_FORMAT, "required input 'axes' is missing");
  c->outputs[0] = build_unsqueeze(onnx_builder(c), onnx_input(c, 0), axes);
}

/* Slice. */

/** The arguments of a Slice. */
typedef struct slices {
  const node *const *starts, *const *ends;
  const int64_t *axes, *steps; /* NULL: axes 0, 1, …; steps of 1 */
  size_t n;
} slices;

static const node *const *constant_list(onnx_call *c, const onnx_ints *l) {
  builder *b = onnx_builder(c);
  const node **n = arena_alloc(b->arena, (l->n + 1) * sizeof *n);
  for (size_t i = 0; i < l->n; i++) n[i] = ix_const(b->ir, l->at[i]);
  return n;
}

static slices read_slice_attributes(onnx_call *c) {
  const onnx_ints *starts = onnx_ints_attribute(c, "starts"),
                  *ends = onnx_ints_attribute(c, "ends");
  const onnx_ints *axes = onnx_ints_attribute(c, "axes");
  if (starts->n != ends->n || (axes && axes->n != starts->n))
    onnx_fail(c, TN_ERR_FORMAT, "starts, ends and axes have different lengths");
  return (slices){constant_list(c, starts), constant_list(c, ends), axes ? axes->at : NULL, NULL,
                  starts->n};
}

static slices read_slice_inputs(onnx_call *c) {
  slices s = {0};
  size_t ends, axes, steps;
  s.starts = onnx_shape_elements(c, 1, &s.n);
  s.ends = onnx_shape_elements(c, 2, &ends);
  axes = steps = s.n;
  if (onnx_has_input(c, 3)) s.axes = onnx_static_ints(c, 3, &axes);
  if (onnx_has_input(c, 4)) s.steps = onnx_static_ints(c, 4, &steps);
  if (ends != s.n || axes != s.n || steps != s.n)
    onnx_fail(c, TN_ERR_SHAPE, "starts, ends, axes and steps have different lengths");
  return s;
}

void onnx_Slice(onnx_call *c) {
  value x = onnx_input(c, 0);
  slices s = c->version < 10 ? read_slice_attributes(c) : read_slice_inputs(c);
  for (size_t i = 0; i < s.n; i++) {
    int64_t step = s.steps ? s.steps[i] : 1;
    size_t axis = onnx_normalise_axis(c, s.axes ? s.axes[i] : (int64_t)i, x.node->rank);
    if (!step) onnx_fail(c, TN_ERR_FORMAT, "the step along axis %zu is 0", axis);
    x = build_slice_inside(onnx_builder(c), x, (int64_t)axis, s.starts[i], s.ends[i], step);
  }
  c->outputs[0] = x;
}

/* Split. */

/** Splits a size into equal parts; since version 18 the last ones may be smaller or empty. */
static void split_equally(onnx_call *c, const node *size, const node *parts[]) {
  ir *g = onnx_builder(c)->ir;
  int64_t n = (int64_t)c->n_outputs;
  if (onnx_int_attribute(c, "num_outputs", n) != n)
    onnx_fail(c, TN_ERR_FORMAT, "num_outputs is %lld, but the node has %zu outputs",
              (long long)onnx_int_attribute(c, "num_outputs", n), c->n_outputs);
  const node *each = ix_floordiv(g, size, ix_const(g, n));
  bool is_even = ix_scale(g, each, n) == size;
  if (!is_even && !node_is_const(size))
    onnx_fail_varying_size(c, size, "an axis of varying size %s cannot be split into %lld parts",
                           size_text(onnx_builder(c), size), (long long)n);
  if (!is_even && c->version < 18)
    onnx_fail(c, TN_ERR_SHAPE, "an axis of size %lld is not divisible by %lld",
              (long long)node_int(size), (long long)n);
  int64_t left = is_even ? 0 : node_int(size), largest = is_even ? 0 : (left - 1) / n + 1;
  for (int64_t i = 0; i < n; i++, left -= largest) {
    int64_t part = left < 0 ? 0 : left < largest ? left : largest;
    parts[i] = is_even ? each : ix_const(g, part);
  }
}

/** The elements of a list of sizes in version 1 of an operator, which are floats by its definition;
    files that were written since have integers. */
static const node *const *whole_numbers(onnx_call *c, size_t input, size_t *n) {
  ir *g = onnx_builder(c)->ir;
  bool is_float = dtype_is_float((dtype)onnx_input(c, input).node->dtype);
  const int64_t *ints = is_float ? NULL : onnx_static_ints(c, input, n);
  const double *floats = is_float ? onnx_static_floats(c, input, n) : NULL;
  const node **each = arena_alloc(onnx_builder(c)->arena, (*n + 1) * sizeof *each);
  for (size_t i = 0; i < *n; i++) {
    double x = ints ? (double)ints[i] : floats[i];
    if (!(fabs(x) <= ONNX_SIZE_MAX) || x != floor(x))
      onnx_fail(c, TN_ERR_FORMAT, "element %zu of input %zu is %g, not a whole number up to %d", i,
                input, x, ONNX_SIZE_MAX);
    each[i] = ix_const(g, (int64_t)x);
  }
  return each;
}

void onnx_Split(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  size_t axis = onnx_normalise_axis(c, onnx_int_attribute(c, "axis", 0), x.node->rank),
         n = c->n_outputs;
  const onnx_ints *l = onnx_ints_attribute(c, "split");
  const node **equal = arena_alloc(b->arena, (n + 1) * sizeof *equal);
  const node *const *parts = equal;
  if (!n) return;
  if (c->version < 13 && l) {
    n = l->n;
    parts = constant_list(c, l);
  } else if (onnx_has_input(c, 1)) {
    parts = c->version < 2 ? whole_numbers(c, 1, &n) : onnx_size_elements(c, 1, &n);
  } else {
    split_equally(c, x.node->dims[axis], equal);
  }
  if (n != c->n_outputs)
    onnx_fail(c, TN_ERR_SHAPE, "split has %zu sizes, but the node has %zu outputs", n,
              c->n_outputs);
  build_split(b, x, (int64_t)axis, parts, c->outputs, n);
}

/** Repeats of a Tile; in version 1 of one axis. */
static sizes read_repeats(onnx_call *c, const node *x) {
  if (c->version >= 6) return shape_argument(c, 1);
  size_t n, axes;
  const node *const *repeats = whole_numbers(c, 1, &n), *const *axis = whole_numbers(c, 2, &axes);
  sizes s = {.rank = x->rank};
  if (n != 1 || axes != 1) onnx_fail(c, TN_ERR_SHAPE, "there are %zu repeats of %zu axes", n, axes);
  for (size_t i = 0; i < s.rank; i++) s.at[i] = ix_const(onnx_builder(c)->ir, 1);
  s.at[onnx_normalise_axis(c, node_int(*axis), s.rank)] = *repeats;
  return s;
}

void onnx_Tile(onnx_call *c) {
  value x = onnx_input(c, 0);
  sizes repeats = read_repeats(c, x.node);
  for (size_t i = 0; i < repeats.rank; i++) shape_argument_check_size(c, &repeats, i);
  if (repeats.rank != x.node->rank)
    onnx_fail(c, TN_ERR_SHAPE, "repeats has %zu elements, but the input has %u dimensions",
              repeats.rank, x.node->rank);
  c->outputs[0] = build_tile(onnx_builder(c), x, &repeats);
}

void onnx_Trilu(onnx_call *c) {
  builder *b = onnx_builder(c);
  const node *zero = ix_const(b->ir, 0), *const *k = &zero;
  size_t n = 1;
  if (onnx_has_input(c, 1)) k = onnx_shape_elements(c, 1, &n);
  if (n != 1) onnx_fail(c, TN_ERR_SHAPE, "k has %zu elements, expected 1", n);
  bool upper = onnx_int_attribute(c, "upper", 1) != 0;
  const node *diagonal = ix_clamp_const(b->ir, k[0], ONNX_SIZE_MAX + 1); /* beyond every matrix */
  c->outputs[0] = (upper ? build_triu : build_tril)(b, onnx_input(c, 0), diagonal);
}
