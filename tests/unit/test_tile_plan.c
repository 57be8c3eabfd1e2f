/* Tests the plan of registers for tiles: which instructions share a register, and which do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codegen/tile_plan.h"
#include "ir/core/binder.h"
#include "ir/core/build.h"
#include "ir/core/topo_sort.h"
#include "ir/index/index_arithmetic.h"
#include "support/graph_body.h"

#include "base/vec.h"

enum { WORDS = 256 };

typedef struct test {
  diag d;
  ir *g;
  void (*body)(struct test *t);
  node_list program;
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

static const node *make(test *t, op o, dtype type, uint16_t lanes, const node *const src[],
                        size_t n, const int64_t *ints, size_t n_int) {
  const node *made = ir_make(t->g, &(node_spec){.op = o,
                                                .dtype = type,
                                                .lanes = lanes,
                                                .src = src,
                                                .n_src = n,
                                                .ints = ints,
                                                .n_int = n_int});
  vec_push(ir_arena(t->g), &t->program, made);
  return made;
}

static const node *sums(test *t, int64_t id) {
  const node *one = ix_const(t->g, 1);
  return make(t, OP_ALLOC, DT_I32, WORDS, &one, 1, (const int64_t[]){id, 0}, 2);
}

/** A tile of a param from an address on. */
static const node *operand(test *t, int64_t slot, int64_t address) {
  const node *dims[] = {ix_const(t->g, 64), ix_const(t->g, 64)};
  const node *param = ir_node(t->g, OP_PARAM, DT_I32, dims, 2, &slot, 1);
  const node *src[] = {param, ix_const(t->g, address), dims[1]};
  return make(t, OP_LOAD, DT_I32, WORDS, src, 3, (const int64_t[]){16}, 1);
}

/** Adds a product to sums; returns the op. */
static const node *add(test *t, const node *to, const node *x, const node *y) {
  const node *at = ix_const(t->g, 0);
  const node *sum = make(t, OP_LOAD, DT_I32, WORDS, (const node *[]){to, at}, 2, NULL, 0);
  const node *made = make(t, OP_TILE_U8I8, DT_I32, WORDS, (const node *[]){sum, x, y}, 3, NULL, 0);
  make(t, OP_STORE, DT_VOID, 1, (const node *[]){to, at, made}, 3, NULL, 0);
  return made;
}

static tile_plan plan_of(test *t) {
  const node *linear = ir_node(t->g, OP_LINEAR, DT_VOID, t->program.at, t->program.n, NULL, 0);
  return tile_plan_make(ir_arena(t->g), linear);
}

/** A sum, its loads and the ops that add to it are one register; operands have others. */
TEST(test_sums_in_place) {
  const node *s = sums(t, 1), *x = operand(t, 0, 0), *y = operand(t, 1, 0);
  const node *made = add(t, s, x, y);
  tile_plan p = plan_of(t);
  assert_int_equal(p.n, 3);
  assert_int_equal(tile_plan_number(&p, made), tile_plan_number(&p, s));
  assert_int_not_equal(tile_plan_number(&p, x), tile_plan_number(&p, y));
  assert_int_not_equal(tile_plan_number(&p, x), tile_plan_number(&p, s));
}

/** Operands that are not used any more leave their registers to later ones, but not those that a
    later op uses. */
TEST(test_registers_are_reused) {
  const node *s = sums(t, 1), *x = operand(t, 0, 0);
  add(t, s, x, operand(t, 1, 0));
  const node *stored = ir_make(t->g, &(node_spec){.op = OP_AFTER,
                                                  .dtype = DT_I32,
                                                  .lanes = WORDS,
                                                  .src = (const node *[]){s, vec_last(&t->program)},
                                                  .n_src = 2});
  const node *later = operand(t, 1, 16);
  add(t, stored, x, later);
  tile_plan p = plan_of(t);
  assert_int_equal(p.n, 3);
  assert_int_not_equal(tile_plan_number(&p, later), tile_plan_number(&p, x));
}

/** A tile that is defined before a loop and used in it keeps its register until the loop ends. */
TEST(test_loops_keep_registers) {
  const node *s = sums(t, 1), *x = operand(t, 0, 0), *extent = ix_const(t->g, 4);
  const node *r = range_make(t->g, extent, KIND_LOOP);
  vec_push(ir_arena(t->g), &t->program, r);
  add(t, s, x, operand(t, 1, 0));
  const node *late = operand(t, 1, 16);
  const node *other = sums(t, 2);
  add(t, other, late, late);
  make(t, OP_END, DT_VOID, 1, &r, 1, NULL, 0);
  tile_plan p = plan_of(t);
  assert_int_not_equal(tile_plan_number(&p, late), tile_plan_number(&p, x));
  assert_int_not_equal(tile_plan_number(&p, other), tile_plan_number(&p, x));
  assert_int_not_equal(tile_plan_number(&p, other), tile_plan_number(&p, s));
}

static void plan_body(void *arg) { plan_of(arg); }

/** A sum that is read again behind the op that adds to it is refused. */
TEST(test_sums_are_not_copied) {
  const node *s = sums(t, 1), *x = operand(t, 0, 0), *y = operand(t, 1, 0);
  add(t, s, x, y);
  add(t, s, x, x);
  diag *d = ir_diag(t->g);
  assert_int_equal(diag_catch(d, plan_body, t), TN_ERR_INTERNAL);
  diag_clear(d);
}

/** Programs without tiles need no register. */
TEST(test_no_tiles) { assert_int_equal(plan_of(t).n, 0); }

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sums_in_place),
      cmocka_unit_test(test_registers_are_reused),
      cmocka_unit_test(test_loops_keep_registers),
      cmocka_unit_test(test_sums_are_not_copied),
      cmocka_unit_test(test_no_tiles),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
