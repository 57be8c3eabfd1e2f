/* Tests the reference interpreters of tensor graphs, kernels and linear programs on graphs made by
   hand, against results that are computed here or known, and what they refuse. */
#include "ir/core/binder.h"
#include "ir/core/scalar_eval.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/interp/interp.h"
#include "support/counting_mem.h"
#include "support/fold_reduction.h"
#include "support/graph_body.h"
#include "support/index_var.h"
#include "support/interp_kernel.h"

#include <math.h>
#include <string.h>

enum { MOST_PARAMS = 8, MOST_VARS = 4 };

/* A test: the graph under construction, and its inputs. */
typedef struct test {
  diag d;
  ir *g;
  arena a;
  interp_env env;
  interp_array params[MOST_PARAMS];
  interp_var vars[MOST_VARS];
  void (*body)(struct test *t);
} test;

static void call_body(void *arg) {
  test *t = arg;
  arena_init(&t->a, &mem_system, &t->d);
  t->env.params = t->params;
  t->env.vars = t->vars;
  t->body(t);
  arena_free(&t->a);
}

static void run_body(void (*body)(test *t), bool is_counted) {
  test t = {.body = body};
  run_in_graph(&t.g, is_counted, &t.d, call_body, &t, 0);
}

#define TEST_IN(name, is_counted) BODY_TEST(name, run_body(name##_body, is_counted))
#define TENSOR_TEST(name)         TEST_IN(name, true)
#define KERNEL_TEST(name)         TEST_IN(name, false)

/* Graphs and data. */

static const node *size(test *t, int64_t n) { return ix_const(t->g, n); }

static const node *variable(test *t, const char *name, int64_t most, int64_t value) {
  t->vars[t->env.n_vars++] = (interp_var){name, value};
  return index_var(t->g, name, 0, most);
}

static int64_t number_of(test *t, const node *n) {
  if (n->op == OP_CONST) return node_int(n);
  return (int64_t)interp_var_value(&t->env, n, &t->d);
}

/* Adds a param with cleared memory for its data. */
static const node *param(test *t, dtype type, size_t rank, const node *const dims[]) {
  int64_t slot = (int64_t)t->env.n_params++;
  interp_array *a = &t->params[slot];
  size_t count = 1;
  *a = (interp_array){.dtype = type, .rank = rank};
  for (size_t i = 0; i < rank; i++) count *= (size_t)(a->dims[i] = number_of(t, dims[i]));
  a->bytes = count * dtype_bytes(type);
  a->data = arena_calloc(&t->a, count + 1, dtype_bytes(type));
  return ir_node(t->g, OP_PARAM, type, dims, rank, &slot, 1);
}

static const node *vector(test *t, dtype type, int64_t n) {
  const node *dims[] = {size(t, n)};
  return param(t, type, 1, dims);
}

static const node *matrix(test *t, dtype type, int64_t rows, int64_t columns) {
  const node *dims[] = {size(t, rows), size(t, columns)};
  return param(t, type, 2, dims);
}

static interp_array *array(test *t, const node *p) { return &t->params[p->ints[0]]; }
static float *f32(test *t, const node *p) { return array(t, p)->data; }
static int32_t *i32(test *t, const node *p) { return array(t, p)->data; }

static void fill_f32(test *t, const node *p, unsigned seed) {
  interp_array *a = array(t, p);
  for (size_t i = 0; i < a->bytes / 4; i++) {
    seed = seed * 1664525u + 1013904223u;
    ((float *)a->data)[i] = (float)(seed >> 8) / 16777216.0f * 4 - 2;
  }
}

static void fill_i32(test *t, const node *p, int32_t first) {
  interp_array *a = array(t, p);
  for (size_t i = 0; i < a->bytes / 4; i++) ((int32_t *)a->data)[i] = first + (int32_t)i;
}

static uint64_t element(const interp_array *a, size_t i) {
  return scalar_load(a->dtype, (const char *)a->data + i * dtype_bytes(a->dtype));
}

/* Running. */

static interp_array tensor(test *t, const node *root) {
  interp_array r;
  if (interp_tensor(&t->env, &root, 1, &r, &t->a) != TN_OK) diag_rethrow(&t->d);
  return r;
}

static void check_i32(const interp_array *a, size_t n, const int32_t want[]) {
  assert_int_equal(a->bytes, n * 4);
  for (size_t i = 0; i < n; i++) assert_int_equal((int32_t)element(a, i), want[i]);
}
#define CHECK_I32(array, ...) \
  check_i32(array, sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t), (int32_t[]){__VA_ARGS__})

static void refuse_tensor(test *t, const node *root, tn_status want, const char *text) {
  interp_array r;
  assert_int_equal(interp_tensor(&t->env, &root, 1, &r, &t->a), want);
  if (!strstr(t->d.text, text)) fail_msg("the message is: %s", t->d.text);
}

static const node *sink(test *t, const node *const params[], size_t n, const node *stage) {
  const node *src[MOST_PARAMS];
  memcpy(src, params, n * sizeof *src);
  src[n] = stage;
  const node *out = ir_node(t->g, OP_OUT, DT_VOID, src, n + 1, NULL, 0);
  return ir_make(t->g, &(node_spec){.op = OP_SINK, .dtype = DT_VOID, .src = &out, .n_src = 1});
}

static void kernel(test *t, const node *p, const node *stage) {
  if (interp_kernel(&t->env, sink(t, &p, 1, stage), &mem_system, &t->d) != TN_OK)
    diag_rethrow(&t->d);
}

static void refuse_kernel(test *t, const node *p, const node *stage, tn_status want,
                          const char *text) {
  assert_int_equal(interp_kernel(&t->env, sink(t, &p, 1, stage), &mem_system, &t->d), want);
  if (!strstr(t->d.text, text)) fail_msg("the message is: %s", t->d.text);
}

/* Tensor graphs. */

TENSOR_TEST(test_tensor_elementwise) {
  const node *x = vector(t, DT_F32, 5), *y = vector(t, DT_F32, 5);
  fill_f32(t, x, 1);
  fill_f32(t, y, 2);
  const node *less = ir_op2(t->g, OP_LT, x, y);
  const node *z = ir_op3(t->g, OP_WHERE, less, ir_op2(t->g, OP_MUL, x, y), ir_op1(t->g, OP_EXP, x));
  interp_array r = tensor(t, z);
  for (size_t i = 0; i < 5; i++) {
    float a = f32(t, x)[i], b = f32(t, y)[i];
    assert_true(((float *)r.data)[i] == (a < b ? a * b : (float)exp((double)a)));
  }
}

TENSOR_TEST(test_tensor_movement) {
  const node *x = matrix(t, DT_I32, 2, 3);
  fill_i32(t, x, 1);
  const node *six[] = {size(t, 3), size(t, 2)};
  interp_array r = tensor(t, ir_reshape(t->g, x, 2, six));
  CHECK_I32(&r, 1, 2, 3, 4, 5, 6);
  assert_true(r.rank == 2 && r.dims[0] == 3 && r.dims[1] == 2);
  r = tensor(t, ir_permute(t->g, x, (int64_t[]){1, 0}));
  CHECK_I32(&r, 1, 4, 2, 5, 3, 6);
  const node *starts[] = {size(t, 0), size(t, 2)}, *sizes[] = {size(t, 2), size(t, 2)};
  r = tensor(t, ir_slice(t->g, x, starts, sizes, (int64_t[]){1, -2}));
  CHECK_I32(&r, 3, 1, 6, 4);
  const node *lows[] = {size(t, 0), size(t, 1)}, *padded[] = {size(t, 3), size(t, 5)};
  r = tensor(t, ir_pad(t->g, x, ir_const_int(t->g, DT_I32, -9), lows, padded));
  CHECK_I32(&r, -9, 1, 2, 3, -9, -9, 4, 5, 6, -9, -9, -9, -9, -9, -9);
}

/* A permutation of three axes that differs from its inverse. */
TENSOR_TEST(test_tensor_permute_3) {
  const node *dims[] = {size(t, 2), size(t, 3), size(t, 4)};
  const node *x = param(t, DT_I32, 3, dims);
  fill_i32(t, x, 0);
  interp_array r = tensor(t, ir_permute(t->g, x, (int64_t[]){2, 0, 1}));
  assert_true(r.dims[0] == 4 && r.dims[1] == 2 && r.dims[2] == 3);
  for (int a = 0; a < 4; a++)
    for (int b = 0; b < 2; b++)
      for (int c = 0; c < 3; c++)
        assert_int_equal(element(&r, (size_t)(a * 6 + b * 3 + c)), b * 12 + c * 4 + a);
}

TENSOR_TEST(test_tensor_expand_and_iota) {
  const node *x = matrix(t, DT_I32, 2, 1), *wide[] = {size(t, 2), size(t, 3)};
  fill_i32(t, x, 7);
  interp_array r = tensor(t, ir_expand(t->g, x, wide));
  CHECK_I32(&r, 7, 7, 7, 8, 8, 8);
  r = tensor(t, ir_iota(t->g, DT_I32, 2, wide, 1));
  CHECK_I32(&r, 0, 1, 2, 0, 1, 2);
  r = tensor(t, ir_iota(t->g, DT_I32, 2, wide, 0));
  CHECK_I32(&r, 0, 0, 0, 1, 1, 1);
  r = tensor(t, ir_fill(t->g, ir_const_int(t->g, DT_I32, 4), 2, wide));
  CHECK_I32(&r, 4, 4, 4, 4, 4, 4);
}

TENSOR_TEST(test_tensor_gather) {
  const node *x = matrix(t, DT_I32, 2, 3), *i = vector(t, DT_I64, 4), *j = vector(t, DT_I64, 4);
  fill_i32(t, x, 10);
  memcpy(array(t, i)->data, (int64_t[]){1, 0, -1, 1}, 32);
  memcpy(array(t, j)->data, (int64_t[]){2, 0, 1, 3}, 32);
  const node *at[] = {i, j};
  interp_array r = tensor(t, ir_gather(t->g, x, at));
  CHECK_I32(&r, 15, 10, 0, 0);
}

TENSOR_TEST(test_tensor_distinct_places) {
  const node *x = vector(t, DT_I32, 4), *u = vector(t, DT_I32, 3), *p = vector(t, DT_I64, 3);
  fill_i32(t, x, 10);
  fill_i32(t, u, 1);
  memcpy(array(t, p)->data, (int64_t[]){3, -1, -1}, 24);
  const node *s = ir_scatter_distinct(t->g, x, u, &p, OP_ADD);
  interp_array r = tensor(t, s);
  CHECK_I32(&r, 10, 11, 12, 14);
  memcpy(array(t, p)->data, (int64_t[]){1, 0, 1}, 24);
  refuse_tensor(t, s, TN_ERR_ARGUMENT, "writes element 1 twice");
}

TENSOR_TEST(test_tensor_reduce) {
  const node *x = matrix(t, DT_I32, 2, 3);
  fill_i32(t, x, 1);
  interp_array r = tensor(t, ir_reduce(t->g, x, OP_ADD, 1, (int64_t[]){0}));
  CHECK_I32(&r, 5, 7, 9);
  r = tensor(t, ir_reduce(t->g, x, OP_MAX, 1, (int64_t[]){1}));
  CHECK_I32(&r, 3, 6);
  r = tensor(t, ir_reduce(t->g, x, OP_MUL, 2, (int64_t[]){0, 1}));
  CHECK_I32(&r, 720);
  r = tensor(t, ir_reduce(t->g, x, OP_XOR, 2, (int64_t[]){0, 1}));
  CHECK_I32(&r, 7);
}

TENSOR_TEST(test_tensor_sums_are_exact) {
  const node *x = vector(t, DT_F32, 3), *y = vector(t, DT_F64, 3);
  memcpy(f32(t, x), (float[]){1, 1e10f, -1e10f}, 12);
  memcpy(array(t, y)->data, (double[]){0.5, 0x1p60, -0x1p60}, 24);
  int64_t axis = 0;
  interp_array r = tensor(t, ir_reduce(t->g, x, OP_ADD, 1, &axis));
  assert_true(*(float *)r.data == 1);
  r = tensor(t, ir_reduce(t->g, y, OP_ADD, 1, &axis));
  assert_true(*(double *)r.data == 0.5);
  f32(t, x)[1] = NAN;
  r = tensor(t, ir_reduce(t->g, x, OP_MAX, 1, &axis));
  assert_true(isnan(*(float *)r.data));
}

/* The terms of a product of matrices: x (m, 1, k) and y (1, n, k), repeated. */
static const node *product_terms(test *t, const node *x, const node *y) {
  const node *m = x->dims[0], *n = y->dims[0], *k = x->dims[1], *one = size(t, 1);
  const node *all[] = {m, n, k};
  x = ir_reshape(t->g, x, 3, (const node *[]){m, one, k});
  y = ir_reshape(t->g, y, 3, (const node *[]){one, n, k});
  return ir_op2(t->g, OP_MUL, ir_expand(t->g, x, all), ir_expand(t->g, y, all));
}

/* The terms are not stored: 67 MB of them are summed in less than one. */
TENSOR_TEST(test_tensor_contraction) {
  enum { M = 64, N = 65, K = 4000 };
  const node *x = matrix(t, DT_F32, M, K), *y = matrix(t, DT_F32, N, K);
  fill_f32(t, x, 1);
  fill_f32(t, y, 2);
  const node *sums = ir_reduce(t->g, product_terms(t, x, y), OP_ADD, 1, (int64_t[]){2});
  counting_mem counted = {0};
  mem m = counting_mem_of(&counted);
  interp_array r;
  arena a;
  arena_init(&a, &m, &t->d);
  if (interp_tensor(&t->env, &sums, 1, &r, &a) != TN_OK) diag_rethrow(&t->d);
  for (size_t i = 0; i < (size_t)M * N; i++) {
    long double sum = 0;
    for (size_t k = 0; k < K; k++) sum += f32(t, x)[i / N * K + k] * f32(t, y)[i % N * K + k];
    assert_true(((float *)r.data)[i] == (float)(double)sum);
  }
  assert_true(atomic_load(&counted.peak) < 1 << 20);
  arena_free(&a);
  assert_int_equal(atomic_load(&counted.bytes), 0);
}

/* Terms that are a root too, and terms of two sums, are stored; results are the same. */
TENSOR_TEST(test_tensor_terms_with_readers) {
  const node *x = matrix(t, DT_I32, 2, 3), *y = matrix(t, DT_I32, 1, 3);
  fill_i32(t, x, 1);
  fill_i32(t, y, 2);
  const node *terms = product_terms(t, x, y);
  const node *roots[] = {ir_reduce(t->g, terms, OP_ADD, 1, (int64_t[]){2}), terms,
                         ir_reduce(t->g, terms, OP_MAX, 2, (int64_t[]){0, 2})};
  interp_array r[3];
  assert_int_equal(interp_tensor(&t->env, roots, 3, r, &t->a), TN_OK);
  CHECK_I32(&r[0], 20, 47);
  CHECK_I32(&r[1], 2, 6, 12, 8, 15, 24);
  CHECK_I32(&r[2], 24);
  assert_int_equal(interp_tensor(&t->env, &roots[2], 1, r, &t->a), TN_OK);
  CHECK_I32(&r[0], 24);
}

/* Reshapes of views: one that strides can show, and one that is copied. */
TENSOR_TEST(test_tensor_views) {
  const node *x = matrix(t, DT_I32, 2, 6), *sizes[] = {size(t, 2), size(t, 3), size(t, 2)};
  fill_i32(t, x, 0);
  const node *split = ir_reshape(t->g, x, 3, sizes);
  const node *turned = ir_permute(t->g, split, (int64_t[]){2, 0, 1});
  interp_array r = tensor(t, ir_reshape(t->g, turned, 2, (const node *[]){size(t, 2), size(t, 6)}));
  CHECK_I32(&r, 0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11);
  r = tensor(t, ir_reshape(t->g, turned, 2, (const node *[]){size(t, 4), size(t, 3)}));
  CHECK_I32(&r, 0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11);
  turned = ir_permute(t->g, split, (int64_t[]){1, 0, 2});
  r = tensor(t, ir_reshape(t->g, turned, 2, (const node *[]){size(t, 2), size(t, 6)}));
  CHECK_I32(&r, 0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11);
  const node *wide[] = {size(t, 2), size(t, 2), size(t, 2)};
  const node *line = ir_iota(t->g, DT_I32, 3, wide, 1);
  r = tensor(t, ir_reshape(t->g, line, 2, (const node *[]){size(t, 4), size(t, 2)}));
  CHECK_I32(&r, 0, 0, 1, 1, 0, 0, 1, 1);
  const node *starts[] = {size(t, 1), size(t, 4)}, *two[] = {size(t, 1), size(t, 2)};
  const node *part = ir_slice(t->g, x, starts, two, (int64_t[]){1, -3});
  const node *lows[] = {size(t, 0), size(t, 1)}, *padded[] = {size(t, 2), size(t, 4)};
  r = tensor(t, ir_pad(t->g, part, ir_const_int(t->g, DT_I32, 0), lows, padded));
  CHECK_I32(&r, 0, 10, 7, 0, 0, 0, 0, 0);
}

TENSOR_TEST(test_tensor_zero_size) {
  const node *x = matrix(t, DT_F32, 3, 0);
  interp_array r = tensor(t, ir_reduce(t->g, x, OP_MAX, 1, (int64_t[]){1}));
  assert_int_equal(r.bytes, 12);
  for (int i = 0; i < 3; i++) assert_true(((float *)r.data)[i] == -INFINITY);
  r = tensor(t, ir_reduce(t->g, x, OP_ADD, 1, (int64_t[]){0}));
  assert_int_equal(r.bytes, 0);
  assert_int_equal(tensor(t, ir_op1(t->g, OP_EXP, x)).bytes, 0);
  assert_int_equal(tensor(t, ir_permute(t->g, x, (int64_t[]){1, 0})).dims[0], 0);
}

TENSOR_TEST(test_tensor_symbolic_sizes) {
  const node *n = variable(t, "n", 100, 4), *dims[] = {n, size(t, 2)};
  const node *x = param(t, DT_I32, 2, dims), *flat[] = {ix_scale(t->g, n, 2)};
  fill_i32(t, x, 0);
  const node *start[] = {ix_sub(t->g, flat[0], size(t, 1))};
  const node *reversed = ir_slice(t->g, ir_reshape(t->g, x, 1, flat), start, flat, (int64_t[]){-1});
  interp_array r = tensor(t, reversed);
  CHECK_I32(&r, 7, 6, 5, 4, 3, 2, 1, 0);
  const node *half[] = {ix_floordiv(t->g, n, size(t, 2)), size(t, 4)};
  r = tensor(t, ir_reduce(t->g, ir_reshape(t->g, x, 2, half), OP_ADD, 1, (int64_t[]){0}));
  CHECK_I32(&r, 4, 6, 8, 10);
  t->vars[0].value = 101;
  refuse_tensor(t, x, TN_ERR_ARGUMENT, "'n' is 101");
  t->env.n_vars = 0;
  refuse_tensor(t, x, TN_ERR_ARGUMENT, "'n'");
}

/* Writes every other element of the transposed matrix, through three views. */
TENSOR_TEST(test_tensor_set) {
  const node *old = matrix(t, DT_I32, 2, 3), *with = vector(t, DT_I32, 3);
  fill_i32(t, old, 0);
  fill_i32(t, with, 100);
  const node *flat[] = {size(t, 6)}, *start[] = {size(t, 4)}, *three[] = {size(t, 3)};
  const node *view = ir_permute(t->g, old, (int64_t[]){1, 0});
  view = ir_slice(t->g, ir_reshape(t->g, view, 1, flat), start, three, (int64_t[]){-2});
  const node *src[] = {old, view, with};
  interp_array r = tensor(t, ir_node(t->g, OP_SET, DT_I32, src, 3, NULL, 0));
  CHECK_I32(&r, 102, 101, 100, 3, 4, 5);
  src[1] = src[0];
  src[2] = matrix(t, DT_I32, 2, 3);
  r = tensor(t, ir_node(t->g, OP_SET, DT_I32, src, 3, NULL, 0));
  CHECK_I32(&r, 0, 0, 0, 0, 0, 0);
}

static const interp_array *find_buffer(void *user, int64_t uid, int64_t version) {
  return uid == 7 ? (const interp_array *)user + version : NULL;
}

static tn_status twice(void *user, const node *n, const interp_array in[], size_t n_in,
                       interp_array *out, diag *d) {
  (void)user;
  if (n->ints[0] != 3) return diag_set(d, TN_ERR_UNSUPPORTED, "no function %d", (int)n->ints[0]);
  assert_int_equal(n_in, 1);
  for (size_t i = 0; i < out->bytes / 4; i++)
    ((int32_t *)out->data)[i] = ((int32_t *)in[0].data)[i] * 2;
  return TN_OK;
}

TENSOR_TEST(test_tensor_buffers_and_host_functions) {
  int32_t data[2][2] = {{1, 2}, {3, 4}};
  interp_array versions[2];
  for (int i = 0; i < 2; i++)
    versions[i] =
        (interp_array){.dtype = DT_I32, .rank = 1, .dims = {2}, .data = data[i], .bytes = 8};
  t->env.buffer = find_buffer;
  t->env.custom = twice;
  t->env.user = versions;
  const node *two = size(t, 2);
  const node *b = ir_node(t->g, OP_BUFFER, DT_I32, &two, 1, (int64_t[]){7, 1}, 2);
  const node *src[] = {b, two};
  interp_array r = tensor(t, ir_node(t->g, OP_CUSTOM, DT_I32, src, 2, (int64_t[]){3, 0, 1, 0}, 4));
  CHECK_I32(&r, 6, 8);
  refuse_tensor(t, ir_node(t->g, OP_CUSTOM, DT_I32, src, 2, (int64_t[]){4, 0, 1, 0}, 4),
                TN_ERR_UNSUPPORTED, "no function 4");
  refuse_tensor(t, ir_node(t->g, OP_BUFFER, DT_I32, &two, 1, (int64_t[]){8, 0}, 2), TN_ERR_ARGUMENT,
                "buffer 8");
}

/* Several roots: one is used by another, and one is an index. */
TENSOR_TEST(test_tensor_roots) {
  const node *x = vector(t, DT_I32, 2), *n = variable(t, "n", 9, 5);
  fill_i32(t, x, 3);
  const node *roots[] = {ir_op2(t->g, OP_ADD, x, x), x, ix_add_const(t->g, n, 1), x};
  interp_array r[4];
  assert_int_equal(interp_tensor(&t->env, roots, 4, r, &t->a), TN_OK);
  CHECK_I32(&r[0], 6, 8);
  CHECK_I32(&r[1], 3, 4);
  assert_int_equal(element(&r[2], 0), 6);
  CHECK_I32(&r[3], 3, 4);
}

TENSOR_TEST(test_tensor_deep) {
  const node *x = vector(t, DT_I32, 2), *y = x;
  fill_i32(t, x, 1);
  for (int i = 0; i < 100000; i++) y = ir_op2(t->g, OP_ADD, y, x);
  interp_array r = tensor(t, y);
  CHECK_I32(&r, 100001, 200002);
}

TENSOR_TEST(test_tensor_refuses) {
  const node *x = vector(t, DT_F32, 4), *y = vector(t, DT_F32, 4), *n = variable(t, "n", 9, 3);
  array(t, y)->dims[0] = 5;
  refuse_tensor(t, y, TN_ERR_SHAPE, "param 1");
  array(t, x)->dtype = DT_I32;
  refuse_tensor(t, x, TN_ERR_ARGUMENT, "f32");
  array(t, x)->dtype = DT_F32;
  const node *start[] = {size(t, 2)};
  refuse_tensor(t, ir_slice(t->g, x, start, &n, (int64_t[]){1}), TN_ERR_SHAPE, "slice");
  refuse_tensor(t, ir_reshape(t->g, x, 1, &n), TN_ERR_SHAPE, "reshape");
  const node *less = ix_add_const(t->g, n, -4);
  refuse_tensor(t, ir_iota(t->g, DT_I32, 1, &less, 0), TN_ERR_SHAPE, "-1");
  const node *huge[] = {size(t, INT64_C(1) << 40), size(t, INT64_C(1) << 40)};
  refuse_tensor(t, ir_iota(t->g, DT_I32, 2, huge, 0), TN_ERR_MEMORY, "large");
  const node *far = ix_scale(t->g, n, INT64_C(1) << 62);
  refuse_tensor(t, ir_iota(t->g, DT_I32, 1, &far, 0), TN_ERR_SHAPE, "64 bits");
  const node *lines = matrix(t, DT_I64, 8, 2);
  refuse_tensor(t, ir_scan_classes(t->g, OP_ADD, lines, 1, lines, INT64_C(1) << 60), TN_ERR_MEMORY,
                "too many classes");
}

/* Kernels. */

static const node *loop(test *t, int64_t n) { return range_make(t->g, size(t, n), KIND_LOOP); }

static const node *read(test *t, const node *of, size_t rank, const node *const at[]) {
  return index_make(t->g, of->dtype, of, 0, rank, at);
}
#define READ(t, of, ...)                                                    \
  read(t, of, sizeof((const node *[]){__VA_ARGS__}) / sizeof(const node *), \
       (const node *[]){__VA_ARGS__})

/* Returns a component of a binder as f32. */
static const node *part(test *t, const node *of, int64_t component, const node *at) {
  return index_make(t->g, DT_F32, of, component, at ? 1 : 0, &at);
}

/* Makes a STAGE of one value whose coordinates are its ranges. */
static const node *stage(test *t, const node *v, size_t n, const node *const ranges[]) {
  const node *extents[8];
  for (size_t i = 0; i < n; i++) extents[i] = range_extent(ranges[i]);
  return stage_make(t->g, &(stage_spec){.n_values = 1,
                                        .n_ranges = n,
                                        .values = &v,
                                        .ranks = &n,
                                        .coords = ranges,
                                        .extents = extents,
                                        .ranges = ranges});
}
#define STAGE(t, v, ...)                                                    \
  stage(t, v, sizeof((const node *[]){__VA_ARGS__}) / sizeof(const node *), \
        (const node *[]){__VA_ARGS__})

static const node *exp_minus(test *t, const node *x, const node *m) {
  return ir_op1(t->g, OP_EXP, ir_op2(t->g, OP_SUB, x, m));
}

KERNEL_TEST(test_kernel_softmax) {
  enum { ROWS = 3, COLUMNS = 7 };
  const node *in = matrix(t, DT_F32, ROWS, COLUMNS), *out = matrix(t, DT_F32, ROWS, COLUMNS);
  const node *r = range_make(t->g, size(t, ROWS), KIND_THREAD);
  const node *a = loop(t, COLUMNS), *b = loop(t, COLUMNS), *c = loop(t, COLUMNS),
             *d = loop(t, COLUMNS);
  fill_f32(t, in, 5);
  const node *m = fold_make_reduction(t->g, OP_MAX, READ(t, in, r, a), 1, &a);
  const node *e = STAGE(t, exp_minus(t, READ(t, in, r, b), m), b);
  const node *s = fold_make_reduction(t->g, OP_ADD, part(t, e, 0, c), 1, &c);
  kernel(t, out, STAGE(t, ir_op2(t->g, OP_DIV, part(t, e, 0, d), s), r, d));
  for (size_t i = 0; i < ROWS; i++) {
    const float *x = f32(t, in) + i * COLUMNS;
    float most = -INFINITY, sum = 0, ex[COLUMNS];
    for (size_t k = 0; k < COLUMNS; k++) most = x[k] > most ? x[k] : most;
    for (size_t k = 0; k < COLUMNS; k++) sum += ex[k] = (float)exp((double)(x[k] - most));
    for (size_t k = 0; k < COLUMNS; k++) assert_true(f32(t, out)[i * COLUMNS + k] == ex[k] / sum);
  }
}

KERNEL_TEST(test_kernel_matmul) {
  enum { M = 4, N = 5, K = 6 };
  const node *a = matrix(t, DT_F32, M, K), *b = matrix(t, DT_F32, K, N),
             *out = matrix(t, DT_F32, M, N);
  const node *i = loop(t, M), *j = loop(t, N), *k = loop(t, K);
  fill_f32(t, a, 1);
  fill_f32(t, b, 2);
  const node *term = ir_op2(t->g, OP_MUL, READ(t, a, i, k), READ(t, b, k, j));
  kernel(t, out, STAGE(t, fold_make_reduction(t->g, OP_ADD, term, 1, &k), i, j));
  for (int y = 0; y < M; y++)
    for (int x = 0; x < N; x++) {
      float sum = 0;
      for (int z = 0; z < K; z++) {
        float p = f32(t, a)[y * K + z] * f32(t, b)[z * N + x];
        sum += p;
      }
      assert_true(f32(t, out)[y * N + x] == sum);
    }
}

/* Matrix product with a blocked reduction: the outer fold's state is the whole output. */
KERNEL_TEST(test_kernel_blocked_matmul) {
  enum { M = 2, N = 3, BLOCKS = 3, BLOCK = 2, K = BLOCKS * BLOCK };
  const node *a = matrix(t, DT_F32, M, K), *b = matrix(t, DT_F32, K, N),
             *out = matrix(t, DT_F32, M, N);
  const node *ko = loop(t, BLOCKS), *ki = loop(t, BLOCK), *i = loop(t, M), *j = loop(t, N);
  const node *y = loop(t, M), *x = loop(t, N), *zero = ir_const(t->g, DT_F32, 0);
  fill_f32(t, a, 3);
  fill_f32(t, b, 4);
  const node *k = ix_add(t->g, ix_scale(t->g, ko, BLOCK), ki), *from[] = {y, x};
  const node *term = ir_op2(t->g, OP_MUL, READ(t, a, i, k), READ(t, b, k, j));
  const node *inner = fold_make_reduction(t->g, OP_ADD, term, 1, &ki);
  const node *step = STAGE(t, inner, i, j);
  int64_t add = OP_ADD, component = 0;
  const node *fold = fold_make(t->g, &(fold_spec){.n_states = 1,
                                                  .n_ranges = 1,
                                                  .inits = &zero,
                                                  .steps = &step,
                                                  .ops = &add,
                                                  .components = &component,
                                                  .ranges = &ko});
  kernel(t, out, STAGE(t, index_make(t->g, DT_F32, fold, 0, 2, from), y, x));
  for (int row = 0; row < M; row++)
    for (int column = 0; column < N; column++) {
      float sum = 0;
      for (int o = 0; o < BLOCKS; o++) {
        float block = 0;
        for (int n = 0; n < BLOCK; n++) {
          int z = o * BLOCK + n;
          float p = f32(t, a)[row * K + z] * f32(t, b)[z * N + column];
          block += p;
        }
        sum += block;
      }
      assert_true(f32(t, out)[row * N + column] == sum);
    }
}

/* Makes a fold with a scalar and an array state: the array records the scalar before it steps. */
static const node *cumulative(test *t, const node *in, const node *k, const node *i) {
  const node *s = part(t, fold_state_make(t->g, DT_F32, k, 0), 0, NULL);
  const node *sums = part(t, fold_state_make(t->g, DT_F32, k, 1), 0, i);
  const node *here = ir_op2(t->g, OP_EQ, i, k), *zero = ir_const(t->g, DT_F32, 0);
  const node *steps[] = {READ(t, in, k), STAGE(t, ir_op3(t->g, OP_WHERE, here, s, sums), i)};
  const node *inits[] = {zero, zero};
  return fold_make(t->g, &(fold_spec){.n_states = 2,
                                      .n_ranges = 1,
                                      .inits = inits,
                                      .steps = steps,
                                      .ops = (int64_t[]){OP_ADD, -1},
                                      .components = (int64_t[]){-1, 0},
                                      .ranges = &k});
}

KERNEL_TEST(test_kernel_cumulative_sum) {
  enum { N = 9 };
  const node *in = vector(t, DT_F32, N), *out = vector(t, DT_F32, N), *total = vector(t, DT_F32, N);
  const node *o = loop(t, N);
  fill_f32(t, in, 8);
  const node *fold = cumulative(t, in, loop(t, N), loop(t, N));
  kernel(t, out, STAGE(t, part(t, fold, 1, o), o));
  kernel(t, total, STAGE(t, part(t, fold, 0, NULL), o));
  float sum = 0;
  for (int i = 0; i < N; i++) {
    assert_true(f32(t, out)[i] == sum);
    sum += f32(t, in)[i];
  }
  for (int i = 0; i < N; i++) assert_true(f32(t, total)[i] == sum);
}

/* A range's extent depends on the outer range. */
KERNEL_TEST(test_kernel_triangular_sum) {
  enum { N = 6 };
  const node *in = vector(t, DT_F32, N), *out = vector(t, DT_F32, N), *o = loop(t, N);
  const node *k = range_make(t->g, ix_add_const(t->g, o, 1), KIND_LOOP);
  fill_f32(t, in, 9);
  kernel(t, out, STAGE(t, fold_make_reduction(t->g, OP_ADD, READ(t, in, k), 1, &k), o));
  float sum = 0;
  for (int i = 0; i < N; i++) assert_true(f32(t, out)[i] == (sum += f32(t, in)[i]));
}

/* A stage inside a loop grows with each iteration; earlier contents are dropped. */
KERNEL_TEST(test_kernel_growing_stage) {
  enum { N = 70 };
  const node *in = vector(t, DT_I32, N), *out = vector(t, DT_I32, N), *o = loop(t, N);
  const node *many = ix_add_const(t->g, o, 1);
  const node *i = range_make(t->g, many, KIND_LOOP), *k = range_make(t->g, many, KIND_LOOP);
  fill_i32(t, in, 1);
  const node *scaled = ir_op2(t->g, OP_MUL, READ(t, in, i), ir_cast(t->g, o, DT_I32));
  const node *s = STAGE(t, scaled, i), *v = index_make(t->g, DT_I32, s, 0, 1, &k);
  kernel(t, out, STAGE(t, fold_make_reduction(t->g, OP_ADD, v, 1, &k), o));
  for (int32_t r = 0; r < N; r++) assert_int_equal(i32(t, out)[r], r * (r + 1) * (r + 2) / 2);
}

static const node *argmax(test *t, const node *x, const node *k) {
  const node *m = part(t, fold_state_make(t->g, DT_F32, k, 0), 0, NULL);
  const node *at = index_make(t->g, DT_I32, fold_state_make(t->g, DT_I32, k, 1), 0, 0, NULL);
  const node *better = ir_op2(t->g, OP_LT, m, x);
  const node *inits[] = {ir_const(t->g, DT_F32, -INFINITY), ir_const_int(t->g, DT_I32, -1)};
  const node *steps[] = {ir_op3(t->g, OP_WHERE, better, x, m),
                         ir_op3(t->g, OP_WHERE, better, ir_cast(t->g, k, DT_I32), at)};
  return fold_make(t->g, &(fold_spec){.n_states = 2,
                                      .n_ranges = 1,
                                      .inits = inits,
                                      .steps = steps,
                                      .ops = (int64_t[]){-1, -1},
                                      .ranges = &k});
}

KERNEL_TEST(test_kernel_argmax) {
  const node *in = matrix(t, DT_F32, 2, 4), *out = vector(t, DT_I32, 2);
  const node *r = loop(t, 2), *k = loop(t, 4);
  memcpy(f32(t, in), (float[]){1, 5, 5, -2, -7, -8, -6, -9}, 32);
  const node *fold = argmax(t, READ(t, in, r, k), k);
  kernel(t, out, STAGE(t, index_make(t->g, DT_I32, fold, 1, 0, NULL), r));
  CHECK_I32(array(t, out), 1, 2);
}

/* Two states are swapped: both step from the old values. */
KERNEL_TEST(test_kernel_states_step_at_once) {
  const node *out = vector(t, DT_F32, 1), *k = loop(t, 3), *o = loop(t, 1);
  const node *steps[] = {part(t, fold_state_make(t->g, DT_F32, k, 1), 0, NULL),
                         part(t, fold_state_make(t->g, DT_F32, k, 0), 0, NULL)};
  const node *inits[] = {ir_const(t->g, DT_F32, 1), ir_const(t->g, DT_F32, 2)};
  const node *fold = fold_make(t->g, &(fold_spec){.n_states = 2,
                                                  .n_ranges = 1,
                                                  .inits = inits,
                                                  .steps = steps,
                                                  .ops = (int64_t[]){-1, -1},
                                                  .ranges = &k});
  const node *digits =
      ir_op2(t->g, OP_ADD, part(t, fold, 0, NULL),
             ir_op2(t->g, OP_MUL, part(t, fold, 1, NULL), ir_const(t->g, DT_F32, 10)));
  kernel(t, out, STAGE(t, digits, o));
  assert_true(f32(t, out)[0] == 12);
}

/* A fold over two ranges iterates the inner one first; x·2 + v depends on the order. */
KERNEL_TEST(test_kernel_fold_order) {
  const node *in = matrix(t, DT_I32, 2, 3), *out = vector(t, DT_I32, 1), *o = loop(t, 1);
  const node *ranges[] = {loop(t, 2), loop(t, 3)};
  memcpy(i32(t, in), (int32_t[]){1, 0, 1, 1, 0, 0}, 24);
  const node *s = index_make(t->g, DT_I32, fold_state_make(t->g, DT_I32, ranges[1], 0), 0, 0, NULL);
  const node *two = ir_const_int(t->g, DT_I32, 2), *init = ir_const_int(t->g, DT_I32, 0);
  const node *step = ir_op2(t->g, OP_ADD, ir_op2(t->g, OP_MUL, s, two), read(t, in, 2, ranges));
  int64_t no_op = -1;
  const node *fold = fold_make(t->g, &(fold_spec){.n_states = 1,
                                                  .n_ranges = 2,
                                                  .inits = &init,
                                                  .steps = &step,
                                                  .ops = &no_op,
                                                  .ranges = ranges});
  kernel(t, out, STAGE(t, index_make(t->g, DT_I32, fold, 0, 0, NULL), o));
  CHECK_I32(array(t, out), 44); /* 101100 in binary */
}

KERNEL_TEST(test_kernel_padding) {
  enum { N = 4 };
  const node *in = vector(t, DT_I32, N), *out = vector(t, DT_I32, N + 3), *r = loop(t, N + 3);
  fill_i32(t, in, 10);
  const node *at = ix_add_const(t->g, r, -2);
  const node *inside =
      ir_op2(t->g, OP_AND, ix_le(t->g, size(t, 0), at), ix_lt(t->g, at, size(t, N)));
  const node *pad = ir_const_int(t->g, DT_I32, -1);
  kernel(t, out, STAGE(t, ir_op3(t->g, OP_WHERE, inside, READ(t, in, at), pad), r));
  CHECK_I32(array(t, out), -1, -1, 10, 11, 12, 13, -1);
  const node *nowhere = ir_node(t->g, OP_INVALID, DT_INDEX, NULL, 0, NULL, 0);
  const node *gated = ir_op3(t->g, OP_WHERE, inside, at, nowhere);
  kernel(t, out, STAGE(t, READ(t, in, gated), r));
  CHECK_I32(array(t, out), 0, 0, 10, 11, 12, 13, 0);
}

/* Coordinates in mixed radix; writes outside of the output are dropped; unwritten elements of the
   output stay. */
KERNEL_TEST(test_kernel_coordinates) {
  const node *in = vector(t, DT_I32, 7), *out = vector(t, DT_I32, 7);
  const node *ranges[] = {loop(t, 2), loop(t, 4)}, *extent = size(t, 7);
  fill_i32(t, in, 1);
  fill_i32(t, out, 70);
  const node *x = ix_add(t->g, ix_scale(t->g, ranges[0], 4), ranges[1]);
  const node *v = read(t, in, 1, &x), *shifted = ix_add_const(t->g, x, 2);
  size_t rank = 1;
  kernel(t, out,
         stage_make(t->g, &(stage_spec){.n_values = 1,
                                        .n_ranges = 2,
                                        .values = &v,
                                        .ranks = &rank,
                                        .coords = &shifted,
                                        .extents = &extent,
                                        .ranges = ranges}));
  CHECK_I32(array(t, out), 70, 71, 1, 2, 3, 4, 5);
}

/* One nest computes row sums, of rank 1, and the doubled matrix, of rank 2. */
KERNEL_TEST(test_kernel_two_outputs) {
  const node *in = matrix(t, DT_I32, 2, 3);
  const node *params[] = {vector(t, DT_I32, 2), matrix(t, DT_I32, 2, 3)};
  const node *r = loop(t, 2), *c = loop(t, 3), *k = loop(t, 3);
  fill_i32(t, in, 1);
  const node *x = READ(t, in, r, c);
  const node *values[] = {fold_make_reduction(t->g, OP_ADD, READ(t, in, r, k), 1, &k),
                          ir_op2(t->g, OP_ADD, x, x)};
  const node *coords[] = {r, r, c}, *ranges[] = {r, c};
  const node *extents[] = {size(t, 2), size(t, 2), size(t, 3)};
  size_t ranks[] = {1, 2};
  const node *s = stage_make(t->g, &(stage_spec){.n_values = 2,
                                                 .n_ranges = 2,
                                                 .values = values,
                                                 .ranks = ranks,
                                                 .coords = coords,
                                                 .extents = extents,
                                                 .ranges = ranges});
  assert_int_equal(interp_kernel(&t->env, sink(t, params, 2, s), &mem_system, &t->d), TN_OK);
  CHECK_I32(array(t, params[0]), 6, 15);
  CHECK_I32(array(t, params[1]), 2, 4, 6, 8, 10, 12);
}

/* A chain of stages at the top level: each is built once and read by the next. */
KERNEL_TEST(test_kernel_stages) {
  enum { N = 5, DEPTH = 200 };
  const node *in = vector(t, DT_I32, N), *out = vector(t, DT_I32, N), *r = loop(t, N);
  fill_i32(t, in, 0);
  const node *s = STAGE(t, READ(t, in, r), r);
  for (int i = 0; i < DEPTH; i++) {
    const node *k = loop(t, N), *back = ix_sub(t->g, size(t, N - 1), k);
    const node *v = index_make(t->g, DT_I32, s, 0, 1, &back);
    s = STAGE(t, ir_op2(t->g, OP_ADD, v, ir_const_int(t->g, DT_I32, 1)), k);
  }
  kernel(t, out, s);
  CHECK_I32(array(t, out), 200, 201, 202, 203, 204);
}

/* Deeply nested binders and a deep expression: nothing recurses. */
KERNEL_TEST(test_kernel_deep) {
  enum { DEPTH = 300 };
  const node *out = vector(t, DT_I32, 2), *o = loop(t, 2), *v = ir_cast(t->g, o, DT_I32);
  for (int i = 0; i < 50000; i++) v = ir_op2(t->g, OP_ADD, v, ir_const_int(t->g, DT_I32, 1));
  for (int i = 0; i < DEPTH; i++) {
    const node *k = loop(t, 1);
    v = fold_make_reduction(t->g, OP_ADD, ir_op2(t->g, OP_ADD, v, ir_cast(t->g, k, DT_I32)), 1, &k);
  }
  kernel(t, out, STAGE(t, v, o));
  CHECK_I32(array(t, out), 50000, 50001);
}

KERNEL_TEST(test_kernel_symbolic_and_empty) {
  const node *n = variable(t, "n", 50, 5), *in = param(t, DT_F32, 1, &n),
             *out = vector(t, DT_F32, 2);
  const node *k = range_make(t->g, n, KIND_LOOP), *o = loop(t, 2);
  for (int i = 0; i < 5; i++) f32(t, in)[i] = (float)(i + 1);
  const node *most = fold_make_reduction(t->g, OP_MAX, READ(t, in, k), 1, &k);
  kernel(t, out, STAGE(t, most, o));
  assert_true(f32(t, out)[1] == 5);
  t->vars[0].value = 0;
  refuse_kernel(t, out, STAGE(t, most, o), TN_ERR_SHAPE, "param 0");
  array(t, in)->dims[0] = 0;
  array(t, in)->bytes = 0;
  kernel(t, out, STAGE(t, most, o));
  assert_true(f32(t, out)[1] == -INFINITY);
}

/* A scalar STAGE, and an element that no iteration writes. */
KERNEL_TEST(test_kernel_scalar_stage_and_holes) {
  const node *in = vector(t, DT_F32, 3), *out = vector(t, DT_F32, 3), *o = loop(t, 3),
             *k = loop(t, 3);
  memcpy(f32(t, in), (float[]){1, 2, 3}, 12);
  const node *s = stage(t, fold_make_reduction(t->g, OP_ADD, READ(t, in, k), 1, &k), 0, NULL);
  kernel(t, out, STAGE(t, part(t, s, 0, NULL), o));
  assert_true(f32(t, out)[2] == 6);
  const node *i = loop(t, 2), *v = READ(t, in, i), *three = size(t, 3);
  size_t rank = 1;
  s = stage_make(t->g, &(stage_spec){.n_values = 1,
                                     .n_ranges = 1,
                                     .values = &v,
                                     .ranks = &rank,
                                     .coords = &i,
                                     .extents = &three,
                                     .ranges = &i});
  kernel(t, out, STAGE(t, part(t, s, 0, o), o));
  assert_true(f32(t, out)[0] == 1 && f32(t, out)[1] == 2 && isnan(f32(t, out)[2]));
}

/* All reads come before any write. */
KERNEL_TEST(test_kernel_reads_before_it_writes) {
  const node *x = vector(t, DT_I32, 4), *r = loop(t, 4);
  fill_i32(t, x, 0);
  kernel(t, x, STAGE(t, READ(t, x, ix_sub(t->g, size(t, 3), r)), r));
  CHECK_I32(array(t, x), 3, 2, 1, 0);
}

KERNEL_TEST(test_kernel_refuses) {
  const node *in = vector(t, DT_I32, 4), *out = vector(t, DT_I32, 4), *r = loop(t, 4),
             *k = loop(t, 4);
  const node *x = READ(t, in, r);
  refuse_kernel(t, out, STAGE(t, x, k), TN_ERR_INTERNAL, "bound by nothing");
  const node *square = matrix(t, DT_I32, 4, 4), *zero = size(t, 0);
  const node *column = STAGE(t, READ(t, square, r, k), r);
  const node *top = index_make(t->g, DT_I32, column, 0, 1, &zero);
  refuse_kernel(t, square, STAGE(t, top, r, k), TN_ERR_INTERNAL, "bound already");
  refuse_kernel(t, out, STAGE(t, READ(t, in, r, r), r), TN_ERR_INTERNAL, "rank");
  refuse_kernel(t, vector(t, DT_F32, 4), STAGE(t, x, r), TN_ERR_INTERNAL, "another type");
  refuse_kernel(t, vector(t, DT_I32, 3), STAGE(t, x, r), TN_ERR_SHAPE, "other sizes");
  const node *far = ix_scale(t->g, ix_mul(t->g, r, r), INT64_C(1) << 61);
  refuse_kernel(t, out, STAGE(t, READ(t, in, far), r), TN_ERR_SHAPE, "64 bits");
  const node *init = x, *step = ir_op2(t->g, OP_ADD, x, x);
  const node *fold = fold_make(t->g, &(fold_spec){.n_states = 1,
                                                  .n_ranges = 1,
                                                  .inits = &init,
                                                  .steps = &step,
                                                  .ops = (int64_t[]){-1},
                                                  .ranges = &r});
  const node *bad = index_make(t->g, DT_I32, fold, 0, 0, NULL);
  const node *good =
      fold_make_reduction(t->g, OP_ADD, x, 1, &r); /* the range had values in an earlier loop */
  refuse_kernel(t, out, STAGE(t, ir_op2(t->g, OP_ADD, good, bad), k), TN_ERR_INTERNAL, "no value");
}

/* Linear programs. */

typedef struct list {
  const node *at[64];
  size_t n;
} list;

static const node *add(list *l, const node *n) { return l->at[l->n++] = n; }

static const node *make(test *t, op o, dtype type, unsigned lanes, const node *const src[],
                        size_t n_src, const int64_t ints[], size_t n_int) {
  return ir_make(t->g, &(node_spec){.op = o,
                                    .dtype = type,
                                    .lanes = (uint16_t)lanes,
                                    .src = src,
                                    .n_src = n_src,
                                    .ints = ints,
                                    .n_int = n_int});
}

static const node *i32_const(test *t, int64_t v) { return ir_const_int(t->g, DT_I32, v); }

static const node *open_range(test *t, list *l, const node *extent) {
  int64_t ints[] = {ir_fresh_id(t->g), KIND_LOOP, 0, 0};
  return add(l, make(t, OP_RANGE, DT_I32, 1, &extent, 1, ints, 4));
}

static void close_range(test *t, list *l, const node *range, const node *effect) {
  const node *src[] = {range, effect};
  add(l, make(t, OP_END, DT_VOID, 1, src, 2, NULL, 0));
}

static const node *alloc(test *t, list *l, dtype type, unsigned lanes, int64_t n, int64_t space) {
  const node *count = i32_const(t, n);
  int64_t ints[] = {ir_fresh_id(t->g), space};
  return add(l, make(t, OP_ALLOC, type, lanes, &count, 1, ints, 2));
}

static const node *load(test *t, list *l, const node *from, unsigned lanes, const node *at) {
  const node *src[] = {from, at};
  return add(l, make(t, OP_LOAD, from->dtype, lanes, src, 2, NULL, 0));
}

static const node *store(test *t, list *l, const node *to, const node *at, const node *v) {
  const node *src[] = {to, at, v};
  return add(l, make(t, OP_STORE, DT_VOID, 1, src, 3, NULL, 0));
}

static const node *after(test *t, const node *storage, const node *effect) {
  const node *src[] = {storage, effect};
  return make(t, OP_AFTER, storage->dtype, storage->lanes, src, 2, NULL, 0);
}

static const node *op2(test *t, list *l, op o, const node *a, const node *b) {
  return add(l, ir_op2(t->g, o, a, b));
}

static const node *linear(test *t, const list *l) {
  return make(t, OP_LINEAR, DT_VOID, 1, l->at, l->n, NULL, 0);
}

static void run_linear(test *t, const list *l) {
  if (interp_linear(&t->env, linear(t, l), 0, 1, &mem_system, &t->d) != TN_OK) diag_rethrow(&t->d);
}

static void refuse_linear(test *t, const list *l, const char *text) {
  assert_int_equal(interp_linear(&t->env, linear(t, l), 0, 1, &mem_system, &t->d), TN_ERR_INTERNAL);
  if (!strstr(t->d.text, text)) fail_msg("the message is: %s", t->d.text);
}

/* Computes out[4i … 4i + 3] = in · 2 in vectors, then the rest in a scalar loop. */
KERNEL_TEST(test_linear_vectors) {
  enum { N = 11 };
  list l = {0};
  const node *in = vector(t, DT_F32, N), *out = vector(t, DT_F32, N),
             *two = ir_const(t->g, DT_F32, 2);
  fill_f32(t, in, 6);
  const node *i = open_range(t, &l, i32_const(t, N / 4));
  const node *at = op2(t, &l, OP_MUL, i, i32_const(t, 4));
  const node *twos = add(&l, make(t, OP_SPLAT, DT_F32, 4, &two, 1, NULL, 0));
  const node *product = op2(t, &l, OP_MUL, load(t, &l, in, 4, at), twos);
  close_range(t, &l, i, store(t, &l, out, at, product));
  const node *k = open_range(t, &l, i32_const(t, N % 4));
  const node *rest = op2(t, &l, OP_ADD, k, i32_const(t, N / 4 * 4));
  const node *scalar = op2(t, &l, OP_MUL, load(t, &l, in, 1, rest), two);
  close_range(t, &l, k, store(t, &l, out, rest, scalar));
  run_linear(t, &l);
  for (int x = 0; x < N; x++) assert_true(f32(t, out)[x] == f32(t, in)[x] * 2);
}

/* Sums in a register of two lanes, then adds the lanes. */
KERNEL_TEST(test_linear_registers) {
  list l = {0};
  const node *in = vector(t, DT_F32, 8), *out = vector(t, DT_F32, 1),
             *zero = ir_const(t->g, DT_F32, 0);
  const node *nil = i32_const(t, 0), *place = i32_const(t, 2), *other = i32_const(t, 1);
  const node *starts[] = {zero, ir_const(t->g, DT_F32, 1000)};
  for (int i = 0; i < 8; i++) f32(t, in)[i] = (float)(1 << i);
  const node *acc = alloc(t, &l, DT_F32, 2, 3, 0);
  const node *start = add(&l, make(t, OP_VECTORIZE, DT_F32, 2, starts, 2, NULL, 0));
  const node *init = store(t, &l, acc, place, start), *k;
  store(t, &l, acc, other, start);
  k = open_range(t, &l, i32_const(t, 4));
  const node *at = op2(t, &l, OP_MUL, k, i32_const(t, 2));
  const node *sum =
      op2(t, &l, OP_ADD, load(t, &l, after(t, acc, init), 2, place), load(t, &l, in, 2, at));
  const node *body = store(t, &l, acc, place, sum);
  close_range(t, &l, k, body);
  const node *end = load(t, &l, after(t, acc, body), 2, place), *lane[2];
  for (int64_t i = 0; i < 2; i++) lane[i] = add(&l, make(t, OP_EXTRACT, DT_F32, 1, &end, 1, &i, 1));
  store(t, &l, out, nil, op2(t, &l, OP_SUB, lane[1], lane[0]));
  run_linear(t, &l);
  assert_true(f32(t, out)[0] == 1170 - 85);
}

/* Workers take every core_count-th element; a mask keeps them in bounds. */
KERNEL_TEST(test_linear_workers_and_gates) {
  enum { N = 5, WORKERS = 3 };
  list l = {0};
  const node *in = vector(t, DT_I32, N), *out = vector(t, DT_I32, N);
  fill_i32(t, in, 10);
  const node *count = make_var(t->g, DT_I32, "core_count", 1, 64);
  const node *id = add(&l, ir_make(t->g, &(node_spec){.op = OP_SPECIAL,
                                                      .dtype = DT_I32,
                                                      .src = &count,
                                                      .n_src = 1,
                                                      .text = "core_id",
                                                      .n_text = 7}));
  const node *i = open_range(t, &l, i32_const(t, 2));
  const node *at = op2(t, &l, OP_ADD, op2(t, &l, OP_MUL, i, count), id);
  const node *in_bounds = op2(t, &l, OP_LT, at, i32_const(t, N));
  const node *nowhere = make(t, OP_INVALID, DT_I32, 1, NULL, 0, NULL, 0);
  const node *gated = add(&l, ir_op3(t->g, OP_WHERE, in_bounds, at, nowhere));
  const node *v = op2(t, &l, OP_ADD, load(t, &l, in, 1, gated), i32_const(t, 1));
  close_range(t, &l, i, store(t, &l, out, gated, v));
  for (int64_t w = 0; w < WORKERS; w++)
    assert_int_equal(interp_linear(&t->env, linear(t, &l), w, WORKERS, &mem_system, &t->d), TN_OK);
  CHECK_I32(array(t, out), 11, 12, 13, 14, 15);
  array(t, in)->bytes -= 4; /* the mask is now wrong */
  assert_int_equal(interp_linear(&t->env, linear(t, &l), 0, WORKERS, &mem_system, &t->d), TN_OK);
  assert_int_equal(interp_linear(&t->env, linear(t, &l), 1, WORKERS, &mem_system, &t->d),
                   TN_ERR_INTERNAL);
}

/* A program before index types are chosen: addresses are affine forms. */
KERNEL_TEST(test_linear_index_arithmetic) {
  list l = {0};
  const node *in = vector(t, DT_I32, 6), *out = vector(t, DT_I32, 3), *i = add(&l, loop(t, 3));
  const node *at = add(&l, ix_add_const(t->g, ix_scale(t->g, i, -2), 5));
  fill_i32(t, in, 0);
  close_range(t, &l, i, store(t, &l, out, i, load(t, &l, in, 1, at)));
  run_linear(t, &l);
  CHECK_I32(array(t, out), 5, 3, 1);
}

KERNEL_TEST(test_linear_checks_addresses) {
  const node *in = vector(t, DT_I32, 4), *out = vector(t, DT_I32, 4);
  for (int64_t at = -2; at < 6; at++)
    for (unsigned lanes = 1; lanes <= 2; lanes++) {
      list l = {0};
      const node *v = load(t, &l, in, lanes, i32_const(t, at));
      store(t, &l, out, i32_const(t, 0), v);
      if (at >= 0 && at + lanes <= 4)
        run_linear(t, &l);
      else
        refuse_linear(t, &l, "load");
      l = (list){0};
      v = load(t, &l, in, lanes, i32_const(t, 0));
      store(t, &l, out, i32_const(t, at), v);
      if (at >= 0 && at + lanes <= 4)
        run_linear(t, &l);
      else
        refuse_linear(t, &l, "store");
    }
}

/* Accesses with more lanes than elements left, and with fewer than the register has. */
KERNEL_TEST(test_linear_checks_lanes) {
  const node *one = vector(t, DT_I32, 1), *zero = i32_const(t, 0);
  list l = {0};
  load(t, &l, one, 2, zero);
  refuse_linear(t, &l, "2 lanes");
  l = (list){0};
  load(t, &l, alloc(t, &l, DT_I32, 4, 1, 0), 2, zero);
  refuse_linear(t, &l, "lanes");
}

/* A loop overruns scratch memory by one element. */
KERNEL_TEST(test_linear_checks_scratch) {
  const node *out = vector(t, DT_I32, 8);
  for (int64_t n = 4; n <= 5; n++) {
    list l = {0};
    const node *scratch = alloc(t, &l, DT_I32, 1, 4, 1), *i = open_range(t, &l, i32_const(t, n));
    const node *s = store(t, &l, scratch, i, i);
    close_range(t, &l, i, s);
    const node *v = load(t, &l, after(t, scratch, s), 4, i32_const(t, 0));
    store(t, &l, out, i32_const(t, 4), v);
    if (n == 4)
      run_linear(t, &l);
    else
      refuse_linear(t, &l, "address 4 of alloc");
  }
  CHECK_I32(array(t, out), 0, 0, 0, 0, 0, 1, 2, 3);
}

/* An ALLOC in a loop loses its contents in each iteration. */
KERNEL_TEST(test_linear_checks_contents) {
  const node *out = vector(t, DT_I32, 4), *zero = i32_const(t, 0);
  list l = {0};
  const node *i = open_range(t, &l, i32_const(t, 2)), *cell = alloc(t, &l, DT_I32, 1, 1, 0);
  const node *first = op2(t, &l, OP_LT, i, i32_const(t, 1));
  const node *nowhere = make(t, OP_INVALID, DT_I32, 1, NULL, 0, NULL, 0);
  const node *gated = add(&l, ir_op3(t->g, OP_WHERE, first, zero, nowhere));
  const node *s = store(t, &l, cell, gated, i), *v = load(t, &l, after(t, cell, s), 1, zero);
  close_range(t, &l, i, store(t, &l, out, i, v));
  refuse_linear(t, &l, "was not written");
}

/* A load that moved out of a loop without iterations may read what was not written: its value may
   be computed with and dropped, but selects, stores and addresses may not depend on it. */
KERNEL_TEST(test_linear_drops_unwritten) {
  const node *out = vector(t, DT_I32, 4), *zero = i32_const(t, 0);
  for (int use = 0; use < 4; use++) {
    list l = {0};
    const node *cell = alloc(t, &l, DT_I32, 1, 2, 1), *s = store(t, &l, cell, zero, zero);
    const node *v = load(t, &l, after(t, cell, s), 1, i32_const(t, 1));
    const node *sum = op2(t, &l, OP_ADD, v, i32_const(t, 1));
    const node *is_one = op2(t, &l, OP_LT, use == 1 ? sum : zero, i32_const(t, 1));
    const node *side = add(&l, ir_op3(t->g, OP_WHERE, is_one, i32_const(t, 7), sum));
    const node *i = open_range(t, &l, zero);
    close_range(t, &l, i, store(t, &l, out, i, sum));
    store(t, &l, out, use == 2 ? sum : zero, use == 3 ? sum : side);
    if (use)
      refuse_linear(t, &l, "was not written");
    else
      run_linear(t, &l);
  }
  CHECK_I32(array(t, out), 7, 0, 0, 0);
}

KERNEL_TEST(test_linear_refuses) {
  const node *out = vector(t, DT_I32, 4), *zero = i32_const(t, 0);
  list l = {0};
  const node *sum = ir_op2(t->g, OP_ADD, i32_const(t, 1), i32_const(t, 2));
  store(t, &l, out, zero, sum);
  refuse_linear(t, &l, "uses add");
  l = (list){0};
  const node *i = open_range(t, &l, i32_const(t, 2)), *next = op2(t, &l, OP_ADD, i, zero);
  refuse_linear(t, &l, "never closed");
  close_range(t, &l, i, next);
  store(t, &l, out, zero, next);
  refuse_linear(t, &l, "uses add");
  l = (list){0};
  i = open_range(t, &l, i32_const(t, 2));
  const node *k = open_range(t, &l, i32_const(t, 3));
  close_range(t, &l, i, zero);
  close_range(t, &l, k, zero);
  refuse_linear(t, &l, "innermost");
  l = (list){0};
  i = open_range(t, &l, i32_const(t, 2));
  const node *inner = alloc(t, &l, DT_I32, 1, 1, 1);
  close_range(t, &l, i, zero);
  store(t, &l, inner, zero, zero);
  refuse_linear(t, &l, "storage");
  l = (list){0};
  i = open_range(t, &l, i32_const(t, 2));
  close_range(t, &l, i, store(t, &l, out, zero, op2(t, &l, OP_CDIV, zero, i)));
  refuse_linear(t, &l, "cdiv");
}

/* Every n-th allocation fails: an error, and no leak (checked by the sanitizers). */

typedef struct scarce {
  long left, held;
} scarce;

static void *scarce_alloc(void *user, size_t bytes, size_t align) {
  scarce *s = user;
  if (s->left-- <= 0) return NULL;
  s->held++;
  return mem_system.alloc(NULL, bytes, align);
}

static void scarce_release(void *user, void *at, size_t bytes) {
  if (at) ((scarce *)user)->held--;
  mem_system.release(NULL, at, bytes);
}

KERNEL_TEST(test_out_of_memory) {
  scarce s = {0};
  mem m = {scarce_alloc, scarce_release, &s};
  const node *in = vector(t, DT_F32, 9), *out = vector(t, DT_F32, 9), *o = loop(t, 9);
  const node *fold = cumulative(t, in, loop(t, 9), loop(t, 9));
  const node *root = sink(t, &out, 1, STAGE(t, part(t, fold, 1, o), o));
  const node *old = vector(t, DT_F32, 9), *y = ir_op2(t->g, OP_ADD, old, old), *src[] = {y, y, old};
  const node *set = ir_node(t->g, OP_SET, DT_F32, src, 3, NULL, 0);
  tn_status kernel_status = TN_ERR_MEMORY, tensor_status = TN_ERR_MEMORY;
  for (long n = 0; kernel_status != TN_OK || tensor_status != TN_OK; n++) {
    interp_array result;
    arena a;
    s.left = n;
    kernel_status = interp_kernel(&t->env, root, &m, &t->d);
    assert_true(kernel_status == TN_OK || kernel_status == TN_ERR_MEMORY);
    s.left = n;
    arena_init(&a, &m, &t->d);
    tensor_status = interp_tensor(&t->env, &set, 1, &result, &a);
    assert_true(tensor_status == TN_OK || tensor_status == TN_ERR_MEMORY);
    arena_free(&a);
    assert_int_equal(s.held, 0);
    assert_true(n < 1000);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tensor_elementwise),
      cmocka_unit_test(test_tensor_movement),
      cmocka_unit_test(test_tensor_permute_3),
      cmocka_unit_test(test_tensor_expand_and_iota),
      cmocka_unit_test(test_tensor_gather),
      cmocka_unit_test(test_tensor_distinct_places),
      cmocka_unit_test(test_tensor_reduce),
      cmocka_unit_test(test_tensor_sums_are_exact),
      cmocka_unit_test(test_tensor_contraction),
      cmocka_unit_test(test_tensor_terms_with_readers),
      cmocka_unit_test(test_tensor_views),
      cmocka_unit_test(test_tensor_zero_size),
      cmocka_unit_test(test_tensor_symbolic_sizes),
      cmocka_unit_test(test_tensor_set),
      cmocka_unit_test(test_tensor_buffers_and_host_functions),
      cmocka_unit_test(test_tensor_roots),
      cmocka_unit_test(test_tensor_deep),
      cmocka_unit_test(test_tensor_refuses),
      cmocka_unit_test(test_kernel_softmax),
      cmocka_unit_test(test_kernel_matmul),
      cmocka_unit_test(test_kernel_blocked_matmul),
      cmocka_unit_test(test_kernel_cumulative_sum),
      cmocka_unit_test(test_kernel_triangular_sum),
      cmocka_unit_test(test_kernel_growing_stage),
      cmocka_unit_test(test_kernel_argmax),
      cmocka_unit_test(test_kernel_states_step_at_once),
      cmocka_unit_test(test_kernel_fold_order),
      cmocka_unit_test(test_kernel_padding),
      cmocka_unit_test(test_kernel_coordinates),
      cmocka_unit_test(test_kernel_two_outputs),
      cmocka_unit_test(test_kernel_stages),
      cmocka_unit_test(test_kernel_deep),
      cmocka_unit_test(test_kernel_symbolic_and_empty),
      cmocka_unit_test(test_kernel_scalar_stage_and_holes),
      cmocka_unit_test(test_kernel_reads_before_it_writes),
      cmocka_unit_test(test_kernel_refuses),
      cmocka_unit_test(test_linear_vectors),
      cmocka_unit_test(test_linear_registers),
      cmocka_unit_test(test_linear_workers_and_gates),
      cmocka_unit_test(test_linear_index_arithmetic),
      cmocka_unit_test(test_linear_checks_addresses),
      cmocka_unit_test(test_linear_checks_lanes),
      cmocka_unit_test(test_linear_checks_scratch),
      cmocka_unit_test(test_linear_checks_contents),
      cmocka_unit_test(test_linear_drops_unwritten),
      cmocka_unit_test(test_linear_refuses),
      cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
