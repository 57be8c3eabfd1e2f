/* ONNX operators that draw random numbers, and Dropout, by the counter-based generator of
   tensor/ops. The key comes of the seed and the name of the output, so a model draws the same
   numbers in each run. */
#include "formats/onnx/ops/onnx_builders.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/type_promotion.h"

#include <string.h>

/** The key of the node's draws. Raises in the body of a loop, whose steps would draw alike. */
static uint64_t key_of(onnx_call *c, uint64_t seed) {
  uint64_t name = UINT64_C(0xcbf29ce484222325);
  if (c->m->enclosing.n || c->m->is_body)
    onnx_fail(
        c, TN_ERR_UNSUPPORTED,
        "random numbers are not supported in bodies of loops, whose steps would draw the same");
  for (const char *p = c->node->outputs.n ? c->node->outputs.at[0] : ""; *p; p++)
    name = (name ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
  return random_key(seed, name);
}

/** The key by attribute seed, a float. */
static uint64_t read_key(onnx_call *c) {
  uint32_t seed;
  float number = onnx_float_attribute(c, "seed", 0);
  memcpy(&seed, &number, sizeof seed);
  return key_of(c, seed);
}

/** Uniform numbers in 0 … 1, without 1. */
static value draw_uniform(onnx_call *c, const sizes *s, dtype t) {
  return build_rand(onnx_builder(c), read_key(c), s, t);
}

static sizes shape_attribute(onnx_call *c) {
  const onnx_ints *l = onnx_ints_attribute(c, "shape");
  sizes s = {0};
  if (l->n > SIZES_MAX_RANK) onnx_fail(c, TN_ERR_UNSUPPORTED, "the shape has %zu dimensions", l->n);
  for (size_t i = 0; i < l->n; i++) {
    if (l->at[i] < 0) onnx_fail(c, TN_ERR_SHAPE, "size %zu of the shape is negative", i);
    s.at[s.rank++] = ir_const_int(onnx_builder(c)->ir, DT_INDEX, l->at[i]);
  }
  return s;
}

static dtype read_float_type(onnx_call *c, dtype absent) {
  dtype t = onnx_dtype_attribute(c, "dtype", absent);
  if (!dtype_is_float(t))
    onnx_fail(c, TN_ERR_DTYPE, "random numbers of type %s are not supported", dtype_name(t));
  return t;
}

/** y·factor + offset, computed in f32 for 16-bit types. */
static value scale_and_move(builder *b, value y, double factor, double offset, dtype t) {
  y = build_add(b, build_mul(b, y, build_num(b, factor)), build_num(b, offset));
  return build_cast(b, y, t);
}

static void build_random_uniform(onnx_call *c, const sizes *s, dtype t) {
  double low = (double)onnx_float_attribute(c, "low", 0),
         high = (double)onnx_float_attribute(c, "high", 1);
  value y = draw_uniform(c, s, accumulation_type(t));
  c->outputs[0] = scale_and_move(onnx_builder(c), y, high - low, low, t);
}

static void build_random_normal(onnx_call *c, const sizes *s, dtype t) {
  builder *b = onnx_builder(c);
  double mean = (double)onnx_float_attribute(c, "mean", 0),
         scale = (double)onnx_float_attribute(c, "scale", 1);
  value y = build_randn(b, read_key(c), s, accumulation_type(t));
  c->outputs[0] = scale_and_move(b, y, scale, mean, t);
}

void onnx_RandomUniform(onnx_call *c) {
  sizes s = shape_attribute(c);
  build_random_uniform(c, &s, read_float_type(c, DT_F32));
}

void onnx_RandomNormal(onnx_call *c) {
  sizes s = shape_attribute(c);
  build_random_normal(c, &s, read_float_type(c, DT_F32));
}

/** The type of a result: the attribute's, or that of the input. */
static dtype type_like_input(onnx_call *c) {
  bool is_given = onnx_has_attribute(c, "dtype");
  return read_float_type(c, is_given ? DT_F32 : (dtype)onnx_input(c, 0).node->dtype);
}

void onnx_RandomUniformLike(onnx_call *c) {
  sizes s = sizes_of(onnx_input(c, 0).node);
  build_random_uniform(c, &s, type_like_input(c));
}

void onnx_RandomNormalLike(onnx_call *c) {
  sizes s = sizes_of(onnx_input(c, 0).node);
  build_random_normal(c, &s, type_like_input(c));
}

/** 1 with the probabilities of the input. */
void onnx_Bernoulli(onnx_call *c) {
  builder *b = onnx_builder(c);
  value p = onnx_input(c, 0);
  sizes s = sizes_of(p.node);
  dtype t = onnx_dtype_attribute(c, "dtype", (dtype)p.node->dtype);
  p = value_widen(b, p);
  value y = build_lt(b, draw_uniform(c, &s, (dtype)p.node->dtype), p);
  c->outputs[0] = build_cast(b, y, t);
}

/** Classes by the logarithms of their probabilities, which need not be normalised: the first class
    up to which the sum of probabilities exceeds a uniform number. */
void onnx_Multinomial(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  dtype t = onnx_dtype_attribute(c, "dtype", DT_I32);
  int64_t samples = onnx_int_attribute(c, "sample_size", 1);
  if (x.node->rank != 2)
    onnx_fail(c, TN_ERR_SHAPE, "the input has %u dimensions, expected 2", x.node->rank);
  if (samples < 1 || samples > INT32_MAX)
    onnx_fail(c, TN_ERR_FORMAT, "sample_size is %lld, not in 1 … %d", (long long)samples,
              INT32_MAX);
  if (t != DT_I32 && t != DT_I64)
    onnx_fail(c, TN_ERR_DTYPE, "classes of type %s are not supported", dtype_name(t));
  tn_axes last = {.count = 1, .axis = {2}}, middle = {.count = 1, .axis = {1}};
  value p = build_softmax(b, value_widen(b, x), 1), up_to = build_cumsum(b, p, 1);
  sizes s = {2, {x.node->dims[0], ir_const_int(b->ir, DT_INDEX, samples)}};
  value drawn = draw_uniform(c, &s, (dtype)p.node->dtype);
  value is_passed = build_ge(b, build_unsqueeze(b, drawn, last), build_unsqueeze(b, up_to, middle));
  value index = build_sum(b, build_cast(b, is_passed, DT_I64), last, false);
  value most = value_of(ir_cast(b->ir, x.node->dims[1], DT_I64));
  index = build_minimum(b, index, build_sub(b, most, build_int(b, 1)));
  c->outputs[0] = build_cast(b, index, t);
}

/* Dropout: the identity in inference; else elements are 0 with a probability, the ratio, and the
   others grow by what that takes. */

static void drop_elements(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0), zero = build_num(b, 0), one = build_num(b, 1);
  dtype t = (dtype)x.node->dtype;
  sizes s = sizes_of(x.node);
  value wide = value_widen(b, x), ratio = build_num(b, 0.5);
  if (onnx_has_input(c, 1)) ratio = build_cast(b, onnx_scalar_input(c, 1), (dtype)wide.node->dtype);
  uint64_t key = key_of(c, (uint64_t)onnx_int_attribute(c, "seed", 0));
  value mask = build_ge(b, build_rand(b, key, &s, (dtype)wide.node->dtype), ratio);
  value scale = build_div(b, one, build_sub(b, one, ratio));
  c->outputs[0] = build_cast(b, build_where(b, mask, build_mul(b, wide, scale), zero), t);
  c->outputs[1] = mask;
}

void onnx_Dropout(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  if (onnx_static_bool(c, 2, false)) {
    drop_elements(c);
    return;
  }
  sizes s = sizes_of(x.node);
  c->outputs[0] = x;
  if (c->version >= 10 && onnx_wants_output(c, 1)) c->outputs[1] = build_full(b, &s, DT_BOOL, 1);
}
