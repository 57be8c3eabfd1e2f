/* Tests that kernels are compiled with the schedules of a store: a stored decision changes the code
   and is used by other processes, which compile nothing; a plan that was kept on disk before does
   not hide it; and a record whose decisions the kernel does not have changes nothing. Schedules
   that grouping found are those that code generation finds. Each context has devices of its own, as
   another process would. */
#include "../models/onnx/writer.h"
#include "codegen/codegen.h"
#include "compile/kernel_cache.h"
#include "ir/text/print.h"
#include "ir/transform/copy_graph.h"
#include "runtime/kernel_costs.h"
#include "support/temporary.h"
#include "support/tuned_kernels.h"
#include "tensor/context/context.h"
#include "tune/kernel_candidates.h"

#include <ctype.h>
#include <math.h>
#include <tenon/unstable/explain.h>

enum { N = 160 };

typedef struct fixture {
  diag diag;
  arena arena;
  const char *above, *cache, *tuned;
  const char *compiler; /* NULL: the usual one */
  bool has_two;         /* products in plans, of kernels of their own */
  int remarks;
} fixture;

static void prepare(void *arg) {
  fixture *f = arg;
  f->above = temporary_folder(&f->arena);
  f->cache = arena_printf(&f->arena, "%s/cache", f->above);
  f->tuned = arena_printf(&f->arena, "%s/tuned", f->above);
}

static int set_up(void **state) {
  fixture *f = *state = calloc(1, sizeof *f);
  return temporary_set_up(&f->arena, &f->diag, prepare, f);
}

static int tear_down(void **state) {
  fixture *f = *state;
  return temporary_tear_down(&f->arena, f->above, f);
}

static tn_context *open_with(fixture *f, const char *tuned) {
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.threads = 1;
  d.cache_dir = f->cache;
  d.tuned = tuned;
  d.compiler = f->compiler;
  d.environment = false;
  d.logger = (tn_logger){count_warning, &f->remarks, NULL};
  return tn_open(&d);
}

/** A plan of one kernel, the product of an input and a matrix, or of two. */
static tn_plan *make_plan(const fixture *f, tn_context *c) {
  tn_tensor *x = tn_input(c, "x", tn_shape(N, N), TN_F32),
            *w = tn_input(c, "w", tn_shape(N, N), TN_F32);
  tn_tensor *tall = tn_reshape(x, tn_shape(2 * N, N / 2)),
            *wide = tn_reshape(w, tn_shape(N / 2, 2 * N));
  tn_tensor *out[] = {tn_matmul(x, w), tn_matmul(tall, wide)};
  tn_plan_desc desc = TN_PLAN_DESC_INIT;
  tn_plan *plan;
  desc.tunable = true;
  check_ok(c, tn_plan_compile(c, out, f->has_two ? 2 : 1, &desc, &plan));
  return plan;
}

/** Runs the plan, and returns the sum of its results, which depends on their order alone. */
static double run(tn_context *c, tn_plan *plan) {
  static float x[N * N], y[N * N];
  tn_binding *b;
  double sum = 0;
  for (size_t i = 0; i < N * N; i++) x[i] = (float)(i % 13) - 6;
  check_ok(c, tn_plan_bind(plan, &b));
  check_ok(c, tn_binding_input(b, "x", tn_shape(N, N), TN_F32, x, sizeof x));
  check_ok(c, tn_binding_input(b, "w", tn_shape(N, N), TN_F32, x, sizeof x));
  check_ok(c, tn_binding_run(b));
  check_ok(c, tn_binding_read(b, "0", TN_F32, y, sizeof y));
  for (size_t i = 0; i < N * N; i++) sum += y[i] * (double)(i % 7);
  tn_binding_free(b);
  return sum;
}

typedef struct process {
  uint64_t compiled; /* kernels */
  double sum;
} process;

static process run_process(fixture *f, const char *tuned) {
  tn_context *c = open_with(f, tuned);
  f->remarks = 0;
  double sum = run(c, make_plan(f, c));
  uint64_t compiled = kernel_cache_get_stats(kernel_cache_of(c->registry)).compiled;
  check_ok(c, tn_close(c));
  return (process){compiled, sum};
}

/** A source in which the names of functions, hashes of their keys, are all alike. */
static const char *without_names(fixture *f, const char *source) {
  char *copy = arena_printf(&f->arena, "%s", source);
  for (char *at = copy; (at = strstr(at, "tn_"));)
    for (at += 3; isxdigit((unsigned char)*at); at++) *at = '0';
  return copy;
}

/** The kernel's source, and whether its schedule is a tuned one, as an explanation tells. */
static bool explain(fixture *f, const char *tuned, const char **source) {
  tn_context *c = open_with(f, tuned);
  tn_explanation *x;
  tn_explained_kernel k = TN_EXPLAINED_KERNEL_INIT;
  check_ok(c, tn_explain(c, true, &x));
  make_plan(f, c);
  check_ok(c, tn_explanation_kernel(x, 0, &k));
  *source = without_names(f, k.source);
  check_ok(c, tn_close(c));
  return k.tuned;
}

/* Records. */

typedef struct kernel_record {
  fixture *f;
  tn_context *c;
  tn_plan *plan;
  size_t number; /* of the kernel in the plan */
  const char *key;
  decision_list usual, other; /* another schedule of the kernel: the one with the longest time */
  double usual_ns, other_ns;  /* predicted */
  const char *first;          /* schedule that the tuner tries where the other one is present */
} kernel_record;

static void find_first(kernel_record *k, const node *sink, const codegen_options *o) {
  arena *a = &k->f->arena;
  kernel_candidates c;
  kernel_candidate usual, taken, first;
  assert_true(kernel_candidates_begin(&c, a, sink, o, NULL, &usual));
  assert_true(kernel_candidates_take(&c, decisions_text(a, &k->other), &taken));
  assert_int_equal(kernel_candidates_next(&c, &first), CANDIDATE_GIVEN);
  k->first = first.text;
}

/** Tries the schedule of the kernel that differs in one decision, and keeps it if it is slower than
    those tried before. */
static void try_other(kernel_record *k, ir *g, const node *sink, codegen_options *o, size_t i,
                      size_t taken) {
  arena *a = &k->f->arena;
  decision_list wanted = {0}, made;
  double ns;
  for (size_t m = 0; m < k->usual.n; m++) vec_push(a, &wanted, k->usual.at[m]);
  wanted.at[i].taken = taken;
  o->decisions = &wanted;
  bool is_made = codegen_predict(g, sink, o, &made, &ns);
  if (!is_made || decisions_equal(&made, &k->usual) || ns <= k->other_ns) return;
  k->other.n = 0;
  k->other_ns = ns;
  for (size_t m = 0; m < made.n; m++) vec_push(a, &k->other, made.at[m]);
}

static void find_record(void *arg) {
  kernel_record *k = arg;
  tn_context *c = k->c;
  arena *a = &k->f->arena;
  diag *d = &k->f->diag;
  const kernel_copies kernels = plan_kernels(k->plan, d);
  const compile_options o = {.target = c->target, .math = (int)c->math};
  codegen_options to = {.target = c->target->target, .math = (int)c->math};
  decision_list made;
  const char *keys[2];
  assert_int_equal(kernels.n, k->f->has_two ? 2 : 1);
  if (compile_tuned_keys(&o, kernels.ir, kernels.at, kernels.n, a, keys, d)) diag_rethrow(d);
  const node *kernel = kernels.at[k->number];
  k->key = keys[k->number];
  assert_true(codegen_predict(kernels.ir, kernel, &to, &made, &k->usual_ns));
  for (size_t i = 0; i < made.n; i++) vec_push(a, &k->usual, made.at[i]);
  for (size_t i = 0; i < k->usual.n; i++)
    for (size_t taken = 0; taken < k->usual.at[i].n; taken++)
      try_other(k, kernels.ir, kernel, &to, i, taken);
  assert_true(k->other.n > 0);
  to.decisions = NULL;
  find_first(k, kernel, &to);
  ir_free(kernels.ir);
}

/** The key of a kernel of the plan, and two of its schedules. Leaves the plan in the cache. */
static kernel_record record_of_kernel(fixture *f, size_t number) {
  kernel_record k = {.f = f, .c = open_with(f, "off"), .number = number};
  k.plan = make_plan(f, k.c);
  if (diag_catch(&f->diag, find_record, &k)) fail_msg("%s", f->diag.text);
  check_ok(k.c, tn_close(k.c));
  return k;
}

static kernel_record record_of(fixture *f) { return record_of_kernel(f, 0); }

static void keep(fixture *f, const kernel_record *k, const char *decisions) {
  append_tuned_record(f->tuned,
                      &(tuned_record){k->key, TUNED_KEPT, {decisions, 1, 1}, {"-", 1, 2}, false});
}

/* Costs. */

/** The program of a kernel, with a schedule that was found before, or NULL. */
static const char *program_text(arena *a, diag *d, const node *kernel, codegen_options o,
                                const decision_list *found) {
  ir *g = ir_new(&mem_system, d, false);
  str text = str_new(a);
  o.found = found;
  ir_copy(g, ir_arena(g), &kernel, 1, NULL, NULL, &kernel);
  const node *program = codegen_run(g, kernel, "CPU", &o);
  print_graph(&text, &program, 1);
  ir_free(g);
  return str_text(&text);
}

static void compare_programs(void *arg) {
  kernel_record *k = arg;
  arena *a = &k->f->arena;
  diag *d = &k->f->diag;
  const target *t = &k->c->target->target;
  const codegen_options o = {.target = *t, .math = (int)k->c->math};
  kernel_costs costs;
  const kernel_copies kernels = plan_kernels(k->plan, d);
  const node *kernel = kernels.at[0];
  kernel_costs_init(&costs, kernels.ir, t, o.math);
  const double first = kernel_costs_estimate(&costs, 0, kernel, false);
  assert_null(map_get(&costs.found, kernel));
  const double best = kernel_costs_estimate(&costs, 0, kernel, true);
  const decision_list *found = map_get(&costs.found, kernel);
  assert_true(found && found->n && best <= first);
  assert_string_equal(program_text(a, d, kernel, o, found), program_text(a, d, kernel, o, NULL));
  kernel_costs_free(&costs);
  ir_free(kernels.ir);
}

/* Tests. */

/** A kernel's code depends on the kernel alone, whether or not grouping has searched its schedule:
    caches do not tell the two apart. */
static void an_estimated_kernel_has_the_same_code(void **state) {
  fixture *f = *state;
  kernel_record k = {.f = f, .c = open_with(f, "off")};
  k.plan = make_plan(f, k.c);
  if (diag_catch(&f->diag, compare_programs, &k)) fail_msg("%s", f->diag.text);
  check_ok(k.c, tn_close(k.c));
}

static void a_stored_schedule_is_used(void **state) {
  fixture *f = *state;
  const char *usual, *tuned;
  const kernel_record k = record_of(f);
  const process before = run_process(f, f->tuned);
  assert_int_equal(before.compiled, 0); /* the plan and its kernel are on disk */
  assert_false(explain(f, f->tuned, &usual));
  keep(f, &k, decisions_text(&f->arena, &k.other));
  const process first = run_process(f, f->tuned), second = run_process(f, f->tuned);
  assert_int_equal(first.compiled, 1); /* the plan on disk does not hide it */
  assert_int_equal(second.compiled, 0);
  assert_true(explain(f, f->tuned, &tuned));
  assert_string_not_equal(usual, tuned);
  assert_true(fabs(first.sum - before.sum) <= 1e-5 * fabs(before.sum) && first.sum == second.sum);
  assert_int_equal(run_process(f, "off").compiled, 0); /* both kernels are kept */
  assert_false(explain(f, "off", &tuned));
  assert_string_equal(usual, tuned);
  assert_int_equal(f->remarks, 0);
}

/** A schedule that a record names is the search's own: the same code, of another key. */
static void the_usual_schedule_may_be_stored(void **state) {
  fixture *f = *state;
  const char *usual, *tuned;
  const kernel_record k = record_of(f);
  explain(f, "off", &usual);
  keep(f, &k, decisions_text(&f->arena, &k.usual));
  assert_true(explain(f, f->tuned, &tuned));
  assert_string_equal(usual, tuned);
}

static void decisions_of_another_version_are_not_used(void **state) {
  fixture *f = *state;
  const char *usual, *tuned;
  const kernel_record k = record_of(f);
  const process before = run_process(f, "off");
  explain(f, "off", &usual);
  decision_list fewer = {0};
  for (size_t i = 0; i + 1 < k.other.n; i++) vec_push(&f->arena, &fewer, k.other.at[i]);
  const char *other = decisions_text(&f->arena, &k.other);
  const char *const forms[] = {arena_printf(&f->arena, "%s,tile:0/2", other),
                               arena_printf(&f->arena, "order:0/2,%s", other),
                               decisions_text(&f->arena, &fewer), "tile:1000/1001"};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    if (!strcmp(forms[i], "-")) continue; /* which asks for nothing */
    keep(f, &k, forms[i]);
    assert_false(explain(f, f->tuned, &tuned));
    assert_string_equal(usual, tuned);
    assert_true(run_process(f, f->tuned).sum == before.sum);
  }
}

/** A kept schedule may be older than a search that finds a better one. */
static void the_usual_schedule_is_tried_beside_a_kept_one(void **state) {
  fixture *f = *state;
  const kernel_record k = record_of(f);
  assert_string_equal(k.first, decisions_text(&f->arena, &k.usual));
}

/** Without a name, the store is in the folder of the disk cache. */
static void the_store_lies_in_the_cache(void **state) {
  fixture *f = *state;
  const char *tuned;
  const kernel_record k = record_of(f);
  f->tuned = arena_printf(&f->arena, "%s/tuned", f->cache);
  keep(f, &k, decisions_text(&f->arena, &k.other));
  assert_true(explain(f, NULL, &tuned));
  assert_int_equal(run_process(f, NULL).compiled, 1);
  assert_int_equal(run_process(f, NULL).compiled, 0);
}

/* Tuning. */

static bool end_after(void *user, const tn_tuning *t) {
  return t->measured < *(const uint64_t *)user;
}

/* A compiler that fails. */

/** Has the fixture compile by a script that is gcc, until there is a file "down": then it fails; or
    "picky": then it fails for sources that it did not compile before, but for names and the order
    of operands; or "wrong": then it changes a number in those. */
static void use_fragile_compiler(fixture *f) {
  static const char script[] =
      "#!/bin/sh\n"
      "case \"$*\" in *'-x c -'*) ;; *) exec gcc \"$@\" ;; esac\n"
      "if [ -e '%s/down' ]; then echo 'the disk is full' >&2; exit 1; fi\n"
      "source=$(mktemp '%s/source-XXXXXX')\n"
      "cat > $source\n"
      "sum=$(sed 's/tn_[0-9a-f_]*//g' $source | fold -w 1 | sort | cksum)\n"
      "if [ -e '%s/picky' ]; then grep -q \"$sum\" '%s/known' || exit 1; fi\n"
      "if [ -e '%s/wrong' ]; then\n"
      "  grep -q \"$sum\" '%s/known' || sed -i 's/0\\.0f/1.0f/g' $source\n"
      "fi\n"
      "echo \"$sum\" >> '%s/known'\n"
      "exec gcc \"$@\" < $source\n";
  const char *a = f->above;
  const char *text = arena_printf(&f->arena, script, a, a, a, a, a, a, a);
  f->compiler = arena_printf(&f->arena, "%s/gcc", a);
  assert_true(temporary_write(f->compiler, 0700, text, strlen(text)));
}

static void touch(fixture *f, const char *name) {
  assert_true(temporary_write(arena_printf(&f->arena, "%s/%s", f->above, name), 0600, "", 0));
}

/** A progress callback: from now on the compiler fails. */
typedef struct failing_from_now {
  fixture *f;
  const char *how;
  uint64_t most; /* schedules to measure */
} failing_from_now;

static bool fail_from_now(void *user, const tn_tuning *t) {
  const failing_from_now *n = user;
  touch(n->f, n->how);
  return t->measured < n->most;
}

typedef struct tuning {
  tn_status status;
  tn_tuning result;
  char message[512];
} tuning;

/** An allocation of a tuning that fails. */
typedef struct failing {
  counting *memory;
  size_t number, calls; /* from 1; of all, in the end */
} failing;

static tuning tune_with(tn_context *c, tn_plan *plan, const tn_tune_desc *desc, failing *f) {
  static float x[N * N];
  tuning t = {.result = TN_TUNING_INIT};
  tn_binding *b;
  for (size_t i = 0; i < N * N; i++) x[i] = (float)(i % 13) - 6;
  check_ok(c, tn_plan_bind(plan, &b));
  check_ok(c, tn_binding_input(b, "x", tn_shape(N, N), TN_F32, x, sizeof x));
  check_ok(c, tn_binding_input(b, "w", tn_shape(N, N), TN_F32, x, sizeof x));
  const size_t before = f ? atomic_load(&f->memory->calls) : 0;
  if (f && f->number) f->memory->fail_at = before + f->number;
  t.status = tn_tune(b, desc, &t.result);
  if (f) f->memory->fail_at = 0;
  if (f) f->calls = atomic_load(&f->memory->calls) - before;
  snprintf(t.message, sizeof t.message, "%s", tn_binding_message(b));
  if (t.status == TN_OK) check_ok(c, tn_binding_run(b));
  tn_binding_free(b);
  return t;
}

static tuning tune_plan(tn_context *c, tn_plan *plan, const tn_tune_desc *desc) {
  return tune_with(c, plan, desc, NULL);
}

/** Tunes in a context of its own. `most`: schedules to measure. */
static tn_tuning tune_process(fixture *f, uint64_t most) {
  tn_tune_desc desc = TN_TUNE_DESC_INIT;
  desc.progress = end_after;
  desc.user = &most;
  tn_context *c = open_with(f, f->tuned);
  const tuning t = tune_plan(c, make_plan(f, c), &desc);
  if (t.status != TN_OK) fail_msg("%s", t.message);
  assert_string_equal(t.result.file, f->tuned);
  check_ok(c, tn_close(c));
  return t.result;
}

typedef struct counts {
  int of[16]; /* records by verdict */
  string_map measured;
  arena *arena;
} counts;

static void count_record(void *user, const tuned_record *r) {
  counts *n = user;
  const char *text = arena_printf(n->arena, "%s %s", r->key, r->schedule.decisions);
  n->of[r->verdict]++;
  if (r->verdict == TUNED_KEPT || r->verdict == TUNED_DROPPED) return;
  if (r->verdict == TUNED_WRONG && !r->schedule.measured) return; /* in the network */
  assert_null(string_map_get(&n->measured, text));                /* nothing is measured twice */
  string_map_set(n->arena, &n->measured, text, n);
}

static counts count_records(fixture *f) {
  counts n = {.arena = &f->arena};
  tuned_store *s;
  assert_true(tuned_store_open(&s, f->tuned, NULL, NULL, NULL, &mem_system));
  assert_int_equal(tuned_store_read(s, count_record, &n, &f->diag), TN_OK);
  tuned_store_close(s);
  return n;
}

/** A kernel that begins with a bad schedule gets a better one, which later processes use. */
static void a_bad_schedule_is_replaced(void **state) {
  fixture *f = *state;
  const kernel_record k = record_of(f);
  assert_true(k.other_ns > 1.5 * k.usual_ns);
  keep(f, &k, decisions_text(&f->arena, &k.other));
  const double sum = run_process(f, f->tuned).sum;
  const tn_tuning t = tune_process(f, 12);
  assert_true(t.kernels == 1 && t.measured > 0 && t.predicted > t.measured);
  assert_true(t.kept == 1 && t.faster == 1 && t.after_ms < t.before_ms);
  const process later = run_process(f, f->tuned);
  assert_int_equal(later.compiled, 0);
  assert_true(fabs(later.sum - sum) <= 1e-5 * fabs(sum));
  const counts n = count_records(f);
  assert_int_equal(n.of[TUNED_KEPT], 2);
  assert_true(n.of[TUNED_FASTER] > 0 && n.of[TUNED_WRONG] == 0);
}

/** The tuning after a kill measures schedules that were faster alone in whole runs. */
static void a_killed_tuning_is_resumed(void **state) {
  fixture *f = *state;
  const kernel_record k = record_of(f);
  const char *usual = decisions_text(&f->arena, &k.usual),
             *other = decisions_text(&f->arena, &k.other);
  keep(f, &k, other);
  append_tuned_record(f->tuned,
                      &(tuned_record){k.key, TUNED_FASTER, {usual, 1, 1}, {other, 1, 2}, false});
  const tn_tuning t = tune_process(f, 0);
  assert_true(t.measured == 0 && t.faster == 1 && t.kept == 1);
  assert_true(explain(f, f->tuned, &other));
  tune_process(f, 6);
  count_records(f);
}

static tuning tune_with_fragile_compiler(fixture *f, const char *how, uint64_t most) {
  failing_from_now n = {f, how, most};
  tn_tune_desc desc = TN_TUNE_DESC_INIT;
  desc.progress = fail_from_now;
  desc.user = &n;
  desc.seconds = 10;
  use_fragile_compiler(f);
  tn_context *c = open_with(f, f->tuned);
  const tuning t = tune_plan(c, make_plan(f, c), &desc);
  check_ok(c, tn_close(c));
  return t;
}

/** A compiler that fails for all schedules says nothing against one. */
static void a_failing_compiler_is_an_error(void **state) {
  fixture *f = *state;
  const tuning t = tune_with_fragile_compiler(f, "down", 4);
  assert_int_equal(t.status, TN_ERR_COMPILE);
  check_text(t.message, "the disk is full");
  const counts n = count_records(f);
  assert_int_equal(n.of[TUNED_FAILED], 0);
}

static void a_schedule_that_cannot_be_compiled_fails_alone(void **state) {
  fixture *f = *state;
  const tuning t = tune_with_fragile_compiler(f, "picky", 4);
  if (t.status != TN_OK) fail_msg("%s", t.message);
  assert_true(t.result.measured == 0 && t.result.kept == 0);
  const counts n = count_records(f);
  assert_true(n.of[TUNED_FAILED] > 0 && n.of[TUNED_SLOWER] + n.of[TUNED_FASTER] == 0);
}

/** A schedule that was faster alone changes outputs of the network: it is told, and not tried
    again. */
static void a_schedule_that_changes_outputs_is_wrong(void **state) {
  fixture *f = *state;
  use_fragile_compiler(f);
  const kernel_record k = record_of(f);
  const char *usual = decisions_text(&f->arena, &k.usual),
             *other = decisions_text(&f->arena, &k.other);
  const double sum = run_process(f, "off").sum;
  append_tuned_record(f->tuned,
                      &(tuned_record){k.key, TUNED_FASTER, {other, 1, 1}, {usual, 1, 2}, false});
  f->cache = "off";
  f->remarks = 0;
  const tuning t = tune_with_fragile_compiler(f, "wrong", 0);
  if (t.status != TN_OK) fail_msg("%s", t.message);
  assert_true(t.result.faster == 1 && t.result.kept == 0);
  assert_true(t.result.after_ms == t.result.before_ms);
  assert_int_equal(f->remarks, 1);
  assert_int_equal(count_records(f).of[TUNED_WRONG], 1);
  assert_true(run_process(f, f->tuned).sum == sum);
  const tn_tuning again = tune_process(f, 0);
  assert_int_equal(again.faster, 0);
}

/** Of two schedules that were faster alone, one changes outputs: the other one is still measured.
 */
static void only_wrong_schedules_are_lost(void **state) {
  fixture *f = *state;
  use_fragile_compiler(f);
  f->has_two = true;
  const kernel_record k[] = {record_of_kernel(f, 0), record_of_kernel(f, 1)};
  const char *known = arena_printf(&f->arena, "%s/known", f->above),
             *wrong = arena_printf(&f->arena, "%s/wrong", f->above);
  f->cache = "off";
  for (size_t right = 0; right < 2; right++) {
    remove(known);
    remove(wrong);
    f->tuned = arena_printf(&f->arena, "%s/tuned-%zu", f->above, right);
    run_process(f, "off");
    keep(f, &k[right], decisions_text(&f->arena, &k[right].other));
    run_process(f, f->tuned); /* the compiler knows these schedules from now on */
    remove(f->tuned);
    for (size_t i = 0; i < 2; i++) {
      const char *usual = decisions_text(&f->arena, &k[i].usual),
                 *other = decisions_text(&f->arena, &k[i].other);
      append_tuned_record(
          f->tuned, &(tuned_record){k[i].key, TUNED_FASTER, {other, 1, 1}, {usual, 1, 2}, false});
    }
    f->remarks = 0;
    const tuning t = tune_with_fragile_compiler(f, "wrong", 0);
    if (t.status != TN_OK) fail_msg("%s", t.message);
    const counts n = count_records(f);
    assert_int_equal(t.result.faster, 2);
    assert_int_equal(f->remarks, 1);
    assert_int_equal(n.of[TUNED_WRONG], 1);
    assert_int_equal(n.of[TUNED_KEPT] + n.of[TUNED_DROPPED], 1);
  }
}

typedef struct watching {
  uint64_t predicted, most; /* schedules: so far, and at once */
  uint64_t enough;          /* predicted ones that end the tuning */
} watching;

static bool watch_predictions(void *user, const tn_tuning *t) {
  watching *w = user;
  if (w->predicted && t->predicted - w->predicted > w->most) w->most = t->predicted - w->predicted;
  w->predicted = t->predicted;
  return t->predicted < w->enough;
}

/** Progress is called between predictions, so that the caller may end the tuning there. */
static void predictions_may_be_interrupted(void **state) {
  fixture *f = *state;
  tn_tune_desc desc = TN_TUNE_DESC_INIT;
  watching w = {.enough = 24};
  desc.progress = watch_predictions;
  desc.user = &w;
  tn_context *c = open_with(f, f->tuned);
  const tuning t = tune_plan(c, make_plan(f, c), &desc);
  assert_int_equal(t.status, TN_OK);
  assert_in_range(t.result.predicted, w.enough, w.enough + 1);
  assert_in_range(w.most, 1, 2); /* a faster one is predicted again as it is taken */
  check_ok(c, tn_close(c));
}

/** Schedules that are only measured are in no cache. */
static void measured_schedules_are_not_cached(void **state) {
  fixture *f = *state;
  tn_tune_desc desc = TN_TUNE_DESC_INIT;
  uint64_t most = 6;
  desc.progress = end_after;
  desc.user = &most;
  tn_context *c = open_with(f, f->tuned);
  tn_plan *plan = make_plan(f, c);
  run(c, plan);
  const tuning t = tune_plan(c, plan, &desc);
  assert_true(t.status == TN_OK && t.result.measured == most);
  const kernel_cache_stats n = kernel_cache_get_stats(kernel_cache_of(c->registry));
  tn_cache_info disk = TN_CACHE_INFO_INIT;
  check_ok(c, tn_cache_get(c, &disk));
  assert_in_range(n.kernels, 1, 1 + t.result.faster);
  assert_in_range(disk.entries, 3, 3 + t.result.faster); /* the kernel, the plan, the compiler */
  check_ok(c, tn_close(c));
}

static void tuning_ends_where_nothing_is_left(void **state) {
  fixture *f = *state;
  tn_tuning t = tune_process(f, UINT64_MAX);
  uint64_t first = t.measured;
  assert_true(first > 0 && t.seconds_left == 0);
  t = tune_process(f, UINT64_MAX);
  assert_true(t.measured < first); /* random schedules may be left */
  count_records(f);
}

static void bad_requests_are_refused(void **state) {
  fixture *f = *state;
  tn_tune_desc desc = TN_TUNE_DESC_INIT;
  tn_context *c = open_with(f, f->tuned);
  tn_tensor *x = tn_input(c, "x", tn_shape(N, N), TN_F32), *out = tn_neg(tn_add(x, x));
  tn_plan *plain;
  check_ok(c, tn_plan_compile(c, &out, 1, NULL, &plain));
  assert_int_equal(tn_tune(NULL, NULL, NULL), TN_ERR_ARGUMENT);
  tn_plan *plan = make_plan(f, c);
  desc.seconds = -1;
  tuning t = tune_plan(c, plan, &desc);
  assert_int_equal(t.status, TN_ERR_ARGUMENT);
  check_text(t.message, "-1 is no number of seconds");
  tn_binding *b;
  check_ok(c, tn_plan_bind(plain, &b));
  assert_int_equal(tn_tune(b, NULL, NULL), TN_ERR_ARGUMENT);
  check_text(tn_binding_message(b), "not made to be tunable");
  check_ok(c, tn_close(c));

  c = open_with(f, "off");
  t = tune_plan(c, make_plan(f, c), NULL);
  assert_int_equal(t.status, TN_ERR_IO);
  check_text(t.message, "no file of tuned schedules");
  check_ok(c, tn_close(c));

  c = open_with(f, f->above); /* a folder */
  t = tune_plan(c, make_plan(f, c), NULL);
  assert_int_equal(t.status, TN_ERR_IO);
  check_text(t.message, "the file of tuned schedules");
  check_ok(c, tn_close(c));
}

/** Inputs that decide on shapes: the plan for their values is the one to be tuned. */
static void late_plans_are_checked(void **state) {
  fixture *f = *state;
  const int64_t shape[] = {4, 2};
  const float x[8] = {0};
  tn_model_desc desc = TN_MODEL_DESC_INIT;
  tn_context *c = open_with(f, f->tuned);
  bytes file = {0};
  reshape_model(&file);
  for (int i = 0; i < 2; i++) {
    tn_model *m;
    tn_binding *b;
    desc.tunable = i;
    check_ok(c, tn_model_load_bytes(c, file.at, file.n, &desc, &m));
    check_ok(c, tn_model_bind(m, &b));
    assert_int_equal(tn_tune(b, NULL, NULL), TN_ERR_ARGUMENT);
    check_text(tn_binding_message(b), "inputs without a value: x, shape");
    check_bound(b, tn_binding_input(b, "x", tn_shape(2, 4), TN_F32, x, sizeof x));
    check_bound(b, tn_binding_input(b, "shape", tn_shape(2), TN_I64, shape, sizeof shape));
    tn_status s = tn_tune(b, NULL, NULL);
    assert_int_equal(s, desc.tunable ? TN_OK : TN_ERR_ARGUMENT);
    if (s != TN_OK) check_text(tn_binding_message(b), "not made to be tunable");
  }
  check_ok(c, tn_close(c));
}

static void states_are_refused(void **state) {
  fixture *f = *state;
  tn_context *c = open_with(f, f->tuned);
  tn_tensor *x = tn_input(c, "x", tn_shape(4), TN_F32);
  tn_tensor *s = tn_state(tn_full(c, tn_shape(4), TN_F32, 0));
  tn_plan_desc desc = TN_PLAN_DESC_INIT;
  tn_plan *plan;
  tn_binding *b;
  desc.tunable = true;
  tn_assign(s, tn_add(s, x));
  check_ok(c, tn_plan_compile(c, &s, 1, &desc, &plan));
  check_ok(c, tn_plan_bind(plan, &b));
  assert_int_equal(tn_tune(b, NULL, NULL), TN_ERR_UNSUPPORTED);
  check_text(tn_binding_message(b), "a plan with states cannot be tuned");
  check_ok(c, tn_close(c));
}

static void plans_over_devices_are_refused(void **state) {
  fixture *f = *state;
  tn_context *c = open_with(f, f->tuned);
  tn_tensor *out = tn_exp(tn_to(tn_input(c, "x", tn_shape(4), TN_F32), "CPU:1"));
  tn_plan_desc desc = TN_PLAN_DESC_INIT;
  tn_plan *plan;
  tn_binding *b;
  desc.tunable = true;
  check_ok(c, tn_plan_compile(c, &out, 1, &desc, &plan));
  check_ok(c, tn_plan_bind(plan, &b));
  assert_int_equal(tn_tune(b, NULL, NULL), TN_ERR_UNSUPPORTED);
  check_text(tn_binding_message(b), "a plan over several devices cannot be tuned");
  check_ok(c, tn_close(c));
}

/** A cache that grows by a row in each run: the sizes of the next run are others. */
static tn_binding *bind_growing_cache(tn_context *c) {
  static float rows[150 * 8], row[8];
  const tn_dim n = tn_dim_var(c, "n", 1, 1000);
  tn_tensor *parts[] = {tn_input(c, "cache", tn_shape(n, 8), TN_F32),
                        tn_input(c, "row", tn_shape(1, 8), TN_F32)};
  tn_tensor *next = tn_concat(parts, 2, 0);
  tn_plan_desc desc = TN_PLAN_DESC_INIT;
  desc.tunable = true;
  tn_binding *b = bind_compiled(c, &next, 1, &desc);
  check_bound(b, tn_binding_input(b, "cache", tn_shape(150, 8), TN_F32, rows, sizeof rows));
  check_bound(b, tn_binding_input(b, "row", tn_shape(1, 8), TN_F32, row, sizeof row));
  check_bound(b, tn_binding_carry(b, "0", "cache"));
  return b;
}

static void carried_outputs_are_refused(void **state) {
  fixture *f = *state;
  tn_context *c = open_with(f, f->tuned);
  tn_binding *b = bind_growing_cache(c);
  assert_int_equal(tn_tune(b, NULL, NULL), TN_ERR_UNSUPPORTED);
  check_text(tn_binding_message(b), "carries output 0 over to input cache cannot be tuned");
  check_bound(b, tn_binding_run(b));
  assert_int_equal(tn_binding_type(b, "0").shape.size[0], 151); /* the first run */
  check_ok(c, tn_close(c));
}

/** Tunes with an allocation that fails. */
static tn_status tune_with_failure(fixture *f, failing *at) {
  tn_open_desc d = TN_OPEN_DESC_INIT;
  tn_tune_desc desc = TN_TUNE_DESC_INIT;
  uint64_t most = 2;
  d.threads = 1;
  d.cache_dir = f->cache;
  d.tuned = arena_printf(&f->arena, "%s/tuned-%zu", f->above, at->number);
  d.allocator = (tn_allocator){counting_alloc, counting_release, at->memory, counting_destroy};
  desc.progress = end_after;
  desc.user = &most;
  tn_context *c = tn_open(&d);
  const tuning t = tune_with(c, make_plan(f, c), &desc, at);
  check_ok(c, tn_close(c));
  assert_int_equal(atomic_load(&at->memory->out), 0);
  return t.status;
}

static void exhausted_memory_is_a_failure(void **state) {
  fixture *f = *state;
  enum { SAMPLES = 40 };
  counting memory = {0};
  failing all = {.memory = &memory};
  int failed = 0;
  assert_int_equal(tune_with_failure(f, &all), TN_OK);
  for (size_t i = 0; i < SAMPLES; i++) {
    memory = (counting){0};
    failing one = {.memory = &memory, .number = 1 + all.calls * i / SAMPLES};
    tn_status s = tune_with_failure(f, &one);
    assert_true(s == TN_OK || s == TN_ERR_MEMORY);
    failed += s != TN_OK;
  }
  assert_true(failed > 0);
}

/** Tuned kernels of an imported cache are looked up by the store's records, without a compiler. */
static void a_tuned_kernel_is_imported(void **state) {
  fixture *f = *state;
  const kernel_record k = record_of(f);
  const char *file = arena_printf(&f->arena, "%s/frozen", f->above),
             *path = arena_printf(&f->arena, "%s", getenv("PATH"));
  keep(f, &k, decisions_text(&f->arena, &k.other));
  f->cache = arena_printf(&f->arena, "%s/tuned-cache", f->above);
  const process made = run_process(f, f->tuned);
  assert_int_equal(made.compiled, 1);
  tn_context *c = open_with(f, "off");
  tn_cache_info held = TN_CACHE_INFO_INIT;
  check_ok(c, tn_cache_export(c, file, &held));
  assert_int_equal(held.tuned, 0);
  check_ok(c, tn_close(c));
  c = open_with(f, f->tuned);
  check_ok(c, tn_cache_export(c, file, &held));
  assert_int_equal(held.tuned, 1);
  check_ok(c, tn_close(c));
  f->cache = arena_printf(&f->arena, "%s/imported", f->above);
  c = open_with(f, "off");
  check_ok(c, tn_cache_import(c, file, NULL));
  check_ok(c, tn_close(c));
  setenv("PATH", "/none", 1);
  setenv("TENON_LLVM", "off", 1);
  const process found = run_process(f, f->tuned);
  c = open_with(f, "off");
  tn_tensor *x = tn_input(c, "x", tn_shape(N, N), TN_F32),
            *w = tn_input(c, "w", tn_shape(N, N), TN_F32), *out = tn_matmul(x, w);
  tn_plan *plan;
  assert_int_equal(tn_plan_compile(c, &out, 1, NULL, &plan), TN_ERR_COMPILE);
  check_ok(c, tn_close(c));
  setenv("PATH", path, 1);
  unsetenv("TENON_LLVM");
  assert_true(found.compiled == 0 && found.sum == made.sum);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(an_estimated_kernel_has_the_same_code, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_stored_schedule_is_used, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_usual_schedule_may_be_stored, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_tuned_kernel_is_imported, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_usual_schedule_is_tried_beside_a_kept_one, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(decisions_of_another_version_are_not_used, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_store_lies_in_the_cache, set_up, tear_down),
      cmocka_unit_test_setup_teardown(exhausted_memory_is_a_failure, set_up, tear_down),
      cmocka_unit_test_setup_teardown(states_are_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(plans_over_devices_are_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(carried_outputs_are_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(bad_requests_are_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(late_plans_are_checked, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_failing_compiler_is_an_error, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_schedule_that_cannot_be_compiled_fails_alone, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(a_schedule_that_changes_outputs_is_wrong, set_up, tear_down),
      cmocka_unit_test_setup_teardown(only_wrong_schedules_are_lost, set_up, tear_down),
      cmocka_unit_test_setup_teardown(predictions_may_be_interrupted, set_up, tear_down),
      cmocka_unit_test_setup_teardown(measured_schedules_are_not_cached, set_up, tear_down),
      cmocka_unit_test_setup_teardown(tuning_ends_where_nothing_is_left, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_killed_tuning_is_resumed, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_bad_schedule_is_replaced, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
