/* Tests joins: the pieces of a concatenation are written into its array where that is legal and
   pays, and copied there or selected where not; kernels get parts of arrays as views. Each schedule
   is interpreted and compared with its graph, also without any pieces in place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/transform/rewrite.h"
#include "schedule/memory/array_parts.h"
#include "schedule/schedule.h"

#include "../ir/replay.h"
#include "support/graph_body.h"
#include "support/tensor_concat.h"
#include "support/tensor_matmul.h"

typedef struct test {
  diag d;
  ir *g;
  int64_t buffers; /* made so far */
  void (*body)(struct test *t);
} test;

static void call_body(void *arg) {
  test *t = arg;
  t->body(t);
}

#define TEST(name)                                     \
  static void name##_body(test *t);                    \
  static void name(void **state) {                     \
    (void)state;                                       \
    test t = {.body = name##_body};                    \
    run_in_graph(&t.g, false, &t.d, call_body, &t, 1); \
  }                                                    \
  static void name##_body(test *t)

static void require(test *t, bool holds, const char *what) {
  if (!holds) diag_raise(&t->d, TN_ERR_INTERNAL, "%s", what);
}

static const node *buffer(test *t, int64_t rows, int64_t columns) {
  const node *dims[] = {ix_const(t->g, rows), ix_const(t->g, columns)};
  return ir_node(t->g, OP_BUFFER, DT_F32, dims, 2, (int64_t[]){t->buffers++, 0}, 2);
}

/** A product of new matrices, which a kernel of its own computes. */
static const node *product(test *t, int64_t rows, int64_t columns) {
  return tensor_matmul(t->g, buffer(t, rows, 16), buffer(t, 16, columns));
}

static const node *concat(test *t, const node *const x[], size_t n) {
  return tensor_concat(t->g, x, n, 1);
}

/** A product with a new matrix. */
static const node *times(test *t, const node *x, int64_t columns) {
  return tensor_matmul(t->g, x, buffer(t, node_int(x->dims[1]), columns));
}

static bool any(void *user, const node *n) {
  (void)user, (void)n;
  return true;
}

typedef struct plan {
  schedule *s;
  size_t places, views, copies;
} plan;

/** Schedules a graph, and compares what its steps compute with it. */
static plan scheduled(test *t, const node *const roots[], size_t n, fusion_choice search) {
  schedule_request r = {.roots = roots,
                        .n_roots = n,
                        .math = MATH_DEFAULT,
                        .may_overwrite = any,
                        .target.vector = 32,
                        .search = search};
  plan p = {.s = schedule_make(t->g, &r)};
  replay values = {.a = ir_arena(t->g), .seed = 1};
  replay_compare(&values, &r, p.s, 1e-4);
  for (size_t i = 0; i < p.s->buffers.n; i++) {
    p.places += p.s->buffers.at[i].n_places;
    p.views += p.s->buffers.at[i].within > 0;
  }
  for (size_t i = 0; i < p.s->steps.n; i++) p.copies += p.s->steps.at[i].n_copies;
  return p;
}

static plan plan_of(test *t, const node *const roots[], size_t n) {
  plan none = scheduled(t, roots, n, (fusion_choice){.is_without_places = true});
  require(t, !none.places && !none.views, "places are made although they are off");
  for (uint64_t seed = 1; seed < 9; seed++)
    scheduled(t, roots, n, (fusion_choice){.policy = FUSION_RANDOM, .seed = seed});
  return scheduled(t, roots, n, (fusion_choice){0});
}

/** The number of arrays that steps other than copies write. */
static size_t count_values(const schedule *s, op o) {
  size_t n = 0;
  for (size_t i = 0; i < s->steps.n; i++)
    for (size_t k = 0; k < s->steps.at[i].values.n; k++) n += s->steps.at[i].values.at[k]->op == o;
  return n;
}

/* Pieces. */

TEST(products_are_written_into_the_result) {
  const node *x[] = {product(t, 32, 8), product(t, 32, 24), product(t, 32, 8)};
  const node *all = concat(t, x, 3), *root = ir_op1(t->g, OP_EXP2, times(t, all, 32));
  plan p = plan_of(t, &root, 1);
  require(t, p.places == 3 && !p.copies, "not all pieces are in place");
  require(t, p.s->steps.n == 4, "a kernel copies");
  require(t, !count_values(p.s, OP_WHERE), "a kernel selects");
}

TEST(epilogues_are_written_with_their_products) {
  const node *x[] = {ir_op1(t->g, OP_EXP2, product(t, 32, 8)), product(t, 32, 8)};
  const node *root = times(t, concat(t, x, 2), 32);
  plan p = plan_of(t, &root, 1);
  require(t, p.places == 2 && !p.copies && p.s->steps.n == 3, "a piece is computed elsewhere");
}

TEST(a_result_may_be_joined) {
  const node *x[] = {product(t, 32, 8), product(t, 32, 8)};
  const node *root = concat(t, x, 2);
  plan p = plan_of(t, &root, 1);
  require(t, p.places == 2 && p.s->steps.n == 2, "a piece is copied");
  require(t, p.s->buffers.at[p.s->outputs[0]].n_places == 2, "the pieces are elsewhere");
}

TEST(a_result_that_is_a_piece_is_copied) {
  const node *x[] = {product(t, 32, 8), product(t, 32, 24)};
  const node *roots[] = {times(t, concat(t, x, 2), 32), x[0]};
  plan p = plan_of(t, roots, 2);
  size_t own = p.s->outputs[1];
  require(t, p.places == 2 && !p.s->buffers.at[own].within, "a result lies in another array");
}

TEST(a_piece_is_in_one_place) {
  const node *x = product(t, 32, 8), *y = product(t, 32, 24);
  const node *twice[] = {x, y, x}, *turned[] = {y, x};
  const node *roots[] = {times(t, concat(t, twice, 3), 16), times(t, concat(t, turned, 2), 16)};
  plan p = plan_of(t, roots, 2);
  require(t, p.places >= 3, "the larger array has no pieces");
}

TEST(inputs_are_copied) {
  const node *x[] = {product(t, 32, 24), buffer(t, 32, 8)};
  const node *root = times(t, concat(t, x, 2), 32);
  plan p = plan_of(t, &root, 1);
  require(t, p.places == 2 && p.copies == 1, "an input is not copied into the result");
}

TEST(large_inputs_are_selected) {
  const node *x[] = {product(t, 32, 8), buffer(t, 32, 24)};
  const node *root = times(t, concat(t, x, 2), 32);
  require(t, !plan_of(t, &root, 1).places, "more is copied than computed");
}

TEST(cheap_pieces_are_selected) {
  const node *x[] = {ir_op1(t->g, OP_NEG, buffer(t, 32, 8)),
                     ir_op1(t->g, OP_ABS, buffer(t, 32, 8))};
  const node *root = concat(t, x, 2);
  plan p = plan_of(t, &root, 1);
  require(t, !p.places && p.s->steps.n == 1, "elementwise pieces have kernels of their own");
}

TEST(sums_of_one_tensor_share_a_kernel) {
  const node *x = buffer(t, 32, 64), *sums[2];
  const node *dims[] = {x->dims[0], ix_const(t->g, 1)};
  for (size_t i = 0; i < 2; i++)
    sums[i] = ir_reshape(t->g, ir_reduce(t->g, x, i ? OP_MAX : OP_ADD, 1, (int64_t[]){1}), 2, dims);
  const node *root = ir_op1(t->g, OP_EXP2, concat(t, sums, 2));
  plan p = plan_of(t, &root, 1);
  require(t, !p.places && p.s->steps.n <= 2, "each sum reads the tensor again");
}

TEST(a_piece_that_is_changed_is_copied) {
  const node *x[] = {product(t, 32, 8), product(t, 32, 24)};
  const node *src[] = {x[0], x[0], buffer(t, 32, 8)};
  const node *roots[] = {times(t, concat(t, x, 2), 32),
                         ir_node(t->g, OP_SET, DT_F32, src, 3, NULL, 0)};
  plan p = plan_of(t, roots, 2);
  require(t, !p.s->buffers.at[p.s->outputs[1]].within, "an array that is changed lies in another");
}

TEST(a_join_that_is_changed_is_none) {
  const node *x[] = {product(t, 32, 8), product(t, 32, 24)}, *all = concat(t, x, 2);
  const node *src[] = {all, all, buffer(t, 32, 32)};
  const node *roots[] = {times(t, all, 32), ir_node(t->g, OP_SET, DT_F32, src, 3, NULL, 0)};
  require(t, !plan_of(t, roots, 2).places, "an array that is changed has pieces");
}

TEST(host_functions_read_joins) {
  const node *x[] = {product(t, 32, 24), product(t, 32, 8)}, *all = concat(t, x, 2);
  const node *src[] = {all, x[1], ix_const(t->g, 32), ix_const(t->g, 32)};
  const node *root = ir_node(t->g, OP_CUSTOM, DT_F32, src, 4, (int64_t[]){7, 0, 2, 0}, 4);
  plan p = plan_of(t, &root, 1);
  const schedule_step *last = &vec_last(&p.s->steps);
  require(t, p.places == 2, "a piece of a host function's input is not in place");
  require(t,
          last->custom && !p.s->buffers.at[last->buffers[1]].n_places &&
              !p.s->buffers.at[last->buffers[1]].within,
          "a host function reads a part of an array");
  require(t, !p.s->buffers.at[last->buffers[0]].padding,
          "a host function reads an array with elements beyond its own");
}

TEST(a_host_functions_result_is_copied) {
  const node *x[] = {NULL, product(t, 32, 24)};
  const node *src[] = {buffer(t, 32, 8), ix_const(t->g, 32), ix_const(t->g, 8)};
  x[0] = ir_node(t->g, OP_CUSTOM, DT_F32, src, 3, (int64_t[]){7, 0, 1, 0}, 4);
  const node *root = times(t, concat(t, x, 2), 32);
  require(t, plan_of(t, &root, 1).places == 2, "a host function's result is not copied");
}

/* Devices. */

/** The pieces in place on device 1, of a product and of two inputs whose copies are launches of
   their own: worth it where few cores would copy the product. */
static size_t places_there(test *t, uint32_t cores_here, uint32_t cores_there) {
  const node *inputs[] = {buffer(t, 256, 16), buffer(t, 16, 256), buffer(t, 256, 8),
                          buffer(t, 256, 8)};
  for (size_t i = 0; i < 4; i++)
    inputs[i] = ir_node(t->g, OP_TO, DT_F32, &inputs[i], 1, (int64_t[]){1}, 1);
  const node *x[] = {tensor_matmul(t->g, inputs[0], inputs[1]), inputs[2], inputs[3]};
  const node *root = concat(t, x, 3);
  const schedule_target there = {.hardware.cores = cores_there};
  schedule_request r = {.roots = &root,
                        .n_roots = 1,
                        .math = MATH_DEFAULT,
                        .target.hardware.cores = cores_here,
                        .more = &there,
                        .n_more = 1};
  const schedule *s = schedule_make(t->g, &r);
  size_t places = 0;
  for (size_t i = 0; i < s->buffers.n; i++) places += s->buffers.at[i].n_places;
  return places;
}

TEST(joins_follow_from_their_device) {
  require(t, places_there(t, 64, 1) == 3, "few cores of the join's device do not decide");
  require(t, places_there(t, 1, 64) == 0, "many cores of the join's device do not decide");
}

/* Joins of joins. */

TEST(a_chain_copies_nothing) {
  const node *x[5] = {product(t, 32, 8)};
  for (size_t i = 1; i < 5; i++) x[i] = times(t, concat(t, x, i > 1 ? i : 1), 8);
  const node *root = concat(t, x, 5);
  plan p = plan_of(t, &root, 1);
  require(t, p.places == 5 + 3, "pieces, or joins of the first ones, have other arrays");
  require(t, p.s->steps.n == 5, "a kernel copies");
  require(t, p.s->buffers.at[p.s->outputs[0]].n_places == p.places, "there is a second array");
}

TEST(a_join_may_be_a_piece) {
  const node *x[] = {product(t, 32, 8), product(t, 32, 8)}, *inner = concat(t, x, 2);
  const node *y[] = {inner, product(t, 32, 16)};
  const node *roots[] = {concat(t, y, 2), times(t, inner, 8)};
  plan p = plan_of(t, roots, 2);
  require(t, p.places == 4 && p.s->steps.n == 4, "a join is copied into another");
}

TEST(rows_may_be_joined) {
  const node *x[] = {product(t, 32, 8), product(t, 32, 8)};
  const node *roots[] = {tensor_concat(t->g, x, 2, 0), times(t, x[1], 8)};
  plan p = plan_of(t, roots, 2);
  require(t, p.places == 2 && p.views == 2, "parts along rows are no views");
  const node *first = p.s->steps.at[0].kernel, *second = p.s->steps.at[1].kernel;
  require(t, first == second, "kernels differ that write to different parts");
}

/* Parts of arrays. */

TEST(disjoint_parts_do_not_overlap) {
  const node *p =
      ir_node(t->g, OP_PARAM, DT_F32, (const node *[]){ix_const(t->g, 4), ix_const(t->g, 8)}, 2,
              (int64_t[]){0}, 1);
  array_part a = {.param = p, .high = {3, 3}}, b = {.param = p, .low = {0, 4}, .high = {3, 7}};
  array_part none = {0}, all = {.is_all = true};
  require(t, !array_parts_overlap(&a, &b), "disjoint columns overlap");
  b.low[1] = 3;
  require(t, array_parts_overlap(&a, &b), "a common column is not seen");
  b.high[0] = b.low[0] = 9;
  require(t, !array_parts_overlap(&a, &b), "disjoint rows overlap");
  require(t, array_parts_overlap(&a, &all) && array_parts_overlap(&all, &b), "all is not all");
  require(t, !array_parts_overlap(&a, &none) && !array_parts_overlap(&none, &all),
          "no access overlaps");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_are_written_into_the_result),
      cmocka_unit_test(epilogues_are_written_with_their_products),
      cmocka_unit_test(a_result_may_be_joined),
      cmocka_unit_test(a_result_that_is_a_piece_is_copied),
      cmocka_unit_test(a_piece_is_in_one_place),
      cmocka_unit_test(inputs_are_copied),
      cmocka_unit_test(large_inputs_are_selected),
      cmocka_unit_test(cheap_pieces_are_selected),
      cmocka_unit_test(sums_of_one_tensor_share_a_kernel),
      cmocka_unit_test(a_piece_that_is_changed_is_copied),
      cmocka_unit_test(a_join_that_is_changed_is_none),
      cmocka_unit_test(host_functions_read_joins),
      cmocka_unit_test(a_host_functions_result_is_copied),
      cmocka_unit_test(joins_follow_from_their_device),
      cmocka_unit_test(a_chain_copies_nothing),
      cmocka_unit_test(a_join_may_be_a_piece),
      cmocka_unit_test(rows_may_be_joined),
      cmocka_unit_test(disjoint_parts_do_not_overlap),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
