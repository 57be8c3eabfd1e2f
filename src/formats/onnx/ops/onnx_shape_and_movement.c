/* ONNX operators that move elements (Concat, Expand, Flatten, Reshape, Slice, Split, Squeeze, Tile,
   Transpose, Trilu, Unsqueeze) or give a shape (Shape). Shape inputs may be computed by the model
   (shape_tensors.c). */
#include "formats/onnx/ops/axis_arguments.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/core/affine.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/op_helpers.h"

/** The quotient if it is exact for all values of varying sizes; else NULL. */
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

/** The size left for a -1. Sizes that are in both shapes are left out, as one that varies may be 0.
    NULL if it is not known. */
static const node *infer_wild_size(onnx_call *c, const node *x, const sizes *to, size_t wild) {
  ir *g = onnx_builder(c)->ir;
  const node *have = ix_const(g, 1), *taken = have;
  bool in_both[SIZES_MAX_RANK] = {false};
  for (size_t i = 0; i < x->rank; i++) {
    size_t k = 0;
    while (k < to->rank && (k == wild || in_both[k] || to->at[k] != x->dims[i])) k++;
    if (k < to->rank)
      in_both[k] = true;
    else
      have = ix_mul(g, have, x->dims[i]);
  }
  for (size_t k = 0; k < to->rank; k++)
    if (k != wild && !in_both[k]) taken = ix_mul(g, taken, to->at[k]);
  return exact_quotient(g, have, taken);
}

/* A size of 0 in the shape stands for the input's size at the same place, also where it is computed
   and happens to be 0. Only of a tensor without elements, but then with another result: such sizes
   are refused when the model runs, unless the input's is 0 too. */

/** Lists the factors of a product, without numbers. */
static node_list list_factors(builder *b, const node *n) {
  node_list open = {0}, all = {0};
  vec_push(b->arena, &open, n);
  while (open.n) {
    const node *x = vec_pop(&open);
    if (x->op == OP_AFFINE && ix_terms(x) == 1 && !ix_offset(x))
      vec_push(b->arena, &open, ix_atom(x, 0));
    else if (x->op == OP_MUL)
      for (size_t i = 0; i < 2; i++) vec_push(b->arena, &open, x->src[i]);
    else if (x->op != OP_CONST)
      vec_push(b->arena, &all, x);
  }
  return all;
}

static bool list_contains(const node_list *l, const node *n) {
  for (size_t i = 0; i < l->n; i++)
    if (l->at[i] == n) return true;
  return false;
}

/** `own`: the input's size at place `i`, NULL if it has none there. */
static void forbid_zero(onnx_call *c, size_t i, const node *size, const node *own) {
  builder *b = onnx_builder(c);
  node_list f = list_factors(b, size), of_own = {0};
  if (own && node_is_bits(own, 0)) return;
  if (own) of_own = list_factors(b, own);
  for (size_t k = 0; k < f.n; k++) {
    const node *n = f.at[k];
    if (n->lo > 0 || n->hi < 0 || list_contains(&of_own, n)) continue;
    b->needed = ix_add_const(b->ir, n, -1);
    if (n->op != OP_VAR)
      onnx_fail_varying_size(
          c, n,
          "size %zu of the shape, %s, can be 0, and would then be the input's: set "
          "allowzero",
          i, size_text(b, size));
    onnx_require_nonzero(c, n);
  }
}

void onnx_Reshape(onnx_call *c) {
  value x = onnx_input(c, 0);
  sizes to = shape_argument(c, 1);
  size_t wild = SIZE_MAX;
  bool zero_copies = !onnx_int_attribute(c, "allowzero", 0);
  for (size_t i = 0; i < to.rank; i++) {
    if (node_is_bits(to.at[i], 0) && zero_copies) {
      if (i >= x.node->rank) onnx_fail(c, TN_ERR_SHAPE, "size %zu is 0, and the input has none", i);
      to.at[i] = x.node->dims[i];
    } else if (node_is_bits(to.at[i], (uint64_t)-1)) {
      if (wild != SIZE_MAX) onnx_fail(c, TN_ERR_SHAPE, "-1 comes twice in the shape");
      to.at[wild = i] = NULL;
    } else {
      shape_argument_check_size(c, &to, i);
    }
  }
  for (size_t i = 0; i < to.rank && zero_copies; i++)
    if (i != wild) forbid_zero(c, i, to.at[i], i < x.node->rank ? x.node->dims[i] : NULL);
  if (wild != SIZE_MAX) to.at[wild] = infer_wild_size(c, x.node, &to, wild);
  c->outputs[0] = build_reshape(onnx_builder(c), x, &to);
}

static _Noreturn void fail_expand(onnx_call *c, const node *x, const sizes *asked, const node *own,
                                  const node *size) {
  builder *b = onnx_builder(c);
  sizes s = sizes_of(x);
  const char *from = sizes_text(b, &s), *to = sizes_text(b, asked);
  b->named.n = 0; /* the refusal is about the two sizes alone */
  onnx_fail(c, TN_ERR_SHAPE, "%s does not stretch to %s: %s is not %s", from, to, size_text(b, own),
            size_text(b, size));
}

/** Broadcasts the requested sizes with the input's: a 1 keeps the input's size. */
void onnx_Expand(onnx_call *c) {
  value x = onnx_input(c, 0);
  sizes own = sizes_of(x.node), asked = shape_argument(c, 1), to = {0};
  const node *one = ix_const(onnx_builder(c)->ir, 1);
  to.rank = asked.rank > own.rank ? asked.rank : own.rank;
  for (size_t i = 0; i < asked.rank; i++) shape_argument_check_size(c, &asked, i);
  for (size_t i = 0; i < to.rank; i++) {
    size_t new_axes = to.rank - own.rank, lead = to.rank - asked.rank;
    const node *had = i < new_axes ? one : own.at[i - new_axes];
    const node *size = i < lead ? one : asked.at[i - lead];
    if (had != size && had != one && size != one) fail_expand(c, x.node, &asked, had, size);
    to.at[i] = size == one ? had : size;
  }
  c->outputs[0] = build_expand(onnx_builder(c), x, &to);
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
  value *all = arena_alloc(onnx_builder(c)->arena, c->n_inputs * sizeof *all);
  for (size_t i = 0; i < c->n_inputs; i++) all[i] = onnx_input(c, i);
  c->outputs[0] = build_concat(onnx_builder(c), all, c->n_inputs, onnx_int_attribute(c, "axis", 1));
}

void onnx_Transpose(onnx_call *c) {
  value x = onnx_input(c, 0);
  const onnx_ints *perm = onnx_ints_attribute(c, "perm");
  if (!perm)
    c->outputs[0] = build_transpose(onnx_builder(c), x);
  else
    c->outputs[0] = build_permute(onnx_builder(c), x, axes_from_list(c, perm->at, perm->n));
}

static const node *product(ir *g, const node *x, size_t first, size_t last) {
  const node *n = ix_const(g, 1);
  for (size_t i = first; i < last; i++) n = ix_mul(g, n, x->dims[i]);
  return n;
}

/** Flatten: a matrix split at an axis, which may be the rank. */
void onnx_Flatten(onnx_call *c) {
  ir *g = onnx_builder(c)->ir;
  value x = onnx_input(c, 0);
  size_t rank = x.node->rank;
  int64_t given = onnx_int_attribute(c, "axis", 1);
  size_t axis = given == (int64_t)rank ? rank : onnx_normalise_axis(c, given, rank);
  sizes to = {.rank = 2, .at = {product(g, x.node, 0, axis), product(g, x.node, axis, rank)}};
  c->outputs[0] = build_reshape(onnx_builder(c), x, &to);
}

/** Lists the axes of size 1; raises if a varying size may be 1. */
static tn_axes axes_of_one(onnx_call *c, const node *x) {
  tn_axes axes = {0};
  for (size_t i = 0; i < x->rank; i++) {
    const node *size = x->dims[i];
    if (size->lo > 1 || size->hi < 1) continue;
    if (!node_is_bits(size, 1))
      onnx_fail_varying_size(
          c, size,
          "axis %zu, of size %s, goes if that is 1, and stays if not: give the node "
          "the axes that go",
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
  if (!axes_argument(c, 13, &axes)) axes = axes_of_one(c, x.node);
  c->outputs[0] = build_squeeze(onnx_builder(c), x, axes);
}

void onnx_Unsqueeze(onnx_call *c) {
  tn_axes axes;
  if (!axes_argument(c, 13, &axes)) onnx_fail(c, TN_ERR_FORMAT, "no axes are given");
  c->outputs[0] = build_unsqueeze(onnx_builder(c), onnx_input(c, 0), axes);
}

/* Slice. Bounds beyond what the axis can have mean "to the end": they are cut before anything is
   added to them. Tensors' own slices refuse bounds that can be outside of a size that varies; ONNX
   puts them to the ends. */

static int64_t limit_of(const node *size) {
  return node_is_const(size) ? INT64_C(1) << 62 : ONNX_SIZE_MAX + 1;
}

static const node *bound(onnx_call *c, const node *n, int64_t far) {
  if (!node_is_const(n)) return n;
  int64_t k = node_int(n) > far ? far : node_int(n) < -far ? -far : node_int(n);
  return ix_const(onnx_builder(c)->ir, k);
}

/** A bound of an axis of any size, counted from its end where it is negative, between the least
    that it may be and the end, or the last element, where steps are negative. */
static const node *clamp_bound(onnx_call *c, const node *n, const node *size, int64_t step,
                               int64_t least) {
  ir *g = onnx_builder(c)->ir;
  const node *none = ix_const(g, 0), *one = ix_const(g, 1);
  const node *is_negative = ix_min(g, one, ix_max(g, none, ix_scale(g, n, -1)));
  n = ix_add(g, n, ix_mul(g, size, is_negative));
  return ix_min(g, ix_max(g, n, ix_const(g, least)), ix_add_const(g, size, step < 0 ? -1 : 0));
}

/** A start before the axis is its first element, with negative steps too. */
static const node *start_of(onnx_call *c, const node *n, const node *size, int64_t step) {
  n = bound(c, n, limit_of(size));
  bool is_plain = step > 0 && node_is_const(n) && node_is_const(size);
  return is_plain ? n : clamp_bound(c, n, size, step, 0);
}

/** NULL: to the end. */
static const node *stop_of(onnx_call *c, const node *n, const node *size, int64_t step) {
  int64_t far = limit_of(size);
  n = bound(c, n, far);
  if (node_is_bits(n, (uint64_t)(step > 0 ? far : -far))) return NULL;
  return node_is_const(n) && node_is_const(size) ? n
                                                 : clamp_bound(c, n, size, step, step < 0 ? -1 : 0);
}

/** Clamps a step to the axis: a longer one selects one element, too. */
static int64_t clamp_step(int64_t step, const node *size) {
  int64_t most = node_is_const(size) ? node_int(size) : ONNX_SIZE_MAX;
  if (most < 1) most = 1;
  return step > most ? most : step < -most ? -most : step;
}

typedef struct slices {
  const node *const *starts, *const *ends;
  const int64_t *axes, *steps; /* NULL: 0, 1, …; 1 */
  size_t n;
} slices;

static const node *const *list_nodes(onnx_call *c, const onnx_ints *l) {
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
    onnx_fail(c, TN_ERR_FORMAT, "starts, ends and axes do not agree");
  return (slices){list_nodes(c, starts), list_nodes(c, ends), axes ? axes->at : NULL, NULL,
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
    onnx_fail(c, TN_ERR_SHAPE, "starts, ends, axes and steps do not agree");
  return s;
}

void onnx_Slice(onnx_call *c) {
  value x = onnx_input(c, 0);
  slices s = c->version < 10 ? read_slice_attributes(c) : read_slice_inputs(c);
  for (size_t i = 0; i < s.n; i++) {
    int64_t step = s.steps ? s.steps[i] : 1;
    size_t axis = onnx_normalise_axis(c, s.axes ? s.axes[i] : (int64_t)i, x.node->rank);
    if (!step) onnx_fail(c, TN_ERR_FORMAT, "the step along axis %zu is 0", axis);
    const node *size = x.node->dims[axis];
    step = clamp_step(step, size);
    const node *start = start_of(c, s.starts[i], size, step);
    const node *stop = stop_of(c, s.ends[i], size, step);
    x = build_slice(onnx_builder(c), x, (int64_t)axis, start, stop, step);
  }
  c->outputs[0] = x;
}

/* Split. */

/** Splits a size into equal parts; since version 18 the last one may be smaller, or empty. */
static void split_equally(onnx_call *c, const node *size, const node *part[]) {
  ir *g = onnx_builder(c)->ir;
  int64_t n = (int64_t)c->n_outputs;
  if (onnx_int_attribute(c, "num_outputs", n) != n)
    onnx_fail(c, TN_ERR_FORMAT, "num_outputs is %lld, where there are %zu outputs",
              (long long)onnx_int_attribute(c, "num_outputs", n), c->n_outputs);
  const node *each = ix_floordiv(g, size, ix_const(g, n));
  bool even = ix_scale(g, each, n) == size;
  if (!even && !node_is_const(size))
    onnx_fail_varying_size(c, size, "the %lld parts of an axis of size %s need not be equal",
                           (long long)n, size_text(onnx_builder(c), size));
  if (!even && c->version < 18)
    onnx_fail(c, TN_ERR_SHAPE, "an axis of size %lld is not divisible by %lld",
              (long long)node_int(size), (long long)n);
  int64_t left = even ? 0 : node_int(size), most = even ? 0 : (left - 1) / n + 1;
  for (int64_t i = 0; i < n; i++, left -= most) {
    int64_t k = left < 0 ? 0 : left < most ? left : most;
    part[i] = even ? each : ix_const(g, k);
  }
}

void onnx_Split(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  size_t axis = onnx_normalise_axis(c, onnx_int_attribute(c, "axis", 0), x.node->rank),
         n = c->n_outputs;
  const onnx_ints *l = onnx_ints_attribute(c, "split");
  const node **own = arena_alloc(b->arena, (n + 1) * sizeof *own);
  const node *const *part = own;
  if (!n) return;
  if (c->version < 13 && l) {
    n = l->n;
    part = list_nodes(c, l);
  } else if (onnx_has_input(c, 1)) {
    part = onnx_shape_elements(c, 1, &n);
  } else {
    split_equally(c, x.node->dims[axis], own);
  }
  if (n != c->n_outputs)
    onnx_fail(c, TN_ERR_SHAPE, "it has %zu outputs, where split has %zu sizes", c->n_outputs, n);
  build_split(b, x, (int64_t)axis, part, c->outputs, n);
}

void onnx_Tile(onnx_call *c) {
  value x = onnx_input(c, 0);
  sizes times = shape_argument(c, 1);
  for (size_t i = 0; i < times.rank; i++) shape_argument_check_size(c, &times, i);
  if (times.rank != x.node->rank)
    onnx_fail(c, TN_ERR_SHAPE, "it has %zu repeats, where the input has %u axes", times.rank,
              x.node->rank);
  c->outputs[0] = build_tile(onnx_builder(c), x, &times);
}

void onnx_Trilu(onnx_call *c) {
  builder *b = onnx_builder(c);
  const node *zero = ix_const(b->ir, 0), *const *k = &zero;
  size_t n = 1;
  if (onnx_has_input(c, 1)) k = onnx_shape_elements(c, 1, &n);
  if (n != 1) onnx_fail(c, TN_ERR_SHAPE, "k has %zu elements, where one belongs", n);
  bool upper = onnx_int_attribute(c, "upper", 1) != 0;
  const node *diagonal = bound(c, k[0], ONNX_SIZE_MAX + 1); /* beyond every matrix */
  c->outputs[0] = (upper ? build_triu : build_tril)(b, onnx_input(c, 0), diagonal);
}
