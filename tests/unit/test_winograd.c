/* Tests the rewrite of convolutions by Winograd's algorithm: results of the rewritten graph against
   those of the sum, in the interpreter, for many sizes, and which sums are left as they are. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/core/build.h"
#include "ir/core/math_mode.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/interp/interp.h"
#include "schedule/core/axis_views.h"
#include "schedule/values/constant_folding.h"
#include "support/graph_body.h"

enum { X = 0, WEIGHTS = 10, FIRST_NEW = 100, MOST_BUFFERS = 8 };

/** A convolution. */
typedef struct conv {
  int64_t batch, channels, outputs, height, width, pad, stride, dilation, groups;
  bool is_channels_last, is_flipped, is_turned; /* is_turned: w · x instead of x · w */
} conv;

typedef struct test {
  diag d;
  ir *g;
  void (*body)(struct test *t);
  bool weights_vary;
  double cache;
  struct {
    int64_t uid, version;
    interp_array array;
  } buffers[MOST_BUFFERS];
  size_t n_buffers;
} test;

static void call_body(void *arg) {
  test *t = arg;
  t->body(t);
}

static void run_body(void (*body)(test *t)) {
  test t = {.body = body, .cache = 1 << 25};
  run_in_graph(&t.g, false, &t.d, call_body, &t, 0);
}

#define TEST(name) BODY_TEST(name, run_body(name##_body))

/* Building. */

static const node *size(test *t, int64_t n) { return ix_const(t->g, n); }

static const node *buffer(test *t, int64_t uid, size_t rank, const int64_t sizes[]) {
  const node *dims[5];
  int64_t ints[] = {uid, 0};
  for (size_t i = 0; i < rank; i++) dims[i] = size(t, sizes[i]);
  return ir_node(t->g, OP_BUFFER, DT_F32, dims, rank, ints, 2);
}

static const node *pad(test *t, const node *x, int64_t by) {
  const node *lows[4], *sizes[4];
  for (size_t i = 0; i < 4; i++) {
    lows[i] = size(t, i < 2 ? 0 : by);
    sizes[i] = ix_add_const(t->g, x->dims[i], i < 2 ? 0 : 2 * by);
  }
  return by ? ir_pad(t->g, x, ir_const(t->g, DT_F32, 0), lows, sizes) : x;
}

static int64_t results_along(const conv *c, int64_t n) {
  return (n + 2 * c->pad - 2 * c->dilation - 1) / c->stride + 1;
}

static const node *windows_along(test *t, const conv *c, const node *x, size_t axis) {
  int64_t last = 2 * c->dilation + 1, n = node_int(x->dims[axis]);
  x = axis_windows(t->g, x, axis, last, c->stride, size(t, (n - last) / c->stride + 1));
  return axis_slice(t->g, x, axis, 0, size(t, 3), c->dilation);
}

/** The sum, with the axes (batch, groups, outputs of a group, height, width). */
static const node *build_conv(test *t, const conv *c) {
  ir *g = t->g;
  int64_t inner = c->channels / c->groups, outer = c->outputs / c->groups;
  int64_t h = results_along(c, c->height), w_size = results_along(c, c->width);
  const int64_t last[] = {c->batch, c->height, c->width, c->channels};
  const int64_t first[] = {c->batch, c->groups, inner, c->height, c->width};
  const int64_t weights[] = {c->groups, outer, inner, 3, 3};
  const node *x = c->is_channels_last ? buffer(t, X, 4, last) : buffer(t, X, 5, first);
  const node *w = buffer(t, WEIGHTS, 5, weights);
  if (!c->is_channels_last)
    x = ir_reshape(g, x, 4,
                   (const node *[]){size(t, c->batch), size(t, c->channels), size(t, c->height),
                                    size(t, c->width)});
  w = ir_reshape(g, w, 4,
                 (const node *[]){size(t, c->outputs), size(t, inner), size(t, 3), size(t, 3)});
  if (c->is_channels_last) x = ir_permute(g, x, (const int64_t[]){0, 3, 1, 2});
  if (c->is_flipped)
    w = axis_slice(g, axis_slice(g, w, 2, 2, size(t, 3), -1), 3, 2, size(t, 3), -1);
  x = windows_along(t, c, windows_along(t, c, pad(t, x, c->pad), 3), 2);
  x = axis_reshape(g, x, 1, 2, (const node *[]){size(t, c->groups), size(t, inner)});
  x = ir_permute(g, x, (const int64_t[]){0, 1, 4, 6, 2, 3, 5}); /* n, g, h, w, c, k, l */
  x = axis_reshape(g, x, 1, 2, (const node *[]){size(t, c->groups), size(t, 1)});
  const node *all[] = {size(t, c->batch), size(t, c->groups), size(t, outer), size(t, h),
                       size(t, w_size),   size(t, inner),     size(t, 3),     size(t, 3)};
  const node *of_w[] = {size(t, 1), all[1], all[2], size(t, 1), size(t, 1), all[5], all[6], all[7]};
  x = ir_expand(g, x, all);
  w = ir_expand(g, ir_reshape(g, w, 8, of_w), all);
  const node *product = c->is_turned ? ir_op2(g, OP_MUL, w, x) : ir_op2(g, OP_MUL, x, w);
  return ir_reduce(g, product, OP_ADD, 3, (const int64_t[]){5, 6, 7});
}

/* Rewriting. */

static bool never_changes(void *user, const node *n) {
  const test *t = user;
  return n->ints[0] >= WEIGHTS && !t->weights_vary;
}

static constants rewritten(test *t, const node *root, int math) {
  return constant_folding_find(t->g, &(constant_folding_request){.roots = &root,
                                                                 .n_roots = 1,
                                                                 .is_constant = never_changes,
                                                                 .user = t,
                                                                 .first_uid = FIRST_NEW,
                                                                 .vector = 32,
                                                                 .cache = t->cache,
                                                                 .math = math});
}

/** The terms of the longest sum of a graph. */
static int64_t longest_sum(test *t, const node *root) {
  node_list order = topo_sort(ir_arena(t->g), &root, 1, NULL, NULL);
  int64_t most = 0;
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    int64_t terms = 1;
    for (size_t k = 1; n->op == OP_REDUCE && k < n->n_int; k++)
      terms *= node_int(n->src[0]->dims[n->ints[k]]);
    if (terms > most) most = terms;
  }
  return most;
}

/* Running. */

static const interp_array *find_buffer(void *user, int64_t uid, int64_t version) {
  const test *t = user;
  for (size_t i = 0; i < t->n_buffers; i++)
    if (t->buffers[i].uid == uid && t->buffers[i].version == version) return &t->buffers[i].array;
  return NULL;
}

static void add_buffer(test *t, int64_t uid, int64_t version, interp_array array) {
  assert_true(t->n_buffers < MOST_BUFFERS);
  t->buffers[t->n_buffers].uid = uid;
  t->buffers[t->n_buffers].version = version;
  t->buffers[t->n_buffers++].array = array;
}

/** Fills a BUFFER with numbers from −1 to 1. */
static void add_numbers(test *t, const node *buffer) {
  interp_array a = {.dtype = DT_F32, .rank = buffer->rank, .bytes = sizeof(float)};
  for (size_t i = 0; i < a.rank; i++) {
    a.dims[i] = node_int(buffer->dims[i]);
    a.bytes *= (size_t)a.dims[i];
  }
  float *to = a.data = arena_alloc(ir_arena(t->g), a.bytes);
  uint64_t z = 1 + (uint64_t)buffer->ints[0];
  for (size_t i = 0; i < a.bytes / sizeof *to; i++) {
    z = z * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    to[i] = (float)((double)(z >> 40) / (1 << 23) - 1);
  }
  add_buffer(t, buffer->ints[0], 0, a);
}

static void add_inputs(test *t, const node *root) {
  node_list order = topo_sort(ir_arena(t->g), &root, 1, NULL, NULL);
  t->n_buffers = 0;
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_BUFFER) add_numbers(t, order.at[i]);
}

static interp_array run(test *t, const node *root) {
  interp_env e = {.buffer = find_buffer, .user = t};
  interp_array result;
  tn_status s = interp_tensor(&e, &root, 1, &result, ir_arena(t->g));
  if (s != TN_OK) diag_rethrow(&t->d);
  return result;
}

/** Checks the rewritten graph of a convolution. Elements are at most 1 in absolute value: so v is
   at most 4, u 2.25, each of 9 products summed for a result 9 for a channel; and each passes at
   most 14 operations that round by a relative 2^−24: 4 of v, 6 of u, 4 of y. */
static void check_conv(test *t, const conv *c) {
  const node *root = build_conv(t, c);
  constants k = rewritten(t, root, MATH_FAST);
  double bound = 14 * ldexp(1, -24) * 81 * (double)c->channels;
  assert_int_equal(longest_sum(t, root), 9 * c->channels);
  assert_int_equal(longest_sum(t, k.roots[0]), c->channels);
  assert_int_equal(k.at.n, 1);
  add_inputs(t, root);
  interp_array wanted = run(t, root);
  add_buffer(t, k.at.at[0].leaf->ints[0], k.at.at[0].leaf->ints[1], run(t, k.at.at[0].value));
  interp_array got = run(t, k.roots[0]);
  assert_int_equal(got.bytes, wanted.bytes);
  for (size_t i = 0; i < got.bytes / sizeof(float); i++) {
    double a = ((const float *)wanted.data)[i], b = ((const float *)got.data)[i];
    if (!(fabs(a - b) <= bound)) fail_msg("element %zu is %g, not %g", i, b, a);
  }
}

static const conv usual = {.batch = 1,
                           .channels = 48,
                           .outputs = 48,
                           .height = 7,
                           .width = 9,
                           .pad = 1,
                           .stride = 1,
                           .dilation = 1,
                           .groups = 1};

/** Tiles overhang along none, one or both axes. */
TEST(results_are_those_of_the_sum) {
  for (int64_t height = 7; height <= 8; height++)
    for (int64_t width = 9; width <= 10; width++)
      for (int64_t by = 0; by < 3; by++) {
        conv c = usual;
        c.height = height + 2 - 2 * by;
        c.width = width + 2 - 2 * by;
        c.pad = by;
        check_conv(t, &c);
      }
}

TEST(any_order_of_axes_and_operands_is_found) {
  conv c = usual;
  c.batch = 3;
  c.outputs = 40;
  check_conv(t, &c);
  c.is_channels_last = true;
  check_conv(t, &c);
  c.is_flipped = true;
  check_conv(t, &c);
  c.is_turned = true;
  check_conv(t, &c);
}

/* Sums that stay. */

static void check_stays(test *t, const conv *c, int math) {
  const node *root = build_conv(t, c);
  assert_int_equal(longest_sum(t, rewritten(t, root, math).roots[0]), 9 * c->channels / c->groups);
}

TEST(other_math_modes_keep_the_sum) {
  check_stays(t, &usual, MATH_EXACT);
  check_stays(t, &usual, MATH_DEFAULT);
  check_stays(t, &usual, MATH_FAST & ~MATH_CONTRACT);
}

/** As many results as the usual convolution has, so that the rewrite would save time. */
TEST(strides_dilations_and_groups_keep_the_sum) {
  conv c = usual;
  c.stride = 2;
  c.height *= 2;
  c.width *= 2;
  check_stays(t, &c, MATH_FAST);
  c = usual;
  c.dilation = 2;
  c.height += 2;
  c.width += 2;
  check_stays(t, &c, MATH_FAST);
  c = usual;
  c.channels = c.outputs = 192;
  c.groups = 2;
  c.height = c.width = 10;
  check_stays(t, &c, MATH_FAST);
  c.pad = 0; /* x and w are read at the group along an axis of its own */
  check_stays(t, &c, MATH_FAST);
}

TEST(weights_that_change_keep_the_sum) {
  t->weights_vary = true;
  check_stays(t, &usual, MATH_FAST);
}

TEST(sums_that_save_too_few_products_stay) {
  conv c = usual;
  c.channels = c.outputs = 8;
  check_stays(t, &c, MATH_FAST);
  c = usual;
  c.height = c.width = c.pad = 1; /* a tile of one result */
  check_stays(t, &c, MATH_FAST);
  c = usual;
  c.channels = c.outputs = 64;
  assert_int_equal(longest_sum(t, rewritten(t, build_conv(t, &c), MATH_FAST).roots[0]), 64);
  t->cache = 1024; /* transformed elements go to memory and back */
  check_stays(t, &c, MATH_FAST);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(results_are_those_of_the_sum),
      cmocka_unit_test(any_order_of_axes_and_operands_is_found),
      cmocka_unit_test(other_math_modes_keep_the_sum),
      cmocka_unit_test(strides_dilations_and_groups_keep_the_sum),
      cmocka_unit_test(weights_that_change_keep_the_sum),
      cmocka_unit_test(sums_that_save_too_few_products_stay),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
