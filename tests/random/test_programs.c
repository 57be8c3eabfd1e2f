/* Runs random programs against the public interface and compares all that they read with a model
   (programs/value.h): states, views, assigns, scopes, host functions, and plans with dynamic sizes,
   run at once or started asynchronously. Elements are i32, so all must be equal.

     test_programs [--seed=N] [--long] [--opencl | --cuda]

   TENON_SEED: the first program's seed (program i has seed TENON_SEED + i). TENON_PROGRAMS: number
   of programs (default USUAL; 50 times as many with --long or TENON_LONG). TENON_PRINT: print each
   step when it is made. Without TENON_SEED the seed is random for many programs, and --seed for
   few.

   One program in ON_CPU is compiled. The others run in the interpreter of tests/backend, which
   takes a hundredth of the time: most faults found here concern the order of reads and writes.

   --opencl: all programs, of which there are fewer, run on the first OpenCL device; without one,
   they are skipped (77). */
#include "../backend/ref.h"
#include "programs/program.h"
#include "suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { USUAL = 600, TIMES_LONG = 50, ON_CPU = 64, MOST_STEPS = 60, MOST_FAILURES = 5 };
enum { USUAL_OTHER = 6, SKIPPED = 77 };
enum { MOST_HANDLES = 1000, MOST_STATES = 200, MOST_PLANS = 200 };

typedef struct suite {
  size_t programs, failures;
  size_t covered[COVERAGE_LIMIT];
  bool is_long, prints;
  const char *device; /* of all programs; NULL: REF and the CPU */
  uint64_t seed;      /* 0: none given */
} suite;

/* Steps. */

static void make_view(program *p) {
  handle *of = pick(p, is_view);
  if (of) add_handle(p, random_view(p, of));
}

static void read_random(program *p) {
  handle *h = pick(p, is_closed);
  if (h) read_handle(p, h);
}

static const struct {
  void (*take)(program *p);
  unsigned weight;
} steps[] = {{make_state, 7},   {make_view, 12},     {add_expression, 20}, {assign_random, 20},
             {write_random, 3}, {read_random, 9},    {realize_some, 7},    {begin_scope, 5},
             {end_scope, 4},    {own_or_release, 3}, {compile_plan, 7},    {run_plan, 9},
             {free_plan, 1},    {write_by_host, 4},  {start_run, 5},       {finish_run, 5},
             {lose_state, 2}};

static void take_step(program *p) {
  size_t all = 0, at = 0;
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) all += steps[i].weight;
  size_t which = rng_below(&p->r, all);
  if (!p->n_states) which = 0;
  while (which >= steps[at].weight) which -= steps[at++].weight;
  steps[at].take(p);
}

/* Programs. */

/** Seeds each step separately, so that a step can be left out. */
static void set_numbers(program *p, size_t step) { p->r.state = rng_mix(p->seed * 1000003 + step); }

static void finish(program *p) {
  set_numbers(p, MOST_STEPS);
  while (p->depth) end_scope(p);
  finish_all_runs(p);
  run_all_plans(p);
  for (size_t i = 0; i < p->n_handles; i++) read_handle(p, &p->handles[i]);
  count_plans(p);
}

static const char *device_name(const suite *s, uint64_t seed) {
  if (s->device) return s->device;
  return seed % ON_CPU ? "REF" : "CPU";
}

static void open_program(program *p, const suite *s, uint64_t seed, size_t *covered) {
  tn_open_desc d = TN_OPEN_DESC_INIT;
  bool on_cpu = seed % ON_CPU == 0 && !s->device;
  d.device = device_name(s, seed);
  *p = (program){.seed = seed, .covered = covered, .may_map = on_cpu, .prints = s->prints};
  p->context = tn_open(&d);
  p->handles = model_alloc(&p->memory, MOST_HANDLES, sizeof *p->handles);
  p->states = model_alloc(&p->memory, MOST_STATES, sizeof *p->states);
  p->plans = model_alloc(&p->memory, MOST_PLANS, sizeof *p->plans);
}

static void run_steps(program *p, const bool skipped[]) {
  set_numbers(p, MOST_STEPS + 1);
  size_t n = 5 + rng_below(&p->r, MOST_STEPS - 5);
  p->has_hosts = rng_chance(&p->r, 50);
  for (size_t i = 0; i < n; i++) {
    set_numbers(p, i);
    if (!skipped[i]) take_step(p);
  }
  finish(p);
}

/** Runs a program; false if it fails, which is then left in `p`. */
static bool run_program(program *p, const suite *s, uint64_t seed, const bool skipped[],
                        size_t *covered) {
  open_program(p, s, seed, covered);
  if (setjmp(p->failed))
    cancel_runs(p);
  else
    run_steps(p, skipped);
  const char *wrong = tn_close(p->context) == TN_OK ? check_destroyed(p) : "close failed";
  if (wrong && !*p->failure) snprintf(p->failure, sizeof p->failure, "%s", wrong);
  return !*p->failure;
}

/* Failures. */

static void tell(const suite *s, const program *p) {
  printf("FAILED: %s\non %s, after\n%s", p->failure, device_name(s, p->seed), p->text);
  fflush(stdout);
}

/** Drops all steps without which the program still fails. */
static void shrink(const suite *s, uint64_t seed) {
  static program p;
  size_t ignored[COVERAGE_LIMIT];
  bool skipped[MOST_STEPS] = {false};
  suite quiet = *s;
  quiet.prints = false;
  for (size_t left = 1; left;) {
    left = 0;
    for (size_t i = MOST_STEPS; i-- > 0;) {
      if (skipped[i]) continue;
      skipped[i] = true;
      bool fine = run_program(&p, &quiet, seed, skipped, ignored);
      model_free(&p.memory);
      skipped[i] = !fine;
      left += !fine;
    }
  }
  run_program(&p, &quiet, seed, skipped, ignored);
  tell(s, &p);
  model_free(&p.memory);
}

static void check_program(suite *s, uint64_t seed) {
  static program p;
  const bool skipped[MOST_STEPS] = {false};
  snprintf(suite_running, sizeof suite_running, "\ncrashed at TENON_SEED=%llu TENON_PROGRAMS=1\n",
           (unsigned long long)seed);
  if (run_program(&p, s, seed, skipped, s->covered)) {
    model_free(&p.memory);
    return;
  }
  s->failures++;
  printf("again: TENON_SEED=%llu TENON_PROGRAMS=1 random_programs\nFAILED: %s\nsmaller, ",
         (unsigned long long)seed, p.failure);
  fflush(stdout);
  model_free(&p.memory);
  shrink(s, seed);
}

/* All. */

static const char *const coverage_texts[] = {
#define COVERAGE_TEXT(name, text) text,
    COVERAGE_LIST(COVERAGE_TEXT)
#undef COVERAGE_TEXT
};

/** Checks that the programs covered everything in COVERAGE_LIST. */
static bool check_coverage(const suite *s) {
  bool fine = true;
  for (size_t i = 0; i < COVERAGE_LIMIT; i++) {
    printf("%8zu %s\n", s->covered[i], coverage_texts[i]);
    fine &= s->covered[i] >= s->programs / 40;
  }
  if (!fine) printf("some of these are too few: the programs do not cover them\n");
  return fine;
}

static uint64_t usual_seed(const suite *s) {
  if (s->seed && !s->is_long) return s->seed;
  return (uint64_t)time(NULL) * 1000003 % 1000000000 + 1;
}

static void check_arguments(suite *s, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    s->is_long |= !strcmp(argv[i], "--long");
    if (!strcmp(argv[i], "--opencl")) s->device = "OPENCL";
    if (!strcmp(argv[i], "--cuda")) s->device = "CUDA";
    if (!strncmp(argv[i], "--seed=", 7)) s->seed = strtoull(argv[i] + 7, NULL, 10);
  }
}

static bool is_absent(tn_context *c, const char *name) {
  tn_failure f;
  tn_device *v;
  if (!tn_device_open(c, name, &v, &f)) return false;
  printf("SKIPPED: %s\n", f.text);
  return true;
}

int main(int argc, char **argv) {
  static suite s;
  s.is_long = getenv("TENON_LONG") != NULL;
  s.prints = getenv("TENON_PRINT") != NULL;
  check_arguments(&s, argc, argv);
  suite_catch_crashes();
  uint64_t first = suite_number("TENON_SEED", usual_seed(&s));
  size_t usual = s.device ? USUAL_OTHER : USUAL;
  s.programs = (size_t)suite_number("TENON_PROGRAMS", s.is_long ? usual * TIMES_LONG : usual);
  printf("TENON_SEED=%llu, %zu programs\n", (unsigned long long)first, s.programs);
  fflush(stdout);
  tn_context *c = tn_open(NULL); /* keeps the devices that the programs share */
  if (tn_backend_add(c, &ref_backend) != TN_OK) return 1;
  if (s.device && is_absent(c, s.device)) return SKIPPED;
  for (size_t i = 0; i < s.programs && s.failures < MOST_FAILURES; i++)
    check_program(&s, first + i);
  bool covered = s.failures || s.programs < USUAL || check_coverage(&s);
  printf("%zu programs, %zu failures\n", s.programs, s.failures);
  return tn_close(c) != TN_OK || s.failures || !covered;
}
