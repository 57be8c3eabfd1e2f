/* Tests the cost model of kernels (target/kernel_cost.h) on recorded times (bench/corpus): of the
   recorded schedules of each kernel, the one that a search prefers today takes about as long as
   the fastest. Recordings of kernels that the compiler schedules or writes in another way by now
   are left out, and few of them may be. No time is measured here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/corpus/corpus.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RECORDING TENON_SOURCE_DIR "/bench/corpus/sapphire-rapids.txt"

/** Bars of the regret, the time of the schedule that a search prefers over the shortest. It is 1.13
    for 9 of 10 kernels on Sapphire Rapids. */
static const double median_bar = 1.05, ninth_bar = 1.15, large_regret = 1.15;
static const double kept_share = 0.9, near_error = 1.25;

typedef struct tally {
  size_t n, kept, near; /* schedules */
  double *regrets;      /* of kernels */
  size_t n_regrets;
  double correlation; /* sum over kernels with three schedules or more */
  size_t n_correlated;
} tally;

static int compare_numbers(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/** The number of values below one, those that are equal counted by half. */
static double rank_of(const double *x, size_t n, size_t i) {
  double rank = 0;
  for (size_t k = 0; k < n; k++) rank += x[k] < x[i] ? 1 : x[k] == x[i] && k != i ? 0.5 : 0;
  return rank;
}

/** Spearman's rank correlation. */
static double correlation(const double *x, const double *y, size_t n) {
  double xy = 0, xx = 0, yy = 0, mean = (double)(n - 1) / 2;
  for (size_t i = 0; i < n; i++) {
    double a = rank_of(x, n, i) - mean, b = rank_of(y, n, i) - mean;
    xy += a * b;
    xx += a * a;
    yy += b * b;
  }
  return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : 0;
}

/** The predicted cost of a recorded schedule; 0: its code is another one today. */
static kernel_cost predict(const corpus *c, const recorded_kernel *k, const recorded_schedule *s) {
  diag d = {0};
  corpus_schedule now;
  ir *g = ir_new(&mem_system, &d, false);
  assert_non_null(g);
  bool is_same =
      corpus_schedule_of(g, k, s->decisions, &c->options, &now, NULL) && !strcmp(now.hash, s->hash);
  ir_free(g);
  return is_same ? now.cost : (kernel_cost){0};
}

/** Predicts a kernel's schedules, and adds up how near their times are; one is preferred by what
    searches compare, which counts the balance of threads too. */
static void check_kernel(const corpus *c, const recorded_kernel *k, arena *a, tally *t) {
  size_t n = 0, chosen = 0, best = 0;
  double *ns = arena_alloc(a, k->schedules.n * sizeof *ns);
  double *predicted = arena_alloc(a, k->schedules.n * sizeof *predicted);
  for (size_t i = 0; i < k->schedules.n; i++) {
    const recorded_schedule *s = &k->schedules.at[i];
    kernel_cost now = predict(c, k, s);
    if (!now.total) continue;
    t->near += now.total <= near_error * s->ns && s->ns <= near_error * now.total;
    ns[n] = s->ns;
    predicted[n++] = kernel_cost_searched(&now);
  }
  t->n += k->schedules.n;
  t->kept += n;
  if (n < 2) return;
  for (size_t i = 1; i < n; i++) {
    if (predicted[i] < predicted[chosen]) chosen = i;
    if (ns[i] < ns[best]) best = i;
  }
  t->regrets[t->n_regrets++] = ns[chosen] / ns[best];
  if (ns[chosen] > large_regret * ns[best])
    printf("%s %s: regret %.2f, %.0f ns instead of %.0f\n", k->network, k->name,
           ns[chosen] / ns[best], ns[chosen], ns[best]);
  if (n < 3) return;
  t->correlation += correlation(predicted, ns, n);
  t->n_correlated++;
}

static char *read_file(arena *a, const char *path) {
  char block[1 << 16];
  str text = str_new(a);
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;) str_add_bytes(&text, block, n);
  fclose(f);
  return text.at;
}

static void schedules_that_the_model_prefers_are_fast(void **state) {
  (void)state;
  diag d = {0};
  arena a;
  tally t = {0};
  arena_init(&a, &mem_system, &d);
  corpus c = corpus_read(&a, read_file(&a, RECORDING));
  assert_true(c.kernels.n > 0);
  t.regrets = arena_calloc(&a, c.kernels.n, sizeof *t.regrets);
  for (size_t i = 0; i < c.kernels.n; i++) check_kernel(&c, &c.kernels.at[i], &a, &t);
  assert_true((double)t.kept >= kept_share * (double)t.n);
  qsort(t.regrets, t.n_regrets, sizeof *t.regrets, compare_numbers);
  double median = t.regrets[t.n_regrets / 2], ninth = t.regrets[t.n_regrets * 9 / 10];
  printf("%s: %zu kernels; %zu of %zu schedules remain; regret %.3f, 9 of 10 below %.3f; "
         "%.0f %% within 25 %%; rank correlation in a kernel %.3f\n",
         c.machine, t.n_regrets, t.kept, t.n, median, ninth, 100 * (double)t.near / (double)t.kept,
         t.correlation / (double)t.n_correlated);
  assert_true(median <= median_bar);
  assert_true(ninth <= ninth_bar);
  arena_free(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(schedules_that_the_model_prefers_are_fast)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
