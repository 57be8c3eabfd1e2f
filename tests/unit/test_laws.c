/* Tests the laws (schedule transformations) on random legal kernels: each either refuses with a
   reason or leaves a well-formed kernel that writes the same bits. Small cases are tested in
   tests/ir. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/text/print.h"
#include "ir/verify/verify_graph.h"
#include "laws/laws.h"

#include "../ir/alike.h"
#include "../ir/kernels.h"
#include "../ir/random_law.h"
#include "../ir/replay.h"

#include <string.h>

enum { KERNELS = 1000, STEPS = 12, WORKERS = 1 };

typedef struct test {
  diag d;
  ir *g;
  uint64_t seed;
  unsigned applied[LAWS], refused[LAWS];
  law_trace *log;
  kernel_indices *indices;
  size_t replayed;
} test;

/** The remembered index of a kernel is that of a new walk. */
static void check_index(const laws *l, const node *sink) {
  kernel_index known = law_index_of(l, sink), made = law_index_of(&(laws){.g = l->g}, sink);
  node_list nodes = topo_sort(ir_arena(l->g), &sink, 1, NULL, NULL);
  assert_int_equal(known.nodes.n, nodes.n);
  assert_memory_equal(known.nodes.at, nodes.at, nodes.n * sizeof *nodes.at);
  assert_int_equal(known.binders.n, made.binders.n);
  assert_memory_equal(known.binders.at, made.binders.at, made.binders.n * sizeof *nodes.at);
  for (size_t i = 0; i < nodes.n; i++)
    if (nodes.at[i]->op == OP_STAGE && stage_n_ranges(nodes.at[i]))
      assert_ptr_equal(law_find_binder(l, sink, stage_range(nodes.at[i])[0]), nodes.at[i]);
}

/** Applies one law with random arguments; NULL if it refuses. */
static const node *apply(test *t, rng *r, law which, const node *sink) {
  laws l = {.g = t->g, .log = t->log, .indices = t->indices};
  law_args a = random_args(&l, r, which, sink);
  const node *principals[8 + IR_MAX_RANK];
  const node *result = law_apply(&l, sink, which, &a, principals);
  if (!result) assert_non_null(l.refusal);
  check_index(&l, sink);
  t->applied[which] += result != NULL;
  t->refused[which] += result == NULL;
  return result;
}

static void check_same(test *t, replay *values, const interp_array *expected, const node *sink) {
  if (verify_graph(&sink, 1, LEVEL_KERNEL, ir_mem(t->g), &t->d) != TN_OK) diag_rethrow(&t->d);
  const interp_array *got = replay_kernel(values, sink, 1);
  for (size_t i = 0; i < values->params.n; i++)
    if (!replay_same(&expected[i], &got[i], -1))
      diag_raise(&t->d, TN_ERR_INTERNAL, "seed %llu: slot %zu differs", (unsigned long long)t->seed,
                 i);
}

/** A sum of products of small elements over two ranges, with the conditions of padding in some; one
    in ten has types that no row multiplies. */
static const node *small_product(ir *g, uint64_t seed) {
  static const dtype types[][2] = {
      {DT_U8, DT_I8}, {DT_I8, DT_U8}, {DT_I16, DT_I16}, {DT_I8, DT_I8}};
  rng r = {seed * 3 + 1};
  const dtype *of = types[rng_chance(&r, 10) ? 3 : rng_below(&r, 3)];
  const node *size[4], *at[4], *out[2];
  for (size_t i = 0; i < 4; i++) {
    size[i] = ix_const(g, rng_between(&r, 2, i < 3 ? 19 : 3));
    at[i] = range_make(g, size[i], KIND_LOOP);
  }
  const node *x_dims[] = {size[0], ix_add(g, size[2], size[3])};
  const node *y_dims[] = {size[2], size[3], size[1]};
  const node *x_at[] = {at[0], ix_add(g, at[2], at[3])}, *y_at[] = {at[2], at[3], at[1]};
  const node *x = ir_node(g, OP_PARAM, of[0], x_dims, 2, (int64_t[]){1}, 1);
  const node *y = ir_node(g, OP_PARAM, of[1], y_dims, 3, (int64_t[]){2}, 1);
  x = ir_cast(g, index_make(g, of[0], x, 0, 2, x_at), DT_I32);
  y = ir_cast(g, index_make(g, of[1], y, 0, 3, y_at), DT_I32);
  if (rng_chance(&r, 30))
    x = ir_op3(g, OP_WHERE, ir_op2(g, OP_LT, ix_const(g, 0), x_at[1]), x,
               ir_const_int(g, DT_I32, 0));
  const node *sum = fold_make_reduction(g, OP_ADD, ir_op2(g, OP_MUL, x, y), 2, at + 2);
  out[0] = ir_node(g, OP_PARAM, DT_I32, size, 2, (int64_t[]){0}, 1);
  out[1] = stage_make(g, &(stage_spec){.n_values = 1,
                                       .n_ranges = 2,
                                       .values = &sum,
                                       .ranks = (size_t[]){2},
                                       .coords = at,
                                       .extents = size,
                                       .ranges = at,
                                       .cut = true});
  const node *store = ir_node(g, OP_OUT, DT_VOID, out, 2, NULL, 0);
  return ir_make(g, &(node_spec){.op = OP_SINK,
                                 .dtype = DT_VOID,
                                 .src = &store,
                                 .n_src = 1,
                                 .text = "small",
                                 .n_text = 5});
}

/** One kernel in five is a sum that TENSOR is for. */
static bool is_small_product(uint64_t seed) { return seed % 5 == 4; }

static void apply_laws(void *arg) {
  test *t = arg;
  rng r = {t->seed ^ 0x5eed};
  bool is_small = is_small_product(t->seed);
  const node *sink = is_small ? small_product(t->g, t->seed) : kernel_random(t->g, t->seed);
  replay values = {.a = ir_arena(t->g), .seed = t->seed};
  replay_prepare(&values, &sink, 1);
  const interp_array *expected = replay_kernel(&values, sink, 1);
  const node *first = sink;
  t->log = law_trace_new(t->g);
  t->indices = law_indices_new(t->g);
  for (int i = 0; i < STEPS; i++) {
    if (!random_range(&(laws){.g = t->g}, &r, sink)) break;
    law which = is_small && rng_chance(&r, 40) ? LAW_TENSOR : (law)rng_below(&r, LAWS);
    const node *changed = apply(t, &r, which, sink);
    if (!changed) continue;
    check_same(t, &values, expected, changed);
    if (rng_chance(&r, 20)) continue; /* tried and dropped */
    sink = changed;
  }
  laws l = {.g = t->g};
  law_steps steps = law_trace_path(t->log, first, sink);
  assert_true((steps.n == 0) == (sink == first));
  law_schedule list = law_schedule_of_trace(&l, first, &steps);
  str text = str_new(ir_arena(t->g));
  law_schedule_print(&text, &list);
  alike_replay(t->g, first, &text, sink);
  t->replayed += list.n;
}

static void laws_change_no_bit(void **state) {
  test t = {0};
  (void)state;
  for (t.seed = 0; t.seed < KERNELS; t.seed++) {
    t.g = ir_new(&mem_system, &t.d, false);
    assert_non_null(t.g);
    tn_status status = diag_catch(&t.d, apply_laws, &t);
    ir_free(t.g);
    if (status != TN_OK) fail_msg("seed %llu: %s", (unsigned long long)t.seed, t.d.text);
  }
  for (int i = 0; i < LAWS; i++) {
    print_message("%s: applied %u times, refused %u times\n", law_facts_of((law)i)->name,
                  t.applied[i], t.refused[i]);
    unsigned least = i == LAW_PITCH ? KERNELS / 250 : KERNELS / 50; /* few arrays have rows */
    assert_true(t.applied[i] > least && t.refused[i] > KERNELS / 50);
  }
  assert_true(t.replayed > KERNELS);
}

/* A refused law leaves the kernel unchanged and gives a reason. */

static void refusals_have_reasons(void *arg) {
  test *t = arg;
  laws l = {.g = t->g};
  const node *sink = kernel_random(t->g, 3), *a, *b;
  const node *stranger = range_make(t->g, ix_const(t->g, 4), KIND_LOOP);
  assert_null(law_split(&l, sink, stranger, 2, &a, &b));
  assert_string_equal(l.refusal, "no STAGE or FOLD binds the range");
  assert_null(law_overlap(&l, sink, stranger, 2, &a, &b));
  assert_string_equal(l.refusal, "no STAGE or FOLD binds the range");
  assert_null(law_partition(&l, sink, stranger, (law_point){2, false}, &a, &b));
  assert_string_equal(l.refusal, "no STAGE or FOLD binds the range");
  assert_null(law_order(&l, sink, stranger, 0));
  assert_string_equal(l.refusal, "no STAGE or FOLD binds the range");
  assert_null(law_data(&l, sink, stranger, &stranger, 1, NULL, &a));
  assert_string_equal(l.refusal, "the expression is not computed from elements of buffers alone");
  assert_null(law_hoist(&l, sink, stranger, stranger, &a));
  assert_string_equal(l.refusal, "no STAGE is hoisted");
  assert_null(law_unit(&l, sink, stranger, &a));
  assert_string_equal(l.refusal, "the binder is not a STAGE");
  assert_null(law_flatten(&l, sink, stranger, &a));
  assert_string_equal(l.refusal, "no STAGE or FOLD binds the range");
  assert_null(law_nest(&l, sink, stranger));
  assert_string_equal(l.refusal, "no FOLD binds the range");
  assert_null(law_interchange(&l, sink, stranger, &stranger, 1, &a));
  assert_string_equal(l.refusal, "no FOLD binds the range");
  assert_null(law_tensor(&l, sink, stranger, 0, &a));
  assert_string_equal(l.refusal, "no FOLD binds the range");
  assert_null(law_kind(&l, sink, stranger, KIND_UNROLL, &a));
  assert_string_equal(l.refusal, "no STAGE or FOLD binds the range");
}

static void strangers_are_refused(void **state) {
  test t = {0};
  (void)state;
  t.g = ir_new(&mem_system, &t.d, false);
  assert_non_null(t.g);
  assert_int_equal(diag_catch(&t.d, refusals_have_reasons, &t), TN_OK);
  ir_free(t.g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(laws_change_no_bit),
      cmocka_unit_test(strangers_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
