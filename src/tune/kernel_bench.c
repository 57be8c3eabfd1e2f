/* Implements the contest. The two run in rounds A B B A, so that what changes slowly, such as the
   clock of the processor, counts for both alike. */
#include "tune/kernel_bench.h"

#include "tune/contest.h"

/** The share of the incumbent's time that a faster schedule takes at most; and that from which on a
    first measurement is enough. */
static const double faster_share = 0.98, far_slower_share = 1.5;

/** The least time of a measurement. */
static const double least_ns = 2e6;

/** The number of calls that take long enough to be measured. */
static int64_t count_calls(kernel_trial *k, const trial_program *p) {
  int64_t n = 1;
  while (kernel_trial_time(k, p, n) < least_ns && n < INT32_MAX) n *= 2;
  return n;
}

static void run_rounds(kernel_trial *k, const trial_program *a, const trial_program *b,
                       bench_result *r) {
  int64_t n = count_calls(k, a);
  int wins = 0, losses = 0;
  double first = kernel_trial_time(k, a, n), other = kernel_trial_time(k, b, n);
  *r = (bench_result){BENCH_SLOWER, first / (double)n, other / (double)n};
  if (other > far_slower_share * first) return;
  while (wins < CONTEST_WINS && losses <= CONTEST_ROUNDS - CONTEST_WINS) {
    double before = kernel_trial_time(k, a, n), after = kernel_trial_time(k, b, n);
    after += kernel_trial_time(k, b, n);
    before += kernel_trial_time(k, a, n);
    bool is_win = after <= faster_share * before;
    wins += is_win;
    losses += !is_win;
    if (before / 2 < r->incumbent_ns * (double)n) r->incumbent_ns = before / 2 / (double)n;
    if (after / 2 < r->candidate_ns * (double)n) r->candidate_ns = after / 2 / (double)n;
  }
  if (wins == CONTEST_WINS) r->verdict = BENCH_FASTER;
}

typedef struct contest {
  kernel_trial *k;
  trial_program programs[2]; /* incumbent, candidate */
  bench_result *result;
} contest;

static void run_both(void *arg) {
  contest *c = arg;
  const trial_program *a = &c->programs[0], *b = &c->programs[1];
  kernel_trial_prepare(c->k, c->programs, 2);
  kernel_trial_agrees(c->k, a);
  *c->result = (bench_result){.verdict = BENCH_WRONG};
  if (kernel_trial_agrees(c->k, b)) run_rounds(c->k, a, b, c->result);
}

static void run_incumbent(void *arg) {
  contest *c = arg;
  kernel_trial_prepare(c->k, c->programs, 1);
  kernel_trial_agrees(c->k, &c->programs[0]);
}

tn_status kernel_bench_compare(kernel_trial *k, tn_program *incumbent, tn_program *candidate,
                               bench_result *r, diag *d) {
  contest c = {.k = k, .programs = {{incumbent, NULL}, {candidate, NULL}}, .result = r};
  tn_status s = diag_catch(d, run_both, &c);
  if (s == TN_OK || s == TN_ERR_MEMORY) return s;
  *r = (bench_result){.verdict = BENCH_FAILED};
  return diag_catch(d, run_incumbent, &c);
}
