/* Tests the rewrite of contractions of small types to rows of tensor_rows.def: results of the
   rewritten graph against those of the sum, in the interpreter, and which sums are left as they
   are. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/core/build.h"
#include "ir/core/math_mode.h"
#include "ir/core/scalar_eval.h"
#include "ir/core/tensor_rows.h"
#include "ir/core/topo_sort.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/interp/interp.h"
#include "schedule/core/axis_views.h"
#include "schedule/values/tensor_products.h"
#include "support/graph_body.h"

enum { ALL_ROWS = (1 << TENSOR_ROWS) - 1, MOST_BUFFERS = 4 };

typedef struct test {
  diag d;
  ir *g;
  void (*body)(struct test *t);
  interp_array buffers[MOST_BUFFERS];
} test;

static void call_body(void *arg) {
  test *t = arg;
  t->body(t);
}

static void run_body(void (*body)(test *t)) {
  test t = {.body = body};
  run_in_graph(&t.g, false, &t.d, call_body, &t, 0);
}

#define TEST(name) BODY_TEST(name, run_body(name##_body))

/* Elements. */

static const node *size(test *t, int64_t n) { return ix_const(t->g, n); }

/** Bits of a small element: one in three is an extreme. */
static uint64_t element(dtype t, uint64_t z) {
  static const uint64_t extremes[] = {0, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 1};
  if (t == DT_BF16) return bfloat_from_float((float)((int)(z >> 20 & 15) - 8));
  if (t == DT_F16) return scalar_from_double(t, (double)((int)(z >> 20 & 15) - 8));
  return z % 3 ? z >> 20 : extremes[z >> 40 & 7];
}

/** A BUFFER of a type with elements. */
static const node *buffer(test *t, int64_t uid, dtype type, size_t rank, const int64_t sizes[]) {
  const node *dims[5];
  int64_t ints[] = {uid, 0};
  interp_array a = {.dtype = type, .rank = (uint8_t)rank, .bytes = dtype_bytes(type)};
  for (size_t i = 0; i < rank; i++) {
    dims[i] = size(t, sizes[i]);
    a.dims[i] = sizes[i];
    a.bytes *= (size_t)sizes[i];
  }
  unsigned char *to = a.data = arena_alloc(ir_arena(t->g), a.bytes + 1);
  uint64_t z = (uint64_t)uid + 7;
  for (size_t at = 0; at < a.bytes; at += dtype_bytes(type)) {
    z = z * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    scalar_store(type, to + at, element(type, z));
  }
  t->buffers[uid] = a;
  return ir_node(t->g, OP_BUFFER, type, dims, rank, ints, 2);
}

/* Contractions. */

/** x (m, k) · y (k, n), with sums of a type. */
static const node *product(test *t, const node *x, const node *y, dtype sum) {
  ir *g = t->g;
  const node *m = x->dims[0], *k = x->dims[1], *n = y->dims[1], *all[] = {m, n, k};
  y = ir_permute(g, ir_cast(g, y, sum), (const int64_t[]){1, 0});
  x = ir_reshape(g, ir_cast(g, x, sum), 3, (const node *[]){m, size(t, 1), k});
  y = ir_reshape(g, y, 3, (const node *[]){size(t, 1), n, k});
  const node *terms = ir_op2(g, OP_MUL, ir_expand(g, x, all), ir_expand(g, y, all));
  return ir_reduce(g, terms, OP_ADD, 1, (const int64_t[]){2});
}

static const node *matmul(test *t, dtype x, dtype y, dtype sum, int64_t m, int64_t n, int64_t k) {
  return product(t, buffer(t, 0, x, 2, (const int64_t[]){m, k}),
                 buffer(t, 1, y, 2, (const int64_t[]){k, n}), sum);
}

/** A convolution of 3 × 3 windows with padding: x (channels, h, h), w (outputs, channels, 3, 3). */
static const node *conv(test *t, dtype x_type, dtype w_type, int64_t channels, int64_t h) {
  ir *g = t->g;
  const int64_t outputs = 5;
  const node *x = buffer(t, 0, x_type, 3, (const int64_t[]){channels, h, h});
  const node *w = buffer(t, 1, w_type, 4, (const int64_t[]){outputs, channels, 3, 3});
  const node *lows[] = {size(t, 0), size(t, 1), size(t, 1)};
  const node *sizes[] = {size(t, channels), size(t, h + 2), size(t, h + 2)};
  x = ir_pad(g, ir_cast(g, x, DT_I32), ir_const_int(g, DT_I32, 0), lows, sizes);
  x = axis_windows(g, axis_windows(g, x, 2, 3, 1, size(t, h)), 1, 3, 1, size(t, h));
  /* channels, 3, h, 3, h */
  const node *all[] = {size(t, outputs),  size(t, h), size(t, h),
                       size(t, channels), size(t, 3), size(t, 3)};
  const node *of_w[] = {all[0], size(t, 1), size(t, 1), all[3], all[4], all[5]};
  x = ir_permute(g, x, (const int64_t[]){2, 4, 0, 1, 3});
  x = axis_reshape(g, x, 0, 2, (const node *[]){size(t, 1), all[1]});
  w = ir_reshape(g, ir_cast(g, w, DT_I32), 6, of_w);
  const node *terms = ir_op2(g, OP_MUL, ir_expand(g, x, all), ir_expand(g, w, all));
  return ir_reduce(g, terms, OP_ADD, 3, (const int64_t[]){3, 4, 5});
}

/* Rewriting. */

static const interp_array *find_buffer(void *user, int64_t uid, int64_t version) {
  test *t = user;
  (void)version;
  return &t->buffers[uid];
}

static interp_array run(test *t, const node *root) {
  interp_env e = {.buffer = find_buffer, .user = t};
  interp_array result;
  if (interp_tensor(&e, &root, 1, &result, ir_arena(t->g)) != TN_OK) diag_rethrow(&t->d);
  return result;
}

static const node *rewritten(test *t, const node *root, uint32_t rows, int math) {
  tensor_products_rewrite(
      t->g, &(tensor_products_request){.roots = &root, .n_roots = 1, .rows = rows, .math = math});
  return root;
}

static size_t count_rows(test *t, const node *root) {
  node_list order = topo_sort(ir_arena(t->g), &root, 1, NULL, NULL);
  size_t n = 0;
  for (size_t i = 0; i < order.n; i++) n += tensor_row_of((op)order.at[i]->op) != NULL;
  return n;
}

/** Checks that a sum is rewritten to `rows` sums of words, with the same elements. */
static void check(test *t, const node *root, size_t rows) {
  const node *after = rewritten(t, root, ALL_ROWS, MATH_DEFAULT);
  assert_int_equal(count_rows(t, after), rows);
  interp_array a = run(t, root), b = run(t, after);
  assert_int_equal(a.bytes, b.bytes);
  assert_memory_equal(a.data, b.data, a.bytes);
}

static void check_left(test *t, const node *root) {
  assert_ptr_equal(rewritten(t, root, ALL_ROWS, MATH_DEFAULT), root);
}

/** Sums of integers that f32 holds exactly are compared for bf16 too. */
TEST(test_products_of_every_row) {
  static const struct {
    dtype x, y, sum;
    size_t rows;
  } types[] = {{DT_U8, DT_I8, DT_I32, 1},   {DT_I8, DT_U8, DT_I32, 1},
               {DT_I8, DT_I8, DT_I32, 2},   {DT_U8, DT_U8, DT_I32, 2},
               {DT_I16, DT_I16, DT_I32, 1}, {DT_BF16, DT_BF16, DT_F32, 1}};
  static const int64_t lengths[] = {8, 9, 10, 11, 15, 17, 63};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
      check(t, matmul(t, types[i].x, types[i].y, types[i].sum, 17, 33, lengths[k]), types[i].rows);
}

TEST(test_windows_with_padding) {
  check(t, conv(t, DT_U8, DT_I8, 16, 5), 1);
  check(t, conv(t, DT_I8, DT_I8, 16, 5), 2);
  check(t, conv(t, DT_I8, DT_I8, 11, 4), 2);
  check(t, conv(t, DT_U8, DT_U8, 10, 4), 2);
}

/** The words of two bytes of one sign, and a sum that repeats an operand, are no words of a row. */
TEST(test_sums_that_stay) {
  check_left(t, matmul(t, DT_U8, DT_I8, DT_I32, 17, 33, 7));    /* short */
  check_left(t, matmul(t, DT_U8, DT_I8, DT_I32, 1, 33, 64));    /* each word is read once */
  check_left(t, matmul(t, DT_U16, DT_I16, DT_I32, 17, 33, 64)); /* no row */
  check_left(t, matmul(t, DT_U8, DT_I8, DT_I64, 17, 33, 64));
  check_left(t, matmul(t, DT_I8, DT_I8, DT_F32, 17, 33, 64));
  check_left(t, matmul(t, DT_U8, DT_I16, DT_I32, 17, 33, 64));
  const node *x = buffer(t, 0, DT_U8, 2, (const int64_t[]){32, 64});
  const node *y = buffer(t, 1, DT_I8, 2, (const int64_t[]){64, 32});
  const node *half = axis_slice(t->g, ir_cast(t->g, x, DT_I32), 1, 0, size(t, 32), 2);
  check_left(t, product(t, half, axis_slice(t->g, y, 0, 0, size(t, 32), 1), DT_I32));
  const node *sum = ir_op2(t->g, OP_ADD, ir_cast(t->g, x, DT_I32), ir_cast(t->g, x, DT_I32));
  check_left(t, product(t, sum, y, DT_I32));
}

TEST(test_rows_of_the_target) {
  const node *bytes = matmul(t, DT_U8, DT_I8, DT_I32, 17, 33, 64);
  assert_ptr_equal(rewritten(t, bytes, ALL_ROWS & ~(1 << TENSOR_ROW_DOT_U8I8), MATH_DEFAULT),
                   bytes);
  assert_ptr_not_equal(rewritten(t, bytes, ALL_ROWS, MATH_EXACT), bytes);
  const node *floats = matmul(t, DT_BF16, DT_BF16, DT_F32, 17, 33, 64);
  assert_ptr_equal(rewritten(t, floats, ALL_ROWS, MATH_EXACT), floats);
  assert_ptr_equal(rewritten(t, floats, ALL_ROWS, MATH_REORDER), floats);
  assert_ptr_not_equal(rewritten(t, floats, ALL_ROWS, MATH_DEFAULT), floats);
}

/** Words of the first sum of a row along its reduction; 0: there is none. */
static int64_t words_of(test *t, const node *root) {
  node_list order = topo_sort(ir_arena(t->g), &root, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (n->op == OP_REDUCE && tensor_row_of((op)n->src[0]->op))
      return node_int(n->src[0]->dims[n->ints[1]]);
  }
  return 0;
}

/** Sums for tiles of warps have axes as long as these; the words of others stay elements. */
TEST(test_words_of_warps) {
  enum {
    ROWS = 1 << (TENSOR_ROWS + TENSOR_TILE_MMA_F16) | 1 << (TENSOR_ROWS + TENSOR_TILE_MMA_BF16)
  };
  static const struct {
    dtype type;
    int64_t m, n, k, words;
  } sums[] = {{DT_BF16, 64, 67, 70, 40}, {DT_F16, 67, 64, 64, 32}, {DT_F16, 15, 600, 64, 0},
              {DT_F16, 600, 15, 64, 0},  {DT_F16, 600, 64, 16, 0}, {DT_F16, 16, 17, 64, 0}};
  for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
    dtype type = sums[i].type;
    const node *sum = matmul(t, type, type, DT_F32, sums[i].m, sums[i].n, sums[i].k);
    const node *after = rewritten(t, sum, ROWS, MATH_DEFAULT);
    assert_int_equal(words_of(t, after), sums[i].words);
    interp_array a = run(t, sum), b = run(t, after);
    assert_memory_equal(a.data, b.data, a.bytes);
  }
}

/** Where the target has tiles, words of large sums fill them: there are 0 behind the last. A row of
    floats is for such sums alone. */
TEST(test_words_of_tiles) {
  enum { TILES = (1 << TENSOR_LONE_OPS) - 1 };
  static const struct {
    dtype x, y, sum;
    int64_t m, n, k, words;
  } sums[] = {
      {DT_U8, DT_I8, DT_I32, 17, 133, 70, 32},     {DT_I8, DT_I8, DT_I32, 17, 133, 128, 32},
      {DT_U8, DT_I8, DT_I32, 15, 233, 70, 18},     {DT_U8, DT_I8, DT_I32, 17, 233, 60, 15},
      {DT_BF16, DT_BF16, DT_F32, 17, 433, 35, 32}, {DT_BF16, DT_BF16, DT_F32, 15, 433, 64, 0},
      {DT_BF16, DT_BF16, DT_F32, 433, 15, 64, 0},  {DT_BF16, DT_BF16, DT_F32, 17, 433, 32, 0},
      {DT_BF16, DT_BF16, DT_F32, 17, 33, 64, 0}};
  for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
    const node *sum = matmul(t, sums[i].x, sums[i].y, sums[i].sum, sums[i].m, sums[i].n, sums[i].k);
    const node *after = rewritten(t, sum, TILES, MATH_DEFAULT);
    assert_int_equal(words_of(t, after), sums[i].words);
    interp_array a = run(t, sum), b = run(t, after);
    assert_memory_equal(a.data, b.data, a.bytes);
  }
}

/* Ops. */

static void check_row(op o, uint64_t sum, uint64_t x, uint64_t y, uint64_t expected) {
  const uint64_t args[] = {sum, x, y};
  bool overflow = false;
  dtype t = tensor_row_of(o)->sum;
  assert_true(scalar_eval(o, t, t, args, &overflow) == expected);
}

static uint64_t word(int64_t bits) { return (uint64_t)(int64_t)(int32_t)(uint32_t)bits; }

static void test_ops(void **state) {
  (void)state;
  check_row(OP_DOT_U8I8, 5, word(0x04030201), word(0x40302010), 5 + 16 + 64 + 144 + 256);
  check_row(OP_DOT_U8I8, 0, word(0xffffffff), word(0x80808080), (uint64_t)(4 * 255 * -128));
  check_row(OP_DOT_U8I8, 0, word(0x000000ff), word(0xff), (uint64_t)-255);
  check_row(OP_DOT_U8I8, INT32_MAX, 1, 1, (uint64_t)INT32_MIN);
  check_row(OP_DOT_I16, 1, word(0x00020003), word(0x000a000b), 1 + 20 + 33);
  check_row(OP_DOT_I16, 0, word(0x80008000), word(0x80008000), (uint64_t)INT32_MIN);
  check_row(OP_DOT_BF16, scalar_from_double(DT_F32, 0.5), 0x40003f80, 0x40404000,
            scalar_from_double(DT_F32, 0.5 + 2 * 3 + 1 * 2));
  assert_true(op_takes(OP_DOT_U8I8, DT_I32) && !op_takes(OP_DOT_U8I8, DT_I64) &&
              !op_takes(OP_DOT_BF16, DT_F64));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_products_of_every_row),
      cmocka_unit_test(test_windows_with_padding),
      cmocka_unit_test(test_sums_that_stay),
      cmocka_unit_test(test_rows_of_the_target),
      cmocka_unit_test(test_words_of_tiles),
      cmocka_unit_test(test_words_of_warps),
      cmocka_unit_test(test_ops),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
