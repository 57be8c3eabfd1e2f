/* Tests that automatic schedules of network kernels replay: printed as text and applied again, they
   give the same kernel, for several targets. */
#include "codegen/codegen.h"
#include "render/c/dialect.h"
#include "render/c/render_c.h"
#include "schedule/schedule.h"
#include "tensor/context/handle.h" /* before cmocka, which has a macro fail */

#include "support/tensor_check.h"

#include "../ir/alike.h"

static tn_tensor *weight(tn_context *c, tn_shape shape) { return tn_input(c, "w", shape, TN_F32); }

static tn_tensor *dense(tn_context *c, tn_tensor *x, tn_dim in, tn_dim out) {
  return tn_add(tn_matmul(x, weight(c, tn_shape(in, out))), weight(c, tn_shape(out)));
}

static tn_tensor *perceptron(tn_context *c, tn_dim rows) {
  tn_tensor *x = tn_gelu(dense(c, tn_input(c, "x", tn_shape(rows, 37), TN_F32), 37, 200));
  return tn_softmax(dense(c, tn_relu(dense(c, x, 200, 64)), 64, 10), 1);
}

static tn_tensor *normed(tn_tensor *x, tn_context *c, tn_dim n) {
  tn_tensor *mean = tn_mean(x, tn_axes(-1), true), *var = tn_var(x, tn_axes(-1), 0, true);
  tn_tensor *y = tn_div(tn_sub(x, mean), tn_sqrt(tn_add(var, tn_num(c, 1e-5))));
  return tn_add(tn_mul(y, weight(c, tn_shape(n))), weight(c, tn_shape(n)));
}

static tn_tensor *attention(tn_context *c, tn_dim rows) {
  enum { HEADS = 4, SIZE = 16, WIDTH = HEADS * SIZE };
  tn_tensor *x = tn_input(c, "x", tn_shape(rows, WIDTH), TN_F32), *part[3];
  for (int i = 0; i < 3; i++) {
    part[i] = tn_reshape(dense(c, normed(x, c, WIDTH), WIDTH, WIDTH), tn_shape(rows, HEADS, SIZE));
    part[i] = tn_permute(part[i], tn_axes(1, 0, 2));
  }
  tn_tensor *scores = tn_matmul(part[0], tn_permute(part[1], tn_axes(0, 2, 1)));
  tn_tensor *mixed = tn_matmul(tn_softmax(tn_mul(scores, tn_num(c, 0.25)), 2), part[2]);
  mixed = tn_reshape(tn_permute(mixed, tn_axes(1, 0, 2)), tn_shape(rows, WIDTH));
  x = tn_add(x, dense(c, mixed, WIDTH, WIDTH));
  return tn_add(x, dense(c, tn_gelu(dense(c, normed(x, c, WIDTH), WIDTH, 256)), 256, WIDTH));
}

static tn_tensor *pictures(tn_context *c, tn_dim batch) {
  tn_conv_desc same = TN_CONV_DESC_INIT, half = TN_CONV_DESC_INIT;
  tn_pool_desc pool = TN_POOL_DESC_INIT;
  for (int i = 0; i < 2; i++) {
    same.pad_low[i] = same.pad_high[i] = half.pad_low[i] = half.pad_high[i] = 1;
    half.stride[i] = pool.kernel[i] = 2;
  }
  tn_tensor *x = tn_input(c, "x", tn_shape(batch, 3, 30, 30), TN_F32);
  x = tn_relu(tn_conv(x, weight(c, tn_shape(16, 3, 3, 3)), weight(c, tn_shape(16)), &same));
  x = tn_max_pool(x, &pool);
  x = tn_relu(tn_conv(x, weight(c, tn_shape(32, 16, 3, 3)), NULL, &half));
  return dense(c, tn_mean(x, tn_axes(2, 3), false), 32, 10);
}

static tn_tensor *statistics(tn_context *c, tn_dim rows) {
  tn_tensor *x = tn_input(c, "x", tn_shape(rows, 1000, 7), TN_F32);
  tn_tensor *all = tn_sum(tn_exp(x), tn_axes(0, 1, 2), false);
  tn_tensor *columns = tn_var(x, tn_axes(0, 1), 1, false);
  return tn_add(tn_cumsum(tn_permute(columns, tn_axes(0)), 0), all);
}

typedef struct replaying {
  ir *g;
  const node *root;
  size_t kernels, lines;
} replaying;

#define MACHINE \
  { 32 << 10, 1 << 20, 8 << 20, 8, 64, 4096, 8 }
static const target targets[] = {
    {.vector_bytes = 32, .registers = 16, .threads = true, .hardware = MACHINE},
    {.vector_bytes = 64, .registers = 32, .threads = true, .hardware = MACHINE},
    {.vector_bytes = 16, .registers = 16},
    {.threads = true},
};

static void replay_kernel_on(replaying *r, const node *kernel, const target *t) {
  str lines = str_new(ir_arena(r->g));
  codegen_options o = {.target = *t, .math = MATH_DEFAULT};
  render_c_unsupported_ops(&c_gnu, &o.target.rules);
  const node *simple = codegen_simplify(r->g, kernel, &o);
  o.observer = (codegen_observer){.law = alike_note, .user = &lines};
  alike_replay(r->g, simple, &lines, codegen_choose(r->g, simple, &o));
  r->kernels++;
  for (size_t i = 0; i < lines.n; i++) r->lines += lines.at[i] == '\n';
}

static void replay_all(void *arg) {
  replaying *r = arg;
  for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
    schedule_request q = {.roots = &r->root,
                          .n_roots = 1,
                          .math = MATH_DEFAULT,
                          .target.vector = targets[t].vector_bytes,
                          .target.hardware = targets[t].hardware};
    const schedule *s = schedule_make(r->g, &q);
    for (size_t i = 0; i < s->steps.n; i++)
      if (s->steps.at[i].kernel) replay_kernel_on(r, s->steps.at[i].kernel, &targets[t]);
  }
}

static void check(tn_context *c, const char *name, tn_tensor *y) {
  diag d = {0};
  if (!y || !y->node) fail_msg("%s: %s", name, tn_message(c));
  replaying r = {.g = ir_new(&mem_system, &d, false), .root = y->node};
  if (diag_catch(&d, replay_all, &r) != TN_OK) fail_msg("%s: %s", name, d.text);
  print_message("%s: %zu kernels, %zu laws\n", name, r.kernels, r.lines);
  assert_true(r.kernels >= sizeof targets / sizeof *targets && r.lines > r.kernels);
  ir_free(r.g);
}

static void networks_are_replayed(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  tn_dim n = tn_dim_var(c, "n", 1, 500);
  check(c, "perceptron", perceptron(c, 29));
  check(c, "perceptron of any size", perceptron(c, n));
  check(c, "attention", attention(c, 50));
  check(c, "attention of any size", attention(c, n));
  check(c, "pictures", pictures(c, 2));
  check(c, "any number of pictures", pictures(c, n));
  check(c, "statistics", statistics(c, 11));
  assert_int_equal(tn_close(c), TN_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(networks_are_replayed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
