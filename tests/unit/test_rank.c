/* Tests the limit on the number of dimensions: nodes with more are refused in every build, and full
   lists of sizes do not grow. */
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

/** A test's graph, builder and rank. */
typedef struct world {
  diag d;
  arena a;
  ir *g;
  size_t rank;
  const node *(*make)(struct world *w);
  const node *made;
} world;

static void make(void *arg) {
  world *w = arg;
  w->made = w->make(w);
}

/** Returns the rank of the node made from `rank` dimensions; −1 if it was refused with a message
    that gives the number. */
static int made_rank(bool counted, size_t rank, const node *(*of)(world *w)) {
  world w = {.rank = rank, .make = of};
  arena_init(&w.a, &mem_system, &w.d);
  w.g = ir_new(&mem_system, &w.d, counted);
  assert_non_null(w.g);
  tn_status s = diag_catch(&w.d, make, &w);
  int made = s == TN_OK ? w.made->rank : -1;
  if (s != TN_OK) {
    assert_int_equal(s, TN_ERR_SHAPE);
    assert_non_null(strstr(w.d.text, "at most 31"));
  }
  ir_free(w.g);
  arena_free(&w.a);
  return made;
}

static const node *const *ones(world *w) {
  const node **dims = arena_alloc(&w->a, (w->rank + 1) * sizeof *dims);
  for (size_t i = 0; i < w->rank; i++) dims[i] = ix_const(w->g, 1);
  return dims;
}

static const node *buffer(world *w) {
  int64_t ints[] = {0, 0};
  return ir_node(w->g, OP_BUFFER, DT_F32, ones(w), w->rank, ints, 2);
}

static const node *param(world *w) {
  return ir_node(w->g, OP_PARAM, DT_F32, ones(w), w->rank, (int64_t[]){0}, 1);
}

static const node *iota(world *w) {
  return ir_node(w->g, OP_IOTA, DT_I64, ones(w), w->rank, (int64_t[]){0}, 1);
}

static const node *custom(world *w) {
  int64_t ints[] = {0, 0, 0, 0};
  return ir_node(w->g, OP_CUSTOM, DT_F32, ones(w), w->rank, ints, 4);
}

static const node *reshaped(world *w) {
  const node **src = arena_alloc(&w->a, (w->rank + 1) * sizeof *src);
  src[0] = ir_const(w->g, DT_F32, 1);
  memcpy(src + 1, ones(w), w->rank * sizeof *src);
  return ir_node(w->g, OP_RESHAPE, DT_F32, src, w->rank + 1, NULL, 0);
}

static void nodes_beyond_the_limit_are_refused(void **state) {
  static const node *(*const all[])(world * w) = {buffer, param, iota, custom, reshaped};
  static const size_t far[] = {64, 1000, UINT16_MAX, UINT16_MAX + 1, UINT16_MAX + 4, 200000};
  (void)state;
  for (size_t i = 0; i < 2 * sizeof all / sizeof *all; i++) {
    for (size_t rank = 0; rank < 40; rank++)
      assert_int_equal(made_rank(i % 2, rank, all[i / 2]), rank <= IR_MAX_RANK ? (int)rank : -1);
    for (size_t k = 0; k < sizeof far / sizeof *far; k++)
      assert_int_equal(made_rank(i % 2, far[k], all[i / 2]), -1);
  }
}

static builder builder_of(world *w) { return (builder){.ir = w->g, .arena = &w->a, .diag = &w->d}; }

static const node *inserted(world *w) {
  builder b = builder_of(w);
  return shape_unsqueeze(&b, param(w), w->rank / 2);
}

static const node *product(world *w) {
  builder b = builder_of(w);
  const node *x = param(w);
  return build_matmul(&b, value_of(x), value_of(x)).node;
}

static const node *broadcast(world *w) {
  builder b = builder_of(w);
  sizes to = sizes_insert(&b, sizes_of(param(w)), w->rank, ix_const(w->g, 7));
  return shape_broadcast(&b, ir_const(w->g, DT_F32, 1), &to);
}

static void lists_of_sizes_do_not_grow_beyond_it(void **state) {
  (void)state;
  for (size_t rank = 0; rank <= SIZES_MAX_RANK; rank++) {
    int more = rank < SIZES_MAX_RANK ? (int)rank + 1 : -1;
    assert_int_equal(made_rank(false, rank, inserted), more);
    assert_int_equal(made_rank(false, rank, broadcast), more);
  }
  assert_int_equal(made_rank(false, SIZES_MAX_RANK, product), -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nodes_beyond_the_limit_are_refused),
      cmocka_unit_test(lists_of_sizes_do_not_grow_beyond_it),
  };
  return cmocka_run_group_tests_name("rank", tests, NULL, NULL);
}
