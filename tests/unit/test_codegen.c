/* Tests code generation: random kernels under random schedules are lowered for several targets, and
   their linear programs, interpreted, must write the same bits as the kernel. Also row-major
   addresses, the search for index-set splits, and the width of indices. Single passes are tested in
   tests/ir. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codegen/codegen.h"
#include "ir/index/row_major_address.h"
#include "ir/verify/verify_graph.h"
#include "laws/laws.h"
#include "render/c/dialect.h"
#include "render/c/render_c.h"

#include "../ir/kernels.h"
#include "../ir/random_law.h"
#include "../ir/replay.h"
#include "support/graph_body.h"

enum { KERNELS = 300, STEPS = 8, MOST_COPIES = 5000 };

typedef struct test {
  diag d;
  ir *g;
  uint64_t seed;
  void (*body)(struct test *t);
} test;

static void call_body(void *arg) {
  test *t = arg;
  t->body(t);
}

static void run_body(void (*body)(test *t), uint64_t seed) {
  test t = {.body = body, .seed = seed};
  run_in_graph(&t.g, false, &t.d, call_body, &t, t.seed);
}

#define TEST(name) BODY_TEST(name, run_body(name##_body, 0))

/* Addresses. */

static const node *number(test *t, int64_t n) { return ix_const(t->g, n); }

static const node *loop(test *t, int64_t n) { return range_make(t->g, number(t, n), KIND_LOOP); }

TEST(addresses_are_row_major) {
  const node *i = loop(t, 4), *j = loop(t, 5), *k = loop(t, 6);
  const node *extents[] = {number(t, 4), number(t, 5), number(t, 6)}, *at[] = {i, j, k};
  const node *a = row_major_address(t->g, 3, extents, at);
  assert_int_equal(ix_coefficient(a, i), 30);
  assert_int_equal(ix_coefficient(a, j), 6);
  assert_int_equal(ix_coefficient(a, k), 1);
  assert_ptr_equal(row_major_size(t->g, 3, extents), number(t, 120));
  assert_ptr_equal(row_major_address(t->g, 0, NULL, NULL), number(t, 0));
  assert_ptr_equal(row_major_size(t->g, 0, NULL), number(t, 1));
}

TEST(addresses_have_gates_only_where_needed) {
  const node *i = loop(t, 8), *eight = number(t, 8), *seven = number(t, 7);
  const node *back = ix_sub(t->g, seven, i), *next = ix_add_const(t->g, i, 1);
  assert_ptr_equal(row_major_address(t->g, 1, &eight, &back), back);
  const node *gated = row_major_address(t->g, 1, &eight, &next);
  assert_int_equal(gated->op, OP_WHERE);
  assert_ptr_equal(gated->src[0], ix_lt(t->g, next, eight)); /* the lower bound is proved */
  assert_ptr_equal(gated->src[1], next);
  assert_int_equal(gated->src[2]->op, OP_INVALID);
}

/* Whole programs. */

static const target targets[] = {
    {.vector_bytes = 0},
    {.vector_bytes = 0, .threads = true, .index32 = true},
    {.vector_bytes = 16, .threads = true},
    {.vector_bytes = 32},
    {.vector_bytes = 64, .threads = true, .index32 = true},
};

static codegen_options options(size_t i) {
  codegen_options o = {.target = targets[i], .math = MATH_EXACT};
  render_c_unsupported_ops(&c_gnu, &o.target.rules);
  return o;
}

static void check_program(test *t, replay *values, const interp_array *expected, const node *sink,
                          size_t i, int64_t workers) {
  codegen_options o = options(i);
  const node *linear = codegen_run(t->g, sink, "CPU", &o)->src[2];
  if (verify_graph(&linear, 1, LEVEL_LINEAR, ir_mem(t->g), &t->d) != TN_OK) diag_rethrow(&t->d);
  const interp_array *got = replay_kernel(values, linear, workers);
  for (size_t s = 0; s < values->params.n; s++)
    if (!replay_same(&expected[s], &got[s], -1))
      diag_raise(&t->d, TN_ERR_INTERNAL, "target %zu: slot %zu differs", i, s);
}

/** Applies a few random laws to a kernel, favouring those that make vectors, and ranges that
    the scheduler never makes. */
static const node *arranged(test *t, const node *sink) {
  static const law vectors[] = {LAW_SPLIT, LAW_KIND, LAW_KIND};
  rng r = {t->seed ^ 0xa44};
  laws l = {.g = t->g};
  const node *principals[8 + IR_MAX_RANK];
  for (int i = 0; i < STEPS; i++) {
    law which = rng_chance(&r, 60) ? vectors[rng_below(&r, 3)] : (law)rng_below(&r, LAWS);
    law_args a = random_args(&l, &r, which, sink);
    if (!a.subject) break;
    const node *made = law_apply(&l, sink, which, &a, principals);
    if (made && law_expanded_nodes(ir_arena(t->g), made, false) < MOST_COPIES) sink = made;
  }
  return sink;
}

/** True if all outputs are parallelised or none: with both, a worker repeats another's work. */
static bool is_launchable(const node *sink) {
  size_t shared = 0;
  for (uint32_t i = 0; i < sink->n_src; i++) {
    const node *stage = sink->src[i]->src[sink->src[i]->n_src - 1];
    bool any = false;
    for (size_t k = 0; k < stage_n_ranges(stage); k++)
      any |= range_kind_of(stage_range(stage)[k]) == KIND_THREAD;
    shared += any;
  }
  return !shared || shared == sink->n_src;
}

static void random_kernel(test *t) {
  const node *sink = kernel_random(t->g, t->seed);
  replay values = {.a = ir_arena(t->g), .seed = t->seed};
  replay_prepare(&values, &sink, 1);
  const interp_array *expected = replay_kernel(&values, sink, 1);
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
    check_program(t, &values, expected, sink, i, 1 + (int64_t)(t->seed % 3));
  sink = arranged(t, sink);
  if (is_launchable(sink)) check_program(t, &values, expected, sink, 0, 1 + (int64_t)(t->seed % 3));
}

static void programs_do_what_kernels_do(void **state) {
  (void)state;
  /* Kernels of open sizes whose number of workers, a divisor, is at least 1 by more than its
   * bounds. */
  static const uint64_t divided[] = {1831, 4917};
  for (uint64_t seed = 0; seed < KERNELS; seed++) run_body(random_kernel, seed);
  for (size_t i = 0; i < sizeof divided / sizeof *divided; i++) run_body(random_kernel, divided[i]);
}

/* Many loops. A pass's work is measured by the bytes it allocates. */

typedef struct many {
  test t;
  int64_t copies;
  size_t bytes; /* allocated so far */
  size_t made;  /* bytes that the pass allocated, copies included */
} many;

static void *take(void *user, size_t bytes, size_t align) {
  ((many *)user)->bytes += bytes;
  return mem_system.alloc(mem_system.user, bytes, align);
}

static void give_back(void *user, void *at, size_t bytes) {
  (void)user;
  mem_system.release(mem_system.user, at, bytes);
}

/** Copies an array with a number added before and behind. */
static const node *padded_copy(test *t, int64_t slot) {
  const node *n = number(t, 62), *all = number(t, 64), *r = range_make(t->g, all, KIND_LOOP);
  const node *x = ir_node(t->g, OP_PARAM, DT_F32, &n, 1, (int64_t[]){0}, 1);
  const node *y = ir_node(t->g, OP_PARAM, DT_F32, &all, 1, &slot, 1);
  const node *at = ix_add_const(t->g, r, -1);
  const node *is = ir_op2(t->g, OP_AND, ix_le(t->g, number(t, 0), at), ix_lt(t->g, at, n));
  const node *element = index_make(t->g, DT_F32, x, 0, 1, &at);
  const node *value = ir_op3(t->g, OP_WHERE, is, element, ir_const(t->g, DT_F32, (double)slot));
  const node *s = stage_make(t->g, &(stage_spec){.n_values = 1,
                                                 .n_ranges = 1,
                                                 .values = &value,
                                                 .ranks = (size_t[]){1},
                                                 .coords = &r,
                                                 .extents = &all,
                                                 .ranges = &r,
                                                 .cut = true});
  return ir_node(t->g, OP_OUT, DT_VOID, (const node *[]){y, s}, 2, NULL, 0);
}

static void many_edges(void *arg) {
  many *m = arg;
  node_list outs = {0};
  for (int64_t i = 0; i < m->copies; i++)
    vec_push(ir_arena(m->t.g), &outs, padded_copy(&m->t, 1 + i));
  const node *sink = ir_node(m->t.g, OP_SINK, DT_VOID, outs.at, outs.n, NULL, 0);
  sink = codegen_expand(m->t.g, codegen_lower(m->t.g, sink));
  size_t before = m->bytes;
  const node *made = codegen_split_copy_loops(m->t.g, sink);
  m->made = m->bytes - before;
  assert_int_equal(made->n_src, 3 * m->copies);
}

static size_t bytes_for(int64_t copies) {
  many m = {.copies = copies};
  mem counts = {take, give_back, &m};
  m.t.g = ir_new(&counts, &m.t.d, false);
  assert_non_null(m.t.g);
  tn_status status = diag_catch(&m.t.d, many_edges, &m);
  ir_free(m.t.g);
  if (status != TN_OK) fail_msg("%s", m.t.d.text);
  return m.made;
}

static void edges_are_found_together(void **state) {
  (void)state;
  size_t few = bytes_for(20), more = bytes_for(200);
  print_message("edges: %zu bytes for 20 loops, %zu for 200\n", few, more);
  assert_true(more < 20 * few); /* 10 if linear, 100 if quadratic */
}

/** Asking whether blocks may overlap makes no nodes. */
TEST(asking_makes_nothing) {
  const node *out = padded_copy(t, 1), *outer, *inner;
  const node *sink = ir_node(t->g, OP_SINK, DT_VOID, &out, 1, NULL, 0);
  const node *r = stage_range(out->src[1])[0];
  laws l = {.g = t->g, .log = law_trace_new(t->g)};
  int64_t next = ir_fresh_id(t->g);
  assert_true(law_may_overlap(&l, sink, r, 10));
  assert_false(law_may_overlap(&l, sink, r, 100));
  assert_int_equal(ir_fresh_id(t->g), next + 1);
  assert_non_null(law_overlap(&l, sink, r, 10, &outer, &inner));
  assert_null(law_overlap(&l, sink, r, 100, &outer, &inner));
}

/* The widest index decides the type of all indices. */

static dtype index_type(test *t, int64_t extent, bool index32) {
  const node *n = number(t, extent), *r = range_make(t->g, n, KIND_LOOP);
  const node *param = ir_node(t->g, OP_PARAM, DT_U8, &n, 1, (int64_t[]){0}, 1);
  const node *store[] = {param, r, ir_const_bits(t->g, DT_U8, 1)};
  const node *end[] = {r, ir_node(t->g, OP_STORE, DT_VOID, store, 3, NULL, 0)};
  const node *done = ir_node(t->g, OP_END, DT_VOID, end, 2, NULL, 0);
  const node *sink = ir_node(t->g, OP_SINK, DT_VOID, &done, 1, NULL, 0);
  sink = codegen_index_width(t->g, sink, &(target){.index32 = index32});
  return (dtype)sink->src[0]->src[0]->dtype;
}

TEST(indices_are_32_bits_wide_where_all_fit) {
  assert_int_equal(index_type(t, 1000, false), DT_I64);
  assert_int_equal(index_type(t, 1000, true), DT_I32);
  assert_int_equal(index_type(t, INT64_C(1) << 29, true), DT_I32);
  assert_int_equal(index_type(t, INT64_C(1) << 31, true), DT_I64);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(addresses_are_row_major),
      cmocka_unit_test(addresses_have_gates_only_where_needed),
      cmocka_unit_test(programs_do_what_kernels_do),
      cmocka_unit_test(edges_are_found_together),
      cmocka_unit_test(asking_makes_nothing),
      cmocka_unit_test(indices_are_32_bits_wide_where_all_fit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
