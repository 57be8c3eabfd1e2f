/* ONNX Attention (scaled dot-product, grouped-query heads, masks, windows, key-value caches) and
   RotaryEmbedding, built from matrix products and softmax; fusion makes them online softmax. */
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/type_promotion.h"

#include <math.h>

enum { BATCH, HEADS, LENGTH, WIDTH };

static const tn_axes heads_second = {.count = 4, .axis = {0, 2, 1, 3}};

/** (batch, length, heads · width) as (batch, heads, length, width). */
static value split_heads(onnx_call *c, value x, int64_t heads) {
  builder *b = onnx_builder(c);
  sizes s = sizes_of(x.node);
  const node *width = heads > 0 ? ix_floordiv(b->ir, s.at[2], ix_const(b->ir, heads)) : s.at[2];
  if (heads < 1 || ix_scale(b->ir, width, heads) != s.at[2])
    onnx_fail(c, TN_ERR_SHAPE, "%lld heads do not divide the axis of size %s", (long long)heads,
              size_text(b, s.at[2]));
  s = (sizes){.rank = 4, .at = {s.at[0], s.at[1], ix_const(b->ir, heads), width}};
  return build_permute(b, build_reshape(b, x, &s), heads_second);
}

static value join_heads(builder *b, value x) {
  x = build_permute(b, x, heads_second);
  return build_flatten(b, x, 2, 3);
}

/** Reads queries, keys or values as (batch, heads, length, width). */
static value heads_input(onnx_call *c, size_t input, const char *attribute) {
  value x = onnx_input(c, input);
  uint32_t rank = x.node->rank;
  if (rank != 3 && rank != 4)
    onnx_fail(c, TN_ERR_SHAPE, "input '%.100s' has %u dimensions, expected 3 or 4",
              c->node->inputs.at[input], rank);
  return rank == 3 ? split_heads(c, x, onnx_int_attribute(c, attribute, 0)) : x;
}

/** The mask of scores: the keys that each query attends to, and the bias of their scores. */
typedef struct score_mask {
  onnx_call *c;
  builder *b;
  const node *queries, *keys; /* their numbers */
  value offset;               /* keys before the first query: broadcasts to (batch, 1, 1, 1) */
  value allowed;              /* bool; no node: all keys */
  value bias;                 /* no node: none */
  bool may_exclude_all;       /* a query may attend to no key */
} score_mask;

/** Restricts the allowed keys by another condition. */
static void restrict_keys(score_mask *m, value condition) {
  m->allowed = m->allowed.node ? build_logical_and(m->b, m->allowed, condition) : condition;
}

/** Reshapes (batch) to (batch, 1, 1, 1). */
static value reshape_to_batch(builder *b, value x) {
  return build_unsqueeze(b, x, (tn_axes){.count = 3, .axis = {1, 2, 3}});
}

/** Pads a mask that is shorter than the keys: keys beyond its end are excluded. */
static value pad_mask(score_mask *m, value mask, bool is_bool) {
  builder *b = m->b;
  const node *n = mask.node, *zero = ix_const(b->ir, 0);
  if (!n->rank) return mask;
  const node *last = n->dims[n->rank - 1];
  bool is_short = node_is_const(last) && node_is_const(m->keys) && node_int(last) > 1 &&
                  node_int(last) < node_int(m->keys);
  if (!is_short) return mask;
  sizes low = {.rank = n->rank}, high;
  for (size_t i = 0; i < low.rank; i++) low.at[i] = zero;
  high = low;
  high.at[n->rank - 1] = ix_sub(b->ir, m->keys, last);
  value fill = is_bool ? build_int(b, 0) : build_num(b, -INFINITY);
  return build_pad(b, mask, &low, &high, TN_PAD_CONSTANT, fill);
}

static void read_mask(score_mask *m) {
  if (!onnx_has_input(m->c, 3)) return;
  value mask = onnx_input(m->c, 3);
  bool is_bool = mask.node->dtype == DT_BOOL;
  if (!is_bool && mask.node->dtype != onnx_input(m->c, 0).node->dtype)
    onnx_fail(m->c, TN_ERR_DTYPE, "the mask is %s, expected bool or %s, the type of the queries",
              dtype_name((dtype)mask.node->dtype),
              dtype_name((dtype)onnx_input(m->c, 0).node->dtype));
  mask = pad_mask(m, mask, is_bool);
  m->may_exclude_all = true;
  if (is_bool)
    restrict_keys(m, mask);
  else
    m->bias = value_widen(m->b, mask);
}

/** Reads the number of valid keys of each batch entry. */
static void read_lengths(score_mask *m) {
  builder *b = m->b;
  if (!onnx_has_input(m->c, 6)) return;
  value lengths = reshape_to_batch(b, onnx_input(m->c, 6));
  value key = build_arange(b, ix_const(b->ir, 0), m->keys, 1, DT_I64);
  restrict_keys(m, build_lt(b, key, lengths));
  m->may_exclude_all = true;
  m->offset = build_sub(b, lengths, value_of(ex_size(b, m->queries, DT_I64)));
}

/** Reads a window's size, clamped to the largest size; -1: unlimited. */
static int64_t read_window(const score_mask *m, const char *name) {
  int64_t n = onnx_int_attribute(m->c, name, -1);
  return n > ONNX_SIZE_MAX ? ONNX_SIZE_MAX : n;
}

/** Restricts keys to the causal mask and the sliding window around each query's position. */
static void restrict_to_window(score_mask *m) {
  builder *b = m->b;
  bool causal = onnx_int_attribute(m->c, "is_causal", 0) != 0;
  int64_t left = read_window(m, "left_window_size"), right = read_window(m, "right_window_size");
  if (!causal && left < 0 && right < 0) return;
  const node *zero = ix_const(b->ir, 0);
  value key = build_arange(b, zero, m->keys, 1, DT_I64);
  value position = build_arange(b, zero, m->queries, 1, DT_I64);
  position = build_unsqueeze(b, position, (tn_axes){.count = 1, .axis = {1}});
  position = build_add(b, position, m->offset);
  if (causal) restrict_keys(m, build_le(b, key, position));
  if (right >= 0) restrict_keys(m, build_le(b, key, build_add(b, position, build_int(b, right))));
  if (left >= 0) restrict_keys(m, build_le(b, build_sub(b, position, build_int(b, left)), key));
  m->may_exclude_all = m->may_exclude_all || left >= 0;
}

static value mask_scores(const score_mask *m, value scores) {
  if (m->bias.node) scores = build_add(m->b, scores, m->bias);
  return m->allowed.node ? build_where(m->b, m->allowed, scores, build_num(m->b, -INFINITY))
                         : scores;
}

/** Softmax over keys; the weights of a query without keys are 0. */
static value softmax_weights(const score_mask *m, value scores) {
  builder *b = m->b;
  dtype t = (dtype)scores.node->dtype;
  int64_t precision = onnx_int_attribute(m->c, "softmax_precision", t);
  if (precision != DT_F32 && precision != DT_F64 && precision != DT_F16 && precision != DT_BF16)
    onnx_fail(m->c, TN_ERR_FORMAT, "softmax_precision is %lld, which is not a floating-point type",
              (long long)precision);
  value w = build_cast(b, build_softmax(b, build_cast(b, scores, (dtype)precision), -1), t);
  if (!m->may_exclude_all) return w;
  tn_axes last = {.count = 1, .axis = {-1}};
  value zeros = build_full(b, &(sizes){.rank = 1, .at = {m->keys}}, t, 0);
  value any = build_gt(b, build_max(b, mask_scores(m, zeros), last, true), build_num(b, -INFINITY));
  return build_where(b, any, w, build_num(b, 0));
}

/** Appends keys or values to those of the cache. */
static value append_to_cache(onnx_call *c, size_t past, value x) {
  if (!onnx_has_input(c, past)) return x;
  return build_concat(onnx_builder(c), (value[]){onnx_input(c, past), x}, 2, LENGTH);
}

/** Repeats heads of keys or values for groups of query heads (grouped-query attention). */
static value repeat_heads(onnx_call *c, value x, const node *queries) {
  builder *b = onnx_builder(c);
  const node *heads = x.node->dims[HEADS];
  if (heads == queries) return x;
  const node *group = heads->lo > 0 ? ix_floordiv(b->ir, queries, heads) : NULL;
  if (!group || ix_mul(b->ir, group, heads) != queries)
    onnx_fail(c, TN_ERR_SHAPE, "the %s query heads are not a multiple of the %s key heads",
              size_text(b, queries), size_text(b, heads));
  return build_repeat(b, x, HEADS, group);
}

static score_mask read_score_mask(onnx_call *c, value q, value k) {
  builder *b = onnx_builder(c);
  score_mask m = {.c = c, .b = b, .queries = q.node->dims[LENGTH], .keys = k.node->dims[LENGTH]};
  if (onnx_has_input(c, 4) != onnx_has_input(c, 5) ||
      (onnx_has_input(c, 4) && onnx_has_input(c, 6)))
    onnx_fail(c, TN_ERR_FORMAT,
              "past_key and past_value must be present together, and without nonpad_kv_seqlen");
  m.offset = onnx_has_input(c, 4)
                 ? value_of(ex_size(b, onnx_input(c, 4).node->dims[LENGTH], DT_I64))
                 : build_int(b, 0);
  read_mask(&m);
  read_lengths(&m);
  restrict_to_window(&m);
  return m;
}

/** The scores: products of queries and keys, each scaled by the root of the scale as ONNX
 * specifies.
 */
static value compute_scores(onnx_call *c, value q, value k) {
  builder *b = onnx_builder(c);
  const node *width = q.node->dims[WIDTH];
  if (!node_is_const(width)) onnx_fail_varying_size(c, width, "the head size must be constant");
  double scale = onnx_has_attribute(c, "scale") ? (double)onnx_float_attribute(c, "scale", 1)
                                                : 1 / sqrt((double)node_int(width));
  value root = build_num(b, sqrt(scale));
  q = build_mul(b, q, root);
  k = build_mul(b, build_swapaxes(b, k, LENGTH, WIDTH), root);
  return build_matmul(b, q, k);
}

void onnx_Attention(onnx_call *c) {
  builder *b = onnx_builder(c);
  dtype t = (dtype)onnx_input(c, 0).node->dtype;
  value q = heads_input(c, 0, "q_num_heads");
  value keys = append_to_cache(c, 4, heads_input(c, 1, "kv_num_heads"));
  value values = append_to_cache(c, 5, heads_input(c, 2, "kv_num_heads"));
  score_mask m = read_score_mask(c, q, keys);
  const node *heads = q.node->dims[HEADS];
  value raw = compute_scores(c, value_widen(b, q), repeat_heads(c, value_widen(b, keys), heads));
  double cap = (double)onnx_float_attribute(c, "softcap", 0);
  value capped = raw;
  if (cap > 0)
    capped = build_mul(b, build_tanh(b, build_div(b, raw, build_num(b, cap))), build_num(b, cap));
  value scores = mask_scores(&m, capped), weights = softmax_weights(&m, scores);
  value y = build_matmul(b, weights, repeat_heads(c, value_widen(b, values), heads));
  if (onnx_input(c, 0).node->rank == 3) y = join_heads(b, y);
  c->outputs[0] = build_cast(b, y, t);
  if (c->n_outputs > 1) c->outputs[1] = keys;
  if (c->n_outputs > 2) c->outputs[2] = values;
  if (c->n_outputs < 4) return;
  int64_t mode = onnx_int_attribute(c, "qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3)
    onnx_fail(c, TN_ERR_FORMAT, "qk_matmul_output_mode is %lld, not in 0 … 3", (long long)mode);
  c->outputs[3] = build_cast(b, (value[]){raw, capped, scores, weights}[mode], t);
}

/* Rotary embeddings. */

/** Reads cosines or sines, (batch, length, half), or (positions, half) gathered by position ids,
   and inserts the axis of heads. */
static value read_rotation(onnx_call *c, size_t input) {
  builder *b = onnx_builder(c);
  value cache = onnx_input(c, input);
  if (onnx_has_input(c, 3)) cache = build_take(b, cache, onnx_input(c, 3), 0);
  if (cache.node->rank != 3)
    onnx_fail(c, TN_ERR_SHAPE,
              "input '%.100s', gathered by position ids, has %u dimensions, expected 3",
              c->node->inputs.at[input], cache.node->rank);
  return value_widen(b, build_unsqueeze(b, cache, (tn_axes){.count = 1, .axis = {1}}));
}

/** Slices the last axis; `stop` NULL: to its end. */
static value slice_last(builder *b, value x, int64_t start, const node *stop, int64_t step) {
  return build_slice(b, x, -1, ix_const(b->ir, start), stop, step);
}

void onnx_RotaryEmbedding(onnx_call *c) {
  builder *b = onnx_builder(c);
  dtype t = (dtype)onnx_input(c, 0).node->dtype;
  value x = value_widen(b, heads_input(c, 0, "num_heads")), parts[3];
  const node *width = x.node->dims[WIDTH];
  if (!node_is_const(width)) onnx_fail_varying_size(c, width, "the head size must be constant");
  int64_t rotated = onnx_int_attribute(c, "rotary_embedding_dim", 0);
  if (!rotated) rotated = node_int(width);
  if (rotated < 0 || rotated % 2 || rotated > node_int(width))
    onnx_fail(c, TN_ERR_SHAPE,
              "rotary_embedding_dim is %lld, not an even number of at most %lld, the head size",
              (long long)rotated, (long long)node_int(width));
  value cosine = read_rotation(c, 1), sine = read_rotation(c, 2);
  bool pairs = onnx_int_attribute(c, "interleaved", 0) != 0;
  const node *end = ix_const(b->ir, rotated), *half = ix_const(b->ir, rotated / 2);
  value one = pairs ? slice_last(b, x, 0, end, 2) : slice_last(b, x, 0, half, 1);
  value two = pairs ? slice_last(b, x, 1, end, 2) : slice_last(b, x, rotated / 2, end, 1);
  parts[0] = build_sub(b, build_mul(b, cosine, one), build_mul(b, sine, two));
  parts[1] = build_add(b, build_mul(b, sine, one), build_mul(b, cosine, two));
  value y = pairs ? build_flatten(b, build_stack(b, parts, 2, -1), -2, -1)
                  : build_concat(b, parts, 2, -1);
  if (rotated < node_int(width))
    y = build_concat(b, (value[]){y, slice_last(b, x, rotated, NULL, 1)}, 2, -1);
  if (onnx_input(c, 0).node->rank == 3) y = join_heads(b, y);
  c->outputs[0] = build_cast(b, y, t);
}
