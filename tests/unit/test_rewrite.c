/* Tests the rewrite engine: order of rule application, memoisation of shared nodes, simplification
   of indices, the budget that stops endless rules, and failures. The rules are tested in
   tests/rules. */
#include "ir/core/build.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/rewrite.h"
#include "rules/simplifying_builder.h"
#include "support/counting_mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
  diag d;
  ir *g;
  rewriter rw;
} fixture;

static const node *input(ir *g, dtype t, int64_t slot) {
  return ir_node(g, OP_PARAM, t, NULL, 0, &slot, 1);
}

/* Rule sets for the tests. */

static const node *negations_cancel(rewriter *rw, const node *n) {
  if (n->op != OP_NEG || n->src[0]->op != OP_NEG) return NULL;
  rw->fires++;
  return n->src[0]->src[0];
}

static const node *sub_is_add_of_neg(rewriter *rw, const node *n) {
  if (n->op != OP_SUB) return NULL;
  rw->fires++;
  return ir_op2(rw->ir, OP_ADD, n->src[0], ir_op1(rw->ir, OP_NEG, n->src[1]));
}

static const node *add_of_neg_is_sub(rewriter *rw, const node *n) {
  if (n->op != OP_ADD || n->src[1]->op != OP_NEG) return NULL;
  rw->fires++;
  return ir_op2(rw->ir, OP_SUB, n->src[0], n->src[1]->src[0]);
}

static const node *grows(rewriter *rw, const node *n) {
  if (n->op != OP_ABS) return NULL;
  rw->fires++;
  return ir_op1(rw->ir, OP_ABS, ir_op1(rw->ir, OP_SQRT, n));
}

static const node *grows_always(rewriter *rw, const node *n) {
  if (n->op != OP_SQRT) return NULL;
  rw->fires++;
  return ir_op1(rw->ir, OP_SQRT, ir_op1(rw->ir, OP_NEG, n->src[0]));
}

/** Replaces the variable i by 8. */
static const node *i_is_8(rewriter *rw, const node *n) {
  return n->op == OP_VAR ? ix_const(rw->ir, 8) : NULL;
}

/* Running under a catch. */

typedef struct job {
  fixture *f;
  void (*body)(fixture *f);
} job;

static void run(void *arg) {
  job *j = arg;
  j->body(j->f);
}

static void with_ir(bool counted, void (*body)(fixture *f)) {
  fixture f = {0};
  f.g = ir_new(&mem_system, &f.d, counted);
  f.rw = (rewriter){.ir = f.g, .math = MATH_DEFAULT};
  if (diag_catch(&f.d, run, &(job){&f, body}) != TN_OK) fail_msg("%s", f.d.text);
  ir_free(f.g);
}

static const node *rewritten(fixture *f, rewrite_rule_set set, const node *root) {
  rewrite(&f->rw, &set, 1, &root, 1);
  return root;
}

static void rewrites_until_nothing_fires(fixture *f) {
  const node *x = input(f->g, DT_F32, 0), *n = x;
  for (int i = 0; i < 6; i++) n = ir_op1(f->g, OP_NEG, n);
  assert_ptr_equal(rewritten(f, negations_cancel, n), x);
  assert_ptr_equal(rewritten(f, negations_cancel, ir_op1(f->g, OP_NEG, n)),
                   ir_op1(f->g, OP_NEG, x));
}

/** a − (−b) becomes a + −(−b), which the other set rewrites again. */
static void results_are_rewritten(fixture *f) {
  const node *a = input(f->g, DT_I32, 0), *b = input(f->g, DT_I32, 1);
  const node *root = ir_op2(f->g, OP_SUB, a, ir_op1(f->g, OP_NEG, b));
  rewrite_rule_set sets[] = {sub_is_add_of_neg, negations_cancel};
  rewrite(&f->rw, sets, 2, &root, 1);
  assert_ptr_equal(root, ir_op2(f->g, OP_ADD, a, b));
  assert_int_equal(f->rw.fires, 2);
}

static void shared_nodes_are_done_once(fixture *f) {
  const node *a = input(f->g, DT_I32, 0), *n = ir_op2(f->g, OP_SUB, a, input(f->g, DT_I32, 1));
  for (int i = 0; i < 60; i++) n = ir_op2(f->g, OP_MUL, n, n);
  const node *r = rewritten(f, sub_is_add_of_neg, n);
  assert_int_equal(f->rw.fires, 1);
  assert_ptr_not_equal(r, n);
}

static void several_roots(fixture *f) {
  const node *x = input(f->g, DT_F32, 0), *twice = ir_op1(f->g, OP_NEG, ir_op1(f->g, OP_NEG, x));
  const node *roots[] = {twice, x, ir_op1(f->g, OP_SQRT, twice), twice};
  rewrite_rule_set set = negations_cancel;
  rewrite(&f->rw, &set, 1, roots, 4);
  assert_ptr_equal(roots[0], x);
  assert_ptr_equal(roots[1], x);
  assert_ptr_equal(roots[2], ir_op1(f->g, OP_SQRT, x));
  assert_ptr_equal(roots[3], x);
  assert_int_equal(f->rw.fires, 1);
}

enum { DEEP = 200000 };

static void deep_graphs(fixture *f) {
  const node *x = input(f->g, DT_F32, 0), *y = input(f->g, DT_F32, 1), *n = x;
  for (int i = 0; i < DEEP; i++) n = ir_op2(f->g, OP_SUB, n, y);
  const node *r = rewritten(f, sub_is_add_of_neg, n);
  assert_int_equal(f->rw.fires, DEEP);
  assert_int_equal(r->op, OP_ADD);
}

static void index_arithmetic_is_canonical(fixture *f) {
  int64_t bounds[] = {0, 100};
  const node *i = ir_make(
      f->g,
      &(node_spec){
          .op = OP_VAR, .dtype = DT_INDEX, .ints = bounds, .n_int = 2, .text = "i", .n_text = 1});
  const node *sum = ix_add_const(f->g, ix_scale(f->g, i, 3), 1);
  assert_ptr_equal(rewritten(f, i_is_8, sum), ix_const(f->g, 25));
  assert_ptr_equal(rewritten(f, i_is_8, ix_lt(f->g, sum, ix_const(f->g, 20))),
                   ir_const_bits(f->g, DT_BOOL, 0));
  assert_ptr_equal(rewritten(f, i_is_8, ix_mod(f->g, i, ix_const(f->g, 5))), ix_const(f->g, 3));
}

/* Rules that never end. */

static void undoing(fixture *f) {
  const node *root = ir_op2(f->g, OP_SUB, input(f->g, DT_I32, 0), input(f->g, DT_I32, 1));
  rewrite_rule_set sets[] = {sub_is_add_of_neg, add_of_neg_is_sub};
  rewrite(&f->rw, sets, 2, &root, 1);
}

static void containing_itself(fixture *f) {
  rewritten(f, grows, ir_op1(f->g, OP_ABS, input(f->g, DT_F32, 0)));
}

static void growing(fixture *f) {
  rewritten(f, grows_always, ir_op1(f->g, OP_SQRT, input(f->g, DT_F32, 0)));
}

static void endless_rules_are_an_error(void **state) {
  (void)state;
  void (*const bodies[])(fixture * f) = {undoing, containing_itself, growing};
  for (size_t i = 0; i < 3; i++) {
    fixture f = {0};
    f.g = ir_new(&mem_system, &f.d, false);
    f.rw = (rewriter){.ir = f.g};
    assert_int_equal(diag_catch(&f.d, run, &(job){&f, bodies[i]}), TN_ERR_INTERNAL);
    assert_non_null(strstr(f.d.text, "does not end"));
    ir_free(f.g);
  }
}

/* Reference-counted graphs, and exhausted memory. */

enum { CHAIN = 200 };

static void counted_body(fixture *f) {
  const node *x = input(f->g, DT_I32, 0), *y = input(f->g, DT_I32, 1), *n = x;
  for (int i = 0; i < CHAIN; i++) n = ir_op2(f->g, OP_SUB, n, y);
  const node *r = rewritten(f, sub_is_add_of_neg, n);
  ir_retain(r);
  ir_release_unheld(f->g);
  assert_int_equal(ir_node_count(f->g), CHAIN + 3);
  ir_release(f->g, r);
  assert_int_equal(ir_node_count(f->g), 0);
}

static void out_of_memory_leaves_nothing(void **state) {
  (void)state;
  size_t failures = 0;
  for (size_t at = 1;; at++) {
    counting_mem l = {.fail_at = at};
    mem m = counting_mem_of(&l);
    fixture f = {0};
    f.g = ir_new(&m, &f.d, true);
    if (!f.g) continue;
    f.rw = (rewriter){.ir = f.g};
    tn_status s = diag_catch(&f.d, run, &(job){&f, counted_body});
    ir_release_unheld(f.g);
    assert_int_equal(ir_node_count(f.g), 0);
    ir_free(f.g);
    assert_int_equal(l.bytes, 0);
    if (s == TN_OK) break;
    assert_int_equal(s, TN_ERR_MEMORY);
    failures++;
  }
  assert_true(failures > CHAIN);
}

/* Folding constructors. */

static void folding(fixture *f) {
  ir *g = f->g;
  const node *x = input(g, DT_F32, 0), *i = input(g, DT_I32, 1);
  assert_ptr_equal(simple_op2(g, OP_ADD, ir_const_int(g, DT_I8, 127), ir_const_int(g, DT_I8, 1)),
                   ir_const_int(g, DT_I8, -128));
  assert_ptr_equal(simple_op2(g, OP_MUL, x, ir_const(g, DT_F32, 1)), x);
  assert_ptr_equal(simple_op2(g, OP_ADD, ir_const(g, DT_F32, -0.0), x), x);
  assert_ptr_equal(simple_op2(g, OP_MUL, i, ir_const_int(g, DT_I32, 0)),
                   ir_const_int(g, DT_I32, 0));
  assert_ptr_equal(simple_op2(g, OP_MAX, x, x), x);
  assert_ptr_equal(simple_cast(g, ir_const(g, DT_F32, 300.7), DT_U8), ir_const_int(g, DT_U8, 255));
  assert_ptr_equal(
      simple_op3(g, OP_WHERE, ir_const_bits(g, DT_BOOL, 0), x, simple_op1(g, OP_NEG, x)),
      ir_op1(g, OP_NEG, x));
  const node *product = simple_op2(g, OP_MUL, ir_const_int(g, DT_I32, 3), i);
  assert_ptr_equal(product, ir_op2(g, OP_MUL, i, ir_const_int(g, DT_I32, 3)));
}

/** NaN, infinities and −0 are preserved; functions are folded only to the kernel's own result. */
static void floats_do_not_fold(fixture *f) {
  ir *g = f->g;
  const node *x = input(g, DT_F32, 0), *zero = ir_const(g, DT_F32, 0);
  assert_int_equal(simple_op2(g, OP_ADD, x, zero)->op, OP_ADD);
  assert_int_equal(simple_op2(g, OP_MUL, x, zero)->op, OP_MUL);
  assert_int_equal(simple_op2(g, OP_SUB, x, x)->op, OP_SUB);
  assert_int_equal(simple_op2(g, OP_DIV, x, x)->op, OP_DIV);
  assert_int_equal(simple_op2(g, OP_SUB, x, ir_const(g, DT_F32, -0.0))->op, OP_SUB);
  assert_int_equal(simple_op1(g, OP_EXP, zero)->op, OP_EXP);
  assert_ptr_equal(simple_op2(g, OP_SUB, x, zero), x);
  /* MAX of ±0 depends on the order. */
  const node *max = simple_op2(g, OP_MAX, zero, x);
  assert_ptr_equal(max->src[0], zero);
}

static void folding_keeps_shapes(fixture *f) {
  ir *g = f->g;
  const node *sizes[] = {ix_const(g, 2), ix_const(g, 3)};
  const node *two = ir_fill(g, ir_const(g, DT_F32, 2), 2, sizes);
  const node *four = simple_op2(g, OP_MUL, two, two);
  assert_ptr_equal(four, ir_fill(g, ir_const(g, DT_F32, 4), 2, sizes));
  assert_ptr_equal(simple_constant(four), ir_const(g, DT_F32, 4));
  assert_null(simple_constant(ir_op1(g, OP_NEG, input(g, DT_F32, 0))));
}

/* Each body as a test. */

static void scratch(void **state) {
  (void)state;
  with_ir(false, rewrites_until_nothing_fires);
  with_ir(false, results_are_rewritten);
  with_ir(false, shared_nodes_are_done_once);
  with_ir(false, several_roots);
  with_ir(false, deep_graphs);
  with_ir(false, index_arithmetic_is_canonical);
}

static void counted(void **state) {
  (void)state;
  with_ir(true, rewrites_until_nothing_fires);
  with_ir(true, results_are_rewritten);
  with_ir(true, shared_nodes_are_done_once);
  with_ir(true, several_roots);
  with_ir(true, deep_graphs);
  with_ir(true, counted_body);
}

static void constructors(void **state) {
  (void)state;
  with_ir(false, folding);
  with_ir(false, floats_do_not_fold);
  with_ir(false, folding_keeps_shapes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(scratch),
      cmocka_unit_test(counted),
      cmocka_unit_test(endless_rules_are_an_error),
      cmocka_unit_test(out_of_memory_leaves_nothing),
      cmocka_unit_test(constructors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
