/* Tests that kernels are compiled with the schedules of a store: a stored decision changes the code
   and is used by other processes, which compile nothing; a plan that was kept on disk before does
   not hide it; and a record whose decisions the kernel does not have changes nothing. Each context
   has devices of its own, as another process would. */
#include "codegen/codegen.h"
#include "compile/kernel_cache.h"
#include "support/temporary.h"
#include "support/tensor_check.h"
#include "tensor/context/context.h"
#include "tensor/plan/plan_variant.h"

#include <ctype.h>
#include <math.h>
#include <tenon/unstable/explain.h>

enum { N = 160 };

typedef struct fixture {
  diag diag;
  arena arena;
  const char *above, *cache, *tuned;
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
  arena_init(&f->arena, &mem_system, &f->diag);
  return (int)diag_catch(&f->diag, prepare, f);
}

static int tear_down(void **state) {
  fixture *f = *state;
  int status = temporary_remove(&f->arena, f->above);
  arena_free(&f->arena);
  free(f);
  return status;
}

static void take_remark(void *user, tn_log_level level, const char *text) {
  (void)text;
  if (level == TN_LOG_WARNING) ((fixture *)user)->remarks++;
}

static tn_context *open_with(fixture *f, const char *tuned) {
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.threads = 1;
  d.cache_dir = f->cache;
  d.tuned = tuned;
  d.environment = false;
  d.logger = (tn_logger){take_remark, f, NULL};
  return tn_open(&d);
}

/** A plan of one kernel: the product of an input and a matrix. */
static tn_plan *make_plan(tn_context *c) {
  tn_tensor *x = tn_input(c, "x", tn_shape(N, N), TN_F32),
            *w = tn_input(c, "w", tn_shape(N, N), TN_F32);
  tn_tensor *out = tn_matmul(x, w);
  tn_plan_desc desc = TN_PLAN_DESC_INIT;
  tn_plan *plan;
  desc.tunable = true;
  check_ok(c, tn_plan_compile(c, &out, 1, &desc, &plan));
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
  double sum = run(c, make_plan(c));
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
  make_plan(c);
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
  const char *key;
  decision_list usual, other; /* another schedule of the kernel */
} kernel_record;

static void find_record(void *arg) {
  kernel_record *k = arg;
  tn_context *c = k->c;
  arena *a = &k->f->arena;
  diag *d = &k->f->diag;
  plan_variant *v;
  kernel_copies kernels = {.ir = ir_new(&mem_system, d, false)};
  const int64_t no_facts = 0;
  const variant_request r = {.form = &no_facts, .kernels = &kernels};
  const compile_options o = {.target = c->target, .math = (int)c->math};
  codegen_options to = {.target = c->target->target, .math = (int)c->math};
  decision_list made;
  double ns;
  if (plan_variant_build(k->plan, &r, d, &v)) diag_rethrow(d);
  plan_variant_release(v);
  assert_int_equal(kernels.n, 1);
  if (compile_tuned_keys(&o, kernels.ir, kernels.at, 1, a, &k->key, d)) diag_rethrow(d);
  assert_true(codegen_predict(kernels.ir, kernels.at[0], &to, &made, &ns) && ns > 0);
  for (size_t i = 0; i < made.n; i++) vec_push(a, &k->usual, made.at[i]);
  decision_list wanted = k->usual;
  to.decisions = &wanted;
  for (size_t i = 0; i < wanted.n && !k->other.n; i++)
    for (size_t t = 0; t < wanted.at[i].n && !k->other.n; t++) {
      const size_t before = wanted.at[i].taken;
      wanted.at[i].taken = t;
      bool is_made = t != before && codegen_predict(kernels.ir, kernels.at[0], &to, &made, &ns);
      wanted.at[i].taken = before;
      if (is_made && !decisions_equal(&made, &wanted))
        for (size_t m = 0; m < made.n; m++) vec_push(a, &k->other, made.at[m]);
    }
  assert_true(k->other.n > 0);
  ir_free(kernels.ir);
}

/** The key of the plan's kernel, and two of its schedules. Leaves the plan in the cache. */
static kernel_record record_of(fixture *f) {
  kernel_record k = {.f = f, .c = open_with(f, "off")};
  k.plan = make_plan(k.c);
  if (diag_catch(&f->diag, find_record, &k)) fail_msg("%s", f->diag.text);
  check_ok(k.c, tn_close(k.c));
  return k;
}

static void keep(fixture *f, const kernel_record *k, const char *decisions) {
  tuned_store *s;
  const tuned_record r = {k->key, TUNED_KEPT, {decisions, 1, 1}, {"-", 1, 2}};
  assert_true(tuned_store_open(&s, f->tuned, NULL, NULL, NULL, &mem_system));
  assert_int_equal(tuned_store_append(s, &r, &f->diag), TN_OK);
  tuned_store_close(s);
}

/* Tests. */

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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_stored_schedule_is_used, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_usual_schedule_may_be_stored, set_up, tear_down),
      cmocka_unit_test_setup_teardown(decisions_of_another_version_are_not_used, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_store_lies_in_the_cache, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
