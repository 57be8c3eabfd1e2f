/* ONNX LinearAttention: a loop over positions whose state is a matrix of keys by values for each
   head. A step decays the state, corrects the value by what the state holds for its key (the delta
   rule), adds the product of key and value, and reads by the query. Query heads of one group share
   a key's head. States are f32. */
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/operators.h"

#include <math.h>
#include <string.h>

enum { QUERY, KEY, VALUE, PAST, DECAY, BETA };

typedef struct linear_attention {
  onnx_call *c;
  builder *b;
  int64_t heads, group;              /* of keys; queries for each */
  const node *batch, *keys, *values; /* sizes; of a key and of a value */
  bool decays, corrects;
} linear_attention;

static int64_t read_heads(onnx_call *c, const char *name) {
  int64_t n = onnx_int_attribute(c, name, 0);
  if (n < 1 || n > INT32_MAX) onnx_fail(c, TN_ERR_FORMAT, "%s is %lld", name, (long long)n);
  return n;
}

/** The size of each head where the last axis holds `heads` of them. */
static const node *head_size(onnx_call *c, size_t input, int64_t heads) {
  const node *x = onnx_input(c, input).node;
  if (x->rank != 3)
    onnx_fail(c, TN_ERR_SHAPE, "input %zu has %u dimensions, expected 3", input, x->rank);
  if (!node_is_const(x->dims[2]) || node_int(x->dims[2]) % heads)
    onnx_fail(c, TN_ERR_SHAPE, "the last size of input %zu is not a multiple of %lld heads", input,
              (long long)heads);
  return ix_const(onnx_builder(c)->ir, node_int(x->dims[2]) / heads);
}

/** An input as (positions, batch, heads, size) in f32. */
static value by_position(const linear_attention *l, size_t input, int64_t heads) {
  builder *b = l->b;
  const node *size = head_size(l->c, input, heads);
  value x = build_cast(b, onnx_input(l->c, input), DT_F32);
  sizes s = {.rank = 4, .at = {x.node->dims[0], x.node->dims[1], ix_const(b->ir, heads), size}};
  return build_permute(b, build_reshape(b, x, &s), (tn_axes){.count = 4, .axis = {1, 0, 2, 3}});
}

/** Decay for each head, or for each element of its keys. */
static value read_decay(const linear_attention *l) {
  value g = by_position(l, DECAY, l->heads);
  if (!node_is_bits(g.node->dims[3], 1) && g.node->dims[3] != l->keys)
    onnx_fail(l->c, TN_ERR_SHAPE, "the decay has neither a number for each head nor for each key");
  return build_exp(l->b, g);
}

static value read_beta(const linear_attention *l) {
  const node *x = onnx_input(l->c, BETA).node;
  bool is_one = x->rank == 3 && node_is_bits(x->dims[2], 1);
  value beta = by_position(l, BETA, is_one ? 1 : l->heads);
  if (!node_is_bits(beta.node->dims[3], 1))
    onnx_fail(l->c, TN_ERR_SHAPE, "beta has not one number for each head");
  return beta;
}

static linear_attention read_attention(onnx_call *c) {
  linear_attention l = {.c = c, .b = onnx_builder(c), .heads = read_heads(c, "kv_num_heads")};
  int64_t queries = read_heads(c, "q_num_heads");
  const char *rule = onnx_string_attribute(c, "update_rule", "gated_delta");
  l.corrects = !strcmp(rule, "delta") || !strcmp(rule, "gated_delta");
  l.decays = !strcmp(rule, "gated") || !strcmp(rule, "gated_delta");
  if (!l.corrects && !l.decays && strcmp(rule, "linear"))
    onnx_fail(c, TN_ERR_FORMAT, "update_rule is '%.50s', not linear, gated, delta or gated_delta",
              rule);
  if (queries % l.heads) onnx_fail(c, TN_ERR_FORMAT, "q_num_heads is no multiple of kv_num_heads");
  if (onnx_has_input(c, DECAY) != l.decays || onnx_has_input(c, BETA) != l.corrects)
    onnx_fail(c, TN_ERR_FORMAT, "decay or beta do not fit update_rule '%.50s'", rule);
  l.group = queries / l.heads;
  l.batch = onnx_input(c, QUERY).node->dims[0];
  l.keys = head_size(c, KEY, l.heads);
  l.values = head_size(c, VALUE, l.heads);
  if (head_size(c, QUERY, queries) != l.keys)
    onnx_fail(c, TN_ERR_SHAPE, "queries and keys have different sizes");
  return l;
}

static value first_state(const linear_attention *l) {
  builder *b = l->b;
  sizes s = {.rank = 4, .at = {l->batch, ix_const(b->ir, l->heads), l->keys, l->values}};
  if (!onnx_has_input(l->c, PAST)) return build_full(b, &s, DT_F32, 0);
  return build_expand(b, build_cast(b, onnx_input(l->c, PAST), DT_F32), &s);
}

static value add_axis(builder *b, value x, int32_t axis) {
  return build_unsqueeze(b, x, (tn_axes){.count = 1, .axis = {axis}});
}

/** The scale of queries: 0 stands for that of the key's size. */
static value read_scale(const linear_attention *l) {
  double scale = (double)onnx_float_attribute(l->c, "scale", 0);
  return build_num(l->b, scale != 0 ? scale : 1 / sqrt((double)node_int(l->keys)));
}

void onnx_LinearAttention(onnx_call *c) {
  linear_attention l = read_attention(c);
  builder *b = l.b;
  const node *positions = onnx_input(c, QUERY).node->dims[1];
  value q = by_position(&l, QUERY, l.heads * l.group), k = by_position(&l, KEY, l.heads),
        v = by_position(&l, VALUE, l.heads), init = first_state(&l), decay = {0}, beta = {0};
  if (l.decays) decay = read_decay(&l);
  if (l.corrects) beta = read_beta(&l);
  const node *range = onnx_loop_range(c, positions), *i = build_loop_index(b, range, false);
  value state = build_loop_state(b, range, 0, init);
  value key = add_axis(b, build_loop_entry(b, k, i), 3), of_key = build_loop_entry(b, v, i);
  if (l.decays) state = build_mul(b, state, add_axis(b, build_loop_entry(b, decay, i), 3));
  if (l.corrects) {
    tn_axes keys = {.count = 1, .axis = {2}};
    value held = build_sum(b, build_mul(b, state, key), keys, false);
    of_key = build_mul(b, build_loop_entry(b, beta, i), build_sub(b, of_key, held));
  }
  state = build_add(b, state, build_mul(b, key, add_axis(b, of_key, 2)));
  sizes grouped = {.rank = 4,
                   .at = {l.batch, ix_const(b->ir, l.heads), ix_const(b->ir, l.group), l.keys}};
  value queries = build_reshape(b, build_loop_entry(b, q, i), &grouped);
  value read = build_mul(b, build_matmul(b, queries, state), read_scale(&l));
  value out[2];
  build_loop(b, range, &init, &state, 1, &read, &i, 1, out);
  value y = build_permute(b, out[1], (tn_axes){.count = 5, .axis = {1, 0, 2, 3, 4}});
  sizes flat = {.rank = 3,
                .at = {l.batch, positions, ix_scale(b->ir, l.values, l.heads * l.group)}};
  dtype t = (dtype)onnx_input(c, QUERY).node->dtype;
  c->outputs[0] = build_cast(b, build_reshape(b, y, &flat), t);
  c->outputs[1] =
      build_cast(b, out[0], onnx_has_input(c, PAST) ? (dtype)onnx_input(c, PAST).node->dtype : t);
}
