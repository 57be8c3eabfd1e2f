/* Tests fusion on well-known expressions (softmax, layer norm, attention, …): each must become one
   kernel, whose results are compared with the formula in doubles. */
#include "runtime/executable.h"
#include "tensor/plan/variant_table.h"

#include "support/tensor_check.h"

#include <math.h>
#include <unistd.h>

/* Values. */

/** Fills `x` with numbers between -2 and 2 that depend on `seed`; returns them as a tensor. */
static tn_tensor *given(tn_context *c, tn_shape shape, float x[], size_t bytes, uint32_t seed) {
  size_t n = bytes / sizeof *x;
  for (size_t i = 0; i < n; i++) {
    seed = seed * 1664525 + 1013904223;
    x[i] = (float)(seed >> 8) / (1 << 22) - 2;
  }
  return tn_from_host(c, shape, TN_F32, x, bytes);
}

#define GIVEN(c, shape, x, seed) given(c, shape, (float *)(x), sizeof(x), seed)

static void check_near(const char *what, const double got[], const double want[], size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!(fabs(got[i] - want[i]) <= 1e-5 * (1 + fabs(want[i]))))
      fail_msg("%s: element %zu is %.9g, not %.9g", what, i, got[i], want[i]);
}

/* Plans. */

static tn_binding *bound(tn_context *c, tn_tensor *const out[], size_t n, size_t most_kernels) {
  tn_plan *plan;
  tn_binding *b;
  check_ok(c, tn_plan_compile(c, out, n, NULL, &plan));
  size_t kernels = executable_steps(plan->variants->at[0]->executable);
  if (kernels > most_kernels) fail_msg("%zu kernels, not %zu", kernels, most_kernels);
  check_ok(c, tn_plan_bind(plan, &b));
  if (tn_binding_run(b) != TN_OK) fail_msg("%s", tn_binding_message(b));
  return b;
}

static tn_binding *one_kernel(tn_context *c, tn_tensor *const out[], size_t n) {
  return bound(c, out, n, 1);
}

enum { MOST = 1024 };

static void check_output(tn_binding *b, const char *name, const double want[], size_t n) {
  double got[MOST];
  assert_true(n <= MOST);
  if (tn_binding_read(b, name, TN_F64, got, n * sizeof *got) != TN_OK)
    fail_msg("%s", tn_binding_message(b));
  check_near(name, got, want, n);
}

#define COUNT(x) (sizeof(x) / sizeof(double))

static void check_one(tn_context *c, tn_tensor *out, const double want[], size_t n) {
  check_output(one_kernel(c, &out, 1), "0", want, n);
}

#define CHECK_ONE(c, out, want) check_one(c, out, (const double *)(want), COUNT(want))

/* Rows. */

enum { ROWS = 6, COLUMNS = 20 };

typedef struct row_sums {
  double sum, squares, largest, exponentials; /* of x, x², -, e^(x - largest) */
} row_sums;

static row_sums sums_of(const float x[COLUMNS]) {
  row_sums s = {.largest = -INFINITY};
  for (int i = 0; i < COLUMNS; i++) {
    s.sum += x[i];
    s.squares += (double)x[i] * x[i];
    s.largest = fmax(s.largest, x[i]);
  }
  for (int i = 0; i < COLUMNS; i++) s.exponentials += exp(x[i] - s.largest);
  return s;
}

static double mean_of(const float x[COLUMNS]) { return sums_of(x).sum / COLUMNS; }

static double variance_of(const float x[COLUMNS]) {
  double mean = mean_of(x);
  return sums_of(x).squares / COLUMNS - mean * mean;
}

static void elementwise_chain(void **state) {
  tn_context *c = *state;
  float x[ROWS][COLUMNS], y[COLUMNS];
  double want[ROWS][COLUMNS];
  tn_tensor *a = GIVEN(c, tn_shape(ROWS, COLUMNS), x, 1), *b = GIVEN(c, tn_shape(COLUMNS), y, 2);
  for (int r = 0; r < ROWS; r++)
    for (int k = 0; k < COLUMNS; k++)
      want[r][k] = sqrt(fmax(tanh(x[r][k] * y[k] + 1), 0)) * exp(-fabs(x[r][k]));
  tn_tensor *t = tn_relu(tn_tanh(tn_add(tn_mul(a, b), tn_num(c, 1))));
  CHECK_ONE(c, tn_mul(tn_sqrt(t), tn_exp(tn_neg(tn_abs(a)))), want);
}

static void softmax(void **state) {
  tn_context *c = *state;
  float x[ROWS][COLUMNS];
  double want[ROWS][COLUMNS];
  tn_tensor *a = GIVEN(c, tn_shape(ROWS, COLUMNS), x, 3);
  for (int r = 0; r < ROWS; r++) {
    row_sums s = sums_of(x[r]);
    for (int k = 0; k < COLUMNS; k++) want[r][k] = exp(x[r][k] - s.largest) / s.exponentials;
  }
  CHECK_ONE(c, tn_softmax(a, -1), want);
}

static void log_of_a_sum_of_exponentials(void **state) {
  tn_context *c = *state;
  float x[ROWS][COLUMNS];
  double want[ROWS];
  tn_tensor *a = GIVEN(c, tn_shape(ROWS, COLUMNS), x, 4);
  for (int r = 0; r < ROWS; r++) {
    row_sums s = sums_of(x[r]);
    want[r] = s.largest + log(s.exponentials);
  }
  CHECK_ONE(c, tn_logsumexp(a, tn_axes(1), false), want);
}

/* Rows longer than the caches: read block by block, with sums rescaled by the running maximum
   (online softmax). */

enum { LONG_ROWS = 2, LONG_ROW = 1 << 19 };

static void long_rows(void **state) {
  tn_context *c = *state;
  static float x[LONG_ROWS][LONG_ROW];
  double want[LONG_ROWS];
  tn_tensor *a = GIVEN(c, tn_shape(LONG_ROWS, LONG_ROW), x, 31);
  for (int r = 0; r < LONG_ROWS; r++) {
    double largest = -INFINITY, sum = 0;
    for (int i = 0; i < LONG_ROW; i++) largest = fmax(largest, x[r][i]);
    for (int i = 0; i < LONG_ROW; i++) sum += exp(x[r][i] - largest);
    want[r] = largest + log(sum);
  }
  CHECK_ONE(c, tn_logsumexp(a, tn_axes(1), false), want);
}

enum { ASKED = 4, MANY = 16384, DEPTH = 8 };
enum { MOST_OF_ATTENTION = 2 }; /* kernels: a processor's costs may store the scores */

/** Computes attention in doubles: query i attends to its first masked[i] keys. */
static void attend_to_many(float q[ASKED][DEPTH], float k[][DEPTH], float v[][DEPTH],
                           const int masked[ASKED], double want[ASKED][DEPTH]) {
  static double s[MANY];
  for (int i = 0; i < ASKED; i++) {
    double largest = -INFINITY, sum = 0, out[DEPTH] = {0};
    for (int j = 0; j < masked[i]; j++) {
      s[j] = 0;
      for (int d = 0; d < DEPTH; d++) s[j] += 0.25 * q[i][d] * k[j][d];
      largest = fmax(largest, s[j]);
    }
    for (int j = 0; j < masked[i]; j++) {
      double e = exp(s[j] - largest);
      sum += e;
      for (int d = 0; d < DEPTH; d++) out[d] += e * v[j][d];
    }
    for (int d = 0; d < DEPTH; d++) want[i][d] = out[d] / sum;
  }
}

static void attention_to_many(void **state) {
  tn_context *c = *state;
  static float q[ASKED][DEPTH], k[MANY][DEPTH], v[MANY][DEPTH];
  const int all[ASKED] = {MANY, MANY, MANY, MANY};
  double want[ASKED][DEPTH];
  tn_tensor *x = GIVEN(c, tn_shape(ASKED, DEPTH), q, 32);
  tn_tensor *y = GIVEN(c, tn_shape(MANY, DEPTH), k, 33);
  tn_tensor *z = GIVEN(c, tn_shape(MANY, DEPTH), v, 34);
  attend_to_many(q, k, v, all, want);
  tn_tensor *s = tn_mul(tn_matmul(x, tn_transpose(y)), tn_num(c, 0.25));
  tn_tensor *out = tn_matmul(tn_softmax(s, -1), z);
  check_output(bound(c, &out, 1, MOST_OF_ATTENTION), "0", want[0], ASKED * (size_t)DEPTH);
}

static void masked_attention_to_many(void **state) {
  tn_context *c = *state;
  static float q[ASKED][DEPTH], k[MANY][DEPTH], v[MANY][DEPTH];
  static float mask[ASKED][MANY];
  const int seen[ASKED] = {1, 100, MANY / 2, 0};
  double want[ASKED][DEPTH];
  tn_tensor *x = GIVEN(c, tn_shape(ASKED, DEPTH), q, 35);
  tn_tensor *y = GIVEN(c, tn_shape(MANY, DEPTH), k, 36);
  tn_tensor *z = GIVEN(c, tn_shape(MANY, DEPTH), v, 37);
  for (int i = 0; i < ASKED; i++)
    for (int j = 0; j < MANY; j++) mask[i][j] = j < seen[i] ? 0 : -INFINITY;
  attend_to_many(q, k, v, seen, want);
  tn_tensor *m = tn_from_host(c, tn_shape(ASKED, MANY), TN_F32, mask, sizeof mask);
  tn_tensor *s = tn_add(tn_mul(tn_matmul(x, tn_transpose(y)), tn_num(c, 0.25)), m);
  tn_tensor *out = tn_matmul(tn_softmax(s, -1), z);
  double got[ASKED][DEPTH];
  tn_binding *b = bound(c, &out, 1, MOST_OF_ATTENTION);
  if (tn_binding_read(b, "0", TN_F64, got, sizeof got) != TN_OK)
    fail_msg("%s", tn_binding_message(b));
  check_near("masked", got[0], want[0], (ASKED - 1) * (size_t)DEPTH);
  for (int d = 0; d < DEPTH; d++) assert_true(isnan(got[ASKED - 1][d]));
}

static void layer_norm(void **state) {
  tn_context *c = *state;
  float x[ROWS][COLUMNS], w[COLUMNS], b[COLUMNS];
  double want[ROWS][COLUMNS];
  tn_tensor *in = GIVEN(c, tn_shape(ROWS, COLUMNS), x, 5);
  tn_tensor *weight = GIVEN(c, tn_shape(COLUMNS), w, 6), *bias = GIVEN(c, tn_shape(COLUMNS), b, 7);
  for (int r = 0; r < ROWS; r++)
    for (int k = 0; k < COLUMNS; k++)
      want[r][k] = (x[r][k] - mean_of(x[r])) / sqrt(variance_of(x[r]) + 1e-5) * w[k] + b[k];
  CHECK_ONE(c, tn_layer_norm(in, weight, bias, -1, 1e-5), want);
}

static void layer_norm_of_a_sum_that_is_a_result(void **state) {
  tn_context *c = *state;
  float x[ROWS][COLUMNS], y[ROWS][COLUMNS], sum[ROWS][COLUMNS];
  double sums[ROWS][COLUMNS], want[ROWS][COLUMNS];
  tn_tensor *s =
      tn_add(GIVEN(c, tn_shape(ROWS, COLUMNS), x, 31), GIVEN(c, tn_shape(ROWS, COLUMNS), y, 32));
  for (int r = 0; r < ROWS; r++) {
    for (int k = 0; k < COLUMNS; k++) sums[r][k] = sum[r][k] = x[r][k] + y[r][k];
    for (int k = 0; k < COLUMNS; k++)
      want[r][k] = (sum[r][k] - mean_of(sum[r])) / sqrt(variance_of(sum[r]) + 1e-5);
  }
  tn_tensor *out[] = {s, tn_layer_norm(s, NULL, NULL, -1, 1e-5)};
  tn_binding *b = one_kernel(c, out, 2);
  check_output(b, "0", (const double *)sums, ROWS * COLUMNS);
  check_output(b, "1", (const double *)want, ROWS * COLUMNS);
}

static void rms_norm(void **state) {
  tn_context *c = *state;
  float x[ROWS][COLUMNS], w[COLUMNS];
  double want[ROWS][COLUMNS];
  tn_tensor *in = GIVEN(c, tn_shape(ROWS, COLUMNS), x, 8);
  tn_tensor *weight = GIVEN(c, tn_shape(COLUMNS), w, 9);
  for (int r = 0; r < ROWS; r++)
    for (int k = 0; k < COLUMNS; k++)
      want[r][k] = x[r][k] / sqrt(sums_of(x[r]).squares / COLUMNS + 1e-5) * w[k];
  CHECK_ONE(c, tn_rms_norm(in, weight, -1, 1e-5), want);
}

static void variance(void **state) {
  tn_context *c = *state;
  float x[ROWS][COLUMNS];
  double want[ROWS];
  tn_tensor *a = GIVEN(c, tn_shape(ROWS, COLUMNS), x, 10);
  for (int r = 0; r < ROWS; r++) want[r] = variance_of(x[r]);
  CHECK_ONE(c, tn_var(a, tn_axes(1), 0, false), want);
}

static void argmax(void **state) {
  tn_context *c = *state;
  float x[ROWS][COLUMNS];
  double want[ROWS] = {0};
  tn_tensor *a = GIVEN(c, tn_shape(ROWS, COLUMNS), x, 11);
  for (int r = 0; r < ROWS; r++)
    for (int k = 0; k < COLUMNS; k++)
      if (x[r][k] > x[r][(int)want[r]]) want[r] = k;
  CHECK_ONE(c, tn_argmax(a, 1, false), want);
}

/* Contractions. */

static double gelu(double x) { return x / 2 * (1 + erf(x / sqrt(2))); }

static void matmul_bias_gelu(void **state) {
  enum { M = 5, N = 7, K = 12 };
  tn_context *c = *state;
  float x[M][K], w[K][N], bias[N];
  double want[M][N];
  tn_tensor *a = GIVEN(c, tn_shape(M, K), x, 12), *b = GIVEN(c, tn_shape(K, N), w, 13);
  tn_tensor *d = GIVEN(c, tn_shape(N), bias, 14);
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      double sum = bias[j];
      for (int k = 0; k < K; k++) sum += (double)x[i][k] * w[k][j];
      want[i][j] = gelu(sum);
    }
  CHECK_ONE(c, tn_gelu(tn_add(tn_matmul(a, b), d)), want);
}

/** A chain of matrix products is a few kernels: neither one, which compiles slowly, nor one per
    product. */
static void chain_of_products(void **state) {
  enum { M = 4, N = 8, LAYERS = 18 };
  tn_context *c = *state;
  float x[M][N], w[N][N], bias[N];
  double row[2][M][N];
  tn_plan *plan;
  tn_binding *b;
  for (int i = 0; i < N; i++) {
    bias[i] = (float)(i - 2) / 16;
    for (int j = 0; j < N; j++) w[i][j] = (float)((i * 7 + j * 5) % 9) / 32;
  }
  tn_tensor *y = GIVEN(c, tn_shape(M, N), x, 36);
  tn_tensor *by = tn_from_host(c, tn_shape(N, N), TN_F32, w, sizeof w);
  tn_tensor *more = tn_from_host(c, tn_shape(N), TN_F32, bias, sizeof bias);
  for (int i = 0; i < M * N; i++) row[0][i / N][i % N] = x[i / N][i % N];
  for (int l = 0; l < LAYERS; l++) {
    y = tn_relu(tn_add(tn_matmul(y, by), more));
    for (int i = 0; i < M * N; i++) {
      double sum = bias[i % N];
      for (int k = 0; k < N; k++) sum += row[l % 2][i / N][k] * w[k][i % N];
      row[(l + 1) % 2][i / N][i % N] = fmax(sum, 0);
    }
  }
  check_ok(c, tn_plan_compile(c, &y, 1, NULL, &plan));
  assert_in_range(executable_steps(plan->variants->at[0]->executable), 2, LAYERS / 2);
  check_ok(c, tn_plan_bind(plan, &b));
  if (tn_binding_run(b) != TN_OK) fail_msg("%s", tn_binding_message(b));
  check_output(b, "0", row[LAYERS % 2][0], M * N);
}

enum { HEADS = 2, STEPS = 6, WIDTH = 4 };

/** Computes a row of softmax(q·kᵀ / 2)·v of one head. */
static void attend(const float q[WIDTH], float k[STEPS][WIDTH], float v[STEPS][WIDTH],
                   double out[WIDTH]) {
  double weights[STEPS], all = 0;
  for (int i = 0; i < STEPS; i++) {
    double score = 0;
    for (int d = 0; d < WIDTH; d++) score += (double)q[d] * k[i][d];
    weights[i] = exp(score / 2);
    all += weights[i];
  }
  for (int d = 0; d < WIDTH; d++) {
    out[d] = 0;
    for (int i = 0; i < STEPS; i++) out[d] += weights[i] / all * v[i][d];
  }
}

static void attention(void **state) {
  tn_context *c = *state;
  float q[HEADS][STEPS][WIDTH], k[HEADS][STEPS][WIDTH], v[HEADS][STEPS][WIDTH];
  double want[HEADS][STEPS][WIDTH];
  tn_shape shape = tn_shape(HEADS, STEPS, WIDTH);
  tn_tensor *tq = GIVEN(c, shape, q, 15), *tk = GIVEN(c, shape, k, 16),
            *tv = GIVEN(c, shape, v, 17);
  for (int h = 0; h < HEADS; h++)
    for (int i = 0; i < STEPS; i++) attend(q[h][i], k[h], v[h], want[h][i]);
  tn_tensor *scores = tn_mul(tn_matmul(tq, tn_swapaxes(tk, -2, -1)), tn_num(c, 0.5));
  CHECK_ONE(c, tn_matmul(tn_softmax(scores, -1), tv), want);
}

/* Images. */

enum { BATCH = 2, CHANNELS = 3, SIDE = 5, FILTERS = 4, WINDOW = 3 };

typedef float image[CHANNELS][SIDE][SIDE];

/** Computes one element of a convolution padded by 1. */
static double convolved(image x, float w[CHANNELS][WINDOW][WINDOW], int row, int column) {
  double sum = 0;
  for (int k = 0; k < CHANNELS; k++)
    for (int i = 0; i < WINDOW; i++)
      for (int j = 0; j < WINDOW; j++) {
        int y = row + i - 1, z = column + j - 1;
        if (y >= 0 && y < SIDE && z >= 0 && z < SIDE) sum += (double)x[k][y][z] * w[k][i][j];
      }
  return sum;
}

typedef struct channel_facts {
  float bias[FILTERS], mean[FILTERS], variance[FILTERS], scale[FILTERS], shift[FILTERS];
} channel_facts;

static void conv_bias_batch_norm_relu(void **state) {
  tn_context *c = *state;
  image x[BATCH];
  float w[FILTERS][CHANNELS][WINDOW][WINDOW];
  static double want[BATCH][FILTERS][SIDE][SIDE];
  channel_facts f;
  tn_conv_desc desc = TN_CONV_DESC_INIT;
  for (int i = 0; i < 2; i++) desc.pad_low[i] = desc.pad_high[i] = 1;
  tn_tensor *in = GIVEN(c, tn_shape(BATCH, CHANNELS, SIDE, SIDE), x, 18);
  tn_tensor *weight = GIVEN(c, tn_shape(FILTERS, CHANNELS, WINDOW, WINDOW), w, 19);
  tn_shape each = tn_shape(FILTERS);
  tn_tensor *bias = GIVEN(c, each, f.bias, 20), *mean = GIVEN(c, each, f.mean, 21);
  tn_tensor *scale = GIVEN(c, each, f.scale, 22), *shift = GIVEN(c, each, f.shift, 23);
  for (int k = 0; k < FILTERS; k++) f.variance[k] = 0.5f + (float)k;
  tn_tensor *variance = tn_from_host(c, each, TN_F32, f.variance, sizeof f.variance);
  for (int n = 0; n < BATCH; n++)
    for (int k = 0; k < FILTERS; k++)
      for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
          double y = convolved(x[n], w[k], i, j) + f.bias[k] - f.mean[k];
          want[n][k][i][j] = fmax(y / sqrt(f.variance[k] + 1e-5) * f.scale[k] + f.shift[k], 0);
        }
  tn_tensor *y = tn_conv(in, weight, bias, &desc);
  CHECK_ONE(c, tn_relu(tn_batch_norm(y, mean, variance, scale, shift, 1e-5)), want);
}

static void batch_norm_by_its_own_statistics(void **state) {
  enum { PIXELS = SIDE * SIDE, EACH = BATCH * PIXELS };
  tn_context *c = *state;
  image x[BATCH];
  double want[BATCH][CHANNELS][PIXELS];
  tn_tensor *in = GIVEN(c, tn_shape(BATCH, CHANNELS, SIDE, SIDE), x, 24);
  for (int k = 0; k < CHANNELS; k++) {
    double sum = 0, squares = 0;
    for (int n = 0; n < BATCH; n++)
      for (int i = 0; i < PIXELS; i++) {
        want[n][k][i] = x[n][k][i / SIDE][i % SIDE];
        sum += want[n][k][i];
        squares += want[n][k][i] * want[n][k][i];
      }
    double mean = sum / EACH, deviation = sqrt(squares / EACH - mean * mean + 1e-5);
    for (int n = 0; n < BATCH; n++)
      for (int i = 0; i < PIXELS; i++) want[n][k][i] = (want[n][k][i] - mean) / deviation;
  }
  tn_axes all = tn_axes(0, 2, 3);
  tn_tensor *mean = tn_mean(in, all, true), *variance = tn_var(in, all, 0, true);
  tn_tensor *y = tn_div(tn_sub(in, mean), tn_sqrt(tn_add(variance, tn_num(c, 1e-5))));
  CHECK_ONE(c, y, want);
}

/* Selections by comparisons of indices: no loop over elements that are not selected. */

static void check_operations(tn_binding *b, double most) {
  tn_step step = TN_STEP_INIT;
  assert_int_equal(tn_binding_step(b, 0, &step), TN_OK);
  if (step.operations > most) fail_msg("%g operations, not %g", step.operations, most);
}

/** The row of a table selected by each index. */
static const int64_t chosen_rows[ROWS] = {3, 0, 7, 3, COLUMNS - 1, 5};

static tn_tensor *chosen(tn_context *c) {
  return tn_from_host(c, tn_shape(ROWS), TN_I64, chosen_rows, sizeof chosen_rows);
}

static void rows_by_comparisons(void **state) {
  enum { WIDE = 8 };
  tn_context *c = *state;
  float x[COLUMNS][WIDE];
  double want[ROWS][WIDE];
  tn_tensor *table = GIVEN(c, tn_shape(COLUMNS, WIDE), x, 29), *rows = chosen(c);
  for (int r = 0; r < ROWS; r++)
    for (int k = 0; k < WIDE; k++) want[r][k] = x[chosen_rows[r]][k];
  tn_tensor *all = tn_reshape(tn_arange(c, 0, COLUMNS, 1, TN_I64), tn_shape(1, COLUMNS, 1));
  tn_tensor *hit = tn_eq(all, tn_reshape(rows, tn_shape(ROWS, 1, 1)));
  tn_tensor *y = tn_sum(tn_where(hit, table, tn_num(c, 0)), tn_axes(1), false);
  tn_binding *b = one_kernel(c, &y, 1);
  check_output(b, "0", (const double *)want, ROWS * WIDE);
  check_operations(b, 8 * ROWS * WIDE);
}

static void rows_by_a_product_of_integers(void **state) {
  enum { WIDE = 8 };
  tn_context *c = *state;
  int32_t x[COLUMNS][WIDE];
  double want[ROWS][WIDE];
  for (int i = 0; i < COLUMNS * WIDE; i++) x[i / WIDE][i % WIDE] = i * i - 700;
  for (int r = 0; r < ROWS; r++)
    for (int k = 0; k < WIDE; k++) want[r][k] = x[chosen_rows[r]][k];
  tn_tensor *table = tn_from_host(c, tn_shape(COLUMNS, WIDE), TN_I32, x, sizeof x);
  tn_tensor *y = tn_matmul(tn_one_hot(chosen(c), COLUMNS, TN_I32), table);
  tn_binding *b = one_kernel(c, &y, 1);
  check_output(b, "0", (const double *)want, ROWS * WIDE);
  check_operations(b, 16 * ROWS * WIDE);
}

static void numbers_by_a_running_sum(void **state) {
  enum { N = 50 };
  tn_context *c = *state;
  double want[N];
  for (int i = 0; i < N; i++) want[i] = i + 1;
  tn_tensor *y = tn_cumsum(tn_ones(c, tn_shape(N), TN_F32), 0);
  tn_binding *b = one_kernel(c, &y, 1);
  check_output(b, "0", want, N);
  check_operations(b, 4 * N);
}

/** Sums of blocks are computed on all threads, not in the scan over blocks, which runs on one. */
static void numbers_by_a_long_running_sum(void **state) {
  enum { N = 4000000 };
  tn_context *c = *state;
  tn_plan *plan;
  tn_tensor *y = tn_cumsum(tn_input(c, "x", tn_shape(N), TN_F32), 0);
  check_ok(c, tn_plan_compile(c, &y, 1, NULL, &plan));
  if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
    assert_int_equal(executable_steps(plan->variants->at[0]->executable), 3);
  tn_plan_free(plan);
}

/** Blocks would add floats in another order, which exact math does not allow; integers may. */
static void exact_running_sums_keep_their_order(void **state) {
  enum { N = 4000000 };
  (void)state;
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  desc.math = TN_MATH_EXACT;
  tn_context *c = tn_open(&desc);
  assert_non_null(c);
  const tn_dtype types[] = {TN_F32, TN_I64};
  for (size_t i = 0; i < 2; i++) {
    tn_plan *plan;
    tn_tensor *y = tn_cumsum(tn_input(c, "x", tn_shape(N), types[i]), 0);
    check_ok(c, tn_plan_compile(c, &y, 1, NULL, &plan));
    size_t steps = executable_steps(plan->variants->at[0]->executable);
    assert_true(types[i] == TN_F32 ? steps == 1 : steps > 1);
    tn_plan_free(plan);
  }
  check_ok(c, tn_close(c));
}

static void trace(void **state) {
  tn_context *c = *state;
  float x[COLUMNS][COLUMNS];
  double want = 0;
  tn_tensor *in = GIVEN(c, tn_shape(COLUMNS, COLUMNS), x, 30);
  for (int i = 0; i < COLUMNS; i++) want += x[i][i];
  tn_tensor *on = tn_eye(c, COLUMNS, COLUMNS, TN_BOOL);
  tn_tensor *y = tn_sum(tn_where(on, in, tn_num(c, 0)), TN_ALL, false);
  tn_binding *b = one_kernel(c, &y, 1);
  check_output(b, "0", &want, 1);
  check_operations(b, 2 * COLUMNS);
}

/* Training. */

static void adam_step(void **state) {
  enum { N = 50 };
  const double rate = 0.125, fading = 0.75, square_fading = 0.875, eps = 1e-8;
  tn_context *c = *state;
  float x[4][N]; /* the parameter, its gradient, and the moving averages of the gradient and of its
                    square */
  double want[3][N], got[N];
  tn_tensor *p = tn_state(GIVEN(c, tn_shape(N), x[0], 25)), *g = GIVEN(c, tn_shape(N), x[1], 26);
  tn_tensor *m = tn_state(GIVEN(c, tn_shape(N), x[2], 27));
  GIVEN(c, tn_shape(N), x[3], 28);
  for (int i = 0; i < N; i++) x[3][i] = fabsf(x[3][i]);
  tn_tensor *v = tn_state(tn_from_host(c, tn_shape(N), TN_F32, x[3], sizeof x[3]));
  for (int i = 0; i < N; i++) {
    double old = x[1][i];
    want[1][i] = fading * x[2][i] + (1 - fading) * old;
    want[2][i] = square_fading * x[3][i] + (1 - square_fading) * old * old;
    want[0][i] = x[0][i] - rate * want[1][i] / (sqrt(want[2][i]) + eps);
  }
  tn_scope_begin(c);
  tn_tensor *to_m = tn_num(c, 1 - fading), *to_v = tn_num(c, 1 - square_fading);
  tn_assign(m, tn_add(tn_mul(m, tn_num(c, fading)), tn_mul(g, to_m)));
  tn_assign(v, tn_add(tn_mul(v, tn_num(c, square_fading)), tn_mul(tn_mul(g, g), to_v)));
  tn_tensor *step = tn_div(m, tn_add(tn_sqrt(v), tn_num(c, eps)));
  tn_assign(p, tn_sub(p, tn_mul(step, tn_num(c, rate))));
  one_kernel(c, NULL, 0);
  check_ok(c, tn_scope_end(c));
  tn_tensor *const states[] = {p, m, v};
  for (int i = 0; i < 3; i++) {
    check_ok(c, tn_read(states[i], TN_F64, got, sizeof got));
    check_near("state", got, want[i], N);
  }
}

/** Two states; the new contents of one depend on the old contents of the other. */
static void step_by_the_sign_of_an_average(void **state) {
  enum { N = 50 };
  tn_context *c = *state;
  float x[3][N];
  double want[2][N], got[N];
  tn_tensor *p = tn_state(GIVEN(c, tn_shape(N), x[0], 33)), *g = GIVEN(c, tn_shape(N), x[1], 34);
  tn_tensor *m = tn_state(GIVEN(c, tn_shape(N), x[2], 35));
  for (int i = 0; i < N; i++) {
    double ahead = 0.5 * x[2][i] + 0.5 * x[1][i];
    want[0][i] = x[0][i] - 0.125 * ((ahead > 0) - (ahead < 0));
    want[1][i] = 0.75 * x[2][i] + 0.25 * x[1][i];
  }
  tn_scope_begin(c);
  tn_tensor *half = tn_num(c, 0.5);
  tn_tensor *step = tn_sign(tn_add(tn_mul(m, half), tn_mul(g, half)));
  tn_assign(m, tn_add(tn_mul(m, tn_num(c, 0.75)), tn_mul(g, tn_num(c, 0.25))));
  tn_assign(p, tn_sub(p, tn_mul(step, tn_num(c, 0.125))));
  one_kernel(c, NULL, 0);
  check_ok(c, tn_scope_end(c));
  tn_tensor *const states[] = {p, m};
  for (int i = 0; i < 2; i++) {
    check_ok(c, tn_read(states[i], TN_F64, got, sizeof got));
    check_near("state", got, want[i], N);
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_context, close_context)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(elementwise_chain),
      TEST(softmax),
      TEST(log_of_a_sum_of_exponentials),
      TEST(long_rows),
      TEST(attention_to_many),
      TEST(masked_attention_to_many),
      TEST(layer_norm),
      TEST(layer_norm_of_a_sum_that_is_a_result),
      TEST(rms_norm),
      TEST(variance),
      TEST(argmax),
      TEST(matmul_bias_gelu),
      TEST(chain_of_products),
      TEST(attention),
      TEST(conv_bias_batch_norm_relu),
      TEST(batch_norm_by_its_own_statistics),
      TEST(rows_by_comparisons),
      TEST(rows_by_a_product_of_integers),
      TEST(numbers_by_a_running_sum),
      TEST(numbers_by_a_long_running_sum),
      TEST(exact_running_sums_keep_their_order),
      TEST(trace),
      TEST(adam_step),
      TEST(step_by_the_sign_of_an_average),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
