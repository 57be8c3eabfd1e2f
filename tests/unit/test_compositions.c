/* Tests fusion on compositions that networks are made of, at the sizes they have there: the kernels
   of each plan, and the bytes these move (each byte of an array that a kernel reads or writes,
   once). The least was derived by hand: one kernel per pass that needs all of another's result;
   inputs read once, results written once. Where the cost model leads to more, the row says why.
   Runs on a device that computes nothing and is the same on every machine. */
#include <tenon/tenon.h>

#include "support/tensor_check.h"

#include <math.h>

enum { MOST_PORTS = 16 };

/** A composition under construction. */
typedef struct building {
  tn_context *c;
  tn_tensor *out[MOST_PORTS];
  size_t n_out, n_in;
  tn_type in[MOST_PORTS];
} building;

/* Shorthands for the table's rows. */

static tn_tensor *input_of(building *b, tn_shape shape, tn_dtype dtype) {
  char name[24];
  snprintf(name, sizeof name, "%zu", b->n_in);
  tn_tensor *x = tn_input(b->c, name, shape, dtype);
  b->in[b->n_in++] = tn_type_of(x);
  return x;
}

#define IN(...)          input_of(b, tn_shape(__VA_ARGS__), TN_F32)
#define IN_AS(type, ...) input_of(b, tn_shape(__VA_ARGS__), TN_##type)
#define STATE(...)       tn_state(tn_zeros(b->c, tn_shape(__VA_ARGS__), TN_F32))

static void give(building *b, tn_tensor *x) { b->out[b->n_out++] = x; }
static tn_tensor *number(building *b, double x) { return tn_num(b->c, x); }
static tn_tensor *times(building *b, tn_tensor *x, double by) { return tn_mul(x, number(b, by)); }
static tn_tensor *plus(building *b, tn_tensor *x, double y) { return tn_add(x, number(b, y)); }
static tn_tensor *linear(tn_tensor *x, tn_tensor *w, tn_tensor *bias) {
  return tn_add(tn_matmul(x, w), bias);
}
static tn_tensor *row_sum(tn_tensor *x) { return tn_sum(x, tn_axes(-1), true); }
static tn_tensor *row_mean(tn_tensor *x) { return tn_mean(x, tn_axes(-1), true); }
static tn_tensor *turned(tn_tensor *x) { return tn_swapaxes(x, -1, -2); }
static tn_tensor *part(tn_tensor *x, int axis, int64_t from, int64_t to) {
  return tn_slice(x, axis, from, to, 1);
}

/** Returns row and column numbers as tensors that broadcast. */
static tn_tensor *row_numbers(building *b, int64_t n) {
  return tn_reshape(tn_arange(b->c, 0, n, 1, TN_I32), tn_shape(n, 1));
}
static tn_tensor *column_numbers(building *b, int64_t n) {
  return tn_arange(b->c, 0, n, 1, TN_I32);
}

static tn_tensor *masked(building *b, tn_tensor *scores, tn_tensor *allowed) {
  return tn_where(allowed, scores, number(b, -INFINITY));
}

/** Attention with 12 heads, 512 steps and a width of 64; scores of the first two. */
enum { HEADS = 12, STEPS = 512, WIDTH = 64 };

static tn_tensor *head_input(building *b) { return IN(HEADS, STEPS, WIDTH); }
static tn_tensor *scores_of(building *b, tn_tensor *q, tn_tensor *k) {
  return times(b, tn_matmul(q, turned(k)), 0.125);
}
static tn_tensor *attended(tn_tensor *scores, tn_tensor *v) {
  return tn_matmul(tn_softmax(scores, -1), v);
}

static void polynomial(building *b) {
  tn_tensor *x = IN(1 << 20), *y = number(b, 0.5);
  for (int i = 1; i < 6; i++) y = plus(b, tn_mul(y, x), 1.0 / i);
  give(b, y);
}

static void product_of_complex_numbers(building *b) {
  tn_tensor *x = IN(4096, 256), *y = IN(4096, 256), *u = IN(4096, 256), *v = IN(4096, 256);
  give(b, tn_sub(tn_mul(x, u), tn_mul(y, v)));
  give(b, tn_add(tn_mul(x, v), tn_mul(y, u)));
}

static void rotary_embedding(building *b) {
  tn_tensor *x = head_input(b), *cosine = IN(STEPS, WIDTH / 2), *sine = IN(STEPS, WIDTH / 2);
  tn_tensor *low = part(x, -1, 0, WIDTH / 2), *high = part(x, -1, WIDTH / 2, WIDTH);
  tn_tensor *turns[] = {tn_sub(tn_mul(low, cosine), tn_mul(high, sine)),
                        tn_add(tn_mul(high, cosine), tn_mul(low, sine))};
  give(b, tn_concat(turns, 2, -1));
}

static void differences(building *b) {
  tn_tensor *x = IN(512, 4096);
  give(b, tn_sub(part(x, 1, 1, 4096), part(x, 1, 0, 4095)));
}

static void laplacian(building *b) {
  tn_tensor *x = IN(1024, 1024), *y = times(b, x, -4);
  for (int axis = 0; axis < 2; axis++)
    for (int side = 0; side < 2; side++) { /* with a row or column cut off */
      tn_shape pads[2] = {tn_shape(0, 0), tn_shape(0, 0)};
      pads[side].size[axis] = 1;
      tn_tensor *near = side ? part(x, axis, 1, 1024) : part(x, axis, 0, 1023);
      y = tn_add(y, tn_pad(near, pads[0], pads[1], TN_PAD_CONSTANT, 0));
    }
  give(b, y);
}

static void pixel_shuffle_and_add(building *b) {
  tn_tensor *x = tn_reshape(IN(1, 256, 64, 64), tn_shape(1, 64, 2, 2, 64, 64));
  x = tn_reshape(tn_permute(x, tn_axes(0, 1, 4, 2, 5, 3)), tn_shape(1, 64, 128, 128));
  give(b, tn_add(x, IN(1, 64, 128, 128)));
}

static void upsampling_beside_a_shortcut(building *b) {
  tn_tensor *x = tn_repeat(tn_repeat(IN(1, 64, 32, 32), 2, 2), 3, 2);
  tn_tensor *both[] = {x, IN(1, 64, 64, 64)};
  give(b, tn_relu(tn_concat(both, 2, 1)));
}

static void reversed_and_rolled(building *b) {
  give(b, tn_roll(tn_flip(IN(512, 1024), tn_axes(1)), 1, 100));
}

static void positions_by_sines(building *b) {
  tn_tensor *rate = tn_exp2(times(b, tn_cast(column_numbers(b, 128), TN_F32), -0.1));
  tn_tensor *angle = tn_mul(tn_cast(row_numbers(b, STEPS), TN_F32), rate);
  tn_tensor *both[] = {tn_sin(angle), tn_cos(angle)};
  give(b, tn_concat(both, 2, 1));
}

static void kronecker_product(building *b) {
  tn_tensor *x = tn_reshape(IN(32, 32), tn_shape(32, 1, 32, 1));
  tn_tensor *y = tn_reshape(IN(32, 32), tn_shape(1, 32, 1, 32));
  give(b, tn_reshape(tn_mul(x, y), tn_shape(1024, 1024)));
}

static void quantisation(building *b) {
  tn_tensor *q = plus(b, tn_round(times(b, IN(1024, 1024), 50)), 128);
  give(b, tn_cast(tn_clip(q, number(b, 0), number(b, 255)), TN_U8));
}

static void softmax_of_masked_scores(building *b) {
  tn_tensor *x = times(b, IN(4096, 1024), 0.7);
  give(b, tn_softmax(masked(b, x, IN_AS(BOOL, 1024)), -1));
}

static void log_softmax(building *b) { give(b, tn_log_softmax(IN(4096, 1024), -1)); }

static void softmax_over_columns(building *b) { give(b, tn_softmax(IN(1024, 512), 0)); }

static void sum_before_a_layer_norm(building *b) {
  tn_tensor *x = tn_add(IN(4096, 1024), IN(4096, 1024));
  give(b, x);
  give(b, tn_layer_norm(x, IN(1024), IN(1024), -1, 1e-5));
}

static void sum_before_an_rms_norm(building *b) {
  tn_tensor *x = tn_add(IN(4096, 1024), IN(4096, 1024));
  give(b, tn_rms_norm(x, IN(1024), -1, 1e-5));
}

static void unit_rows(building *b) {
  tn_tensor *x = IN(4096, 1024);
  give(b, tn_div(x, plus(b, tn_sqrt(row_sum(tn_square(x))), 1e-6)));
}

static void cosine_similarity(building *b) {
  tn_tensor *x = IN(4096, 256), *y = IN(4096, 256);
  tn_tensor *norms = tn_mul(row_sum(tn_square(x)), row_sum(tn_square(y)));
  give(b, tn_mul(row_sum(tn_mul(x, y)), tn_rsqrt(plus(b, norms, 1e-8))));
}

static void least_mean_and_largest(building *b) {
  tn_tensor *x = IN(4096, 1024);
  give(b, tn_min(x, tn_axes(1), false));
  give(b, tn_mean(x, tn_axes(1), false));
  give(b, tn_max(x, tn_axes(1), false));
}

static void what_exceeds_the_mean(building *b) {
  tn_tensor *x = IN(4096, 1024);
  give(b, tn_where(tn_gt(x, row_mean(x)), x, number(b, 0)));
}

static void quantisation_by_the_largest_of_a_row(building *b) {
  tn_tensor *x = IN(4096, 1024);
  tn_tensor *scale = times(b, plus(b, tn_max(tn_abs(x), tn_axes(1), true), 1e-9), 1.0 / 127);
  give(b, tn_cast(tn_round(tn_div(x, scale)), TN_I8));
  give(b, scale);
}

static void standard_columns(building *b) {
  tn_tensor *x = IN(1024, 512);
  tn_tensor *centred = tn_sub(x, tn_mean(x, tn_axes(0), true));
  give(b, tn_div(centred, plus(b, tn_std(x, tn_axes(0), 0, true), 1e-6)));
}

static void running_sum(building *b) { give(b, tn_cumsum(IN(512, 1024), 1)); }

static void cross_entropy_of_rows(building *b) {
  tn_tensor *x = IN(4096, 1000), *label = IN_AS(I64, 4096, 1);
  tn_tensor *of_label = tn_gather_elements(x, label, 1);
  give(b, tn_sub(tn_logsumexp(x, tn_axes(1), true), of_label));
}

static void mean_cross_entropy(building *b) {
  tn_tensor *x = IN(4096, 1000), *label = IN_AS(I64, 4096, 1);
  tn_tensor *of_label = tn_gather_elements(x, label, 1);
  give(b, tn_mean(tn_sub(tn_logsumexp(x, tn_axes(1), true), of_label), TN_ALL, false));
}

static void accuracy(building *b) {
  tn_tensor *best = tn_argmax(IN(4096, 1000), 1, false);
  tn_tensor *hit = tn_cast(tn_eq(best, IN_AS(I64, 4096)), TN_F32);
  give(b, tn_mean(hit, TN_ALL, false));
}

static void histogram(building *b) {
  tn_tensor *value = tn_reshape(tn_arange(b->c, 0, 256, 1, TN_U8), tn_shape(256, 1));
  tn_tensor *hit = tn_cast(tn_eq(IN_AS(U8, 65536), value), TN_I64);
  give(b, tn_sum(hit, tn_axes(1), false));
}

static void sums_of_rows_and_of_columns(building *b) {
  tn_tensor *x = IN(1024, 1024);
  give(b, tn_sum(x, tn_axes(0), false));
  give(b, tn_sum(x, tn_axes(1), false));
}

static void sum_above_the_diagonal(building *b) {
  give(b, tn_sum(tn_triu(IN(1024, 1024), 1), tn_axes(1), false));
}

static void embedding_position_and_layer_norm(building *b) {
  tn_tensor *x = tn_take(IN(30000, 768), IN_AS(I64, STEPS), 0);
  x = tn_add(x, IN(STEPS, 768));
  give(b, tn_layer_norm(x, IN(768), IN(768), -1, 1e-5));
}

static void group_norm_and_silu(building *b) {
  give(b, tn_silu(tn_group_norm(IN(1, 64, 64, 64), IN(64), IN(64), 8, 1e-5)));
}

static void instance_norm_and_shortcut(building *b) {
  tn_tensor *x = tn_instance_norm(IN(1, 64, 64, 64), IN(64), IN(64), 1e-5);
  give(b, tn_relu(tn_add(x, IN(1, 64, 64, 64))));
}

static void mean_of_a_channel(building *b) {
  give(b, tn_global_avg_pool(tn_relu(IN(32, 256, 7, 7))));
}

static void convolution_with_shortcut(building *b) {
  tn_conv_desc d = TN_CONV_DESC_INIT;
  d.pad_low[0] = d.pad_low[1] = d.pad_high[0] = d.pad_high[1] = 1;

  tn_tensor *x = IN(1, 64, 56, 56);
  x = tn_conv(x, IN(64, 64, 3, 3), IN(64), &d);
  give(b, tn_relu(tn_add(x, IN(1, 64, 56, 56))));
}

static void depthwise_convolution(building *b) {
  tn_conv_desc d = TN_CONV_DESC_INIT;
  d.pad_low[0] = d.pad_low[1] = d.pad_high[0] = d.pad_high[1] = 1;

  d.groups = 96;
  give(b, tn_relu6(tn_conv(IN(1, 96, 56, 56), IN(96, 1, 3, 3), IN(96), &d)));
}

static void gated_expansion(building *b) {
  tn_conv_desc d = TN_CONV_DESC_INIT;
  tn_tensor *x = tn_silu(tn_conv(IN(1, 16, 56, 56), IN(96, 16, 1, 1), IN(96), &d));
  d.pad_low[0] = d.pad_low[1] = d.pad_high[0] = d.pad_high[1] = 1;
  d.groups = 96;
  give(b, tn_conv(x, IN(96, 1, 3, 3), NULL, &d));
}

static void convolution_of_joined_channels(building *b) {
  tn_conv_desc d = TN_CONV_DESC_INIT;
  tn_tensor *parts[] = {IN(1, 64, 28, 28), IN(1, 32, 28, 28)};
  give(b, tn_conv(tn_relu(tn_concat(parts, 2, 1)), IN(128, 96, 1, 1), NULL, &d));
}

static void two_convolutions_of_one_image(building *b) {
  tn_conv_desc d = TN_CONV_DESC_INIT;
  tn_tensor *x = IN(1, 64, 28, 28);
  give(b, tn_conv(x, IN(32, 64, 1, 1), NULL, &d));
  give(b, tn_conv(x, IN(32, 64, 1, 1), NULL, &d));
}

static void convolution_and_pooling(building *b) {
  tn_conv_desc d = TN_CONV_DESC_INIT;
  d.pad_low[0] = d.pad_low[1] = d.pad_high[0] = d.pad_high[1] = 1;

  tn_pool_desc p = TN_POOL_DESC_INIT;
  p.kernel[0] = p.kernel[1] = 2;
  tn_tensor *x = tn_relu(tn_conv(IN(1, 64, 56, 56), IN(64, 64, 3, 3), NULL, &d));
  give(b, tn_max_pool(x, &p));
}

static void weights_of_channels(building *b) {
  tn_tensor *x = IN(1, 256, 14, 14), *s = tn_reshape(tn_global_avg_pool(x), tn_shape(1, 256));
  s = tn_sigmoid(tn_matmul(tn_relu(tn_matmul(s, IN(256, 16))), IN(16, 256)));
  give(b, tn_mul(x, tn_reshape(s, tn_shape(1, 256, 1, 1))));
}

static void gated_product(building *b) {
  tn_tensor *x = IN(STEPS, 1024);
  tn_tensor *gate = tn_silu(tn_matmul(x, IN(1024, 2048)));
  give(b, tn_mul(gate, tn_matmul(x, IN(1024, 2048))));
}

static void two_layers(building *b) {
  tn_tensor *x = tn_gelu(linear(IN(STEPS, 512), IN(512, 2048), IN(2048)));
  give(b, linear(x, IN(2048, 512), IN(512)));
}

static void gradient_of_weights(building *b) {
  give(b, tn_matmul(turned(IN(STEPS, 256)), IN(STEPS, 512)));
}

static void three_projections(building *b) {
  tn_tensor *x =
      tn_reshape(linear(IN(STEPS, 768), IN(768, 2304), IN(2304)), tn_shape(STEPS, 3, HEADS, WIDTH));
  for (int i = 0; i < 3; i++) {
    tn_tensor *y = tn_reshape(part(x, 1, i, i + 1), tn_shape(STEPS, HEADS, WIDTH));
    give(b, tn_permute(y, tn_axes(1, 0, 2)));
  }
}

static void squared_distances(building *b) {
  tn_tensor *x = IN(1024, 64), *y = IN(512, 64);
  tn_tensor *both = times(b, tn_matmul(x, turned(y)), -2);
  tn_tensor *of_y = tn_sum(tn_square(y), tn_axes(1), false);
  give(b, tn_add(tn_add(both, row_sum(tn_square(x))), of_y));
}

static void bilinear_form(building *b) {
  tn_tensor *x = IN(1024, 128), *y = IN(1024, 128);
  give(b, row_sum(tn_mul(tn_matmul(x, IN(128, 128)), y)));
}

static void choice_of_experts(building *b) {
  give(b, tn_softmax(tn_matmul(IN(4096, 256), IN(256, 8)), -1));
}

static void product_of_quantised_numbers(building *b) {
  tn_tensor *x = tn_cast(IN_AS(U8, 512, 512), TN_I32), *w = tn_cast(IN_AS(I8, 512, 512), TN_I32);
  tn_tensor *y = tn_matmul(tn_sub(x, tn_int(b->c, 128)), w);
  y = plus(b, tn_round(tn_mul(tn_cast(y, TN_F32), IN(512))), 128);
  give(b, tn_cast(tn_clip(y, number(b, 0), number(b, 255)), TN_U8));
}

static void product_of_weights_in_bytes(building *b) {
  tn_tensor *w = tn_mul(tn_cast(IN_AS(I8, 1024, 1024), TN_F32), IN(1024));
  give(b, tn_matmul(IN(16, 1024), w));
}

static void covariance(building *b) {
  tn_tensor *x = IN(2048, 128), *centred = tn_sub(x, tn_mean(x, tn_axes(0), true));
  give(b, times(b, tn_matmul(turned(centred), centred), 1.0 / 2047));
}

static void adapter_of_low_rank(building *b) {
  tn_tensor *x = IN(STEPS, 768), *wide = tn_matmul(x, IN(768, 768));
  tn_tensor *narrow = tn_matmul(tn_matmul(x, IN(768, 8)), IN(8, 768));
  give(b, tn_add(wide, times(b, narrow, 2)));
}

static void cell_with_gates(building *b) {
  tn_tensor *x = IN(32, 256), *h = IN(32, 256), *c = IN(32, 256), *g[4];
  tn_tensor *all = tn_add(linear(x, IN(256, 1024), IN(1024)), tn_matmul(h, IN(256, 1024)));
  for (int i = 0; i < 4; i++) g[i] = part(all, 1, i * 256, i * 256 + 256);
  c = tn_add(tn_mul(tn_sigmoid(g[0]), c), tn_mul(tn_sigmoid(g[1]), tn_tanh(g[2])));
  give(b, c);
  give(b, tn_mul(tn_sigmoid(g[3]), tn_tanh(c)));
}

static void attention_to_what_came_before(building *b) {
  tn_tensor *q = head_input(b), *k = head_input(b), *v = head_input(b);
  tn_tensor *allowed = tn_ge(row_numbers(b, STEPS), column_numbers(b, STEPS));
  give(b, attended(masked(b, scores_of(b, q, k), allowed), v));
}

static void attention_in_a_window(building *b) {
  tn_tensor *q = head_input(b), *k = head_input(b), *v = head_input(b);
  tn_tensor *back = tn_sub(row_numbers(b, STEPS), column_numbers(b, STEPS));
  tn_tensor *allowed = tn_logical_and(tn_ge(back, tn_int(b->c, 0)), tn_lt(back, tn_int(b->c, 64)));
  give(b, attended(masked(b, scores_of(b, q, k), allowed), v));
}

static void attention_with_slopes(building *b) {
  tn_tensor *q = head_input(b), *k = head_input(b), *v = head_input(b);
  tn_tensor *back = tn_sub(row_numbers(b, STEPS), column_numbers(b, STEPS));
  tn_tensor *bias = tn_mul(tn_reshape(IN(HEADS), tn_shape(HEADS, 1, 1)), tn_cast(back, TN_F32));
  give(b, attended(tn_sub(scores_of(b, q, k), bias), v));
}

static void attention_of_groups_of_heads(building *b) {
  tn_tensor *q = tn_reshape(head_input(b), tn_shape(4, 3, STEPS, WIDTH));
  tn_tensor *k = tn_reshape(IN(4, STEPS, WIDTH), tn_shape(4, 1, STEPS, WIDTH));
  tn_tensor *v = tn_reshape(IN(4, STEPS, WIDTH), tn_shape(4, 1, STEPS, WIDTH));
  give(b, attended(scores_of(b, q, k), v));
}

static void attention_of_one_step(building *b) {
  tn_tensor *q = IN(HEADS, 1, WIDTH), *k = IN(HEADS, 2048, WIDTH), *v = IN(HEADS, 2048, WIDTH);
  give(b, attended(scores_of(b, q, k), v));
}

static void linear_attention(building *b) {
  tn_tensor *q = plus(b, tn_elu(head_input(b), 1), 1), *k = plus(b, tn_elu(head_input(b), 1), 1);
  give(b, tn_matmul(q, tn_matmul(turned(k), head_input(b))));
}

static void step_with_momentum(building *b) {
  tn_tensor *p = STATE(1 << 20), *m = STATE(1 << 20), *g = IN(1 << 20);
  tn_assign(m, tn_add(times(b, m, 0.9), g));
  tn_assign(p, tn_sub(p, times(b, m, 0.01)));
}

static void adam_with_decay(building *b) {
  tn_tensor *p = STATE(1 << 20), *m = STATE(1 << 20), *v = STATE(1 << 20), *g = IN(1 << 20);
  tn_assign(m, tn_lerp(g, m, number(b, 0.9)));
  tn_assign(v, tn_lerp(tn_square(g), v, number(b, 0.999)));
  tn_tensor *step = tn_div(m, plus(b, tn_sqrt(v), 1e-8));
  tn_assign(p, tn_sub(times(b, p, 0.999), times(b, step, 0.001)));
}

static void step_by_signs(building *b) {
  tn_tensor *p = STATE(1 << 20), *m = STATE(1 << 20), *g = IN(1 << 20);
  tn_tensor *step = tn_sign(tn_lerp(g, m, number(b, 0.9)));
  tn_assign(m, tn_lerp(g, m, number(b, 0.99)));
  tn_assign(p, tn_sub(p, times(b, step, 0.001)));
}

static void moving_average_of_weights(building *b) {
  tn_tensor *average = STATE(1 << 20);
  tn_assign(average, tn_lerp(IN(1 << 20), average, number(b, 0.999)));
}

static void gradient_of_bounded_norm(building *b) {
  tn_tensor *g = IN(1 << 20), *norm = tn_sqrt(tn_sum(tn_square(g), TN_ALL, false));
  give(b, tn_mul(g, tn_minimum(number(b, 1), tn_div(number(b, 1), plus(b, norm, 1e-6)))));
}

#define F32(n) (4.0 * (double)(n))

typedef struct composition {
  const char *name;
  void (*build)(building *b);
  size_t kernels;  /* expected minimum */
  double bytes;    /* expected bytes */
  const char *why; /* reason for more; NULL: the minimum is reached */
  size_t more_kernels;
  double more_bytes;
} composition;

#define ROW(name, kernels, bytes) \
  { #name, name, kernels, bytes, NULL, kernels, bytes }
#define ROW_MORE(name, kernels, bytes, more_kernels, more_bytes, why) \
  { #name, name, kernels, bytes, why, more_kernels, more_bytes }

static const composition compositions[] = {
    ROW(polynomial, 1, F32(2 * 1 << 20)),
    ROW(product_of_complex_numbers, 1, F32(6 * 4096 * 256)),
    ROW(rotary_embedding, 1, F32(2 * HEADS * STEPS * WIDTH + STEPS * WIDTH)),
    ROW(differences, 1, F32(512 * 4096 + 512 * 4095)),
    ROW(laplacian, 1, F32(2 * 1024 * 1024)),
    ROW(pixel_shuffle_and_add, 1, F32(3 * 64 * 128 * 128)),
    ROW(upsampling_beside_a_shortcut, 1, F32(64 * 32 * 32 + 64 * 64 * 64 + 128 * 64 * 64)),
    ROW(reversed_and_rolled, 1, F32(2 * 512 * 1024)),
    ROW(positions_by_sines, 1, F32(STEPS * 256)),
    ROW(kronecker_product, 1, F32(32 * 32 + 32 * 32 + 1024 * 1024)),
    ROW(quantisation, 1, 1024 * 1024 + F32(1024 * 1024)),
    ROW(softmax_of_masked_scores, 1, F32(2 * 4096 * 1024) + 1024),
    ROW(log_softmax, 1, F32(2 * 4096 * 1024)),
    ROW_MORE(
        softmax_over_columns, 1, F32(2 * 1024 * 512), 3, F32(5 * 1024 * 512 + 2 * 512),
        "a pass reads whole lines, where one kernel sums column by column: a tenth of the time"),
    ROW(sum_before_a_layer_norm, 1, F32(4 * 4096 * 1024 + 2 * 1024)),
    ROW(sum_before_an_rms_norm, 1, F32(3 * 4096 * 1024 + 1024)),
    ROW(unit_rows, 1, F32(2 * 4096 * 1024)),
    ROW(cosine_similarity, 1, F32(2 * 4096 * 256 + 4096)),
    ROW(least_mean_and_largest, 1, F32(4096 * 1024 + 3 * 4096)),
    ROW(what_exceeds_the_mean, 1, F32(2 * 4096 * 1024)),
    ROW(quantisation_by_the_largest_of_a_row, 1, F32(4096 * 1024 + 4096) + 4096 * 1024),
    ROW(standard_columns, 1, F32(2 * 1024 * 512)),
    ROW(running_sum, 1, F32(2 * 512 * 1024)),
    ROW(cross_entropy_of_rows, 1, F32(4096 * 1000 + 4096) + 8 * 4096),
    ROW(mean_cross_entropy, 2, F32(4096 * 1000 + 2 * 4096 + 1) + 8 * 4096),
    ROW(accuracy, 2, F32(4096 * 1000 + 2 * 4096 + 1) + 8 * 4096),
    ROW(histogram, 1, 8 * 256 + 65536),
    ROW(sums_of_rows_and_of_columns, 1, F32(1024 * 1024 + 2 * 1024)),
    ROW(sum_above_the_diagonal, 1, F32(1024 * 1024 + 1024)),
    ROW_MORE(embedding_position_and_layer_norm, 1,
             F32(2 * STEPS * 768 + STEPS * 768 + 2 * 768) + 8 * STEPS, 3, 7886848,
             "the model estimates three reads of the table's rows above one and a store"),
    ROW(group_norm_and_silu, 1, F32(2 * 64 * 64 * 64 + 2 * 64)),
    ROW(instance_norm_and_shortcut, 1, F32(3 * 64 * 64 * 64 + 2 * 64)),
    ROW(mean_of_a_channel, 1, F32(32 * 256 * 7 * 7 + 32 * 256)),
    ROW(convolution_with_shortcut, 1, F32(3 * 64 * 56 * 56 + 64 * 64 * 9 + 64)),
    ROW(depthwise_convolution, 1, F32(2 * 96 * 56 * 56 + 96 * 9 + 96)),
    ROW_MORE(gated_expansion, 1, F32(16 * 56 * 56 + 96 * 16 + 96 + 96 * 9 + 96 * 56 * 56), 2,
             F32(16 * 56 * 56 + 96 * 16 + 96 + 96 * 9 + 3 * 96 * 56 * 56),
             "the windows would compute each gate nine times"),
    ROW_MORE(convolution_of_joined_channels, 1, F32(96 * 28 * 28 + 128 * 96 + 128 * 28 * 28), 2,
             F32(3 * 96 * 28 * 28 + 128 * 96 + 128 * 28 * 28),
             "each tile would select between the parts"),
    ROW_MORE(two_convolutions_of_one_image, 1, F32(64 * 28 * 28 + 2 * 32 * 64 + 2 * 32 * 28 * 28),
             2, F32(2 * 64 * 28 * 28 + 2 * 32 * 64 + 2 * 32 * 28 * 28),
             "tiles of different weights share no loads"),
    ROW(convolution_and_pooling, 2,
        F32(64 * 56 * 56 + 64 * 64 * 9 + 2 * 64 * 56 * 56 + 64 * 28 * 28)),
    ROW(weights_of_channels, 1, F32(2 * 256 * 14 * 14 + 2 * 256 * 16)),
    ROW_MORE(gated_product, 1, F32(STEPS * 1024 + 2 * 1024 * 2048 + STEPS * 2048), 2, 33554432,
             "two products in one tile leave each half of the registers"),
    ROW(two_layers, 2,
        F32(STEPS * 512 + 512 * 2048 + 2048 + 2 * STEPS * 2048 + 2048 * 512 + 512 + STEPS * 512)),
    ROW(gradient_of_weights, 1, F32(STEPS * 256 + STEPS * 512 + 256 * 512)),
    ROW_MORE(three_projections, 1, F32(STEPS * 768 + 768 * 2304 + 2304 + STEPS * 2304), 2,
             F32(STEPS * 768 + 768 * 2304 + 2304 + 3 * STEPS * 2304),
             "one kernel divides twelve heads among eight cores; on one they take as long"),
    ROW(squared_distances, 1, F32(1024 * 64 + 512 * 64 + 1024 * 512)),
    ROW(bilinear_form, 1, F32(2 * 1024 * 128 + 128 * 128 + 1024)),
    ROW_MORE(
        choice_of_experts, 1, F32(4096 * 256 + 256 * 8 + 4096 * 8), 3,
        F32(4096 * 256 + 256 * 8 + 5 * 4096 * 8),
        "products in an array of a kernel's own take a twentieth longer than in a result; the "
        "model estimates exponentials of rows of 8 lower where they are stored; they take as long"),
    ROW_MORE(product_of_quantised_numbers, 1, 3 * 512 * 512 + F32(512), 2,
             3 * 512 * 512 + F32(512 + 2 * 512 * 512),
             "one operand's conversion and offset would be computed again for every column"),
    ROW(product_of_weights_in_bytes, 1, F32(16 * 1024) + 1024 * 1024 + F32(1024) + F32(16 * 1024)),
    ROW_MORE(covariance, 2, F32(2 * 2048 * 128 + 2 * 128 + 128 * 128), 2,
             F32(3 * 2048 * 128 + 128 * 128),
             "centring would be computed again for every column, so what is centred is written "
             "instead of the means"),
    ROW(adapter_of_low_rank, 2,
        F32(STEPS * 768 + 768 * 8 + STEPS * 8 + STEPS * 768 + 768 * 768 + STEPS * 8 + 8 * 768 +
            STEPS * 768)),
    ROW_MORE(cell_with_gates, 1, F32(2 * 32 * 256 + 2 * 256 * 1024 + 1024 + 3 * 32 * 256), 2,
             F32(2 * 32 * 256 + 2 * 256 * 1024 + 1024 + 3 * 32 * 256 + 2 * 32 * 1024),
             "four gates in one tile leave each few registers: three quarters of the time"),
    ROW_MORE(attention_to_what_came_before, 1, F32(4 * HEADS * STEPS * WIDTH), 2,
             F32(4 * HEADS * STEPS * WIDTH) + 2 * STEPS * STEPS,
             "twelve heads would compute the mask again"),
    ROW_MORE(attention_in_a_window, 1, F32(4 * HEADS * STEPS * WIDTH), 2,
             F32(4 * HEADS * STEPS * WIDTH) + 2 * STEPS * STEPS,
             "twelve heads would compute the mask again"),
    ROW_MORE(attention_with_slopes, 1, F32(4 * HEADS * STEPS * WIDTH + HEADS), 3, 56623152,
             "the model estimates scores in an array a tenth lower; they take the same time"),
    ROW(attention_of_groups_of_heads, 1, F32(2 * HEADS * STEPS * WIDTH + 2 * 4 * STEPS * WIDTH)),
    ROW_MORE(attention_of_one_step, 1, F32(2 * HEADS * WIDTH + 2 * HEADS * 2048 * WIDTH), 2,
             F32(2 * HEADS * WIDTH + 2 * HEADS * 2048 * WIDTH + 2 * HEADS * 2048),
             "the model estimates scores in an array a tenth lower; they take the same time"),
    ROW(linear_attention, 2, F32(4 * HEADS * STEPS * WIDTH + 2 * HEADS * WIDTH * WIDTH)),
    ROW(step_with_momentum, 1, F32(5 << 20)),
    ROW(adam_with_decay, 1, F32(7 << 20)),
    ROW(step_by_signs, 1, F32(5 << 20)),
    ROW(moving_average_of_weights, 1, F32(3 << 20)),
    ROW(gradient_of_bounded_norm, 2, F32(3 * (1 << 20) + 2 * 16)),
};

/* Counting. */

static void *memory_for(tn_type t, size_t *bytes) {
  *bytes = tn_dtype_size(t.dtype);
  for (int32_t i = 0; i < t.shape.rank; i++) *bytes *= (size_t)t.shape.size[i];
  void *at = calloc(*bytes, 1);
  assert_non_null(at);
  return at;
}

static tn_binding *bound(const building *b) {
  tn_plan *plan;
  tn_binding *binding;
  check_ok(b->c, tn_plan_compile(b->c, b->out, b->n_out, NULL, &plan));
  check_ok(b->c, tn_plan_bind(plan, &binding));
  return binding;
}

static void run(const building *b, tn_binding *binding) {
  void *at[MOST_PORTS];
  for (size_t i = 0; i < b->n_in; i++) {
    char name[24];
    size_t bytes;
    snprintf(name, sizeof name, "%zu", i);
    at[i] = memory_for(b->in[i], &bytes);
    tn_binding_input(binding, name, b->in[i].shape, b->in[i].dtype, at[i], bytes);
  }
  if (tn_binding_run(binding) != TN_OK) fail_msg("%s", tn_binding_message(binding));
  for (size_t i = 0; i < b->n_in; i++) free(at[i]);
}

static void count(tn_binding *binding, size_t *kernels, double *bytes) {
  tn_step step = TN_STEP_INIT;
  for (*kernels = 0, *bytes = 0; tn_binding_step(binding, *kernels, &step) == TN_OK; ++*kernels)
    *bytes += step.bytes;
}

static void check_composition(void **state) {
  const composition *x = *state;
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.device = "NULL";
  building b = {.c = tn_open(&d)};
  size_t kernels;
  double bytes;
  assert_non_null(b.c);
  tn_scope_begin(b.c);
  x->build(&b);
  tn_binding *binding = bound(&b);
  run(&b, binding);
  count(binding, &kernels, &bytes);
  if (kernels != x->more_kernels || bytes != x->more_bytes)
    fail_msg("%zu kernels move %.0f bytes, not %zu %.0f", kernels, bytes, x->more_kernels,
             x->more_bytes);
  if (x->why) assert_true(kernels > x->kernels || bytes > x->bytes);
  tn_binding_free(binding);
  tn_scope_end(b.c);
  assert_int_equal(tn_close(b.c), TN_OK);
}

enum { COUNT = sizeof compositions / sizeof *compositions };

int main(void) {
  struct CMUnitTest tests[COUNT];
  for (size_t i = 0; i < COUNT; i++)
    tests[i] = (struct CMUnitTest){compositions[i].name, check_composition, NULL, NULL,
                                   (void *)&compositions[i]};
  return _cmocka_run_group_tests("compositions", tests, COUNT, NULL, NULL);
}
