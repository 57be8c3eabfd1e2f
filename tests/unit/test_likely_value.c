/* Tests likely values of index expressions: every op at the likely values of its variables, within
   its bounds, and with saturation. */
#include "ir/core/binder.h"
#include "ir/core/likely_value.h"
#include "ir/index/address_stride.h"
#include "ir/index/index_arithmetic.h"
#include "support/index_var.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static ir *g;
static diag d;
static const mem *heap;

static int open_graph(void **state) {
  (void)state;
  heap = &mem_system;
  g = ir_new(heap, &d, false);
  return !g;
}

static int close_graph(void **state) {
  (void)state;
  ir_free(g);
  return 0;
}

static const node *likely_var(const char *name, int64_t min, int64_t max, int64_t likely) {
  return ir_make(g, &(node_spec){.op = OP_VAR,
                                 .dtype = DT_INDEX,
                                 .ints = (int64_t[]){min, max, likely},
                                 .n_int = 3,
                                 .text = name,
                                 .n_text = strlen(name)});
}

static void check_likely(const node *n, double expected) {
  if (ix_likely(n) != expected) fail_msg("%g is expected, but %g likely", expected, ix_likely(n));
}

static void constants_are_likely(void **state) {
  (void)state;
  for (int64_t i = -3; i < 4; i++) check_likely(ix_const(g, i), (double)i);
}

/** Without a likely value a variable is 64, or the bound next to it. */
static void variables_have_a_default(void **state) {
  (void)state;
  check_likely(index_var(g, "a", 0, 1000), 64);
  check_likely(index_var(g, "b", 1, 8), 8);
  check_likely(index_var(g, "c", 100, 1000), 100);
  check_likely(likely_var("d", 0, 1000, 3), 3);
  check_likely(likely_var("e", 0, 1000, 0), 1); /* a size counts as 1 at least */
}

static void expressions_follow_their_variables(void **state) {
  (void)state;
  const node *n = likely_var("n", 1, 1000, 37), *m = likely_var("m", 1, 50, 5);
  check_likely(ix_add_const(g, ix_scale(g, n, 3), -2), 109);
  check_likely(ix_sub(g, n, m), 32);
  check_likely(ix_sub(g, m, n), 1); /* −32 */
  check_likely(ix_mul(g, n, m), 185);
  check_likely(ix_floordiv(g, n, ix_const(g, 8)), 4);
  check_likely(ix_floordiv(g, n, m), 7);
  check_likely(ix_mod(g, n, ix_const(g, 8)), 5);
  check_likely(ix_mod(g, n, m), 2);
  check_likely(ix_min(g, n, m), 5);
  check_likely(ix_max(g, n, m), 37);
}

/** The middle index: blocks there are whole, rows of a triangle of the mean length. */
static void ranges_are_at_their_middle(void **state) {
  (void)state;
  const node *n = likely_var("n", 1, 1000, 70),
             *blocks = ix_floordiv(g, ix_add_const(g, n, 31), ix_const(g, 32));
  const node *block = range_make(g, blocks, KIND_LOOP);
  const node *rest = ix_min(g, ix_sub(g, n, ix_scale(g, block, 32)), ix_const(g, 32));
  check_likely(rest, 32);
  check_likely(ix_add_const(g, range_make(g, ix_const(g, 16), KIND_LOOP), 1), 8);
  assert_true(range_likely_trips(block) == 3);
}

/** Distances of elements along a range, of which open sizes are factors. */
static void strides_follow_likely_sizes(void **state) {
  (void)state;
  const node *n = likely_var("n", 1, 1000, 37), *m = likely_var("m", 1, 50, 5);
  const node *r = range_make(g, n, KIND_LOOP), *c = range_make(g, m, KIND_LOOP);
  const node *plane = ix_mul(g, ix_mul(g, r, n), m);
  const node *last = ix_min(g, ix_scale(g, r, 8), ix_add_const(g, n, -8));
  const node *address = ix_add(g, ix_scale(g, ix_mul(g, r, m), 3), c);
  const struct {
    const node *address, *range;
    int64_t exact, likely;
  } cases[] = {{address, c, 1, 1},
               {address, r, 0, 15},
               {plane, r, 0, 185},
               {plane, c, 0, 0},
               {last, r, 8, 8},
               {ix_mul(g, last, m), r, 0, 40},
               {ix_add(g, address, ix_scale(g, r, 2)), r, 0, 17},
               {ix_mul(g, r, r), r, 0, 0},
               {ix_floordiv(g, r, ix_const(g, 2)), r, 0, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(address_stride(cases[i].address, cases[i].range), cases[i].exact);
    assert_int_equal(address_likely_stride(cases[i].address, cases[i].range), cases[i].likely);
  }
  const node *huge = likely_var("huge", 1, INT64_C(1) << 60, INT64_C(1) << 60);
  assert_int_equal(address_likely_stride(ix_mul(g, r, huge), r), INT64_C(1) << 56);
}

/** Values stay within the bounds of the node, and beyond 64 bits where these are. */
static void values_saturate(void **state) {
  (void)state;
  const node *n = likely_var("n", 1, INT64_C(1) << 40, INT64_C(1) << 39), *x = n;
  for (int i = 0; i < 4; i++) x = ix_mul(g, x, n);
  assert_true(ix_likely(x) >= 9e18);
  const node *least = ix_max(g, index_var(g, "v", -50, 10), ix_const(g, 9));
  check_likely(least, 10);
}

static void likely_values_keep_variables_apart(void **state) {
  (void)state;
  assert_ptr_equal(likely_var("n", 1, 9, 4), likely_var("n", 1, 9, 4));
  assert_ptr_not_equal(likely_var("n", 1, 9, 4), likely_var("n", 1, 9, 5));
  assert_ptr_not_equal(likely_var("n", 1, 9, 4), index_var(g, "n", 1, 9));
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, open_graph, close_graph)

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH(constants_are_likely),
      WITH(variables_have_a_default),
      WITH(expressions_follow_their_variables),
      WITH(ranges_are_at_their_middle),
      WITH(strides_follow_likely_sizes),
      WITH(values_saturate),
      WITH(likely_values_keep_variables_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
