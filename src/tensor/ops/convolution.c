/* Convolution in N, C, … layout with groups, as ONNX Conv: sliding windows of x (sliding_windows.c)
   times w, summed over channels and kernel (implicit im2col). Transposed convolution (ONNX
   ConvTranspose) is a convolution of x by the phases of the flipped kernel, or, where the stride
   does not divide the kernel, of x dilated with zeros. */
#include "ir/index/index_arithmetic.h"
#include "tensor/context/descriptor.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/reduction.h"
#include "tensor/ops/sliding_windows.h"
#include "tensor/ops/type_promotion.h"

/** Checked operands and options. */
typedef struct conv {
  size_t n;                 /* spatial axes */
  const node *x, *w, *bias; /* in the type to compute in; w of the transpose is (C, M / G, K…) */
  dtype result;             /* type of the result */
  tn_conv_desc d;           /* options */
  int64_t kernel[MAX_SPATIAL_AXES]; /* K… */
  const node *outputs;              /* M: channels of the result */
} conv;

static void check_desc(builder *b, const conv *c, bool transpose) {
  const tn_conv_desc *d = &c->d;
  if (d->groups < 1)
    diag_raise(b->diag, TN_ERR_ARGUMENT, "groups is %lld; it must be 1 or more",
               (long long)d->groups);
  for (size_t i = 0; i < c->n; i++) {
    int64_t step = d->stride[i] > d->dilation[i] ? d->stride[i] : d->dilation[i];
    window_check(b, "stride", i, d->stride[i], 1, INT32_MAX);
    window_check(b, "dilation", i, d->dilation[i], 1, INT32_MAX);
    window_check(b, "pad_low", i, d->pad_low[i], 0, INT32_MAX);
    window_check(b, "pad_high", i, d->pad_high[i], 0, INT32_MAX);
    window_check(b, "output_pad", i, d->output_pad[i], 0, INT32_MAX);
    if (d->output_pad[i] >= (transpose ? step : 1))
      diag_raise(b->diag, TN_ERR_ARGUMENT, "output_pad[%zu] is %lld; it must be less than %lld%s",
                 i, (long long)d->output_pad[i], (long long)(transpose ? step : 1),
                 transpose ? ", the larger of stride and dilation" : "");
  }
}

static void check_shapes(builder *b, conv *c) {
  sizes x = sizes_of(c->x), w = sizes_of(c->w);
  if (x.rank < 3 || x.rank > 2 + MAX_SPATIAL_AXES || w.rank != x.rank)
    diag_raise(b->diag, TN_ERR_SHAPE,
               "x has shape %s and w has shape %s; both must have the same rank, 3, 4 or 5",
               sizes_text_of_ranks(b, &x), sizes_text_of_ranks(b, &w));
  c->n = x.rank - 2;
  for (size_t i = 0; i < c->n; i++) {
    const node *k = w.at[2 + i];
    if (k->op != OP_CONST || node_int(k) < 1 || node_int(k) > INT32_MAX)
      diag_raise(b->diag, TN_ERR_SHAPE,
                 "the kernel has size %s along spatial axis %zu; it must be a number, 1 or more",
                 size_text(b, k), i);
    c->kernel[i] = node_int(k);
  }
}

/** Raises with the reason unless `whole` is `groups` times `part`. */
static void check_groups(builder *b, const conv *c, const char *reason, const node *whole,
                         const node *part) {
  sizes x = sizes_of(c->x), w = sizes_of(c->w);
  if (ix_scale(b->ir, part, c->d.groups) == whole) return;
  diag_raise(b->diag, TN_ERR_SHAPE, "x has shape %s, w has shape %s, and groups is %lld: %s",
             sizes_text(b, &x), sizes_text(b, &w), (long long)c->d.groups, reason);
}

static conv conv_operands(builder *b, value x, value w, value bias, const tn_conv_desc *desc,
                          bool transpose) {
  conv c = {.d = TN_CONV_DESC_INIT, .result = values_promoted_dtype(b, (value[]){x, w, bias}, 3)};
  const node *groups;
  dtype t = accumulation_type(c.result);
  check_operand_type(b, RULE_NUMBER, c.result);
  c.x = type_convert(b, x, t);
  c.w = type_convert(b, w, t);
  c.bias = bias.node ? type_convert(b, bias, t) : NULL;
  if (desc) c.d = *desc;
  check_shapes(b, &c);
  check_desc(b, &c, transpose);
  groups = ix_const(b->ir, c.d.groups);
  if (transpose) {
    check_groups(b, &c, "the channels of x are no multiple of groups", c.x->dims[1],
                 ix_floordiv(b->ir, c.x->dims[1], groups));
    check_groups(b, &c, "x has not as many channels as w",
                 ix_scale(b->ir, c.x->dims[1], c.d.groups), c.w->dims[0]);
    c.outputs = ix_scale(b->ir, c.w->dims[1], c.d.groups);
  } else {
    check_groups(b, &c, "x has not as many channels as w has in all groups", c.x->dims[1],
                 c.w->dims[1]);
    check_groups(b, &c, "the output channels of w are no multiple of groups", c.w->dims[0],
                 ix_floordiv(b->ir, c.w->dims[0], groups));
    c.outputs = c.w->dims[0];
  }
  sizes s = c.bias ? sizes_of(c.bias) : (sizes){0};
  if (c.bias && (s.rank != 1 || s.at[0] != c.outputs))
    diag_raise(b->diag, TN_ERR_SHAPE, "bias has shape %s; it must be (%s), the output channels",
               sizes_text(b, &s), size_text(b, c.outputs));
  return c;
}

/** Splits an axis into groups: (…, C, …) to (…, G, C / G, …). */
static const node *split_groups(builder *b, const node *x, size_t axis, int64_t groups) {
  const node *g = ix_const(b->ir, groups);
  sizes s = sizes_of(x);
  s = sizes_insert(b, sizes_with(s, axis, ix_floordiv(b->ir, s.at[axis], g)), axis, g);
  return shape_reshape(b, x, &s);
}

/** Multiplies windows (N, C, O…, K…) by w (G, M / G, C / G, K…), both expanded to
    (N, G, M / G, O…, C / G, K…), and sums over C / G and K…. */
static const node *contract_windows(builder *b, const conv *c, const node *windows, const node *w) {
  size_t n = c->n, rank = 4 + 2 * n;
  int64_t axes[SIZES_MAX_RANK];
  const node *x = split_groups(b, windows, 1, c->d.groups);
  axes[0] = 0;
  axes[1] = 1;
  axes[2 + n] = 2;
  for (size_t i = 0; i < n; i++) {
    axes[2 + i] = (int64_t)(3 + i);
    axes[3 + n + i] = (int64_t)(3 + n + i);
  }
  x = shape_unsqueeze(b, shape_permute(b, x, axes), 2);
  sizes all = sizes_with(sizes_of(x), 2, w->dims[1]), aligned = sizes_of(w);
  for (size_t i = 0; i < n; i++) aligned = sizes_insert(b, aligned, 2, ix_const(b->ir, 1));
  aligned = sizes_insert(b, aligned, 0, ix_const(b->ir, 1));
  w = shape_expand(b, shape_reshape(b, w, &aligned), &all);
  axis_list over = axes_from(3 + n, rank);
  return node_reduce(b, OP_ADD, ex_binary(b, OP_MUL, shape_expand(b, x, &all), w), &over, false);
}

/** Merges groups, (N, G, M / G, O…) to (N, M, O…), adds the bias and casts to the result's type. */
static value add_bias(builder *b, const conv *c, const node *y) {
  sizes s = sizes_with(sizes_remove(sizes_of(y), 2), 1, c->outputs), one = {.rank = 1 + c->n};
  y = shape_reshape(b, y, &s);
  for (size_t i = 0; i < one.rank; i++) one.at[i] = i ? ix_const(b->ir, 1) : c->outputs;
  if (c->bias) y = ex_binary(b, OP_ADD, y, shape_broadcast(b, shape_reshape(b, c->bias, &one), &s));
  return value_of(ex_cast(b, y, c->result));
}

static const node *pad_zeros(builder *b, const node *x, size_t axis, int64_t low, int64_t high) {
  const node *zero = ir_const_int(b->ir, (dtype)x->dtype, 0);
  return shape_pad(b, x, axis, ix_const(b->ir, low), ix_const(b->ir, high), zero);
}

value build_conv(builder *b, value x, value w, value bias, const tn_conv_desc *desc) {
  conv c = conv_operands(b, x, w, bias, desc, false);
  const node *y = c.x, *output[MAX_SPATIAL_AXES];
  for (size_t i = 0; i < c.n; i++) {
    y = pad_zeros(b, y, 2 + i, c.d.pad_low[i], c.d.pad_high[i]);
    int64_t window = c.d.dilation[i] * (c.kernel[i] - 1) + 1;
    const node *size = y->dims[2 + i], *rest = ix_add_const(b->ir, size, -window);
    window_check_fits(b, window, size, rest);
    const node *stride = ix_const(b->ir, c.d.stride[i]);
    output[i] = ix_add_const(b->ir, ix_floordiv(b->ir, rest, stride), 1);
  }
  y = node_windows(b, y, c.n, c.kernel, c.d.stride, c.d.dilation, output);
  return add_bias(b, &c, contract_windows(b, &c, y, split_groups(b, c.w, 0, c.d.groups)));
}

/** Inserts stride − 1 zeros between the elements of an axis. */
static const node *dilate_axis(builder *b, const node *x, size_t axis, int64_t stride) {
  ir *g = b->ir;
  if (stride == 1) return x;
  const node *size = x->dims[axis], *zero = ix_const(g, 0);
  sizes flat = sizes_with(sizes_of(x), axis, ix_scale(g, size, stride));
  x = pad_zeros(b, shape_unsqueeze(b, x, axis + 1), axis + 1, 0, stride - 1);
  const node *used = ix_add_const(g, ix_scale(g, size, stride), 1 - stride);
  return shape_slice(b, shape_reshape(b, x, &flat), axis, zero, used, 1);
}

/* Phases of a transposed convolution. Elements of the result that are `stride` apart along an axis
   see the same weights, those of one phase, and neighbours in x: without dilation, and where the
   kernel is a multiple of the stride, they are a convolution of x itself, so no zeros are inserted.
   All phases are channels of one convolution, and interleaving them gives the result (sub-pixel
   convolution, Shi et al. 2016). */

/** Phases along an axis; 1: x is dilated with zeros. */
static int64_t phases_along(const conv *c, size_t i) {
  bool divides = c->d.dilation[i] == 1 && c->kernel[i] % c->d.stride[i] == 0;
  return divides ? c->d.stride[i] : 1;
}

/** w (C, M / G, K…) as (G, M / G · phases, C / G, K / phases…), with the kernel flipped. */
static const node *flip_kernel(builder *b, const conv *c) {
  const node *w = split_groups(b, c->w, 0, c->d.groups);
  sizes apart = sizes_of(w);
  size_t n = c->n;
  axis_list axes = axes_from(0, 3 + 2 * n);
  for (size_t i = 0; i < n; i++) {
    int64_t phases = phases_along(c, i);
    apart.at[3 + 2 * i] = ix_const(b->ir, c->kernel[i] / phases);
    apart.at[4 + 2 * i] = ix_const(b->ir, phases);
    axes.at[2 + i] = (int64_t)(4 + 2 * i);
    axes.at[3 + n + i] = (int64_t)(3 + 2 * i);
  }
  apart.rank = 3 + 2 * n;
  axes.at[1] = 2;
  axes.at[2 + n] = 1;
  w = shape_permute(b, shape_reshape(b, w, &apart), axes.at); /* (G, M / G, phases…, C / G, K…) */
  sizes joined = {.rank = 3 + n};
  joined.at[0] = w->dims[0];
  joined.at[1] = w->dims[1];
  for (size_t i = 0; i < n; i++) joined.at[1] = ix_scale(b->ir, joined.at[1], phases_along(c, i));
  for (size_t i = 0; i <= n; i++) joined.at[2 + i] = w->dims[2 + n + i];
  w = shape_reshape(b, w, &joined);
  for (size_t i = 0; i < n; i++) {
    const node *size = w->dims[3 + i];
    w = shape_slice(b, w, 3 + i, ix_add_const(b->ir, size, -1), size, -1);
  }
  return w;
}

/** Interleaves phases: (N, G, M / G · phases, H…) to (N, G, M / G, H · phases…). */
static const node *interleave_phases(builder *b, const conv *c, const node *y) {
  size_t n = c->n;
  sizes apart = {.rank = 3 + 2 * n}, joined = sizes_of(y);
  axis_list axes = axes_from(0, 3 + 2 * n);
  apart.at[0] = y->dims[0];
  apart.at[1] = y->dims[1];
  apart.at[2] = joined.at[2] = c->w->dims[1];
  for (size_t i = 0; i < n; i++) {
    int64_t phases = phases_along(c, i);
    apart.at[3 + i] = ix_const(b->ir, phases);
    apart.at[3 + n + i] = y->dims[3 + i];
    joined.at[3 + i] = ix_scale(b->ir, y->dims[3 + i], phases);
    axes.at[3 + 2 * i] = (int64_t)(3 + n + i);
    axes.at[4 + 2 * i] = (int64_t)(3 + i);
  }
  y = shape_permute(b, shape_reshape(b, y, &apart), axes.at);
  return shape_reshape(b, y, &joined);
}

/** Raises if the result of a transposed convolution is or may be empty along a spatial axis. */
static void check_output_size(builder *b, size_t axis, const node *size, const node *output) {
  const node *smaller = size->lo < 1 ? size : output;
  if (smaller->lo >= 1) return;
  b->needed = ix_add_const(b->ir, smaller, -1);
  diag_raise(
      b->diag, TN_ERR_SHAPE,
      "the result %s empty along spatial axis %zu: x has size %s there, and its padding crops "
      "the rest",
      smaller->hi < 1 ? "is" : "may be", axis, size_text(b, size));
}

/** Windows of x along an axis of a transposed convolution. */
typedef struct transposed_axis {
  int64_t low, high;   /* padding of x, once dilated; negative: cropped */
  int64_t kernel;      /* size of the windows */
  int64_t first;       /* element of the interleaved phases that the result begins with */
  const node *windows; /* their number */
} transposed_axis;

/** `output`: size of the result along the axis. */
static transposed_axis transposed_axis_of(builder *b, const conv *c, size_t i, const node *output) {
  const tn_conv_desc *d = &c->d;
  int64_t phases = phases_along(c, i);
  if (phases == 1) {
    int64_t reach = d->dilation[i] * (c->kernel[i] - 1);
    return (transposed_axis){reach - d->pad_low[i], reach - d->pad_high[i] + d->output_pad[i],
                             c->kernel[i], 0, output};
  }
  int64_t skipped = d->pad_low[i] / phases; /* windows of which the padding crops all phases */
  int64_t rest = c->kernel[i] + d->output_pad[i] - d->pad_high[i] - skipped * phases;
  int64_t more = rest > 0 ? (rest + phases - 1) / phases : -(-rest / phases); /* rounded up */
  transposed_axis a = {.kernel = c->kernel[i] / phases, .first = d->pad_low[i] - skipped * phases};
  a.low = a.kernel - 1 - skipped;
  a.high = more + a.kernel - 2 - a.low;
  a.windows = ix_add_const(b->ir, c->x->dims[2 + i], more - 1);
  return a;
}

value build_conv_transpose(builder *b, value x, value w, value bias, const tn_conv_desc *desc) {
  conv c = conv_operands(b, x, w, bias, desc, true);
  const node *y = c.x, *output[MAX_SPATIAL_AXES], *windows[MAX_SPATIAL_AXES];
  int64_t ones[MAX_SPATIAL_AXES] = {1, 1, 1}, kernel[MAX_SPATIAL_AXES], first[MAX_SPATIAL_AXES];
  for (size_t i = 0; i < c.n; i++) {
    int64_t reach = c.d.dilation[i] * (c.kernel[i] - 1);
    const node *size = ix_scale(b->ir, ix_add_const(b->ir, y->dims[2 + i], -1), c.d.stride[i]);
    int64_t more = 1 + reach - c.d.pad_low[i] - c.d.pad_high[i] + c.d.output_pad[i];
    output[i] = ix_add_const(b->ir, size, more);
    check_output_size(b, i, y->dims[2 + i], output[i]);
    transposed_axis a = transposed_axis_of(b, &c, i, output[i]);
    if (phases_along(&c, i) == 1) y = dilate_axis(b, y, 2 + i, c.d.stride[i]);
    y = pad_zeros(b, y, 2 + i, a.low, a.high);
    windows[i] = a.windows;
    kernel[i] = a.kernel;
    first[i] = a.first;
  }
  y = node_windows(b, y, c.n, kernel, ones, c.d.dilation, windows);
  y = interleave_phases(b, &c, contract_windows(b, &c, y, flip_kernel(b, &c)));
  for (size_t i = 0; i < c.n; i++)
    y = shape_slice(b, y, 3 + i, ix_const(b->ir, first[i]), output[i], 1);
  return add_bias(b, &c, y);
}

/* ---- Public functions ---- */

typedef struct conv_call {
  value (*build)(builder *b, value x, value w, value bias, const tn_conv_desc *desc);
  const tn_conv_desc *desc;
} conv_call;

static value call_conv(builder *b, const value in[], size_t n, const void *options) {
  const conv_call *c = options;
  tn_conv_desc d = TN_CONV_DESC_INIT;
  (void)n;
  if (descriptor_read(b->diag, &d, c->desc, sizeof d, "tn_conv_desc") != TN_OK)
    diag_rethrow(b->diag);
  return c->build(b, in[0], in[1], in[2], &d);
}

enum { OPTIONAL_BIAS = 4 };

tn_tensor *tn_conv(tn_tensor *x, tn_tensor *w, tn_tensor *bias, const tn_conv_desc *desc) {
  return op_call("conv", (tn_tensor *[]){x, w, bias}, 3, OPTIONAL_BIAS, call_conv,
                 &(conv_call){build_conv, desc});
}

tn_tensor *tn_conv_transpose(tn_tensor *x, tn_tensor *w, tn_tensor *bias,
                             const tn_conv_desc *desc) {
  return op_call("conv_transpose", (tn_tensor *[]){x, w, bias}, 3, OPTIONAL_BIAS, call_conv,
                 &(conv_call){build_conv_transpose, desc});
}
