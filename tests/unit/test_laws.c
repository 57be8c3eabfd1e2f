/* The laws on random legal kernels: whatever is done to a kernel, it stays well-formed and writes
   the same bits. What they make of small kernels is shown in tests/ir. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/print.h"
#include "ir/verify.h"
#include "laws/laws.h"

#include "../ir/kernels.h"
#include "../ir/replay.h"

#include <stdio.h>
#include <string.h>

enum { KERNELS = 1000, STEPS = 10, WORKERS = 1 };

typedef enum law {
  LAW_SPLIT,
  LAW_OVERLAP,
  LAW_PARTITION,
  LAW_ORDER,
  LAW_NEST,
  LAW_FLATTEN,
  LAW_UNIT,
  LAW_DATA,
  LAW_HOIST,
  LAW_INTERCHANGE,
  LAW_KIND,
  LAWS
} law;

typedef struct test {
  diag d;
  ir *g;
  uint64_t seed;
  unsigned applied[LAWS], refused[LAWS];
  law_log *log;
  size_t lines; /* told of the kernel at hand */
} test;

/** Any range of a kernel. */
static const node *any_range(test *t, rng *r, const node *sink) {
  node_list order = topo_sort(ir_arena(t->g), &sink, 1, NULL, NULL), ranges = {0};
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_RANGE) vec_push(ir_arena(t->g), &ranges, order.at[i]);
  return ranges.n ? ranges.at[rng_below(r, ranges.n)] : NULL;
}

/** A point of a range, mostly inside of it: a number, or a multiple of eight below the extent. */
static const node *any_point(test *t, rng *r, const node *extent) {
  const node *eight = ix_const(t->g, 8);
  if (rng_chance(r, 50)) return ix_scale(t->g, ix_floordiv(t->g, extent, eight), 8);
  return ix_const(t->g, rng_between(r, 0, extent->hi + 1));
}

/** Some of the ranges that a FOLD which binds the range is inside of. */
static const node *interchanged(rng *r, laws *l, const node *sink, const node *range) {
  const node *b = law_binder(l, sink, range), *outer[8], *own[8];
  size_t n = 0;
  for (uint32_t i = 0; b && i < b->free->n && n < 8; i++)
    if (rng_chance(r, 70)) outer[n++] = b->free->at[i];
  return law_interchange(l, sink, range, outer, n, own);
}

/** An array that depends on the range, or what binds the range, outside of a range. */
static const node *hoisted(test *t, laws *l, const node *sink, const node *range) {
  node_list order = topo_sort(ir_arena(t->g), &sink, 1, NULL, NULL);
  const node *b = law_binder(l, sink, range), *own;
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_STAGE && node_is_free_in(range, order.at[i])) b = order.at[i];
  const node *made = law_hoist(l, sink, b, range, &own);
  if (made) assert_false(node_is_free_in(range, law_binder(l, made, own)));
  return made;
}

/** Copies what something that is read or computed along the range is one of. */
static const node *gathered(test *t, rng *r, laws *l, const node *sink, const node *range) {
  node_list order = topo_sort(ir_arena(t->g), &sink, 1, NULL, NULL), reads = {0};
  const node *inner[8] = {range}, *element;
  size_t n = 1;
  for (size_t i = 0; i < order.n; i++)
    if ((order.at[i]->op == OP_INDEX || op_is_elementwise((op)order.at[i]->op)) &&
        order.at[i]->dtype != DT_INDEX && node_is_free_in(range, order.at[i]))
      vec_push(ir_arena(t->g), &reads, order.at[i]);
  if (!reads.n) return law_data(l, sink, range, inner, n, NULL, &element);
  const node *index = reads.at[rng_below(r, reads.n)];
  for (uint32_t i = 0; i < index->free->n && n < 8; i++)
    if (index->free->at[i] != range && rng_chance(r, 40)) inner[n++] = index->free->at[i];
  return law_data(l, sink, index, inner, n, rng_chance(r, 50) ? range : NULL, &element);
}

/** One law with random arguments; NULL if it refuses. */
static const node *apply(test *t, rng *r, law which, const node *sink, const node *range) {
  laws l = {.g = t->g, .log = t->log};
  const node *a, *b, *result = NULL;
  range_kind kind = (range_kind)rng_below(r, KIND_LIMIT);
  switch (which) {
  case LAW_SPLIT: result = law_split(&l, sink, range, rng_between(r, 0, 9), &a, &b); break;
  case LAW_OVERLAP: result = law_overlap(&l, sink, range, rng_between(r, 0, 9), &a, &b); break;
  case LAW_PARTITION:
    result = law_partition(&l, sink, range, any_point(t, r, range_extent(range)), &a, &b);
    break;
  case LAW_ORDER: result = law_order(&l, sink, range, rng_below(r, 3)); break;
  case LAW_DATA: result = gathered(t, r, &l, sink, range); break;
  case LAW_HOIST: result = hoisted(t, &l, sink, range); break;
  case LAW_UNIT: result = law_unit(&l, sink, law_binder(&l, sink, range), &a); break;
  case LAW_FLATTEN: result = law_flatten(&l, sink, range, &a); break;
  case LAW_NEST: result = law_nest(&l, sink, range); break;
  case LAW_INTERCHANGE: result = interchanged(r, &l, sink, range); break;
  default: result = law_kind(&l, sink, range, kind, &a); break;
  }
  if (!result) assert_non_null(l.refusal);
  t->applied[which] += result != NULL;
  t->refused[which] += result == NULL;
  return result;
}

static void check_same(test *t, replay *values, const interp_array *expected, const node *sink) {
  if (verify(&sink, 1, STAGE_KERNEL, ir_mem(t->g), &t->d) != TN_OK) diag_rethrow(&t->d);
  const interp_array *got = replay_kernel(values, sink, 1);
  for (size_t i = 0; i < values->params.n; i++)
    if (!replay_same(&expected[i], &got[i], -1))
      diag_raise(&t->d, TN_ERR_INTERNAL, "seed %llu: slot %zu differs", (unsigned long long)t->seed,
                 i);
}

static void count_line(void *user, const char *line) {
  static const char *const names[LAWS] = {"SPLIT ", "OVERLAP ",     "PARTITION ", "ORDER ",
                                          "NEST ",  "FLATTEN ",     "UNIT:",      "DATA ",
                                          "HOIST ", "INTERCHANGE ", "KIND "};
  test *t = user;
  bool known = false;
  for (int i = 0; i < LAWS; i++) known |= !strncmp(line, names[i], strlen(names[i]));
  if (!known) fail_msg("no law begins \"%s\"", line);
  t->lines++;
}

static void apply_laws(void *arg) {
  test *t = arg;
  rng r = {t->seed ^ 0x5eed};
  const node *sink = kernel_random(t->g, t->seed);
  replay values = {.a = ir_arena(t->g), .seed = t->seed};
  replay_prepare(&values, &sink, 1);
  const interp_array *expected = replay_kernel(&values, sink, 1);
  const node *first = sink;
  size_t kept = 0;
  t->log = law_log_new(t->g);
  t->lines = 0;
  for (int i = 0; i < STEPS; i++) {
    const node *range = any_range(t, &r, sink);
    if (!range) break;
    const node *changed = apply(t, &r, (law)rng_below(&r, LAWS), sink, range);
    if (!changed) continue;
    check_same(t, &values, expected, changed);
    if (rng_chance(&r, 20)) continue; /* tried, and not kept */
    sink = changed;
    kept++;
  }
  law_log_tell(t->log, first, sink, count_line, t);
  assert_true(t->lines <= kept && (t->lines == 0) == (sink == first));
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
    print_message("law %d: applied %u times, refused %u times\n", i, t.applied[i], t.refused[i]);
    assert_true(t.applied[i] > KERNELS / 50 && t.refused[i] > KERNELS / 50);
  }
}

/* A law that is refused leaves the kernel as it is, and says why in words. */

static void refusals_have_reasons(void *arg) {
  test *t = arg;
  laws l = {.g = t->g};
  const node *sink = kernel_random(t->g, 3), *a, *b;
  const node *stranger = range_make(t->g, ix_const(t->g, 4), KIND_LOOP);
  assert_null(law_split(&l, sink, stranger, 2, &a, &b));
  assert_string_equal(l.refusal, "no STAGE or FOLD binds the range");
  assert_null(law_overlap(&l, sink, stranger, 2, &a, &b));
  assert_string_equal(l.refusal, "no STAGE or FOLD binds the range");
  assert_null(law_partition(&l, sink, stranger, ix_const(t->g, 2), &a, &b));
  assert_string_equal(l.refusal, "no STAGE or FOLD binds the range");
  assert_null(law_order(&l, sink, stranger, 0));
  assert_string_equal(l.refusal, "no STAGE or FOLD binds the range");
  assert_null(law_data(&l, sink, stranger, &stranger, 1, NULL, &a));
  assert_string_equal(l.refusal, "it is not computed from elements of buffers alone");
  assert_null(law_hoist(&l, sink, stranger, stranger, &a));
  assert_string_equal(l.refusal, "no STAGE is hoisted");
  assert_null(law_unit(&l, sink, stranger, &a));
  assert_string_equal(l.refusal, "no STAGE is given a range");
  assert_null(law_flatten(&l, sink, stranger, &a));
  assert_string_equal(l.refusal, "no STAGE or FOLD binds the range");
  assert_null(law_nest(&l, sink, stranger));
  assert_string_equal(l.refusal, "no FOLD binds the range");
  assert_null(law_interchange(&l, sink, stranger, &stranger, 1, &a));
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
