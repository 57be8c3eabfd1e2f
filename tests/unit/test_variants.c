/* Tests the variants of plans: how many are compiled by each policy, with a given clock; which one
   a run takes; results when it changes between two runs, with carried outputs, states, profiles and
   asynchronous runs; failures; and bindings of several threads while variants come and go. */
#include "support/temporary.h"
#include "support/tensor_check.h"

#include "base/thread.h"
#include "target/machine.h"
#include "tensor/plan/binding.h"
#include "tensor/plan/variant_table.h"

#include <tenon/profile.h>
#include <tenon/unstable/queue.h>

enum { COLUMNS = 4, MOST_ROWS = 64 };

/* The clock, which each look at it moves on. */

static _Atomic int64_t clock_time, clock_step;

static int64_t read_clock(void) {
  return atomic_fetch_add(&clock_time, atomic_load(&clock_step)) + atomic_load(&clock_step);
}

/** A logger that counts variants and ends the time of compiling: from then on, looks take 1. */
typedef struct watcher {
  mutex lock;
  condition changed;
  int variants;
} watcher;

static watcher seen;

static void note_variant(void *user, tn_log_level level, const char *text) {
  (void)user, (void)level;
  if (!strstr(text, ": variant ")) return;
  atomic_store(&clock_step, 1);
  mutex_lock(&seen.lock);
  seen.variants++;
  condition_broadcast(&seen.changed);
  mutex_unlock(&seen.lock);
}

static void wait_for_variants(int n) {
  mutex_lock(&seen.lock);
  while (seen.variants < n) condition_wait(&seen.changed, &seen.lock);
  mutex_unlock(&seen.lock);
}

static tn_context *open_watched(int32_t threads) {
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.threads = threads;
  d.logger = (tn_logger){note_variant, NULL, NULL};
  mutex_lock(&seen.lock);
  seen.variants = 0;
  mutex_unlock(&seen.lock);
  return tn_open(&d);
}

static int set_up(void **state) {
  *state = open_watched(2);
  return *state ? 0 : -1;
}

/* A plan of y = 2·x + the sum of a row, for n rows. */

static tn_plan *compile_rows(tn_context *c, tn_variants policy) {
  tn_plan *p;
  tn_dim n = tn_dim_var(c, "n", 0, 1000);
  tn_tensor *x = tn_input(c, "x", tn_shape(n, COLUMNS), TN_F32);
  tn_tensor *y = tn_add(tn_mul(x, tn_num(c, 2)), tn_sum(x, tn_axes(1), true));
  tn_plan_desc d = TN_PLAN_DESC_INIT;
  d.variants = policy;
  check_ok(c, tn_plan_compile(c, &y, 1, &d, &p));
  return p;
}

static tn_binding *bind(tn_plan *p) {
  tn_binding *b;
  assert_int_equal(tn_plan_bind(p, &b), TN_OK);
  return b;
}

static float in[MOST_ROWS][COLUMNS];

static void give_rows(tn_binding *b, size_t rows) {
  for (int i = 0; i < MOST_ROWS * COLUMNS; i++) in[i / COLUMNS][i % COLUMNS] = (float)(i % 13);
  tn_binding_input(b, "x", tn_shape((tn_dim)rows, COLUMNS), TN_F32, in, rows * sizeof *in);
}

static bool is_right(tn_binding *b, size_t rows) {
  float got[MOST_ROWS][COLUMNS];
  if (tn_binding_read(b, "0", TN_F32, got, rows * sizeof *got) != TN_OK) return false;
  for (size_t i = 0; i < rows; i++)
    for (size_t k = 0; k < COLUMNS; k++) {
      float sum = in[i][0] + in[i][1] + in[i][2] + in[i][3];
      if (got[i][k] != 2 * in[i][k] + sum) return false;
    }
  return true;
}

/** Runs some rows, and returns the number of the variant. */
static int64_t run_rows(tn_binding *b, size_t rows) {
  give_rows(b, rows);
  check_bound(b, tn_binding_run(b));
  if (!is_right(b, rows)) fail_msg("%zu rows: %s", rows, tn_binding_message(b));
  return tn_binding_variant(b);
}

/* Likely sizes. */

static plan_variant *newest_variant(tn_binding *b) {
  variant_table *t = b->plan->variants;
  plan_variant *v = t->at[0];
  for (size_t i = 1; i < t->n; i++)
    if (t->at[i]->number > v->number) v = t->at[i];
  return v;
}

/** A widened variant is made fast for about the size of the run that it is compiled for. */
static void widened_variants_are_made_fast_for_the_run(void **state) {
  static const struct {
    size_t first, second;
    int64_t likely;
  } cases[] = {{5, 1, 1}, {1, 2, 2}, {1, 5, 4}, {1, 6, 8}, {2, 7, 8}, {2, 11, 8}, {2, 12, 16}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tn_binding *b = bind(compile_rows(*state, TN_VARIANTS_STEADY));
    run_rows(b, cases[i].first);
    assert_int_equal(run_rows(b, cases[i].second), 1);
    assert_int_equal(newest_variant(b)->likely[0], cases[i].likely);
    assert_int_equal(run_rows(b, 40), 1);
    assert_int_equal(run_rows(b, 3), 1);
  }
}

static void variants_for_all_sizes_have_no_likely_one(void **state) {
  tn_binding *b = bind(compile_rows(*state, TN_VARIANTS_ONE));
  assert_int_equal(newest_variant(b)->likely[0], 0);
  assert_int_equal(run_rows(b, 7), 0);
}

/* Counts. */

static void the_first_sizes_are_exact_then_what_differs_varies(void **state) {
  tn_binding *b = bind(compile_rows(*state, TN_VARIANTS_STEADY));
  assert_int_equal(b->plan->variants->n_made, 0);
  assert_int_equal(tn_binding_variant(b), -1);
  assert_int_equal(run_rows(b, 5), 0);
  assert_int_equal(run_rows(b, 5), 0);
  assert_int_equal(run_rows(b, 7), 1);
  assert_int_equal(run_rows(b, 9), 1);
  assert_int_equal(run_rows(b, 1), 1);
  assert_int_equal(run_rows(b, 5), 0);
  assert_int_equal(run_rows(b, 0), 2); /* what varies is 1 or more */
  assert_int_equal(run_rows(b, 0), 2);
  assert_int_equal(b->plan->variants->n_made, 3);
}

/** True while the time of the first facts on a widened variant is counted. */
static bool is_counted(tn_plan *p) {
  mutex_lock(&p->variants->lock);
  bool counts = p->variants->tracked[0].state == FACTS_COUNTED;
  mutex_unlock(&p->variants->lock);
  return counts;
}

/** Time on the widened variant earns an exact one, in the background. */
static void sizes_that_run_long_get_an_exact_variant(void **state) {
  tn_plan *p = compile_rows(*state, TN_VARIANTS_AUTO);
  tn_binding *b = bind(p), *other = bind(p);
  p->variants->now = read_clock;
  atomic_store(&clock_step, 100);
  assert_int_equal(run_rows(b, 5), 0);
  assert_int_equal(p->variants->exact_ns, 100);
  atomic_store(&clock_step, 1000);
  assert_int_equal(run_rows(b, 7), 1);
  for (int i = 0; i < 49; i++) assert_int_equal(run_rows(b, 9), 1);
  for (int i = 0; i < 50; i++) assert_int_equal(run_rows(other, 9), 1);
  for (int i = 0; i < 40; i++) assert_int_equal(run_rows(b, 8), 1);
  assert_int_equal(run_rows(other, 3), 1); /* the time of both bindings was 99 */
  assert_int_equal(p->variants->n_made, 2);
  assert_int_equal(run_rows(b, 9), 1); /* 100 */
  wait_for_variants(3);
  assert_int_equal(run_rows(b, 9), 2);
  assert_int_equal(run_rows(b, 8), 1);
  assert_int_equal(run_rows(other, 9), 2);
  assert_int_equal(run_rows(other, 5), 0);
  assert_int_equal(p->variants->n_made, 3);
}

/** After two exact variants whose runs are as long, none is compiled in the background. */
static void exact_variants_that_gain_nothing_end_the_search(void **state) {
  tn_plan *p = compile_rows(*state, TN_VARIANTS_AUTO);
  tn_binding *b = bind(p);
  p->variants->now = read_clock;
  atomic_store(&clock_step, 10);
  run_rows(b, 5);
  run_rows(b, 7);
  while (is_counted(p)) run_rows(b, 7);
  wait_for_variants(3);
  for (int i = 0; i < 10; i++) assert_int_equal(run_rows(b, 7), 2);
  assert_int_equal(p->variants->n_gained_nothing, 1); /* 1 each, as before */
  for (int i = 0; i < 10; i++) assert_int_equal(run_rows(b, 9), 1);
  wait_for_variants(4);
  for (int i = 0; i < 10; i++) assert_int_equal(run_rows(b, 9), 3);
  assert_int_equal(p->variants->n_gained_nothing, 2);
  for (int i = 0; i < 100; i++) assert_int_equal(run_rows(b, 11), 1);
  assert_int_equal(p->variants->n_made, 4);
}

/** Sizes earn an exact variant no sooner where its kernels are in a cache. */
static void kernels_that_a_cache_has_count_as_compiled(void **state) {
  for (int i = 0; i < 2; i++) {
    tn_plan *p = compile_rows(*state, TN_VARIANTS_AUTO);
    tn_binding *b = bind(p);
    p->variants->now = read_clock;
    atomic_store(&clock_step, 100);
    assert_int_equal(run_rows(b, 5), 0);
    double kernels = (double)executable_kernels(newest_variant(b)->executable);
    assert_true(kernels > 0);
    assert_int_equal(p->variants->exact_ns,
                     100 + (i ? (int64_t)(kernels * MACHINE_COMPILE_KERNEL_NS) : 0));
  }
}

static void batches_that_alternate_run_two_variants(void **state) {
  tn_binding *b = bind(compile_rows(*state, TN_VARIANTS_STEADY));
  for (int round = 0; round < 10; round++)
    for (size_t rows = 1; rows <= 8; rows++) assert_int_equal(run_rows(b, rows), rows == 1 ? 0 : 1);
  assert_int_equal(b->plan->variants->n_made, 2);
}

static void exact_variants_are_bounded(void **state) {
  tn_plan *p = compile_rows(*state, TN_VARIANTS_EXACT);
  tn_binding *b = bind(p);
  for (size_t rows = 0; rows < 12; rows++) assert_int_equal(run_rows(b, rows), rows);
  assert_int_equal(p->variants->n, MOST_EXACT_VARIANTS);
  assert_int_equal(run_rows(b, 4), 4); /* the last 8 are there */
  assert_int_equal(run_rows(b, 3), 12);
  assert_int_equal(run_rows(b, 4), 4);
  assert_int_equal(run_rows(b, 5), 13); /* 5 was the one used least recently */
  assert_true(b->n_uses <= MOST_EXACT_VARIANTS + 1);
}

static void one_variant_is_compiled_with_the_plan(void **state) {
  tn_plan *p = compile_rows(*state, TN_VARIANTS_ONE);
  assert_int_equal(p->variants->n_made, 1);
  tn_binding *b = bind(p);
  for (size_t rows = 0; rows < 12; rows++) assert_int_equal(run_rows(b, rows), 0);
  assert_null(p->template.ir);
}

/** Facts that never differ stay numbers; after two steps all vary. */
static void only_sizes_that_differ_vary(void **state) {
  tn_context *c = *state;
  tn_plan *p;
  tn_tensor *sum = tn_num(c, 0);
  const char *names[] = {"a", "b", "c", "d"};
  for (int i = 0; i < 4; i++) {
    tn_tensor *x = tn_input(c, names[i], tn_shape(tn_dim_var(c, names[i], 1, 100)), TN_F32);
    sum = tn_add(sum, tn_sum(x, TN_ALL, false));
  }
  tn_plan_desc d = TN_PLAN_DESC_INIT;
  d.variants = TN_VARIANTS_STEADY;
  check_ok(c, tn_plan_compile(c, &sum, 1, &d, &p));
  tn_binding *b = bind(p);
  static const struct {
    int sizes[4], variant;
    size_t n_open;
  } runs[] = {{{2, 3, 4, 5}, 0, 0}, {{2, 9, 4, 5}, 1, 1}, {{2, 3, 4, 5}, 0, 0},
              {{2, 8, 4, 5}, 1, 1}, {{7, 3, 4, 5}, 2, 2}, {{2, 7, 4, 5}, 1, 1},
              {{2, 3, 6, 5}, 3, 4}, {{1, 1, 1, 1}, 3, 4}};
  float ones[10];
  for (int i = 0; i < 10; i++) ones[i] = 1;
  for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
    int want = 0;
    for (int i = 0; i < 4; i++) {
      int n = runs[r].sizes[i];
      tn_binding_input(b, names[i], tn_shape(n), TN_F32, ones, (size_t)n * sizeof *ones);
      want += n;
    }
    check_bound(b, tn_binding_run(b));
    check_output_floats(b, "0", 1, (const float[]){(float)want});
    assert_int_equal(tn_binding_variant(b), runs[r].variant);
    assert_int_equal(b->variant->n_open, runs[r].n_open);
  }
}

static void sizes_without_a_choice_are_compiled_at_once(void **state) {
  tn_context *c = *state;
  tn_plan *p;
  tn_dim n = tn_dim_var(c, "n", 3, 3);
  tn_tensor *y = tn_neg(tn_input(c, "x", tn_shape(n), TN_F32));
  check_ok(c, tn_plan_compile(c, &y, 1, NULL, &p));
  assert_int_equal(p->variants->n_made, 1);
  tn_plan_desc d = TN_PLAN_DESC_INIT;
  d.variants = (tn_variants)4;
  assert_int_equal(tn_plan_compile(c, &y, 1, &d, &p), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "4 is not one of tn_variants");
}

/* Changes between two runs. */

/** A cache that grows by a row each step, from none: it needs three variants, and in the end little
    more memory than early on. */
static void a_cache_grows(void **state) {
  (void)state;
  enum { STEPS = 1000, EARLY = 100, MORE_BYTES = 1 << 20 };
  tn_open_desc opening = TN_OPEN_DESC_INIT;
  opening.threads = 2;
  opening.memory_limit = UINT64_C(1) << 40; /* which counts what is in use */
  tn_context *c = tn_open(&opening);
  uint64_t early = 0;
  tn_dim n = tn_dim_var(c, "n", 0, 1000);
  tn_tensor *cache = tn_input(c, "cache", tn_shape(n, 2), TN_F32);
  tn_tensor *row = tn_input(c, "row", tn_shape(1, 2), TN_F32);
  tn_tensor *next = tn_concat((tn_tensor *[]){cache, row}, 2, 0);
  tn_tensor *out[] = {next, tn_sum(next, tn_axes(0), false)};
  const char *names[] = {"next", "sum"};
  tn_plan_desc d = {sizeof d, "cache", names, TN_VARIANTS_AUTO, false, NULL, 0};
  tn_binding *b = bind_compiled(c, out, 2, &d);
  float rows[2] = {0, 1}, none[2];
  static float got[STEPS][2];
  tn_binding_carry(b, "next", "cache");
  tn_binding_input(b, "cache", tn_shape(0, 2), TN_F32, none, 0);
  for (size_t step = 0; step < STEPS; step++) {
    rows[0] = (float)step;
    tn_binding_input(b, "row", tn_shape(1, 2), TN_F32, rows, sizeof rows);
    check_bound(b, tn_binding_run(b));
    assert_int_equal(tn_binding_type(b, "next").shape.size[0], step + 1);
    if (step == EARLY) early = atomic_load(&c->limit.used);
    check_output_floats(b, "sum", FLOATS((float)(step * (step + 1) / 2), (float)(step + 1)));
  }
  check_bound(b, tn_binding_read(b, "next", TN_F32, got, sizeof got));
  for (size_t i = 0; i < STEPS; i++) assert_true(got[i][0] == (float)i && got[i][1] == 1);
  assert_int_equal(b->plan->variants->n_made, 3); /* none, one, and more rows */
  assert_true(early && atomic_load(&c->limit.used) < early + MORE_BYTES);
  check_ok(c, tn_close(c));
}

/** A state keeps its contents, whichever variant changes it, and when runs are asynchronous. */
static void states_pass_from_variant_to_variant(void **state) {
  tn_context *c = *state;
  tn_device *device;
  tn_signal *done;
  tn_failure f;
  tn_tensor *total = tn_state(floats(c, FLOATS(0, 0)));
  check_ok(c, tn_realize(c, &total, 1));
  tn_scope_begin(c);
  tn_tensor *x = tn_input(c, "x", tn_shape(tn_dim_var(c, "n", 0, 100), 2), TN_F32);
  tn_tensor *before = tn_mul(total, tn_num(c, 1));
  tn_assign(total, tn_add(total, tn_sum(x, tn_axes(0), false)));
  tn_binding *b = bind_compiled(c, &before, 1, NULL);
  check_ok(c, tn_scope_end(c));
  assert_int_equal(tn_device_open(c, NULL, &device, &f), TN_OK);
  assert_int_equal(tn_signal_open(device, 0, &done, &f), TN_OK);
  float ones[20][2], sum = 0;
  for (int i = 0; i < 40; i++) ones[i / 2][i % 2] = 1;
  for (uint64_t i = 1; i <= 30; i++) {
    size_t rows = i * 7 % 12;
    tn_binding_input(b, "x", tn_shape((tn_dim)rows, 2), TN_F32, ones, rows * sizeof *ones);
    if (i % 2) {
      check_bound(b, tn_binding_run(b));
    } else {
      check_bound(b, tn_binding_start(b, NULL, 0, done, i));
      assert_int_equal(tn_signal_wait(done, i, -1, &f), TN_OK);
    }
    check_output_floats(b, "0", FLOATS(sum, sum));
    sum += (float)rows;
    check_floats(c, total, FLOATS(sum, sum));
  }
  tn_signal_free(done);
}

/** Steps and times are those of the variant that ran last; profiling stays on. */
static void profiles_follow_the_variant(void **state) {
  tn_binding *b = bind(compile_rows(*state, TN_VARIANTS_EXACT));
  tn_step s = TN_STEP_INIT;
  tn_memory m = TN_MEMORY_INIT;
  check_bound(b, tn_binding_profile(b, true));
  assert_int_equal(tn_binding_step(b, 0, &s), TN_ERR_ARGUMENT);
  for (size_t rows = 1; rows < 5; rows++) {
    run_rows(b, rows);
    check_bound(b, tn_binding_step(b, 0, &s));
    assert_true(s.end > 0);
    double operations = s.operations;
    give_rows(b, rows + 8);
    check_bound(b, tn_binding_memory(b, &m)); /* compiles */
    assert_int_equal(m.outputs, (rows + 8) * sizeof *in);
    check_bound(b, tn_binding_step(b, 0, &s));
    assert_true(s.operations == operations);
    assert_true(is_right(b, rows));
  }
}

static void variants_are_prepared(void **state) {
  tn_plan *p = compile_rows(*state, TN_VARIANTS_AUTO);
  tn_binding *b = bind(p);
  assert_int_equal(tn_binding_prepare(b), TN_ERR_ARGUMENT);
  check_text(tn_binding_message(b), "inputs without a value: x");
  assert_int_equal(tn_binding_prepare(NULL), TN_ERR_ARGUMENT);
  assert_int_equal(tn_binding_variant(NULL), -1);
  give_rows(b, 6);
  check_bound(b, tn_binding_prepare(b));
  assert_int_equal(p->variants->n_made, 1);
  assert_int_equal(tn_binding_variant(b), -1);
  check_bound(b, tn_binding_run(b));
  assert_int_equal(tn_binding_variant(b), 0);
  give_rows(b, 8);
  check_bound(b, tn_binding_prepare(b));
  assert_int_equal(p->variants->n_made, 2);
  assert_int_equal(tn_binding_variant(b), 0); /* of the last run */
  assert_int_equal(run_rows(b, 8), 1);
  assert_int_equal(p->variants->n_made, 2);
}

/* Failures. */

static atomic_int steps_left; /* until compiling is cancelled */

static bool count_down(void *user, const char *what, uint64_t done, uint64_t total) {
  (void)user, (void)what, (void)done, (void)total;
  return atomic_fetch_sub(&steps_left, 1) > 0;
}

/** A variant that cannot be compiled fails the run; others still run, and so does this one later.
 */
static void failures_are_of_one_run(void **state) {
  (void)state;
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.progress = (tn_progress){count_down, NULL, NULL};
  tn_context *c = tn_open(&d);
  tn_plan *p = compile_rows(c, TN_VARIANTS_STEADY);
  tn_binding *b = bind(p);
  for (int i = 0; i < 3; i++) {
    give_rows(b, 5);
    atomic_store(&steps_left, 0);
    assert_int_equal(tn_binding_run(b), TN_ERR_CANCELLED);
    check_text(tn_binding_message(b), "cancelled");
    assert_int_equal(tn_binding_variant(b), -1);
    assert_int_equal(tn_binding_type(b, "0").dtype, TN_UNDEFINED);
  }
  atomic_store(&steps_left, 1000);
  assert_int_equal(run_rows(b, 5), 0);
  atomic_store(&steps_left, 0);
  give_rows(b, 7);
  assert_int_equal(tn_binding_run(b), TN_ERR_CANCELLED);
  assert_int_equal(tn_binding_prepare(b), TN_ERR_CANCELLED);
  assert_int_equal(run_rows(b, 5), 0);
  atomic_store(&steps_left, 1000);
  assert_int_equal(run_rows(b, 7), 1);
  assert_int_equal(p->variants->n_made, 2);
  check_ok(c, tn_close(c));
}

/** A context whose compiler is a script, in a folder of its own. */
typedef struct scripted {
  diag d;
  arena a;
  const char *folder;
  tn_context *c;
} scripted;

static void open_scripted(scripted *s, const char *script) {
  *s = (scripted){.folder = NULL};
  arena_init(&s->a, &mem_system, &s->d);
  s->folder = temporary_folder(&s->a);
  const char *path = arena_printf(&s->a, "%s/cc", s->folder);
  assert_true(temporary_write(path, 0700, script, strlen(script)));
  tn_open_desc o = TN_OPEN_DESC_INIT;
  o.compiler = path;
  o.cache_dir = "off";
  o.threads = 1;
  s->c = tn_open(&o);
}

static void close_scripted(scripted *s) {
  check_ok(s->c, tn_close(s->c));
  assert_int_equal(temporary_remove(&s->a, s->folder), 0);
  arena_free(&s->a);
}

/** A compiler that refuses kernels with values of variables. */
static const char numbers_only[] =
    "#!/bin/sh\n"
    "case \"$*\" in *--version*) exec cc \"$@\";; esac\n"
    "source=$(cat)\n"
    "case \"$source\" in *'vals['*) echo variables >&2; exit 1;; esac\n"
    "printf '%s\\n' \"$source\" | cc \"$@\"\n";

/** Where nothing can be compiled with sizes open, all variants are exact. */
static void what_cannot_vary_is_exact(void **state) {
  (void)state;
  scripted s;
  open_scripted(&s, numbers_only);
  tn_context *c = s.c;
  tn_binding *b = bind(compile_rows(c, TN_VARIANTS_AUTO));
  for (size_t rows = 4; rows < 8; rows++) assert_int_equal(run_rows(b, rows), rows - 4);
  assert_true(b->plan->variants->is_never_widened);
  assert_int_equal(run_rows(b, 5), 1);
  tn_plan *one;
  tn_plan_desc for_all = TN_PLAN_DESC_INIT;
  for_all.variants = TN_VARIANTS_ONE;
  tn_tensor *y = tn_neg(tn_input(c, "x", tn_shape(tn_dim_var(c, "m", 1, 9)), TN_F32));
  assert_int_equal(tn_plan_compile(c, &y, 1, &for_all, &one), TN_ERR_COMPILE);
  check_text(tn_message(c), "variables");
  close_scripted(&s);
}

static const char fails_once[] =
    "#!/bin/sh\n"
    "case \"$*\" in *--version*) exec cc \"$@\";; esac\n"
    "source=$(cat)\n"
    "case \"$source\" in *'vals['*)\n"
    "  [ -e \"$0.failed\" ] || { touch \"$0.failed\"; echo by chance >&2; exit 1; };;\n"
    "esac\n"
    "printf '%s\\n' \"$source\" | cc \"$@\"\n";

/** A compiler's failure makes one variant exact, and the next one is widened again. */
static void one_failure_does_not_end_widening(void **state) {
  (void)state;
  scripted s;
  open_scripted(&s, fails_once);
  tn_binding *b = bind(compile_rows(s.c, TN_VARIANTS_STEADY));
  for (size_t rows = 4; rows < 7; rows++) assert_int_equal(run_rows(b, rows), rows - 4);
  assert_false(b->plan->variants->is_never_widened);
  assert_int_equal(run_rows(b, 5), 1);
  for (size_t rows = 7; rows < 10; rows++) assert_int_equal(run_rows(b, rows), 2);
  close_scripted(&s);
}

/** Without memory a run fails, and succeeds when there is some again. */
static void memory_may_run_out(void **state) {
  (void)state;
  for (size_t at = 1, failed = 1; failed; at += at < 200 ? 7 : 191) {
    counting memory = {.fail_at = 0};
    tn_context *c = open_counting(&memory, "NULL");
    tn_binding *b = bind(compile_rows(c, TN_VARIANTS_STEADY));
    failed = 0;
    for (size_t rows = 3; rows <= 4; rows++) {
      give_rows(b, rows);
      memory.fail_at = atomic_load(&memory.calls) + at;
      tn_status s = tn_binding_run(b);
      memory.fail_at = 0;
      if (s != TN_OK) assert_int_equal(s, TN_ERR_MEMORY);
      failed += s != TN_OK;
      check_bound(b, tn_binding_run(b));
      assert_int_equal(tn_binding_variant(b), rows - 3);
    }
    check_ok(c, tn_close(c));
    assert_int_equal(memory.out, 0);
  }
}

/** Plans are freed, and contexts closed, while a variant is compiled in the background: it is
    cancelled, unless it was waited for. */
static void background_compilations_are_cancelled(void **state) {
  (void)state;
  int cancelled = 0;
  for (int i = 0; i < 6; i++) {
    tn_context *c = open_watched(2);
    tn_plan *p = compile_rows(c, TN_VARIANTS_AUTO);
    tn_binding *b = bind(p);
    p->variants->now = read_clock;
    atomic_store(&clock_step, 10);
    run_rows(b, 5);
    run_rows(b, 7);
    while (is_counted(p)) run_rows(b, 7);
    if (i == 5) wait_for_variants(3);
    if (i % 2) tn_plan_free(p);
    if (i % 2) tn_binding_free(b);
    check_ok(c, tn_close(c));
    assert_in_range(seen.variants, i == 5 ? 3 : 2, 3);
    cancelled += seen.variants == 2;
  }
  print_message("%d of 6 cancelled\n", cancelled);
  assert_true(cancelled > 0); /* one or the other may be ready by then */
}

static const char slow_compiler[] = "#!/bin/sh\n"
                                    "case \"$*\" in *--version*) exec cc \"$@\";; esac\n"
                                    "here=$(dirname \"$0\")\n"
                                    "if [ ! -e \"$here/slow\" ]; then exec cc \"$@\"; fi\n"
                                    "cat > /dev/null\n"
                                    ": > \"$here/started\"\n"
                                    "exec sleep 60\n";

/** Waits for a file; false: half a minute is not enough. */
static bool wait_for_file(const char *path) {
  const int64_t start = clock_now_ns();
  while (access(path, F_OK)) {
    if (clock_now_ns() - start > INT64_C(30000000000)) return false;
    sched_yield();
  }
  return true;
}

/** A compiler that runs for a variant in the background is killed when the context is closed. */
static void background_compilers_are_killed(void **state) {
  (void)state;
  scripted s;
  open_scripted(&s, slow_compiler);
  const char *started = arena_printf(&s.a, "%s/started", s.folder);
  tn_plan *p = compile_rows(s.c, TN_VARIANTS_AUTO);
  tn_binding *b = bind(p);
  p->variants->now = read_clock;
  atomic_store(&clock_step, 10);
  run_rows(b, 5);
  run_rows(b, 7);
  assert_true(temporary_write(arena_printf(&s.a, "%s/slow", s.folder), 0600, "", 0));
  while (is_counted(p)) run_rows(b, 7);
  assert_true(wait_for_file(started));
  const int64_t start = clock_now_ns();
  close_scripted(&s);
  assert_true(clock_now_ns() - start < INT64_C(30000000000)); /* half of what it sleeps */
}

/* Threads. */

typedef struct caller {
  tn_plan *plan;
  unsigned seed;
  bool is_wrong;
} caller;

static void *run_many(void *arg) {
  caller *k = arg;
  float x[16][COLUMNS], got[16][COLUMNS];
  tn_binding *b;
  if (tn_plan_bind(k->plan, &b) != TN_OK) k->is_wrong = true;
  for (int i = 0; i < 150 && !k->is_wrong; i++) {
    k->seed = k->seed * 1664525u + 1013904223u;
    size_t rows = k->seed >> 16 & 15;
    for (size_t r = 0; r < rows; r++)
      for (size_t n = 0; n < COLUMNS; n++) x[r][n] = (float)(r + n + (size_t)i % 3);
    tn_binding_input(b, "x", tn_shape((tn_dim)rows, COLUMNS), TN_F32, x, rows * sizeof *x);
    for (int again = 0; again < 4; again++) k->is_wrong |= tn_binding_run(b) != TN_OK;
    k->is_wrong |= tn_binding_read(b, "0", TN_F32, got, rows * sizeof *got) != TN_OK;
    for (size_t r = 0; r < rows; r++)
      for (size_t n = 0; n < COLUMNS; n++)
        k->is_wrong |= got[r][n] != 2 * x[r][n] + x[r][0] + x[r][1] + x[r][2] + x[r][3];
  }
  tn_binding_free(b);
  return NULL;
}

/** Exact variants are due after some runs, and are dropped as there are more sizes than may be. */
static void bindings_run_while_variants_come_and_go(void **state) {
  enum { CALLERS = 3 };
  pthread_t threads[CALLERS];
  caller callers[CALLERS];
  static const tn_variants policies[] = {TN_VARIANTS_AUTO, TN_VARIANTS_EXACT};
  for (size_t policy = 0; policy < sizeof policies / sizeof *policies; policy++) {
    tn_plan *p = compile_rows(*state, policies[policy]);
    p->variants->now = read_clock;
    atomic_store(&clock_step, 1);
    for (unsigned i = 0; i < CALLERS; i++) {
      callers[i] = (caller){p, 11 * i, false};
      assert_int_equal(pthread_create(&threads[i], NULL, run_many, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < CALLERS; i++) assert_false(callers[i].is_wrong);
    assert_true(p->variants->n <= MOST_EXACT_VARIANTS + MOST_WIDENED_VARIANTS);
    tn_plan_free(p);
  }
}

/** The bits of one variant are the same for any number of threads. */
static void bits_are_the_variants(void **state) {
  (void)state;
  enum { ROWS = 37, WIDE = 300 };
  static float x[ROWS][WIDE], got[2][2][ROWS][WIDE];
  for (int i = 0; i < ROWS * WIDE; i++) x[i / WIDE][i % WIDE] = (float)(i * 31 % 101) / 7;
  for (int t = 0; t < 2; t++) {
    tn_context *c = open_watched(t ? 3 : 1);
    tn_dim n = tn_dim_var(c, "n", 1, 1000);
    tn_tensor *y = tn_softmax(tn_input(c, "x", tn_shape(n, WIDE), TN_F32), 1);
    tn_plan_desc d = TN_PLAN_DESC_INIT;
    d.variants = TN_VARIANTS_STEADY;
    tn_binding *b = bind_compiled(c, &y, 1, &d);
    for (int v = 0; v < 2; v++) {
      size_t rows = v ? ROWS - 5 : ROWS;
      tn_binding_input(b, "x", tn_shape((tn_dim)rows, WIDE), TN_F32, x, rows * sizeof *x);
      check_bound(b, tn_binding_run(b));
      check_bound(b, tn_binding_read(b, "0", TN_F32, got[t][v], rows * sizeof *x));
      assert_int_equal(tn_binding_variant(b), v);
    }
    check_ok(c, tn_close(c));
  }
  assert_memory_equal(got[0], got[1], sizeof got[0]);
  for (size_t i = 0; i < (ROWS - 5) * WIDE; i++) {
    double d = (double)got[0][0][i / WIDE][i % WIDE] - (double)got[0][1][i / WIDE][i % WIDE];
    assert_true(d < 1e-6 && d > -1e-6);
  }
}

#define WITH(name) cmocka_unit_test_setup_teardown(name, set_up, close_context)

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH(widened_variants_are_made_fast_for_the_run),
      WITH(variants_for_all_sizes_have_no_likely_one),
      WITH(the_first_sizes_are_exact_then_what_differs_varies),
      WITH(sizes_that_run_long_get_an_exact_variant),
      WITH(exact_variants_that_gain_nothing_end_the_search),
      WITH(kernels_that_a_cache_has_count_as_compiled),
      WITH(batches_that_alternate_run_two_variants),
      WITH(exact_variants_are_bounded),
      WITH(one_variant_is_compiled_with_the_plan),
      WITH(only_sizes_that_differ_vary),
      WITH(sizes_without_a_choice_are_compiled_at_once),
      cmocka_unit_test(a_cache_grows),
      WITH(states_pass_from_variant_to_variant),
      WITH(profiles_follow_the_variant),
      WITH(variants_are_prepared),
      cmocka_unit_test(failures_are_of_one_run),
      cmocka_unit_test(what_cannot_vary_is_exact),
      cmocka_unit_test(one_failure_does_not_end_widening),
      cmocka_unit_test(memory_may_run_out),
      cmocka_unit_test(background_compilations_are_cancelled),
      cmocka_unit_test(background_compilers_are_killed),
      WITH(bindings_run_while_variants_come_and_go),
      cmocka_unit_test(bits_are_the_variants),
  };
  mutex_init(&seen.lock);
  condition_init(&seen.changed);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
