/* Tests constant folding and packing of weights: which values of small graphs are found to be
   computable once at load time, which are left to each run, and which weights are laid out in
   blocks of a vector. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/core/build.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "schedule/values/constant_folding.h"
#include "support/graph_body.h"

/* BUFFERs from the first uid on are constants; new ones have uids from the second on. */
enum { FIRST_CONSTANT = 10, FIRST_NEW = 100 };

typedef struct test {
  diag d;
  ir *g;
  void (*body)(struct test *t);
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

static const node *buffer(test *t, int64_t uid, size_t rank, int64_t a, int64_t b) {
  const node *dims[] = {ix_const(t->g, a), ix_const(t->g, b)};
  int64_t ints[] = {uid, 0};
  return ir_node(t->g, OP_BUFFER, DT_F32, dims, rank, ints, 2);
}

static bool never_changes(void *user, const node *n) {
  (void)user;
  return n->ints[0] >= FIRST_CONSTANT;
}

static constants found(test *t, const node *root) {
  return constant_folding_find(t->g, &(constant_folding_request){.roots = &root,
                                                                 .n_roots = 1,
                                                                 .is_constant = never_changes,
                                                                 .first_uid = FIRST_NEW});
}

/** Finds constants for vectors of eight f32. */
static constants found_for_vectors(test *t, const node *const roots[], size_t n) {
  return constant_folding_find(t->g, &(constant_folding_request){.roots = roots,
                                                                 .n_roots = n,
                                                                 .is_constant = never_changes,
                                                                 .first_uid = FIRST_NEW,
                                                                 .vector = 32});
}

static size_t count(test *t, const node *root, op o) {
  node_list order = topo_sort(ir_arena(t->g), &root, 1, NULL, NULL);
  size_t n = 0;
  for (size_t i = 0; i < order.n; i++) n += order.at[i]->op == o;
  return n;
}

static const node *expanded(test *t, const node *x, size_t rank, const node *const shape[],
                            const node *const dims[]) {
  return ir_expand(t->g, ir_reshape(t->g, x, rank, shape), dims);
}

/** Builds Σ_k x[m, k] · w[k, n], or w[n, k] if `turned`. */
static const node *product(test *t, const node *x, const node *w, bool turned) {
  const node *one = ix_const(t->g, 1), *m = x->dims[0], *k = x->dims[1], *n = w->dims[!turned];
  const int64_t swap[] = {1, 0}, axis = 1;
  if (turned) w = ir_permute(t->g, w, swap);
  const node *dims[] = {m, k, n};
  const node *a = expanded(t, x, 3, (const node *[]){m, k, one}, dims);
  const node *b = expanded(t, w, 3, (const node *[]){one, k, n}, dims);
  return ir_reduce(t->g, ir_op2(t->g, OP_MUL, a, b), OP_ADD, 1, &axis);
}

TEST(what_is_computed_from_constants) {
  const node *x = buffer(t, 0, 1, 32, 0), *v = buffer(t, 10, 1, 32, 0),
             *w = buffer(t, 11, 1, 32, 0);
  const node *scale = ir_op2(t->g, OP_DIV, w, ir_op1(t->g, OP_SQRT, v));
  constants c = found(t, ir_op2(t->g, OP_MUL, x, scale));
  assert_int_equal(c.at.n, 1);
  assert_ptr_equal(c.at.at[0].value, scale);
  assert_int_equal(c.at.at[0].leaf->op, OP_BUFFER);
  assert_int_equal(c.at.at[0].leaf->ints[0], FIRST_NEW);
  assert_ptr_equal(c.roots[0], ir_op2(t->g, OP_MUL, x, c.at.at[0].leaf));
}

TEST(what_changes_is_computed_in_each_run) {
  const node *x = buffer(t, 0, 1, 32, 0), *v = buffer(t, 1, 1, 32, 0);
  const node *root = ir_op2(t->g, OP_MUL, x, ir_op1(t->g, OP_SQRT, v));
  constants c = found(t, root);
  assert_int_equal(c.at.n, 0);
  assert_ptr_equal(c.roots[0], root);
}

TEST(what_takes_more_than_it_is_made_of) {
  const node *dims[] = {ix_const(t->g, 32), ix_const(t->g, 32)}, *one = ix_const(t->g, 1);
  const node *a = expanded(t, buffer(t, 10, 1, 32, 0), 2, (const node *[]){dims[0], one}, dims);
  const node *b = expanded(t, buffer(t, 11, 1, 32, 0), 2, (const node *[]){one, dims[1]}, dims);
  const node *all = ir_op2(t->g, OP_ADD, a, b);
  assert_int_equal(found(t, ir_op2(t->g, OP_ADD, buffer(t, 0, 2, 32, 32), all)).at.n, 0);
}

TEST(larger_values_of_many_operations_are_stored) {
  const node *dims[] = {ix_const(t->g, 32), ix_const(t->g, 32)}, *one = ix_const(t->g, 1);
  const node *a = expanded(t, buffer(t, 10, 1, 32, 0), 2, (const node *[]){dims[0], one}, dims);
  const node *b = expanded(t, buffer(t, 11, 1, 32, 0), 2, (const node *[]){one, dims[1]}, dims);
  const node *all = ir_op2(t->g, OP_ADD, a, b);
  for (int i = 0; i < 8; i++) all = ir_op1(t->g, OP_SQRT, all);
  constants c = found(t, ir_op2(t->g, OP_ADD, buffer(t, 0, 2, 32, 32), all));
  assert_int_equal(c.at.n, 1);
  assert_ptr_equal(c.at.at[0].value, all);
}

TEST(operands_of_values_that_are_too_large_are_stored) {
  const node *dims[] = {ix_const(t->g, 32), ix_const(t->g, 32)}, *one = ix_const(t->g, 1);
  const node *root = ir_op1(t->g, OP_SQRT, buffer(t, 10, 1, 32, 0));
  const node *a = expanded(t, root, 2, (const node *[]){dims[0], one}, dims);
  const node *b = expanded(t, buffer(t, 11, 1, 32, 0), 2, (const node *[]){one, dims[1]}, dims);
  const node *all = ir_op2(t->g, OP_ADD, a, b);
  constants c = found(t, ir_op2(t->g, OP_ADD, buffer(t, 0, 2, 32, 32), all));
  assert_int_equal(c.at.n, 1);
  assert_ptr_equal(c.at.at[0].value, root);
}

/** Values of a constant of f16, as f32. */
static const node *halves(test *t, int64_t k, int64_t n) {
  const node *dims[] = {ix_const(t->g, k), ix_const(t->g, n)};
  const int64_t ints[] = {10, 0};
  return ir_cast(t->g, ir_node(t->g, OP_BUFFER, DT_F16, dims, 2, ints, 2), DT_F32);
}

static const node *product_of_halves(test *t, int64_t rows, int64_t k, int64_t n) {
  return product(t, buffer(t, 0, 2, rows, k), halves(t, k, n), false);
}

/** A product of many rows would convert its weights again and again, and one of one row would read
    twice the bytes. */
TEST(weights_that_many_rows_convert_are_stored) {
  const node *converted = halves(t, 40, 24);
  constants c = found(t, product_of_halves(t, 16, 40, 24));
  assert_int_equal(c.at.n, 1);
  assert_ptr_equal(c.at.at[0].value, converted);
  assert_int_equal(found(t, product_of_halves(t, 1, 40, 24)).at.n, 0);
  const node *sum = ir_op2(t->g, OP_ADD, buffer(t, 0, 2, 40, 24), converted);
  assert_int_equal(found(t, sum).at.n, 0);
}

/** Labels of values are roots too, and read nothing. */
TEST(labels_do_not_count_as_readers) {
  const node *roots[] = {product_of_halves(t, 4, 40, 24), halves(t, 40, 24)};
  assert_int_equal(found_for_vectors(t, roots, 2).at.n, 1);
}

/** Weights become at most twice as large, where that is more than any plan may add. */
TEST(converted_weights_have_a_budget) {
  const int64_t wide = 8192;
  assert_int_equal(found(t, product_of_halves(t, 16, wide, wide)).at.n, 1);
  const node *x = buffer(t, 0, 2, 16, wide), *w = buffer(t, 10, 2, wide, wide);
  const node *f64 = ir_cast(t->g, w, DT_F64), *from = ir_cast(t->g, x, DT_F64);
  assert_int_equal(found(t, product(t, from, f64, false)).at.n, 1);
  const node *dims[] = {ix_const(t->g, wide), ix_const(t->g, wide)};
  const int64_t ints[] = {10, 0};
  const node *bytes = ir_node(t->g, OP_BUFFER, DT_I8, dims, 2, ints, 2);
  assert_int_equal(found(t, product(t, x, ir_cast(t->g, bytes, DT_F32), false)).at.n, 0);
}

TEST(weights_whose_lanes_are_apart) {
  const node *x = buffer(t, 0, 2, 24, 40), *w = buffer(t, 10, 2, 16, 40);
  constants c = found(t, product(t, x, w, true));
  assert_int_equal(c.at.n, 1);
  const int64_t swap[] = {1, 0};
  assert_ptr_equal(c.at.at[0].value, ir_permute(t->g, w, swap));
  assert_ptr_equal(c.at.at[0].leaf->dims[0], ix_const(t->g, 40));
  assert_ptr_equal(c.at.at[0].leaf->dims[1], ix_const(t->g, 16));
  assert_int_equal(count(t, c.roots[0], OP_BUFFER), 2);
}

static void assert_sizes(test *t, const node *n, size_t rank, const int64_t sizes[]) {
  assert_int_equal(n->rank, rank);
  for (size_t i = 0; i < rank; i++) assert_ptr_equal(n->dims[i], ix_const(t->g, sizes[i]));
}

TEST(weights_in_blocks_of_a_vector) {
  const node *x = buffer(t, 0, 2, 24, 80), *rows = buffer(t, 10, 2, 80, 16);
  const node *apart = buffer(t, 11, 2, 16, 80);
  const node *products[] = {product(t, x, rows, false), product(t, x, apart, true)};
  for (int i = 0; i < 2; i++) {
    constants c = found_for_vectors(t, &products[i], 1);
    assert_int_equal(c.at.n, 1);
    assert_sizes(t, c.at.at[0].leaf, 3, (const int64_t[]){2, 80, 8});
    assert_int_equal(count(t, c.roots[0], OP_BUFFER), 2);
  }
}

TEST(weights_of_few_rows_have_no_blocks) {
  const node *root = product(t, buffer(t, 0, 2, 24, 40), buffer(t, 10, 2, 16, 40), true);
  constants c = found_for_vectors(t, &root, 1);
  assert_int_equal(c.at.n, 1);
  assert_sizes(t, c.at.at[0].leaf, 2, (const int64_t[]){40, 16});
}

TEST(weights_whose_blocks_would_have_a_rest) {
  const node *root = product(t, buffer(t, 0, 2, 24, 80), buffer(t, 10, 2, 80, 20), false);
  assert_int_equal(found_for_vectors(t, &root, 1).at.n, 0);
}

TEST(long_rows_of_no_whole_vectors_have_longer_blocks) {
  const node *root = product(t, buffer(t, 0, 2, 24, 80), buffer(t, 10, 2, 80, 220), false);
  constants c = found_for_vectors(t, &root, 1);
  assert_int_equal(c.at.n, 1);
  assert_sizes(t, c.at.at[0].leaf, 3, (const int64_t[]){10, 80, 22});           /* 22 of 24 lanes */
  root = product(t, buffer(t, 0, 2, 24, 80), buffer(t, 10, 2, 80, 211), false); /* a prime */
  assert_int_equal(found_for_vectors(t, &root, 1).at.n, 0);
}

/** Builds a slice of rows. */
static const node *rows_of(test *t, const node *w, int64_t from, int64_t n) {
  const node *starts[] = {ix_const(t->g, from), ix_const(t->g, 0)};
  const node *sizes[] = {ix_const(t->g, n), w->dims[1]};
  return ir_slice(t->g, w, starts, sizes, (const int64_t[]){1, 1});
}

TEST(weights_that_are_read_in_parts) {
  const node *x = buffer(t, 0, 2, 24, 80), *w = buffer(t, 10, 2, 32, 80);
  const node *whole[] = {product(t, x, rows_of(t, w, 0, 16), true),
                         product(t, x, rows_of(t, w, 16, 16), true)};
  assert_int_equal(found_for_vectors(t, whole, 2).at.at[0].leaf->rank, 3);
  const node *across[] = {whole[0], product(t, x, rows_of(t, w, 12, 16), true)};
  assert_int_equal(found_for_vectors(t, across, 2).at.at[0].leaf->rank, 2);
}

TEST(weights_that_are_read_both_ways) {
  const node *x = buffer(t, 0, 2, 24, 80), *w = buffer(t, 10, 2, 80, 80);
  const node *both[] = {product(t, x, w, false), product(t, x, w, true)};
  assert_int_equal(found_for_vectors(t, both, 2).at.n, 0);
}

TEST(weights_whose_lanes_are_side_by_side) {
  const node *x = buffer(t, 0, 2, 24, 40);
  assert_int_equal(found(t, product(t, x, buffer(t, 10, 2, 40, 16), false)).at.n, 0);
}

TEST(weights_that_are_computed) {
  const node *x = buffer(t, 0, 2, 24, 40), *w = buffer(t, 10, 2, 16, 40);
  constants c = found(t, product(t, x, ir_op1(t->g, OP_EXP, w), true));
  assert_int_equal(c.at.n, 1);
  const int64_t swap[] = {1, 0};
  assert_ptr_equal(c.at.at[0].value, ir_permute(t->g, ir_op1(t->g, OP_EXP, w), swap));
  assert_int_equal(count(t, c.roots[0], OP_EXP), 0);
}

TEST(weights_of_few_lanes) {
  const node *x = buffer(t, 0, 2, 24, 40);
  assert_int_equal(found(t, product(t, x, buffer(t, 10, 2, 4, 40), true)).at.n, 0);
}

TEST(weights_that_something_else_reads) {
  const node *x = buffer(t, 0, 2, 24, 40), *w = buffer(t, 10, 2, 16, 40);
  const node *y = product(t, x, w, true), *rows = ir_op2(t->g, OP_MUL, buffer(t, 1, 2, 16, 40), w);
  const node *roots[] = {y, rows};
  constants c = constant_folding_find(
      t->g,
      &(constant_folding_request){
          .roots = roots, .n_roots = 2, .is_constant = never_changes, .first_uid = FIRST_NEW});
  assert_int_equal(c.at.n, 0);
}

TEST(both_operands_never_change) {
  const node *x = buffer(t, 10, 2, 24, 40), *w = buffer(t, 11, 2, 16, 40);
  constants c = found(t, ir_op2(t->g, OP_ADD, buffer(t, 0, 2, 24, 16), product(t, x, w, true)));
  assert_int_equal(c.at.n, 1);
  assert_int_equal(count(t, c.roots[0], OP_REDUCE), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_computed_from_constants),
      cmocka_unit_test(what_changes_is_computed_in_each_run),
      cmocka_unit_test(what_takes_more_than_it_is_made_of),
      cmocka_unit_test(larger_values_of_many_operations_are_stored),
      cmocka_unit_test(operands_of_values_that_are_too_large_are_stored),
      cmocka_unit_test(weights_that_many_rows_convert_are_stored),
      cmocka_unit_test(labels_do_not_count_as_readers),
      cmocka_unit_test(converted_weights_have_a_budget),
      cmocka_unit_test(weights_whose_lanes_are_apart),
      cmocka_unit_test(weights_in_blocks_of_a_vector),
      cmocka_unit_test(weights_of_few_rows_have_no_blocks),
      cmocka_unit_test(weights_whose_blocks_would_have_a_rest),
      cmocka_unit_test(long_rows_of_no_whole_vectors_have_longer_blocks),
      cmocka_unit_test(weights_that_are_read_in_parts),
      cmocka_unit_test(weights_that_are_read_both_ways),
      cmocka_unit_test(weights_whose_lanes_are_side_by_side),
      cmocka_unit_test(weights_that_are_computed),
      cmocka_unit_test(weights_of_few_lanes),
      cmocka_unit_test(weights_that_something_else_reads),
      cmocka_unit_test(both_operands_never_change),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
