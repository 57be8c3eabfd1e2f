/* Tests the automatic scheduling of kernels that are too large to be interpreted: which loop is
   divided among threads, which ranges are vectorised or unrolled into register tiles, which
   operands are packed, the size of scratch memory, and that scheduling takes time linear in the
   number of reductions. */
#include "codegen/codegen.h"
#include "codegen/scratch_plan.h"
#include "render/c/dialect.h"
#include "render/c/render_c.h"
#include "schedule/schedule.h"
#include "tensor/context/handle.h" /* before cmocka, which has a macro fail */

#include "support/tensor_check.h"

#include <time.h>

static const target machine = {.vector_bytes = 64,
                               .registers = 32,
                               .threads = true,
                               .scratch = 1 << 20,
                               .hardware = {48 << 10, 2 << 20, 32 << 20, 8, 64, 4096, 8}};

enum { MOST_SUMS = 240 };

typedef struct choosing {
  ir *g;
  const node *root;
  const node *chosen; /* the last kernel */
  uint64_t scratch;   /* bytes of the kernel's own arrays */
} choosing;

static void choose_all(void *arg) {
  choosing *c = arg;
  codegen_options o = {.target = machine, .math = MATH_DEFAULT};
  render_c_unsupported_ops(&c_gnu, &o.target.rules);
  schedule_request q = {.roots = &c->root,
                        .n_roots = 1,
                        .math = MATH_DEFAULT,
                        .target.vector = machine.vector_bytes,
                        .target.hardware = machine.hardware};
  const schedule *s = schedule_make(c->g, &q);
  for (size_t i = 0; i < s->steps.n; i++) {
    const node *kernel = s->steps.at[i].kernel;
    if (kernel) c->chosen = codegen_choose(c->g, codegen_simplify(c->g, kernel, &o), &o);
  }
}

static void measure(void *arg) {
  choosing *c = arg;
  choose_all(c);
  const node *lowered = codegen_expand(c->g, codegen_lower(c->g, c->chosen));
  lowered = codegen_index_width(c->g, codegen_promote_registers(c->g, lowered, &machine), &machine);
  c->scratch = scratch_plan_make(ir_arena(c->g), codegen_linearise(c->g, lowered)).bytes;
}

/** Counts the ranges of a kind in the nest that writes a tensor, and returns the largest extent. */
static size_t ranges_of(tn_context *c, tn_tensor *y, range_kind kind, int64_t *extent) {
  diag d = {0};
  if (!y || !y->node) fail_msg("%s", tn_message(c));
  choosing x = {.g = ir_new(&mem_system, &d, false), .root = y->node};
  if (diag_catch(&d, choose_all, &x) != TN_OK) fail_msg("%s", d.text);
  const node *out = x.chosen->src[0], *stage = out->src[out->n_src - 1];
  size_t n = 0;
  *extent = 0;
  for (size_t i = 0; i < stage_n_ranges(stage); i++) {
    const node *r = stage_range(stage)[i];
    if (range_kind_of(r) != kind) continue;
    if (range_extent(r)->hi > *extent) *extent = range_extent(r)->hi;
    n++;
  }
  ir_free(x.g);
  return n;
}

static tn_tensor *input(tn_context *c, tn_shape shape) { return tn_input(c, "x", shape, TN_F32); }

static tn_tensor *attention(tn_context *c, tn_dim heads, tn_dim length) {
  tn_tensor *q = input(c, tn_shape(heads, length, 64)), *k = input(c, tn_shape(heads, length, 64));
  tn_tensor *scores = tn_mul(tn_matmul(q, tn_swapaxes(k, 1, 2)), tn_num(c, 0.125));
  return tn_matmul(tn_softmax(scores, -1), input(c, tn_shape(heads, length, 64)));
}

/** Heads are parallelised where they suffice for all cores alike; else queries are, although each
   worker then builds what its queries need of the keys. */
static void heads_are_shared_out(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  int64_t extent;
  assert_int_equal(ranges_of(c, attention(c, 16, 512), KIND_THREAD, &extent), 1);
  assert_int_equal(extent, 16);
  assert_int_equal(ranges_of(c, attention(c, 1, 4096), KIND_THREAD, &extent), 1);
  assert_true(extent > 12);
  assert_int_equal(tn_close(c), TN_OK);
}

/** A broadcast scalar is parallelised although it does nothing but store. */
static void stores_are_shared_out(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  int64_t extent;
  tn_dim n = tn_dim_var(c, "n", 1, 100000);
  tn_tensor *x = input(c, tn_shape(1, 1));
  assert_int_equal(ranges_of(c, tn_expand(x, tn_shape(2048, 2048)), KIND_THREAD, &extent), 1);
  assert_int_equal(ranges_of(c, tn_expand(x, tn_shape(n, 64)), KIND_THREAD, &extent), 1);
  assert_int_equal(ranges_of(c, tn_expand(x, tn_shape(8, 64)), KIND_THREAD, &extent), 0);
  assert_int_equal(tn_close(c), TN_OK);
}

/** Packed operands leave room in scratch memory for rows of results. */
static void copies_leave_room_for_rows(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  for (int64_t n = 1000; n <= 12000; n += 500) {
    tn_tensor *w = tn_transpose(input(c, tn_shape(n, 64)));
    tn_tensor *y = tn_softmax(tn_matmul(input(c, tn_shape(512, 64)), w), -1);
    diag d = {0};
    choosing x = {.g = ir_new(&mem_system, &d, false), .root = y->node};
    if (diag_catch(&d, measure, &x) != TN_OK) fail_msg("%s", d.text);
    ir_free(x.g);
    assert_true(x.scratch > 0 && x.scratch <= machine.scratch);
  }
  assert_int_equal(tn_close(c), TN_OK);
}

/** An operand whose rows lie about a page apart is packed for register tiles, whether its rows are
   a whole number of blocks or not. */
static void rows_about_a_page_apart_are_packed(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  for (int64_t n = 2047; n <= 2049; n++) {
    tn_tensor *y = tn_matmul(input(c, tn_shape(n, n)), input(c, tn_shape(n, n)));
    diag d = {0};
    choosing x = {.g = ir_new(&mem_system, &d, false), .root = y->node};
    if (diag_catch(&d, measure, &x) != TN_OK) fail_msg("%s", d.text);
    ir_free(x.g);
    assert_true(x.scratch >= 16 << 10);
  }
  assert_int_equal(tn_close(c), TN_OK);
}

/** Rows of a variable length are not tiled: their reuse does not fit registers. */
static void rows_of_a_varying_length_are_not_tiled(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  tn_dim n = tn_dim_var(c, "n", 1, 100000);
  int64_t extent;
  assert_int_equal(ranges_of(c, tn_softmax(input(c, tn_shape(512, n)), 1), KIND_UNROLL, &extent),
                   0);
  assert_true(ranges_of(c, tn_softmax(input(c, tn_shape(512, n)), 1), KIND_VECTOR, &extent) > 0);
  tn_tensor *y = tn_matmul(input(c, tn_shape(512, n)), input(c, tn_shape(n, 512)));
  assert_true(ranges_of(c, y, KIND_UNROLL, &extent) > 0);
  assert_int_equal(tn_close(c), TN_OK);
}

/** Returns the seconds of scheduling n sums of rows in one graph and of choosing their laws. */
static double seconds_of_sums(tn_context *c, int64_t n) {
  tn_tensor *x = input(c, tn_shape(n, 1000)), *sums[MOST_SUMS];
  for (int64_t i = 0; i < n; i++) sums[i] = tn_sum(tn_slice(x, 0, i, i + 1, 1), tn_axes(1), false);
  diag d = {0};
  choosing all = {.g = ir_new(&mem_system, &d, false), .root = tn_concat(sums, (size_t)n, 0)->node};
  clock_t start = clock();
  if (diag_catch(&d, choose_all, &all) != TN_OK) fail_msg("%s", d.text);
  double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
  ir_free(all.g);
  return seconds;
}

/** Kernels have a size limit, so algorithms that restart within one stay linear in the graph. */
static void time_is_linear_in_sums_of_rows(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  double few = seconds_of_sums(c, MOST_SUMS / 4), many = seconds_of_sums(c, MOST_SUMS);
  print_message("%d sums: %.3f s, %d: %.3f s\n", MOST_SUMS / 4, few, MOST_SUMS, many);
  assert_true(many < 8 * few + 0.05);
  assert_int_equal(tn_close(c), TN_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(heads_are_shared_out),
                                     cmocka_unit_test(stores_are_shared_out),
                                     cmocka_unit_test(copies_leave_room_for_rows),
                                     cmocka_unit_test(rows_about_a_page_apart_are_packed),
                                     cmocka_unit_test(rows_of_a_varying_length_are_not_tiled),
                                     cmocka_unit_test(time_is_linear_in_sums_of_rows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
