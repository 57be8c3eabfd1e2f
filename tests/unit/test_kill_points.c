/* Tests what becomes of a plan whose sizes, branch and loop are known late when a run of it is
   ended: by a bound that an element violates, by each failed allocation as sizes grow, by each
   cancelled step of compiling, in the background at each allocation, and by the death of the
   process. States keep their contents, nothing is left behind, and the next run is right. */
#include "support/temporary.h"
#include "support/tensor_check.h"

#include "tensor/plan/binding.h"
#include "tensor/plan/variant_table.h"

#include <signal.h>
#include <sys/wait.h>

enum {
  MOST = 64,
  WIDTH = 4,
  LEAST_OF_SUM = 3,
  LEAST_OF_PICK = 4,
  MOST_OF_SUM = 8,
  MOST_OF_PICK = 6
};

/* The plan: k elements of x are above 0, so a size is k, m = max(0, k − 3) is one of the next
   segment, a loop halves the sum of m numbers until it is below 1, and a branch has k − 4 elements
   or those of x. A run adds 1 to the state. */

static tn_tensor *count(tn_tensor *conditions) {
  return tn_sum(tn_cast(conditions, TN_I64), TN_ALL, false);
}

static tn_tensor *numbers(tn_context *c, tn_dim n) { return tn_arange(c, 0, n, 1, TN_F32); }

static void halve(void *user, tn_tensor *index, tn_tensor *const state[], tn_tensor *const x[],
                  tn_tensor *next[], tn_tensor *y[]) {
  (void)index, (void)x;
  next[0] = tn_mul(state[0], tn_num(user, 0.5));
  next[1] = tn_lt(next[0], tn_num(user, 1));
  y[0] = state[0];
}

static tn_tensor *halves(tn_context *c, tn_tensor *start) {
  tn_tensor *init[] = {start, tn_lt(start, tn_num(c, 1))}, *out[3];
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  d.body = halve;
  d.user = c;
  d.steps = 20;
  d.until = 1;
  tn_scan(c, &d, init, 2, NULL, 0, out, 1);
  return out[2];
}

typedef struct sides {
  tn_tensor *yes, *no;
} sides;

static void then_side(void *user, tn_tensor *out[]) { out[0] = ((const sides *)user)->yes; }
static void else_side(void *user, tn_tensor *out[]) { out[0] = ((const sides *)user)->no; }

typedef struct late_plan {
  tn_context *c;
  tn_plan *plan;
  tn_binding *b;
  tn_tensor *state;
  size_t n_runs; /* that succeeded */
} late_plan;

static tn_status compile(late_plan *p, tn_variants policy) {
  tn_context *c = p->c;
  tn_tensor *out[5], *picked;
  tn_scope_begin(c);
  tn_dim n = tn_dim_var(c, "n", 1, MOST);
  tn_tensor *x = tn_input(c, "x", tn_shape(n), TN_F32);
  tn_tensor *k = count(tn_gt(x, tn_num(c, 0)));
  out[0] = numbers(c, tn_dim_item(k, 1, n));
  tn_tensor *m = count(tn_ge(out[0], tn_num(c, LEAST_OF_SUM)));
  out[1] = tn_sum(numbers(c, tn_dim_item(m, 0, MOST_OF_SUM)), TN_ALL, false);
  out[2] = halves(c, out[1]);
  tn_dim rest = tn_dim_item(tn_sub(k, tn_int(c, LEAST_OF_PICK)), 1, MOST_OF_PICK);
  sides s = {numbers(c, rest), tn_mul(x, tn_num(c, 2))};
  const tn_cond_desc d = {sizeof d, then_side, else_side, &s};
  tn_cond(c, tn_gt(k, tn_int(c, LEAST_OF_PICK)), &d, &picked, 1);
  out[3] = picked;
  tn_assign(p->state, tn_add(p->state, tn_num(c, 1)));
  out[4] = tn_sum(p->state, TN_ALL, false);
  tn_plan_desc desc = TN_PLAN_DESC_INIT;
  desc.variants = policy;
  tn_status status = tn_plan_compile(c, out, 5, &desc, &p->plan);
  tn_status ended = tn_scope_end(c);
  return status == TN_OK ? ended : status;
}

static void open_plan(late_plan *p, tn_context *c, tn_variants policy) {
  *p = (late_plan){.c = c};
  p->state = tn_state(tn_zeros(c, tn_shape(WIDTH), TN_F32));
  check_ok(c, tn_realize(c, NULL, 0));
  check_ok(c, compile(p, policy));
  check_ok(c, tn_plan_bind(p->plan, &p->b));
}

/** Runs with k of n elements above 0. */
static tn_status run(late_plan *p, size_t n, size_t k) {
  float x[MOST];
  for (size_t i = 0; i < n; i++) x[i] = i < k ? (float)i + 1 : -1;
  tn_status s = tn_binding_input(p->b, "x", tn_shape((tn_dim)n), TN_F32, x, n * sizeof *x);
  if (s == TN_OK) s = tn_binding_run(p->b);
  p->n_runs += s == TN_OK;
  return s;
}

static void check_array(late_plan *p, const char *name, size_t n, const float *expected) {
  assert_int_equal(tn_binding_type(p->b, name).shape.size[0], n);
  check_output_floats(p->b, name, n, expected);
}

static void check_state(late_plan *p) {
  float expected[WIDTH];
  for (size_t i = 0; i < WIDTH; i++) expected[i] = (float)p->n_runs;
  check_floats(p->c, p->state, WIDTH, expected);
}

/** Checks the outputs of a run, and the state. */
static void check_results(late_plan *p, size_t n, size_t k) {
  float up[MOST], twice[MOST], halved[MOST], total = 0;
  size_t m = k > LEAST_OF_SUM ? k - LEAST_OF_SUM : 0, trips = 0;
  for (size_t i = 0; i < MOST; i++) {
    up[i] = (float)i;
    twice[i] = i < k ? 2 * (float)(i + 1) : -2;
    total += i < m ? (float)i : 0;
  }
  for (float v = total; v >= 1; v /= 2) halved[trips++] = v;
  check_array(p, "0", k, up);
  check_output_floats(p->b, "1", 1, &total);
  check_array(p, "2", trips, halved);
  check_array(p, "3", k > LEAST_OF_PICK ? k - LEAST_OF_PICK : n, k > LEAST_OF_PICK ? up : twice);
  check_output_floats(p->b, "4", FLOATS((float)(WIDTH * p->n_runs)));
  check_state(p);
}

static void run_rightly(late_plan *p, size_t n, size_t k) {
  check_bound(p->b, run(p, n, k));
  check_results(p, n, k);
}

/* Bounds. */

/** Each element that decides a size may violate its bound: in the first segment, behind it, in the
    branch that is taken. */
static void each_bound_may_be_violated(void **state) {
  static const struct {
    size_t k;
    const char *words; /* NULL: the run is right */
  } cases[] = {{3, NULL},
               {0, "a size is 0"},
               {MOST_OF_SUM + LEAST_OF_SUM + 1, "it must be from 0 to 8"},
               {10, NULL},
               {MOST_OF_SUM + LEAST_OF_SUM, "it must be from 1 to 6"},
               {5, NULL}};
  static const size_t sizes[] = {20, MOST, 12, 20};
  late_plan p;
  open_plan(&p, *state, TN_VARIANTS_STEADY);
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      if (!cases[i].words) {
        run_rightly(&p, sizes[s], cases[i].k);
        continue;
      }
      assert_int_equal(run(&p, sizes[s], cases[i].k), TN_ERR_SHAPE);
      check_text(tn_binding_message(p.b), cases[i].words);
      check_state(&p);
    }
}

/* Allocations. */

/** As sizes grow from segment to segment, each allocation of a run fails once. */
static void each_allocation_of_a_run_may_fail(void **state) {
  (void)state;
  counting memory = {0};
  tn_context *c = open_counting(&memory, "CPU");
  size_t n_failed = 0;
  for (size_t at = 1;; at++) {
    late_plan p;
    open_plan(&p, c, TN_VARIANTS_ONE);
    run_rightly(&p, 2, 1);
    memory.fail_at = atomic_load(&memory.calls) + at;
    tn_status s = run(&p, MOST, 10);
    bool is_over = atomic_load(&memory.calls) < memory.fail_at;
    memory.fail_at = 0;
    if (s != TN_OK) assert_int_equal(s, TN_ERR_MEMORY);
    n_failed += s != TN_OK;
    check_state(&p);
    run_rightly(&p, 9, 5);
    run_rightly(&p, MOST, 10);
    tn_binding_free(p.b);
    tn_plan_free(p.plan);
    if (is_over) break;
  }
  assert_true(n_failed > 2);
  assert_int_equal(tn_close(c), TN_OK);
  assert_int_equal(memory.out, 0);
}

/* Cancelling. */

static bool count_down(void *user, const char *what, uint64_t done, uint64_t total) {
  (void)what, (void)done, (void)total;
  int *left = user;
  return (*left)-- > 0;
}

/** Runs anew until compiling is no longer cancelled, one step later each time. */
static int run_when_uncancelled(late_plan *p, int *left, size_t n, size_t k) {
  for (int steps = 0;; steps++) {
    *left = steps;
    tn_status s = run(p, n, k);
    *left = 0;
    if (s == TN_OK) return steps;
    assert_int_equal(s, TN_ERR_CANCELLED);
    check_text(tn_binding_message(p->b), "cancelled");
    check_state(p);
  }
}

/** Compiling the first variant, and the widened one, is cancelled at each step. */
static void each_step_of_compiling_may_be_cancelled(void **state) {
  (void)state;
  int left = 1000;
  tn_open_desc d = TN_OPEN_DESC_INIT;
  late_plan p;
  d.progress = (tn_progress){count_down, &left, NULL};
  open_plan(&p, tn_open(&d), TN_VARIANTS_STEADY);
  assert_true(run_when_uncancelled(&p, &left, 6, 2) > 3);
  check_results(&p, 6, 2);
  assert_true(run_when_uncancelled(&p, &left, MOST, 10) > 3);
  check_results(&p, MOST, 10);
  run_rightly(&p, 6, 2);
  assert_int_equal(p.plan->variants->n_made, 2);
  check_ok(p.c, tn_close(p.c));
}

/* The background. */

/** An allocator that fails at a call, or there cancels what compiles in the background. */
typedef struct striking {
  counting memory;
  size_t cancel_at; /* 0: never */
  atomic_bool is_cancelled;
} striking;

static void *striking_alloc(void *user, size_t bytes, size_t align) {
  striking *s = user;
  void *at = counting_alloc(&s->memory, bytes, align);
  if (s->cancel_at && atomic_load(&s->memory.calls) >= s->cancel_at)
    atomic_store(&s->is_cancelled, true);
  return at;
}

static void striking_release(void *user, void *at, size_t bytes) {
  counting_release(&((striking *)user)->memory, at, bytes);
}

typedef enum strike { STRIKE_NONE, STRIKE_FAILS, STRIKE_CANCELS } strike;

/** Compiles an exact variant for n elements as the background does, in which a call of the
   allocator fails or cancels; returns how many calls there are. */
static size_t compile_as_in_background(late_plan *p, striking *s, int64_t n, strike what,
                                       size_t at) {
  variant_table *t = p->plan->variants;
  assert_int_equal(p->plan->n_facts, 1);
  t->exact_ns = INT64_MAX; /* so nothing is due */
  variant_table_add_time(p->plan, &n, 1, 1);
  t->tracked[0].state = FACTS_DUE;
  size_t before = atomic_load(&s->memory.calls);
  s->cancel_at = what == STRIKE_CANCELS ? before + at : 0;
  s->memory.fail_at = what == STRIKE_FAILS ? before + at : 0;
  t->job.run(&t->job, &s->is_cancelled);
  s->memory.fail_at = s->cancel_at = 0;
  return atomic_load(&s->memory.calls) - before;
}

/** Strikes while the exact variant is compiled in the background: runs stay right, and no memory is
    left. Returns whether the variant was made. */
static bool strike_in_background(strike what, size_t at, size_t *calls) {
  enum { FIRST = 6, N = 9, K = 5 };
  striking s = {.cancel_at = 0};
  tn_open_desc d = TN_OPEN_DESC_INIT;
  late_plan p;
  d.threads = 1;
  d.cache_dir = "off";
  d.allocator = (tn_allocator){striking_alloc, striking_release, &s, NULL};
  open_plan(&p, tn_open(&d), TN_VARIANTS_AUTO);
  run_rightly(&p, FIRST, K);
  run_rightly(&p, N, K);
  assert_int_equal(p.plan->variants->n_made, 2);
  *calls = compile_as_in_background(&p, &s, N, what, at);
  bool is_made = p.plan->variants->n_made > 2;
  run_rightly(&p, N, K);
  assert_int_equal(tn_binding_variant(p.b), is_made ? 2 : 1);
  run_rightly(&p, FIRST, K);
  assert_int_equal(tn_binding_variant(p.b), 0);
  check_ok(p.c, tn_close(p.c));
  assert_int_equal(s.memory.out, 0);
  return is_made;
}

/** Points lie closer together at the beginning. */
static void the_background_may_be_struck(void **state) {
  (void)state;
  enum { POINTS = 8 };
  size_t calls, ignored;
  assert_true(strike_in_background(STRIKE_NONE, 0, &calls));
  for (strike what = STRIKE_FAILS; what <= STRIKE_CANCELS; what++) {
    size_t n_made = 0;
    for (size_t i = 0; i < POINTS; i++)
      n_made += strike_in_background(what, 1 + i * i * calls / (POINTS * POINTS), &ignored);
    assert_true(n_made < POINTS / 2);
  }
}

/* Processes. */

/** Runs the plan with ever other sizes, so that variants come in the foreground and the background,
    until the process is killed; writes a byte after the first run. A failure ends it. */
static void run_for_ever(const char *cache, int says) {
  tn_open_desc d = TN_OPEN_DESC_INIT;
  late_plan p;
  d.cache_dir = cache;
  open_plan(&p, tn_open(&d), TN_VARIANTS_AUTO);
  for (size_t i = 0;; i++) {
    size_t n = 12 + i / 500 % 4, k = 1 + i % 10;
    if (run(&p, n, k)) _exit(1);
    if (!i && write(says, "", 1) != 1) _exit(2);
  }
}

/** A process that is killed at any point leaves a folder that the next one runs with, and reads its
    plans from. */
static void killed_processes_leave_files_that_serve(void **state) {
  (void)state;
  enum { KILLS = 8 };
  arena a;
  diag diag = {0};
  arena_init(&a, &mem_system, &diag);
  const char *folder = temporary_folder(&a);
  for (int i = 0; i < KILLS; i++) {
    int said[2], status;
    assert_int_equal(pipe(said), 0);
    pid_t child = fork();
    if (!child) run_for_ever(folder, said[1]);
    assert_true(child > 0);
    close(said[1]);
    char byte;
    if (i > 1) assert_int_equal(read(said[0], &byte, 1), 1); /* it ran once at least */
    usleep((useconds_t)(i * i * 10000));
    assert_int_equal(kill(child, SIGKILL), 0);
    close(said[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL); /* not after a failure */
  }
  for (int i = 0; i < 2; i++) {
    tn_open_desc d = TN_OPEN_DESC_INIT;
    late_plan p;
    d.cache_dir = folder;
    open_plan(&p, tn_open(&d), TN_VARIANTS_STEADY);
    for (size_t k = 1; k < 11; k++) run_rightly(&p, 10 + k, k);
    check_ok(p.c, tn_close(p.c));
  }
  assert_int_equal(temporary_remove(&a, folder), 0);
  arena_free(&a);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, open_context, close_context)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(
          killed_processes_leave_files_that_serve), /* forks before there are threads */
      WITH(each_bound_may_be_violated),
      cmocka_unit_test(each_allocation_of_a_run_may_fail),
      cmocka_unit_test(each_step_of_compiling_may_be_cancelled),
      cmocka_unit_test(the_background_may_be_struck),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
