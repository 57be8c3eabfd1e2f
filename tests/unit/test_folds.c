/* Tests FOLD, the IR's reduction and scan node: results of small scans computed by hand, and random
   kernels with folds compiled to machine code and compared with the interpreted kernel. Lowering is
   tested in tests/ir. */
#include "codegen/codegen.h"
#include "codegen/lower/fold_analysis.h"
#include "compile/program_spec.h"
#include "device/cpu/c_compiler.h"
#include "device/cpu/elf_loader.h"
#include "ir/index/write_once.h"
#include "ir/text/parse.h"
#include "ir/verify/verify_graph.h"
#include "render/c/dialect.h"
#include "render/c/render_c.h"
#include "support/graph_body.h"
#include "support/interp_kernel.h"

#include "../ir/kernels.h"
#include "../ir/replay.h"

#include <stdio.h>
#include <stdlib.h>

enum { COMPILED = 60 };

typedef struct test {
  diag d;
  ir *g;
  arena *a;
  void (*body)(struct test *t);
} test;

static void call_body(void *arg) {
  test *t = arg;
  t->a = ir_arena(t->g);
  t->body(t);
}

static void run_body(void (*body)(test *t)) {
  test t = {.body = body};
  run_in_graph(&t.g, false, &t.d, call_body, &t, 0);
}

#define TEST(name) BODY_TEST(name, run_body(name##_body))

/* Results. A kernel writes the f32 param 0 from the f32 params 1 …; it is interpreted, and run as a
   program for two targets. */

enum { MOST_PARAMS = 3, MOST_ELEMENTS = 32 };

typedef struct numbers {
  size_t n;
  float at[MOST_ELEMENTS];
} numbers;

static void check_outputs(test *t, const node *kernel, bool is_program, const numbers *want,
                          const numbers *inputs, size_t n_inputs) {
  float data[MOST_PARAMS][MOST_ELEMENTS] = {{0}};
  interp_array params[MOST_PARAMS];
  const node *param[MOST_PARAMS] = {0};
  node_list order = topo_sort(t->a, &kernel, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_PARAM) param[order.at[i]->ints[0]] = order.at[i];
  for (size_t p = 0; p <= n_inputs; p++) {
    size_t n = p ? inputs[p - 1].n : want->n;
    assert_non_null(param[p]);
    params[p] = (interp_array){.dtype = DT_F32, .rank = param[p]->rank, .data = data[p]};
    for (size_t i = 0; i < param[p]->rank; i++) params[p].dims[i] = node_int(param[p]->dims[i]);
    params[p].bytes = n * sizeof(float);
    if (p) memcpy(data[p], inputs[p - 1].at, n * sizeof(float));
  }
  interp_env e = {.params = params, .n_params = n_inputs + 1};
  tn_status s = is_program ? interp_linear(&e, kernel, 0, 1, &mem_system, &t->d)
                           : interp_kernel(&e, kernel, &mem_system, &t->d);
  if (s != TN_OK) diag_rethrow(&t->d);
  for (size_t i = 0; i < want->n; i++)
    if (data[0][i] != want->at[i])
      fail_msg("element %zu is %g instead of %g", i, (double)data[0][i], (double)want->at[i]);
}

static const node *program_of(test *t, const node *sink, uint16_t vector_bytes) {
  codegen_options o = {.target = {.vector_bytes = vector_bytes}, .math = MATH_EXACT};
  render_c_unsupported_ops(&c_gnu, &o.target.rules);
  return codegen_run(t->g, sink, "CPU", &o)->src[2];
}

static void gives(test *t, const char *text, numbers want, size_t n_inputs,
                  const numbers inputs[]) {
  const node *sink = parse_graph(t->g, t->a, text, strlen(text)).at[0];
  if (verify_graph(&sink, 1, LEVEL_KERNEL, &mem_system, &t->d) != TN_OK) diag_rethrow(&t->d);
  check_outputs(t, sink, false, &want, inputs, n_inputs);
  check_outputs(t, program_of(t, sink, 0), true, &want, inputs, n_inputs);
  check_outputs(t, program_of(t, sink, 16), true, &want, inputs, n_inputs);
}

#define NUMBERS(...)                                                \
  {                                                                 \
    sizeof((float[]){__VA_ARGS__}) / sizeof(float), { __VA_ARGS__ } \
  }

#define RANGE(name, extent, id) \
  "%" name " = range index " extent " [id=" id " kind=loop axis=0 tail=0]\n"
#define PARAM(name, dims, slot) "%" name " = param f32 " dims " [slot=" slot "]\n"
#define STATE(name, of, component)                             \
  "%state_" name " = state f32 %k [component=" component "]\n" \
  "%" name " = index f32 %state_" name of " [component=0]\n"
#define RESULT(extent, component)                                            \
  "%v = index f32 %f %r [component=" component "]\n"                         \
  "%s = stage void %v %r " extent " %r [values=1 ranges=1 pins=0 cut=1 1]\n" \
  "%out = out void %y %s\n%sink = sink void %out \"t\"\nreturn %sink\n"

TEST(an_emitted_state_is_the_one_after_the_step) {
  gives(t,
        PARAM("y", "4", "0") PARAM("x", "4", "1") RANGE("k", "4", "0") RANGE("r", "4", "1")
            STATE("old", "", "0") "%a = index f32 %x %k [component=0]\n%two = const f32 2\n"
                                  "%f = fold void %two %a %old %k 4 %k [states=1 emits=1 ranges=1 "
                                  "pins=0 add -1 1]\n" RESULT("4", "1"),
        (numbers)NUMBERS(3, 5, 8, 12), 1, (numbers[]){NUMBERS(1, 2, 3, 4)});
}

/* s := t, t := s + a; emits 10·s + t, last first. */
TEST(all_states_step_from_the_old_ones) {
  gives(t,
        PARAM("y", "4", "0") PARAM("x", "4", "1") RANGE("k", "4", "0") RANGE("r", "4", "1")
            STATE("s0", "", "0") STATE(
                "s1", "",
                "1") "%a = index f32 %x %k [component=0]\n%zero = const f32 0\n%one = const f32 1\n"
                     "%ten = const f32 10\n%next = add f32 %s0 %a\n%tens = mul f32 %s0 %ten\n"
                     "%digits = add f32 %tens %s1\n%back = affine index %k [3 -1]\n"
                     "%f = fold void %zero %one %s1 %next %digits %back 4 %k [states=2 emits=1 "
                     "ranges=1 pins=0 "
                     "- -1 - -1 1]\n" RESULT("4", "2"),
        (numbers)NUMBERS(47, 34, 13, 11), 1, (numbers[]){NUMBERS(1, 2, 3, 4)});
}

/* The scalar state counts; element k of the array takes the count's old value, the others stay. */
TEST(an_array_and_a_scalar_step_at_once) {
  gives(t,
        PARAM("y", "3", "0") PARAM("x", "3", "1") RANGE("k", "3", "0") RANGE("i", "3", "2")
            RANGE("r", "3", "1") STATE("count", "", "0")
                STATE("mine", " %i",
                      "1") "%a = index f32 %x %k [component=0]\n%five = const f32 5\n"
                           "%below = lt bool %i %k\n%above = lt bool %k %i\n%other = or bool "
                           "%below %above\n"
                           "%new = where f32 %other %mine %count\n"
                           "%step = stage void %new %i 3 %i [values=1 ranges=1 pins=0 cut=0 1]\n"
                           "%f = fold void %five %five %a %step %k [states=2 emits=0 ranges=1 "
                           "pins=0 add -1 - 0]\n" RESULT("3", "1"),
        (numbers)NUMBERS(5, 6, 8), 1, (numbers[]){NUMBERS(1, 2, 3)});
}

/* An array state starts as 10 20 30; each step reverses it and adds 1. */
TEST(an_array_is_read_before_it_is_written) {
  gives(
      t,
      PARAM("y", "3", "0") PARAM("x", "3", "1") RANGE("k", "3", "0") RANGE("i", "3", "2")
          RANGE("j", "3", "3") RANGE("r", "3", "1") "%at = affine index %i [2 -1]\n" STATE(
              "old", " %at",
              "0") "%start = index f32 %x %j [component=0]\n%one = const f32 1\n%new = add f32 "
                   "%old %one\n"
                   "%init = stage void %start %j 3 %j [values=1 ranges=1 pins=0 cut=0 1]\n"
                   "%step = stage void %new %i 3 %i [values=1 ranges=1 pins=0 cut=0 1]\n"
                   "%f = fold void %init %step %k [states=1 emits=0 ranges=1 pins=0 - 0]\n" RESULT(
                       "3", "0"),
      (numbers)NUMBERS(33, 23, 13), 1, (numbers[]){NUMBERS(10, 20, 30)});
}

/* Sums rows over k, and emits the middle sum after each. */
TEST(an_emitted_value_reads_an_array_after_the_step) {
  static const numbers x = NUMBERS(1, 2, 3, 10, 20, 30);
  static const char text[] = PARAM("y", "2", "0") PARAM("x", "2 3", "1") RANGE("k", "2", "0")
      RANGE("i", "3", "2") RANGE("r", "2", "1") STATE(
          "middle", " 1", "0") "%a = index f32 %x %k %i [component=0]\n%zero = const f32 0\n"
                               "%step = stage void %a %i 3 %i [values=1 ranges=1 pins=0 cut=0 1]\n"
                               "%f = fold void %zero %step %middle %k 2 %k [states=1 emits=1 "
                               "ranges=1 pins=0 add 0 1]\n" RESULT("2", "1");
  gives(t, text, (numbers)NUMBERS(2, 22), 1, &x);
}

/* Welford's mean and sum of squared distances; emits the mean so far. */
TEST(a_variance_in_one_pass) {
  gives(t,
        PARAM("y", "4", "0") PARAM("x", "4", "1") RANGE("k", "4", "0") RANGE("r", "4", "1")
            STATE("mean", "", "0") STATE(
                "m2", "",
                "1") "%a = index f32 %x %k [component=0]\n%zero = const f32 0\n%n = affine index "
                     "%k [1 1]\n"
                     "%count = cast f32 %n\n%d = sub f32 %a %mean\n%q = div f32 %d %count\n"
                     "%mean2 = add f32 %mean %q\n%e = sub f32 %a %mean2\n%de = mul f32 %d %e\n"
                     "%m3 = add f32 %m2 %de\n"
                     "%f = fold void %zero %zero %mean2 %m3 %m2 %k 4 %k [states=2 emits=1 ranges=1 "
                     "pins=0 - -1 "
                     "- -1 1]\n" RESULT("4", "2"),
        (numbers)NUMBERS(0, 2, 8, 20), 1, (numbers[]){NUMBERS(1, 3, 5, 7)});
}

/* A histogram: element i adds to the place that the index names, and those outside add nothing. */
TEST(a_step_writes_where_memory_says) {
  gives(t,
        PARAM("y", "3", "0") PARAM("x", "5", "1") PARAM("p", "5", "2") RANGE("k", "5", "0")
            RANGE("j", "3", "2") RANGE(
                "r", "3", "1") "%start = index f32 %y %j [component=0]\n%a = index f32 %x %k "
                               "[component=0]\n%at = index f32 %p %k [component=0]\n"
                               "%to = cast index %at\n"
                               "%init = stage void %start %j 3 %j [values=1 ranges=1 pins=0 "
                               "cut=0 1]\n"
                               "%step = stage void %a %to 3 [values=1 ranges=0 pins=0 cut=0 1]\n"
                               "%f = fold void %init %step %k [states=1 emits=0 ranges=1 pins=0 "
                               "add 0]\n" RESULT("3", "0"),
        (numbers)NUMBERS(2, 0, 8), 2, (numbers[]){NUMBERS(1, 2, 3, 4, 5), NUMBERS(2, 0, 2, 2, 7)});
}

/* Each step sets the elements of two places, of which the second may be that of the first: the
   array is one of its own, and what no step writes stays. */
TEST(elements_that_no_step_writes_stay) {
  gives(t,
        PARAM("y", "4", "0") PARAM("x", "3", "1") PARAM("p", "3 2", "2") RANGE("k", "3", "0")
            RANGE("i", "2", "2") RANGE(
                "r", "4", "1") "%a = index f32 %x %k [component=0]\n%at = index f32 %p %k %i "
                               "[component=0]\n%seven = const f32 7\n"
                               "%to = cast index %at\n"
                               "%step = stage void %a %to 4 %i [values=1 ranges=1 pins=0 "
                               "cut=0 1]\n"
                               "%f = fold void %seven %step %k [states=1 emits=0 ranges=1 pins=0 "
                               "- 0]\n" RESULT("4", "0"),
        (numbers)NUMBERS(1, 2, 7, 3), 2, (numbers[]){NUMBERS(1, 2, 3), NUMBERS(0, 1, 1, 9, 3, 3)});
}

/* A running sum for each class: the element that a step updates is emitted after it. */
TEST(running_sums_of_classes) {
  gives(t,
        PARAM("y", "5", "0") PARAM("x", "5", "1") PARAM("p", "5", "2") RANGE("k", "5", "0")
            RANGE("j", "3", "2")
                RANGE("r", "5",
                      "1") "%a = index f32 %x %k [component=0]\n%at = index f32 %p %k "
                           "[component=0]\n%to = cast index %at\n%zero = const f32 0\n"
                           "%init = stage void %zero %j 3 %j [values=1 ranges=1 pins=0 "
                           "cut=0 1]\n"
                           "%step = stage void %a %to 3 [values=1 ranges=0 pins=0 cut=0 1]\n" STATE(
                               "now", " %to",
                               "0") "%f = fold void %init %step %now %k 5 %k "
                                    "[states=1 emits=1 ranges=1 pins=0 add 0 1]\n" RESULT("5", "1"),
        (numbers)NUMBERS(1, 2, 4, 8, 7), 2,
        (numbers[]){NUMBERS(1, 2, 3, 4, 5), NUMBERS(2, 0, 2, 2, 0)});
}

/* The running sum is emitted into the output itself, row by row. */
TEST(sums_are_emitted_into_the_output) {
  gives(t,
        PARAM("y", "2 3", "0") PARAM("x", "2 3", "1") RANGE("k", "3", "0") RANGE("i", "2", "2")
            RANGE("r", "3", "1") STATE(
                "old", "", "0") "%a = index f32 %x %i %k [component=0]\n"
                                "%zero = const f32 0\n"
                                "%f = fold void %zero %a %old %k 3 %k [states=1 emits=1 ranges=1 "
                                "pins=0 add -1 1]\n"
                                "%v = index f32 %f %r [component=1]\n"
                                "%s = stage void %v %i %r 2 3 %i %r [values=1 ranges=2 pins=0 "
                                "cut=1 2]\n"
                                "%out = out void %y %s\n%sink = sink void %out \"t\"\nreturn "
                                "%sink\n",
        (numbers)NUMBERS(1, 3, 6, 10, 30, 60), 1, (numbers[]){NUMBERS(1, 2, 3, 10, 20, 30)});
}

/* A fold's state starts from another fold with the same number of steps. */
TEST(folds_start_from_folds) {
  gives(t,
        PARAM("y", "2", "0") PARAM("x", "3", "1") RANGE("j", "3", "2") RANGE("k", "3", "0")
            RANGE("r", "2",
                  "1") "%a = index f32 %x %j [component=0]\n%b = index f32 %x %k [component=0]\n"
                       "%one = const f32 1\n"
                       "%g = fold void %one %a %j [states=1 emits=0 ranges=1 pins=0 mul -1]\n"
                       "%product = index f32 %g [component=0]\n"
                       "%f1 = fold void %product %b %k [states=1 emits=0 ranges=1 pins=0 add -1]\n"
                       "%v = index f32 %f1 [component=0]\n"
                       "%s = stage void %v %r 2 %r [values=1 ranges=1 pins=0 cut=1 1]\n"
                       "%out = out void %y %s\n%sink = sink void %out \"t\"\nreturn %sink\n",
        (numbers)NUMBERS(33, 33), 1, (numbers[]){NUMBERS(2, 3, 4)});
}

/* A long chain of folds, each starting from the one before: nothing recurses. */
TEST(long_chains_of_starts) {
  enum { DEPTH = 20000 };
  const node *n = ix_const(t->g, 1), *v = ir_const(t->g, DT_F32, 0),
             *one = ir_const(t->g, DT_F32, 1);
  for (int i = 0; i < DEPTH; i++) {
    const node *k = range_make(t->g, n, KIND_LOOP);
    const node *state = index_make(t->g, DT_F32, fold_state_make(t->g, DT_F32, k, 0), 0, 0, NULL);
    const node *step = ir_op2(t->g, OP_ADD, state, one);
    int64_t none = -1;
    const node *fold = fold_make(
        t->g,
        &(fold_spec){
            .n_states = 1, .n_ranges = 1, .inits = &v, .steps = &step, .ops = &none, .ranges = &k});
    v = index_make(t->g, DT_F32, fold, 0, 0, NULL);
  }
  const node *param = ir_node(t->g, OP_PARAM, DT_F32, NULL, 0, (int64_t[]){0}, 1);
  size_t rank = 0;
  const node *stage = stage_make(t->g, &(stage_spec){.n_values = 1, .values = &v, .ranks = &rank});
  const node *out = ir_node(t->g, OP_OUT, DT_VOID, (const node *[]){param, stage}, 2, NULL, 0);
  const node *sink = ir_node(t->g, OP_SINK, DT_VOID, &out, 1, NULL, 0);
  check_outputs(
      t,
      codegen_linearise(t->g, codegen_index_width(t->g, codegen_lower(t->g, sink), &(target){0})),
      true, &(numbers)NUMBERS(DEPTH), NULL, 0);
}

/* Coordinates that write every element at most once. */

static bool writes_once(test *t, const node *x, size_t n, const node *const ranges[]) {
  const node *v = ir_const(t->g, DT_F32, 1), *extent = ix_const(t->g, 1000);
  size_t rank = 1;
  return stage_writes_once(stage_make(t->g, &(stage_spec){.n_values = 1,
                                                          .n_ranges = n,
                                                          .values = &v,
                                                          .ranks = &rank,
                                                          .coords = &x,
                                                          .extents = &extent,
                                                          .ranges = ranges}),
                           0);
}

TEST(mixed_radix_coordinates_write_once) {
  ir *g = t->g;
  const node *a = range_make(g, ix_const(g, 4), KIND_LOOP),
             *b = range_make(g, ix_const(g, 3), KIND_LOOP), *ab[] = {a, b}, *ba[] = {b, a};
  const node *outer = range_make(g, ix_const(g, 9), KIND_LOOP);
  assert_true(writes_once(t, a, 1, ab));
  assert_true(writes_once(t, ix_sub(g, ix_const(g, 3), a), 1, ab));
  assert_true(writes_once(t, ix_add(g, ix_scale(g, a, 3), b), 2, ab));
  assert_true(writes_once(t, ix_add(g, ix_scale(g, a, 3), b), 2, ba));
  assert_true(writes_once(t, ix_add(g, ix_scale(g, a, -5), ix_scale(g, b, 2)), 2, ab));
  assert_true(writes_once(t, ix_add(g, a, ix_mul(g, outer, outer)), 1, ab));
  assert_false(writes_once(t, ix_add(g, ix_scale(g, a, 2), b), 2, ab));
  assert_false(writes_once(t, ix_add(g, a, b), 2, ab));
  assert_false(writes_once(t, ix_mul(g, a, a), 1, ab));
  assert_false(writes_once(t, ix_floordiv(g, a, ix_const(g, 2)), 1, ab));
  assert_false(writes_once(t, ix_add(g, ix_mod(g, a, ix_const(g, 3)), a), 1, ab));
  const node *n = index_var(g, "n", 0, INT64_MAX);
  const node *far = range_make(g, n, KIND_LOOP), *both[] = {far, a};
  assert_true(writes_once(t, ix_add(g, ix_scale(g, far, 4), a), 2, both));
  assert_false(writes_once(t, ix_add(g, ix_scale(g, a, 4), far), 2, both));
}

/** True if a STAGE over some ranges is proved to span an array of two axes. */
static bool spans(test *t, const node *x, const node *rows, const node *y, const node *columns,
                  size_t n, const node *const ranges[]) {
  const node *v = ir_const(t->g, DT_F32, 1), *coords[] = {x, y}, *extents[] = {rows, columns};
  size_t rank = 2;
  return stage_spans_array(stage_make(t->g, &(stage_spec){.n_values = 1,
                                                          .n_ranges = n,
                                                          .values = &v,
                                                          .ranks = &rank,
                                                          .coords = coords,
                                                          .extents = extents,
                                                          .ranges = ranges}),
                           0);
}

static bool spans_row(test *t, const node *x, const node *y, int64_t columns, size_t n,
                      const node *const ranges[]) {
  return spans(t, x, ix_const(t->g, 1), y, ix_const(t->g, columns), n, ranges);
}

/** A coordinate that is a range of one index counts for its own axis alone. */
TEST(coordinates_span_arrays) {
  ir *g = t->g;
  const node *zero = ix_const(g, 0), *five = ix_const(g, 5);
  const node *f = range_make(g, ix_const(g, 1), KIND_LOOP), *i = range_make(g, five, KIND_LOOP),
             *fi[] = {f, i};
  const node *k = range_make(g, ix_const(g, 10), KIND_LOOP);
  assert_false(spans_row(t, f, zero, 5, 1, &f));
  assert_true(spans_row(t, f, zero, 1, 1, &f));
  assert_true(spans_row(t, f, i, 5, 2, fi));
  assert_true(spans_row(t, zero, i, 5, 1, &i));
  assert_false(spans_row(t, zero, ix_mod(g, k, five), 5, 1, &k));
  assert_false(spans_row(t, f, ix_mod(g, k, five), 5, 2, (const node *[]){f, k}));
}

/** Coordinates are all digits of a number that ranges count together, whose slowest one is open. */
TEST(digits_of_sums_span_arrays) {
  ir *g = t->g;
  const node *n = index_var(g, "n", 0, 100), *two = ix_const(g, 2), *four = ix_const(g, 4);
  const node *r = range_make(g, ix_scale(g, n, 2), KIND_LOOP), *l = range_make(g, two, KIND_LOOP);
  const node *q = range_make(g, two, KIND_LOOP), *all[] = {r, l, q};
  const node *x = ix_add(g, ix_scale(g, r, 2), l);
  const node *high = ix_floordiv(g, x, four), *low = ix_mod(g, x, four);
  assert_int_equal(high->op, OP_FLOORDIV);
  assert_true(spans(t, high, n, low, four, 2, all));
  assert_false(spans(t, high, ix_add_const(g, n, 1), low, four, 2, all)); /* the last row */
  assert_false(spans(t, high, n, low, ix_const(g, 5), 2, all));           /* the last column */
  assert_false(spans(t, high, n, low, four, 3, all));                     /* q */
  assert_false(spans(t, high, n, low, four, 1, all));                     /* l is another's */
  assert_false(spans(t, low, four, low, four, 2, all));
  x = ix_add_const(g, x, 1);
  assert_false(spans(t, ix_floordiv(g, x, four), n, ix_mod(g, x, four), four, 2, all));
}

static const node *distinct(test *t, const node *x, const node *key, const node *other) {
  const node *src[] = {x, key, other};
  return ir_node(t->g, OP_DISTINCT, DT_INDEX, src, other ? 3 : 2, NULL, 0);
}

/** True if a STAGE over two ranges that writes at two coordinates is proved to write once. */
static bool writes_pairs_once(test *t, const node *x, const node *y, const node *const ranges[]) {
  const node *v = ir_const(t->g, DT_F32, 1), *extent = ix_const(t->g, 1000);
  const node *coords[] = {x, y}, *extents[] = {extent, extent};
  size_t rank = 2;
  return stage_writes_once(stage_make(t->g, &(stage_spec){.n_values = 1,
                                                          .n_ranges = 2,
                                                          .values = &v,
                                                          .ranks = &rank,
                                                          .coords = coords,
                                                          .extents = extents,
                                                          .ranges = ranges}),
                           0);
}

/** An element of a buffer at two ranges, as an index. */
static const node *place_at(test *t, const node *a, const node *b) {
  const node *dims[] = {range_extent(a), range_extent(b)}, *at[] = {a, b};
  const node *p = ir_node(t->g, OP_PARAM, DT_I64, dims, 2, (int64_t[]){1}, 1);
  return ir_cast(t->g, index_make(t->g, DT_I64, p, 0, 2, at), DT_INDEX);
}

/* A known DISTINCT determines its key alone, and only if its other operands are known. */
TEST(distinct_coordinates_write_once) {
  ir *g = t->g;
  const node *a = range_make(g, ix_const(g, 4), KIND_LOOP),
             *b = range_make(g, ix_const(g, 3), KIND_LOOP), *ab[] = {a, b};
  const node *p = place_at(t, a, b), *q = place_at(t, b, a);
  const node *number = ix_add(g, ix_scale(g, a, 3), b), *half = ix_floordiv(g, a, ix_const(g, 2));
  assert_false(writes_once(t, p, 2, ab));
  assert_true(writes_once(t, distinct(t, p, number, NULL), 2, ab));
  assert_true(writes_once(t, distinct(t, distinct(t, p, a, NULL), b, NULL), 2, ab));
  assert_true(writes_once(t, ix_add_const(g, distinct(t, p, number, NULL), 5), 2, ab));
  assert_false(writes_once(t, distinct(t, p, a, NULL), 2, ab));
  assert_false(writes_once(t, distinct(t, p, half, NULL), 1, ab));
  assert_false(writes_once(t, distinct(t, p, ix_add(g, a, b), NULL), 2, ab));
  assert_false(writes_once(t, ix_floordiv(g, distinct(t, p, number, NULL), ix_const(g, 2)), 2, ab));
  assert_true(writes_pairs_once(t, distinct(t, p, b, a), a, ab));
  assert_false(writes_pairs_once(t, distinct(t, p, b, a), q, ab));
  assert_true(writes_pairs_once(t, distinct(t, p, number, q), q, ab));
  assert_false(writes_pairs_once(t, distinct(t, p, number, q), half, ab));
}

/* Machine code. */

typedef struct compiled {
  const node *linear;
  const char *entry;
  replay values;
  const interp_array *expected;
} compiled;

static int64_t argument(const replay *r, const char *name, int64_t id, int64_t count) {
  if (!strcmp(name, "core_id")) return id;
  if (!strcmp(name, "core_count")) return count;
  for (size_t i = 0; i < r->vars.n; i++)
    if (!strcmp(r->vars.at[i].name, name)) return r->vars.at[i].value;
  fail_msg("no value for %s", name);
  return 0;
}

typedef void entry_function(void *const *bufs, const int64_t *vals);

/** Derives the arguments of a program's launch. */
static tn_program_spec spec_of(test *t, const node *linear) {
  tn_program_spec s;
  program_spec_derive(t->g, linear, &s);
  return s;
}

static void run_compiled(test *t, compiled *k, const elf_image *code, int64_t workers) {
  tn_program_spec s = spec_of(t, k->linear);
  interp_array *got = replay_copies(&k->values, k->values.params.at, k->values.params.n);
  void **bufs = arena_alloc(t->a, (s.n_globals + 1) * sizeof *bufs);
  int64_t *vals = arena_alloc(t->a, (s.n_values + 1) * sizeof *vals);
  entry_function *f = (entry_function *)(uintptr_t)elf_symbol(code, k->entry);
  assert_non_null(f);
  for (size_t i = 0; i < s.n_globals; i++) bufs[i] = got[s.globals[i]].data;
  bufs[s.n_globals] = arena_alloc(t->a, s.scratch * (size_t)workers);
  for (int64_t id = 0; id < workers; id++) {
    for (size_t i = 0; i < s.n_values; i++)
      vals[i] = argument(&k->values, s.value_names[i], id, workers);
    f(bufs, vals);
  }
  for (size_t i = 0; i < k->values.params.n; i++)
    if (!replay_same(&k->expected[i], &got[i], -1)) fail_msg("%s: slot %zu differs", k->entry, i);
}

static void add_kernel(test *t, compiled *k, uint64_t seed, str *source) {
  const node *sink = kernel_random(t->g, seed);
  k->values = (replay){.a = t->a, .seed = seed};
  replay_prepare(&k->values, &sink, 1);
  k->expected = replay_kernel(&k->values, sink, 1);
  k->linear = program_of(t, sink, seed % 2 ? 32 : 0);
  k->entry = arena_printf(t->a, "kernel_%llu", (unsigned long long)seed);
  tn_program_spec spec = spec_of(t, k->linear);
  spec.entry = k->entry;
  render_c(k->linear, &spec, &c_gnu, source);
}

TEST(random_kernels_as_machine_code) {
  static compiled kernels[COMPILED];
  static const char *const flags[] = {"-march=native", NULL};
  cc c;
  cc_object object;
  elf_image *code;
  str source = str_new(t->a);
  if (cc_find(&c, NULL, t->a, &t->d) != TN_OK) diag_rethrow(&t->d);
  render_c_prelude(&c_gnu, &source);
  for (size_t i = 0; i < COMPILED; i++) add_kernel(t, &kernels[i], 1000 + i, &source);
  if (cc_compile(&c, str_text(&source), source.n, flags, t->a, &object, &t->d) != TN_OK ||
      elf_load(&code, object.data, object.bytes, &mem_system, &t->d) != TN_OK)
    diag_rethrow(&t->d);
  for (size_t i = 0; i < COMPILED; i++) run_compiled(t, &kernels[i], code, 1 + (int64_t)(i % 3));
  elf_free(code);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_emitted_state_is_the_one_after_the_step),
      cmocka_unit_test(all_states_step_from_the_old_ones),
      cmocka_unit_test(an_array_and_a_scalar_step_at_once),
      cmocka_unit_test(an_array_is_read_before_it_is_written),
      cmocka_unit_test(an_emitted_value_reads_an_array_after_the_step),
      cmocka_unit_test(a_variance_in_one_pass),
      cmocka_unit_test(a_step_writes_where_memory_says),
      cmocka_unit_test(elements_that_no_step_writes_stay),
      cmocka_unit_test(running_sums_of_classes),
      cmocka_unit_test(sums_are_emitted_into_the_output),
      cmocka_unit_test(folds_start_from_folds),
      cmocka_unit_test(long_chains_of_starts),
      cmocka_unit_test(mixed_radix_coordinates_write_once),
      cmocka_unit_test(coordinates_span_arrays),
      cmocka_unit_test(digits_of_sums_span_arrays),
      cmocka_unit_test(distinct_coordinates_write_once),
      cmocka_unit_test(random_kernels_as_machine_code),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
