/* Random numbers from a counter: Threefry-2x32, 20 rounds (Salmon, Moraes, Dror, Shaw: "Parallel
   random numbers: as easy as 1, 2, 3", 2011), as in JAX. Element i is a function of the key and i
   alone, so that random numbers fuse like any expression. operators.h has the formulas of rand,
   randn (Box and Muller) and randint. */
#include "ir/index/index_arithmetic.h"
#include "tensor/context/symbolic_dims.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/type_promotion.h"

#include <math.h>

enum { ROUNDS = 20, ROUNDS_PER_KEY = 4 };

static const int rotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};

/** The key schedule: the key's words and their parity. */
typedef struct schedule {
  uint32_t at[3];
} schedule;

static schedule schedule_of(uint64_t key) {
  uint32_t low = (uint32_t)key, high = (uint32_t)(key >> 32);
  return (schedule){{low, high, UINT32_C(0x1bd11bda) ^ low ^ high}};
}

/** The key word added to word `word` after n · ROUNDS_PER_KEY rounds. */
static uint32_t injected_key(const schedule *s, int n, int word) {
  return s->at[(n + word) % 3] + (word ? (uint32_t)n : 0);
}

/* ---- Threefry of numbers, to derive keys ---- */

uint64_t random_key(uint64_t seed, uint64_t counter) {
  schedule s = schedule_of(seed);
  uint32_t x[2] = {(uint32_t)counter + injected_key(&s, 0, 0),
                   (uint32_t)(counter >> 32) + injected_key(&s, 0, 1)};
  for (int i = 0; i < ROUNDS; i++) {
    x[0] += x[1];
    x[1] = (x[1] << rotations[i % 8] | x[1] >> (32 - rotations[i % 8])) ^ x[0];
    if ((i + 1) % ROUNDS_PER_KEY) continue;
    for (int w = 0; w < 2; w++) x[w] += injected_key(&s, (i + 1) / ROUNDS_PER_KEY, w);
  }
  return x[0] | (uint64_t)x[1] << 32;
}

/* ---- Threefry of nodes ---- */

/** Two words for each element, u32 of rank 1. */
typedef struct words {
  const node *at[2];
} words;

static const node *rotate_left(builder *b, const node *x, int bits) {
  const node *left = ex_binary(b, OP_SHL, x, ex_int(b, x, bits));
  return ex_binary(b, OP_OR, left, ex_binary(b, OP_SHR, x, ex_int(b, x, 32 - bits)));
}

static void inject_key(builder *b, words *x, const schedule *s, int n) {
  for (int w = 0; w < 2; w++)
    x->at[w] = ex_binary(b, OP_ADD, x->at[w], ex_int(b, x->at[w], injected_key(s, n, w)));
}

/** The counter: the row-major index of each element, in two words. */
static words counter_of(builder *b, const sizes *shape) {
  const node *size = ix_const(b->ir, 1);
  for (size_t i = 0; i < shape->rank; i++) size = ix_mul(b->ir, size, shape->at[i]);
  sizes flat = {.rank = 1, .at = {size}};
  const node *i = ex_iota(b, DT_I64, &flat, 0);
  words x = {{ex_cast(b, i, DT_U32), NULL}};
  bool small = size->hi <= INT64_C(1) << 32;
  x.at[1] =
      small ? ex_int(b, x.at[0], 0) : ex_cast(b, ex_binary(b, OP_SHR, i, ex_int(b, i, 32)), DT_U32);
  return x;
}

static words random_words(builder *b, uint64_t key, const sizes *shape) {
  schedule s = schedule_of(key);
  words x = counter_of(b, shape);
  inject_key(b, &x, &s, 0);
  for (int i = 0; i < ROUNDS; i++) {
    x.at[0] = ex_binary(b, OP_ADD, x.at[0], x.at[1]);
    x.at[1] = ex_binary(b, OP_XOR, rotate_left(b, x.at[1], rotations[i % 8]), x.at[0]);
    if ((i + 1) % ROUNDS_PER_KEY == 0) inject_key(b, &x, &s, (i + 1) / ROUNDS_PER_KEY);
  }
  return x;
}

/** The upper 64 bits of the product of x (two words, the lower one first) and a number, in halves
    of 32 bits: none of the sums overflows 64. */
static const node *multiply_high(builder *b, const words *x, uint64_t by) {
  const node *low = ex_cast(b, x->at[0], DT_U64), *high = ex_cast(b, x->at[1], DT_U64);
  const node *by_low = ex_int(b, low, (int64_t)(by & UINT32_MAX));
  const node *by_high = ex_int(b, low, (int64_t)(by >> 32)), *shift = ex_int(b, low, 32);
  const node *lowest = ex_binary(b, OP_SHR, ex_binary(b, OP_MUL, low, by_low), shift);
  const node *middle = ex_binary(b, OP_ADD, ex_binary(b, OP_MUL, high, by_low), lowest);
  const node *rest = ex_binary(b, OP_AND, middle, ex_int(b, low, UINT32_MAX));
  rest =
      ex_binary(b, OP_SHR, ex_binary(b, OP_ADD, ex_binary(b, OP_MUL, low, by_high), rest), shift);
  const node *top = ex_binary(b, OP_ADD, ex_binary(b, OP_MUL, high, by_high),
                              ex_binary(b, OP_SHR, middle, shift));
  return ex_binary(b, OP_ADD, top, rest);
}

/** The two words as one of 64 bits, the lower one first. */
static const node *join_words(builder *b, const words *x) {
  const node *low = ex_cast(b, x->at[0], DT_U64), *high = ex_cast(b, x->at[1], DT_U64);
  return ex_binary(b, OP_OR, ex_binary(b, OP_SHL, high, ex_int(b, high, 32)), low);
}

/* ---- Distributions ---- */

static void check_float(builder *b, dtype t) {
  if (!dtype_is_float(t))
    diag_raise(b->diag, TN_ERR_DTYPE, "type %s is not supported, only floats are", dtype_name(t));
}

value build_rand(builder *b, uint64_t key, const sizes *shape, dtype t) {
  check_float(b, t);
  words w = random_words(b, key, shape);
  int bits = dtype_facts_of((int)t)->mantissa_bits + 1;
  const node *n = bits > 32 ? join_words(b, &w) : w.at[0];
  n = ex_binary(b, OP_SHR, n, ex_int(b, n, dtype_bits((dtype)n->dtype) - bits));
  n = ex_binary_num(b, OP_MUL, ex_cast(b, n, accumulation_type(t)), ldexp(1, -bits));
  return value_of(shape_reshape(b, ex_cast(b, n, t), shape));
}

value build_randn(builder *b, uint64_t key, const sizes *shape, dtype t) {
  check_float(b, t);
  words w = random_words(b, key, shape);
  const node *u = ex_cast(b, w.at[0], accumulation_type(t)),
             *v = ex_cast(b, w.at[1], accumulation_type(t));
  u = ex_binary_num(b, OP_MUL, ex_binary_num(b, OP_ADD, u, 0.5), 0x1p-32);
  const node *r = ex_unary(b, OP_SQRT, ex_binary_num(b, OP_MUL, ex_unary(b, OP_LOG, u), -2));
  const node *angle = ex_binary_num(b, OP_MUL, v, 6.28318530717958647693 * 0x1p-32);
  const node *y = ex_binary(b, OP_MUL, r, ex_unary(b, OP_COS, angle));
  return value_of(shape_reshape(b, ex_cast(b, y, t), shape));
}

value build_randint(builder *b, uint64_t key, const sizes *shape, dtype t, int64_t low,
                    int64_t high) {
  if (!dtype_is_int(t))
    diag_raise(b->diag, TN_ERR_DTYPE, "type %s is not supported, only integers are", dtype_name(t));
  if (low >= high || low < dtype_min(t) || high - 1 > dtype_max(t))
    diag_raise(
        b->diag, TN_ERR_ARGUMENT,
        "low is %lld and high is %lld: low must be less than high, and %s must hold both low "
        "and high − 1",
        (long long)low, (long long)high, dtype_name(t));
  words w = random_words(b, key, shape);
  const node *n = multiply_high(b, &w, (uint64_t)high - (uint64_t)low);
  sizes s = sizes_of(n);
  n = ex_binary(b, OP_ADD, n, ex_fill(b, ir_const_bits(b->ir, DT_U64, (uint64_t)low), &s));
  return value_of(shape_reshape(b, ex_cast(b, n, t), shape));
}

/* ---- Public functions ---- */

typedef struct random_call {
  tn_shape shape;
  tn_dtype dtype;
  int64_t low, high;
} random_call;

static uint64_t next_key(builder *b) {
  uint64_t seed, n = context_next_random(b, &seed);
  return random_key(seed, n);
}

static value call_rand(builder *b, const value in[], size_t n, const void *options) {
  const random_call *c = options;
  sizes s = sizes_from(b, c->shape, false);
  (void)in;
  (void)n;
  return build_rand(b, next_key(b), &s, dims_check_dtype(b, c->dtype));
}

static value call_randn(builder *b, const value in[], size_t n, const void *options) {
  const random_call *c = options;
  sizes s = sizes_from(b, c->shape, false);
  (void)in;
  (void)n;
  return build_randn(b, next_key(b), &s, dims_check_dtype(b, c->dtype));
}

static value call_randint(builder *b, const value in[], size_t n, const void *options) {
  const random_call *c = options;
  sizes s = sizes_from(b, c->shape, false);
  (void)in;
  (void)n;
  return build_randint(b, next_key(b), &s, dims_check_dtype(b, c->dtype), c->low, c->high);
}

tn_tensor *tn_rand(tn_context *context, tn_shape shape, tn_dtype dtype) {
  return op_call_in(context, "rand", call_rand, &(random_call){shape, dtype, 0, 0});
}

tn_tensor *tn_randn(tn_context *context, tn_shape shape, tn_dtype dtype) {
  return op_call_in(context, "randn", call_randn, &(random_call){shape, dtype, 0, 0});
}

tn_tensor *tn_randint(tn_context *context, tn_shape shape, tn_dtype dtype, int64_t low,
                      int64_t high) {
  return op_call_in(context, "randint", call_randint, &(random_call){shape, dtype, low, high});
}
