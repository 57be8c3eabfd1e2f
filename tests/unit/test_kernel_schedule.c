/* Tests the text form of schedules, lists of laws (schedule transformations): parsing and printing,
   application to a kernel, errors with reasons, and random and mutated texts, which must be refused
   or leave a valid kernel with the same results. */
#include "codegen/codegen.h"
#include "ir/text/graph_key.h"
#include "ir/text/parse.h"
#include "ir/text/sink_text.h"
#include "ir/verify/verify_graph.h"
#include "support/graph_body.h"

#include "../ir/alike.h"
#include "../ir/kernels.h"
#include "../ir/random_law.h"
#include "../ir/replay.h"

#include <stdio.h>

/* Sums rows: y[i] = Σ x[i, k] over 20 × 24; or in a stage without ranges. */
#define SUMS(I, K)                                                      \
  "%y = param f32 " I " [slot=0]\n"                                     \
  "%x = param f32 " I " " K " [slot=1]\n"                               \
  "%i = range index " I " [id=0 kind=loop axis=0 tail=0]\n"             \
  "%k = range index " K " [id=3 kind=loop axis=0 tail=0]\n"             \
  "%a = index f32 %x %i %k [component=0]\n"                             \
  "%n = neg f32 %a\n"                                                   \
  "%0 = const f32 0\n"                                                  \
  "%f = fold void %0 %n %k [states=1 emits=0 ranges=1 pins=0 add -1]\n" \
  "%b = index f32 %f [component=0]\n"                                   \
  "%t = stage void %b [values=1 ranges=0 pins=0 cut=0 0]\n"             \
  "%c = index f32 %t [component=0]\n"                                   \
  "%s = stage void %c %i " I " %i [values=1 ranges=1 pins=0 cut=1 1]\n" \
  "%o = out void %y %s\n"                                               \
  "%r = sink void %o \"sums\"\n"                                        \
  "return %r\n"
static const char sums[] = SUMS("20", "24"), long_sums[] = SUMS("2000", "2000");

typedef struct test {
  diag d;
  ir *g;
  const char *text;
  const node *sink, *made;
  bool long_sums;
} test;

static void parse_and_apply(void *arg) {
  test *t = arg;
  laws l = {.g = t->g};
  arena *a = ir_arena(t->g);
  str again = str_new(a);
  const char *kernel = t->long_sums ? long_sums : sums;
  if (!t->sink) t->sink = parse_graph(t->g, a, kernel, strlen(kernel)).at[0];
  law_schedule list = law_schedule_parse(a, t->text, strlen(t->text));
  law_schedule_print(&again, &list);
  t->made = law_schedule_apply(&l, t->sink, &list);
  alike_replay(t->g, t->sink, &again, t->made);
  if (verify_graph(&t->made, 1, LEVEL_KERNEL, ir_mem(t->g), ir_diag(t->g)) != TN_OK)
    diag_rethrow(ir_diag(t->g));
}

static tn_status try(test *t, const char *text) {
  t->text = text;
  return diag_catch(&t->d, parse_and_apply, t);
}

static void open_test(test *t) {
  *t = (test){0};
  t->g = ir_new(&mem_system, &t->d, false);
  assert_non_null(t->g);
}

static void check_refused(const char *text, tn_status status, const char *why) {
  test t;
  open_test(&t);
  tn_status s = try(&t, text);
  if (s != status || strcmp(t.d.text, why) != 0)
    fail_msg("\"%s\": status %d, %s", text, (int)s, t.d.text);
  ir_free(t.g);
}

static void check_applies(const char *text) {
  test t;
  open_test(&t);
  if (try(&t, text) != TN_OK) fail_msg("\"%s\": %s", text, t.d.text);
  ir_free(t.g);
}

static void texts_are_read(void **state) {
  (void)state;
  check_applies("");
  check_applies("; nothing\n\n  \t; at all");
  check_applies("SPLIT r0 by 4: r1 r2\nKIND r2 vector\n");
  check_applies("  SPLIT  r0 by 5 :  r90   r7 ;blocks\r\nORDER r7 to 0\n\nKIND r90 unroll");
  check_applies("SPLIT r0 by 8\nKIND r3 unroll");
  check_applies("SPLIT r0 by 4: - r4\nKIND r4 vector");
  check_applies("PARTITION r0 at 16: r1 r2\nPARTITION r1 by 5\nUNIT s0: r9\nUNIT r2: r12");
  check_applies("SPLIT r3 by 8: r4 r5\nNEST r4\nHOIST s0 out of r0: r6");
  check_applies("DATA e1 inside r3 along r3: r4\nKIND r4 unroll\nSPLIT r3 by 6: r5 r6\nNEST r5");
  check_applies("DATA e1 inside r3 r0 along -");
}

/** Names of ranges that disappeared because they had one iteration. */
static void ranges_of_one_index_do_nothing(void **state) {
  (void)state;
  test t, u;
  open_test(&t);
  assert_int_equal(try(&t, "SPLIT r0 by 32: r1 r2\nKIND r1 thread\nSPLIT r1 by 4: r5 r6\n"
                           "INTERCHANGE r3 with r6: r7\nORDER r5 to 1\nKIND r2 unroll"),
                   TN_OK);
  open_test(&u);
  assert_int_equal(try(&u, "SPLIT r0 by 20\nSPLIT r3 by 24: - r9"), TN_OK);
  assert_true(u.made != u.sink);
  ir_free(t.g);
  ir_free(u.g);
}

static void bad_texts_are_refused(void **state) {
  (void)state;
  static const char *const texts[][2] = {
      {"NOTHING r0", "line 1 of the schedule: expected the name of a law, found 'NOTHING'"},
      {"\n\nSPLITS r0 by 2", "line 3 of the schedule: expected the name of a law, found 'SPLITS'"},
      {"SPLIT", "line 1 of the schedule: expected a range, as r0, found the end of the line"},
      {"SPLIT s0 by 2", "line 1 of the schedule: expected a range, as r0, found 's0'"},
      {"SPLIT r by 2", "line 1 of the schedule: expected its number, found 'by'"},
      {"SPLIT r0 at 2", "line 1 of the schedule: expected 'by', found 'at'"},
      {"SPLIT r0 by -2", "line 1 of the schedule: expected a number, found '-2'"},
      {"SPLIT r0 by 2147483648", "line 1 of the schedule: expected a number, found '2147483648'"},
      {"SPLIT r99999999999999999999 by 2",
       "line 1 of the schedule: expected its number, found '99999999999999999999'"},
      {"SPLIT r0 by 2 3", "line 1 of the schedule: expected the end of the line, found '3'"},
      {"SPLIT r0 by 2: r1 s2", "line 1 of the schedule: expected a range, as r0, or -, found 's2'"},
      {"KIND r0 sideways",
       "line 1 of the schedule: expected a kind of ranges: loop, unroll, vector, "
       "thread, global, local, warp, tile, found 'sideways'"},
      {"PARTITION r0 16", "line 1 of the schedule: expected 'at' or 'by', found '16'"},
      {"HOIST e0 out of r0", "line 1 of the schedule: expected a binder, as r0 or s0, found 'e0'"},
      {"HOIST r0 out of -", "line 1 of the schedule: expected a range, as r0, found '-'"},
      {"DATA r0 inside r0 along -",
       "line 1 of the schedule: expected an expression, as e0, found 'r0'"},
      {"\x01", "line 1 of the schedule: expected the name of a law, found ''"},
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    test t;
    open_test(&t);
    tn_status s = try(&t, texts[i][0]);
    if (s != TN_ERR_FORMAT || strcmp(t.d.text, texts[i][1]) != 0)
      fail_msg("\"%s\": status %d, %s", texts[i][0], (int)s, t.d.text);
    ir_free(t.g);
  }
}

static void what_does_not_apply_is_refused(void **state) {
  (void)state;
  check_refused("SPLIT r0 by 0: r1 r2", TN_ERR_ARGUMENT,
                "law 1 of the schedule, \"SPLIT r0 by 0: r1 r2\", is refused: the factor is not "
                "positive");
  check_refused("SPLIT r1 by 4", TN_ERR_ARGUMENT,
                "law 1 of the schedule, \"SPLIT r1 by 4\", is refused: the kernel has no range r1 "
                "at this point");
  check_refused("SPLIT r0 by 4: r1 r2\nKIND r0 unroll", TN_ERR_ARGUMENT,
                "law 2 of the schedule, \"KIND r0 unroll\", is refused: the kernel has no range r0 "
                "at this point");
  check_refused("SPLIT r0 by 4: r1 r3", TN_ERR_ARGUMENT,
                "law 1 of the schedule, \"SPLIT r0 by 4: r1 r3\", is refused: r3 already names "
                "another range");
  check_refused("SPLIT r0 by 4\nKIND r5 unroll", TN_ERR_ARGUMENT,
                "law 2 of the schedule, \"KIND r5 unroll\", is refused: the kernel has no range r5 "
                "at this point");
  check_refused("SPLIT r0 by 4: r1 r2 r4", TN_ERR_ARGUMENT,
                "law 1 of the schedule, \"SPLIT r0 by 4: r1 r2 r4\", is refused: the law creates 2 "
                "ranges, but the line names 3");
  check_refused(
      "UNIT s1", TN_ERR_ARGUMENT,
      "law 1 of the schedule, \"UNIT s1\", is refused: the kernel has only 1 stages without "
      "ranges at this point");
  check_refused("DATA e9 inside r0 along -", TN_ERR_ARGUMENT,
                "law 1 of the schedule, \"DATA e9 inside r0 along -\", is refused: the kernel has "
                "only 2 expressions over elements at this point");
  check_refused("SPLIT r0 by 4: r5 r6\nKIND r6 vector\nKIND r3 vector", TN_ERR_ARGUMENT,
                "law 3 of the schedule, \"KIND r3 vector\", is refused: the range is not a "
                "STAGE's");
}

/** Repeated laws copy copies: the size of kernels is limited. */
static void kernels_do_not_grow_without_end(void **state) {
  (void)state;
  enum { INNER = 80, OUTER = 40 };
  test t;
  char text[(INNER + OUTER) * 32], *end = text;
  open_test(&t);
  for (int i = 0; i < INNER; i++)
    end += sprintf(end, "PARTITION r%d at 1: r%d r%d\n", i ? 9 + 2 * i : 3, 10 + 2 * i, 11 + 2 * i);
  for (int i = 0; i < OUTER; i++)
    end += sprintf(end, "PARTITION r%d at 1: r%d r%d\n", i ? 999 + 2 * i : 0, 1000 + 2 * i,
                   1001 + 2 * i);
  t.long_sums = true;
  assert_int_equal(try(&t, text), TN_ERR_ARGUMENT);
  if (!strstr(t.d.text, "is refused: the kernel would be too large")) fail_msg("%s", t.d.text);
  ir_free(t.g);
}

/* Arbitrary text. */

static void mutate(rng *r, char *text) {
  static const char bytes[] = "0123456789r:- \nSPLITbyKDvector;s\x01";
  for (size_t n = 1 + rng_below(r, 3), size = strlen(text); n > 0 && size; n--) {
    char *at = text + rng_below(r, size);
    bool number = *at >= '0' && *at <= '9' && rng_chance(r, 90);
    if (number || rng_chance(r, 10)) *at = bytes[rng_below(r, number ? 11 : sizeof bytes - 1)];
  }
}

typedef struct fuzzing {
  test t;
  rng r;
  size_t applied, refused, malformed;
} fuzzing;

/** Makes a schedule of random laws as text. */
static const char *random_text(fuzzing *f, const node *sink) {
  ir *g = f->t.g;
  laws l = {.g = g, .log = law_trace_new(g)};
  const node *principals[IR_MAX_RANK + 8], *first = sink;
  for (int i = 0; i < 12 && random_range(&l, &f->r, sink); i++) {
    law which = (law)rng_below(&f->r, LAWS);
    law_args a = random_args(&l, &f->r, which, sink);
    const node *made = law_apply(&l, sink, which, &a, principals);
    if (made) sink = made;
  }
  law_steps steps = law_trace_path(l.log, first, sink);
  law_schedule list = law_schedule_of_trace(&l, first, &steps);
  str text = str_new(ir_arena(g));
  law_schedule_print(&text, &list);
  return str_text(&text);
}

static void fuzz(void *arg) {
  fuzzing *f = arg;
  ir *g = f->t.g;
  const node *sink = kernel_random(g, rng_next(&f->r));
  replay values = {.a = ir_arena(g), .seed = 1};
  replay_prepare(&values, &sink, 1);
  const interp_array *want = replay_kernel(&values, sink, 1);
  const char *text = random_text(f, sink);
  char *mutated = arena_copy(ir_arena(g), text, strlen(text) + 1);
  mutate(&f->r, mutated);
  test t = {.g = g, .sink = sink};
  t.text = mutated;
  tn_status s = diag_catch(ir_diag(g), parse_and_apply, &t);
  f->applied += s == TN_OK;
  f->refused += s == TN_ERR_ARGUMENT;
  f->malformed += s == TN_ERR_FORMAT;
  if (s != TN_OK && s != TN_ERR_ARGUMENT && s != TN_ERR_FORMAT) diag_rethrow(ir_diag(g));
  const interp_array *got = s == TN_OK ? replay_kernel(&values, t.made, 1) : want;
  for (size_t i = 0; i < values.params.n; i++)
    if (!replay_same(&want[i], &got[i], -1))
      diag_raise(ir_diag(g), TN_ERR_INTERNAL, "slot %zu differs after\n%s", i, mutated);
}

static void any_text_is_refused_or_changes_nothing(void **state) {
  (void)state;
  fuzzing f = {.r = {99}};
  enum { TEXTS = 600 };
  for (int i = 0; i < TEXTS; i++) {
    open_test(&f.t);
    if (diag_catch(&f.t.d, fuzz, &f) != TN_OK) fail_msg("text %d: %s", i, f.t.d.text);
    ir_free(f.t.g);
  }
  print_message("%zu applied, %zu refused, %zu malformed\n", f.applied, f.refused, f.malformed);
  assert_true(f.applied > 30 && f.refused > 30 && f.malformed > 30);
}

/* Kernels with a schedule in their text. */

static void kernels_bring_schedules(void *arg) {
  test *t = arg;
  ir *g = t->g;
  arena *a = ir_arena(g);
  codegen_options o = {.target = {.vector_bytes = 32, .registers = 16}};
  const node *sink = parse_graph(g, a, sums, strlen(sums)).at[0];
  static const char lines[] = "SPLIT r0 by 4: r1 r2\nKIND r2 unroll\n";
  const node *with = sink_with_schedule(g, sink, lines, strlen(lines));
  const node *plain = sink_with_schedule(g, sink, "", 0);
  size_t bytes;
  assert_string_equal(sink_schedule(with, &bytes), lines);
  assert_string_equal(sink_name(a, with), "sums");
  assert_null(sink_schedule(sink, &bytes));
  assert_ptr_equal(codegen_choose(g, plain, &o), sink);
  str told = str_new(a);
  o.observer = (codegen_observer){.law = alike_note, .user = &told};
  assert_ptr_equal(codegen_simplify(g, with, &o), with);
  const node *made = codegen_choose(g, with, &o);
  assert_string_equal(str_text(&told), lines);
  alike_replay(g, sink, &told, made);
  o.observer = (codegen_observer){0};
  assert_int_equal(codegen_run(g, with, "CPU", &o)->op, OP_PROGRAM);
}

static str key_of(ir *g, const node *sink) {
  str s = str_new(ir_arena(g));
  graph_key k = {.to = &s};
  node_list order = topo_sort(ir_arena(g), &sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) graph_key_add(&k, order.at[i], 0);
  return s;
}

static bool same_keys(ir *g, const node *x, const node *y) {
  str a = key_of(g, x), b = key_of(g, y);
  return a.n == b.n && !memcmp(a.at, b.at, a.n);
}

/** The schedule is part of a kernel's key, whatever the numbers of its ranges. */
static void keys_hold_schedules(void *arg) {
  test *t = arg;
  ir *g = t->g;
  arena *a = ir_arena(g);
  const node *sink = parse_graph(g, a, sums, strlen(sums)).at[0];
  const node *other = alike_renumbered(g, sink, 50); /* r0 is r50, r3 is r51 */
  static const char one[] = "SPLIT r0 by 4: r1 r2\n", two[] = "SPLIT r3 by 4: r1 r2\n",
                    moved[] = "SPLIT r50 by 4: r1 r2\n";
  const node *x = sink_with_schedule(g, sink, one, strlen(one));
  assert_true(same_keys(g, sink, other));
  assert_false(same_keys(g, sink, x));
  assert_false(same_keys(g, sink, sink_with_schedule(g, sink, "", 0)));
  assert_false(same_keys(g, x, sink_with_schedule(g, sink, two, strlen(two))));
  assert_true(same_keys(g, x, sink_with_schedule(g, other, moved, strlen(moved))));
  assert_false(same_keys(g, x, sink_with_schedule(g, other, one, strlen(one))));
}

/* A kernel's recorded schedule is complete or absent. */

typedef struct told {
  test t;
  const node *first, *last;
  law_steps steps;
  bool is_silent; /* one step is not recorded */
} told;

static void list_steps(void *arg) {
  told *x = arg;
  laws l = {.g = x->t.g, .log = law_trace_new(x->t.g)}, silent = {.g = x->t.g};
  const node *outer, *inner, *copies;
  x->first = parse_graph(x->t.g, ir_arena(x->t.g), sums, strlen(sums)).at[0];
  node_list ranges =
      law_find_new_ranges(&l, ir_node(x->t.g, OP_SINK, DT_VOID, NULL, 0, NULL, 0), x->first);
  x->last = law_split(&l, x->first, ranges.at[0], 4, &outer, &inner);
  if (x->is_silent) x->last = law_order(&silent, x->last, inner, 0);
  x->last = law_kind(&l, x->last, inner, KIND_UNROLL, &copies);
  x->steps = law_trace_path(l.log, x->first, x->last);
}

static void name_steps(void *arg) {
  told *x = arg;
  laws l = {.g = x->t.g};
  law_schedule list = law_schedule_of_trace(&l, x->first, &x->steps);
  str text = str_new(ir_arena(x->t.g));
  law_schedule_print(&text, &list);
  x->t.text = str_text(&text);
}

static void steps_are_told_whole(void **state) {
  (void)state;
  told x = {0};
  open_test(&x.t);
  assert_int_equal(diag_catch(&x.t.d, list_steps, &x), TN_OK);
  assert_int_equal(x.steps.n, 2);
  assert_int_equal(diag_catch(&x.t.d, name_steps, &x), TN_OK);
  assert_string_equal(x.t.text, "SPLIT r0 by 4: r4 r5\nKIND r5 unroll\n");
  x.steps.at[0].args.subject =
      x.first->src[0]->src[0]; /* not a range, STAGE or expression of the kernel */
  assert_int_equal(diag_catch(&x.t.d, name_steps, &x), TN_ERR_INTERNAL);
  x.is_silent = true; /* a step outside of any law */
  assert_int_equal(diag_catch(&x.t.d, list_steps, &x), TN_ERR_INTERNAL);
  ir_free(x.t.g);
}

static void run_body(void (*body)(void *)) {
  test t = {0};
  run_in_graph(&t.g, false, &t.d, body, &t, 0);
}

static void schedules_are_parts_of_kernels(void **state) {
  (void)state;
  run_body(kernels_bring_schedules);
  run_body(keys_hold_schedules);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(texts_are_read),
      cmocka_unit_test(ranges_of_one_index_do_nothing),
      cmocka_unit_test(bad_texts_are_refused),
      cmocka_unit_test(what_does_not_apply_is_refused),
      cmocka_unit_test(kernels_do_not_grow_without_end),
      cmocka_unit_test(any_text_is_refused_or_changes_nothing),
      cmocka_unit_test(steps_are_told_whole),
      cmocka_unit_test(schedules_are_parts_of_kernels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
