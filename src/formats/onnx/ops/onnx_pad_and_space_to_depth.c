/* ONNX Pad (constant, edge, reflect, wrap; negative pads crop), CenterCropPad, DepthToSpace and
   SpaceToDepth. Signs of pads that are computed from shapes must be known; the run may compute
   pads, and refuses negative ones. */
#include "formats/onnx/ops/axis_arguments.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "tensor/ops/axes_and_broadcasting.h"

#include <string.h>

/* Pad. */

/** Elements added at both ends of each axis; removed, if negative. */
typedef struct pads {
  size_t rank;
  const node *low[SIZES_MAX_RANK], *high[SIZES_MAX_RANK];
} pads;

static pads no_pads(onnx_call *c, size_t rank) {
  pads p = {.rank = rank};
  for (size_t i = 0; i < rank; i++) p.low[i] = p.high[i] = ix_const(onnx_builder(c)->ir, 0);
  return p;
}

/** Reads attribute "paddings" of version 1 or "pads" of version 2. */
static pads read_pads_attribute(onnx_call *c, size_t rank) {
  pads p = no_pads(c, rank);
  const char *name = c->version < 2 ? "paddings" : "pads";
  const onnx_ints *l = onnx_ints_attribute(c, name);
  if (l->n != 2 * rank)
    onnx_fail(c, TN_ERR_FORMAT, "attribute '%s' has %zu elements, expected %zu", name, l->n,
              2 * rank);
  for (size_t i = 0; i < rank; i++) {
    p.low[i] = ix_const(onnx_builder(c)->ir, l->at[i]);
    p.high[i] = ix_const(onnx_builder(c)->ir, l->at[rank + i]);
  }
  return p;
}

/** Reads input 1: pads of all axes, or of those that input 3 lists. */
static pads read_pads_input(onnx_call *c, size_t rank) {
  pads p = no_pads(c, rank);
  size_t n, count = rank;
  const node *const *e = onnx_size_elements(c, 1, &n);
  const int64_t *axes = onnx_has_input(c, 3) ? onnx_static_ints(c, 3, &count) : NULL;
  if (n != 2 * count) onnx_fail(c, TN_ERR_SHAPE, "expected %zu pads, got %zu pads", 2 * count, n);
  for (size_t i = 0; i < count; i++) {
    size_t axis = axes ? onnx_normalise_axis(c, axes[i], rank) : i;
    p.low[axis] = e[i];
    p.high[axis] = e[count + i];
  }
  return p;
}

/** Crops x by the negative pads, and sets them to 0. */
static value crop_negative_pads(onnx_call *c, value x, pads *p) {
  builder *b = onnx_builder(c);
  const node *zero = ix_const(b->ir, 0);
  for (size_t i = 0; i < p->rank; i++) {
    const node **ends[] = {&p->low[i], &p->high[i]};
    for (size_t k = 0; k < 2; k++) {
      const node *n = *ends[k];
      if (n->lo >= 0 || ix_prove_nonnegative(b->ir, n)) continue;
      if (n->hi > 0)
        onnx_fail_varying_size(c, n, "pads of axis %zu may be positive or negative", i);
      const node *size = x.node->dims[i], *removed = ix_scale(b->ir, n, -1);
      if (!ix_prove_le(b->ir, removed, size))
        onnx_fail(c, TN_ERR_SHAPE, "cannot crop %s elements of axis %zu, of size %s",
                  size_text(b, removed), i, size_text(b, size));
      const node *start = k ? zero : removed, *stop = k ? ix_sub(b->ir, size, removed) : NULL;
      x = build_slice(b, x, (int64_t)i, start, stop, 1);
      *ends[k] = zero;
    }
  }
  return x;
}

/** Pads an axis with its own periodic repetition. */
static value wrap_axis(onnx_call *c, value x, size_t axis, const node *low, const node *high) {
  ir *g = onnx_builder(c)->ir;
  const node *size = x.node->dims[axis];
  if (node_is_bits(low, 0) && node_is_bits(high, 0)) return x;
  if (!node_is_const(size))
    onnx_fail_varying_size(c, size, "mode wrap is not supported for axis %zu, whose size varies",
                           axis);
  if (!node_is_const(low) || !node_is_const(high))
    onnx_fail_varying_size(c, node_is_const(low) ? high : low,
                           "mode wrap is not supported for axis %zu, whose pads vary", axis);
  int64_t n = node_int(size), before = node_int(low), after = node_int(high);
  if (n < 1) onnx_fail(c, TN_ERR_SHAPE, "mode wrap needs elements, but axis %zu is empty", axis);
  if (before > ONNX_SIZE_MAX || after > ONNX_SIZE_MAX)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "pads of mode wrap exceed %d", ONNX_SIZE_MAX);
  int64_t start = (n - before % n) % n, stop = start + before + n + after;
  sizes times = {.rank = x.node->rank};
  for (size_t i = 0; i < times.rank; i++)
    times.at[i] = ix_const(g, i == axis ? (stop - 1) / n + 1 : 1);
  x = build_tile(onnx_builder(c), x, &times);
  return build_slice(onnx_builder(c), x, (int64_t)axis, ix_const(g, start), ix_const(g, stop), 1);
}

/** Reads the value of constant pads; 0 by default. */
static value read_fill(onnx_call *c, const node *x) {
  builder *b = onnx_builder(c);
  if (c->version < 11) return build_num(b, (double)onnx_float_attribute(c, "value", 0));
  if (!onnx_has_input(c, 2)) return value_of(ir_const_int(b->ir, (dtype)x->dtype, 0));
  return onnx_scalar_input(c, 2);
}

void onnx_Pad(onnx_call *c) {
  static const char *const modes[] = {
      [TN_PAD_CONSTANT] = "constant", [TN_PAD_REFLECT] = "reflect", [TN_PAD_EDGE] = "edge"};
  value x = onnx_input(c, 0);
  const char *mode = onnx_string_attribute(c, "mode", "constant");
  size_t rank = x.node->rank, m = 0;
  pads p = c->version < 11 ? read_pads_attribute(c, rank) : read_pads_input(c, rank);
  x = crop_negative_pads(c, x, &p);
  if (!strcmp(mode, "wrap") && c->version >= 19) {
    for (size_t i = 0; i < rank; i++) x = wrap_axis(c, x, i, p.low[i], p.high[i]);
    c->outputs[0] = x;
    return;
  }
  while (m < sizeof modes / sizeof *modes && strcmp(mode, modes[m])) m++;
  if (m == sizeof modes / sizeof *modes)
    onnx_fail(c, TN_ERR_FORMAT, "mode is '%.50s', which is not supported", mode);
  sizes low = {.rank = rank}, high = {.rank = rank};
  memcpy(low.at, p.low, sizeof low.at);
  memcpy(high.at, p.high, sizeof high.at);
  c->outputs[0] = build_pad(onnx_builder(c), x, &low, &high, (tn_pad_mode)m, read_fill(c, x.node));
}

/* CenterCropPad. */

/** Crops an axis to its middle, or pads it with zeros on both sides. What is odd is at the end. */
static value centre_axis(onnx_call *c, value x, size_t axis, const node *size) {
  builder *b = onnx_builder(c);
  ir *g = b->ir;
  const node *zero = ix_const(g, 0), *two = ix_const(g, 2), *old = x.node->dims[axis];
  const node *kept = ix_min(g, old, size);
  const node *start = ix_floordiv(g, ix_sub(g, old, kept), two), *missing = ix_sub(g, size, kept);
  sizes low = {.rank = x.node->rank}, high;
  for (size_t i = 0; i < low.rank; i++) low.at[i] = zero;
  high = low;
  low.at[axis] = ix_floordiv(g, missing, two);
  high.at[axis] = ix_sub(g, missing, low.at[axis]);
  x = build_slice(b, x, (int64_t)axis, start, ix_add(g, start, kept), 1);
  return build_pad(b, x, &low, &high, TN_PAD_CONSTANT, build_int(b, 0));
}

void onnx_CenterCropPad(onnx_call *c) {
  value x = onnx_input(c, 0);
  sizes s = shape_argument(c, 1);
  const onnx_ints *axes = onnx_ints_attribute(c, "axes");
  size_t n = axes ? axes->n : x.node->rank;
  if (s.rank != n) onnx_fail(c, TN_ERR_SHAPE, "the shape has %zu sizes, expected %zu", s.rank, n);
  for (size_t i = 0; i < n; i++) {
    size_t axis = axes ? onnx_normalise_axis(c, axes->at[i], x.node->rank) : i;
    shape_argument_check_size(c, &s, i);
    x = centre_axis(c, x, axis, s.at[i]);
  }
  c->outputs[0] = x;
}

/* DepthToSpace and SpaceToDepth: reshape, permute, reshape between channels and blocks of pixels.
 */

static int64_t read_block_size(onnx_call *c, const node *x) {
  int64_t n = onnx_int_attribute(c, "blocksize", 0);
  if (x->rank != 4) onnx_fail(c, TN_ERR_SHAPE, "the input has %u dimensions, expected 4", x->rank);
  if (n < 1 || n > INT32_MAX)
    onnx_fail(c, TN_ERR_FORMAT, "blocksize is %lld, not in 1 … %d", (long long)n, INT32_MAX);
  return n;
}

/** True for mode DCR (depth, column, row), false for CRD. */
static bool is_depth_first(onnx_call *c) {
  const char *mode = onnx_string_attribute(c, "mode", "DCR");
  if (strcmp(mode, "DCR") && strcmp(mode, "CRD"))
    onnx_fail(c, TN_ERR_FORMAT, "mode is '%.50s', not DCR or CRD", mode);
  return !strcmp(mode, "DCR");
}

static const node *divide_size(onnx_call *c, const node *size, int64_t blocks, const char *axis) {
  builder *b = onnx_builder(c);
  const node *q = ix_floordiv(b->ir, size, ix_const(b->ir, blocks));
  if (ix_scale(b->ir, q, blocks) != size)
    onnx_fail(c, TN_ERR_SHAPE, "the number of %s, %s, is not divisible by %lld", axis,
              size_text(b, size), (long long)blocks);
  return q;
}

static value permute_blocks(onnx_call *c, const node *x, const sizes *split, const int64_t axes[],
                            const sizes *to) {
  builder *b = onnx_builder(c);
  return value_of(shape_reshape(b, shape_permute(b, shape_reshape(b, x, split), axes), to));
}

void onnx_DepthToSpace(onnx_call *c) {
  static const int64_t dcr[] = {0, 3, 4, 1, 5, 2}, crd[] = {0, 1, 4, 2, 5, 3};
  ir *g = onnx_builder(c)->ir;
  const node *x = onnx_input(c, 0).node, *const *d = x->dims;
  int64_t k = read_block_size(c, x);
  const node *block = ix_const(g, k), *depth = divide_size(c, d[1], k * k, "channels");
  bool depth_first = is_depth_first(c);
  sizes split = {6, {d[0], block, block, depth, d[2], d[3]}};
  if (!depth_first) split = (sizes){6, {d[0], depth, block, block, d[2], d[3]}};
  sizes to = {4, {d[0], depth, ix_scale(g, d[2], k), ix_scale(g, d[3], k)}};
  c->outputs[0] = permute_blocks(c, x, &split, depth_first ? dcr : crd, &to);
}

void onnx_SpaceToDepth(onnx_call *c) {
  static const int64_t dcr[] = {0, 3, 5, 1, 2, 4}, crd[] = {0, 1, 3, 5, 2, 4};
  ir *g = onnx_builder(c)->ir;
  const node *x = onnx_input(c, 0).node, *const *d = x->dims;
  int64_t k = read_block_size(c, x);
  const node *block = ix_const(g, k);
  const node *rows = divide_size(c, d[2], k, "rows"), *columns = divide_size(c, d[3], k, "columns");
  sizes split = {6, {d[0], d[1], rows, block, columns, block}};
  sizes to = {4, {d[0], ix_scale(g, ix_scale(g, d[1], k), k), rows, columns}};
  c->outputs[0] = permute_blocks(c, x, &split, is_depth_first(c) ? dcr : crd, &to);
}
