/* Implements the runs of whole plans. Two networks are compared in rounds A B B A, so that what
   changes slowly, such as the clock of the processor, counts for both alike; of a round their
   shortest runs count, which other processes disturb least. */
#include "tune/network_runs.h"

#include "device/memory/span.h"
#include "runtime/execution_memory.h"
#include "tune/contest.h"
#include "tune/same_results.h"

#include <math.h>
#include <stdlib.h>

/** The least time that is measured at once. */
static const int64_t least_ns = 5000000;

static tn_status set_inputs(network *n, tn_binding *b) {
  const plan_variant *v = n->variant, *bound = b->variant;
  tn_status s = TN_OK;
  for (size_t i = 0; i < v->n_values && s == TN_OK; i++)
    s = execution_set_buffer(n->execution, v->values[i].buffer, v->values[i].memory, &b->diag);
  for (size_t i = 0; i < b->plan->ports.n_inputs && s == TN_OK; i++) {
    size_t from = bound->inputs[i].buffer, to = v->inputs[i].buffer;
    if (from != SIZE_MAX && to != SIZE_MAX)
      s = execution_set_buffer(n->execution, to, execution_buffer(b->execution, from), &b->diag);
  }
  for (size_t i = 0; i < executable_vars(v->executable) && s == TN_OK; i++)
    if (v->fact_of_var[i] != SIZE_MAX)
      s = execution_set_var(n->execution, i, b->facts[v->fact_of_var[i]], &b->diag);
  return s;
}

tn_status network_open(network *n, tn_binding *b, plan_variant *v) {
  *n = (network){.variant = v};
  tn_status s =
      execution_open(&n->execution, v->executable, &(execution_source){b->queue, NULL}, &b->diag);
  if (s != TN_OK) return s;
  execution_share_scratch(n->execution, &b->scratch);
  return set_inputs(n, b);
}

void network_close(network *n) {
  execution_close(n->execution);
  plan_variant_release(n->variant);
  *n = (network){0};
}

int64_t network_run(network *n, diag *d) {
  int64_t start = clock_now_ns();
  diag_require(d, execution_run(n->execution, d));
  return clock_now_ns() - start;
}

uint64_t network_bytes(network *n, diag *d) {
  uint64_t bytes;
  diag_require(d, execution_scratch_bytes(n->execution, &bytes, d));
  for (size_t i = 0; i < executable_buffers(n->variant->executable); i++)
    if (execution_is_bindable(n->execution, i)) bytes += execution_bytes_of(n->execution, i);
  return bytes;
}

/* Profiles. */

/** Keeps the shortest time of each step in the last run. */
static void keep_shortest(network *n, int64_t ns[]) {
  execution_step step;
  for (size_t i = 0; execution_step_at(n->execution, i, &step); i++)
    if (!ns[i] || step.end - step.begin < ns[i]) ns[i] = step.end - step.begin;
}

kernel_share *network_profile(network *n, int runs, arena *a) {
  const executable *e = n->variant->executable;
  execution_step step;
  int64_t *ns = arena_calloc(a, executable_steps(e) + 1, sizeof *ns);
  kernel_share *shares = arena_calloc(a, executable_kernels(e) + 1, sizeof *shares);
  diag_require(a->diag, execution_set_profiling(n->execution, true, a->diag));
  for (int i = 0; i < runs; i++) {
    network_run(n, a->diag);
    keep_shortest(n, ns);
  }
  for (size_t i = 0; execution_step_at(n->execution, i, &step); i++) {
    if (step.kernel == SIZE_MAX) continue;
    kernel_share *s = &shares[step.kernel];
    s->ns += ns[i];
    s->calls += step.times;
    if (ns[i] >= s->step_ns) s->step = i, s->step_ns = ns[i];
  }
  diag_require(a->diag, execution_set_profiling(n->execution, false, a->diag));
  return shares;
}

/* Comparisons. */

/** The shortest time of some runs, and of those before. */
static double shortest_run(network *n, int64_t runs, double before, diag *d) {
  for (int64_t i = 0; i < runs; i++) {
    double ns = (double)network_run(n, d);
    if (ns < before) before = ns;
  }
  return before;
}

static int compare_numbers(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double x[CONTEST_ROUNDS]) {
  qsort(x, CONTEST_ROUNDS, sizeof *x, compare_numbers);
  return (x[(CONTEST_ROUNDS - 1) / 2] + x[CONTEST_ROUNDS / 2]) / 2;
}

network_times network_compare(network *before, network *after, diag *d) {
  double a[CONTEST_ROUNDS], b[CONTEST_ROUNDS];
  int wins = 0;
  network_run(after, d);
  int64_t once = network_run(before, d);
  int64_t runs = once < least_ns ? least_ns / (once + 1) + 1 : 1;
  for (int i = 0; i < CONTEST_ROUNDS; i++) {
    a[i] = shortest_run(before, runs, HUGE_VAL, d);
    b[i] = shortest_run(after, runs, HUGE_VAL, d);
    b[i] = shortest_run(after, runs, b[i], d);
    a[i] = shortest_run(before, runs, a[i], d);
    wins += b[i] < a[i];
  }
  network_times t = {median(a), median(b), false};
  t.is_faster = wins >= CONTEST_WINS && t.after_ns < t.before_ns;
  return t;
}

/** The elements of an output, to be compared; in the arena. */
static void *read_output(network *n, size_t output, arena *a, size_t *count) {
  size_t buffer = n->variant->outputs[output].buffer;
  dtype t = executable_buffer_at(n->variant->executable, buffer)->dtype;
  uint64_t bytes;
  tn_span span = {0};
  diag *d = a->diag;
  diag_require(d, execution_buffer_bytes(n->execution, buffer, &bytes, d));
  if (bytes) diag_require(d, buffer_span(execution_buffer(n->execution, buffer), &span, d));
  *count = bytes / dtype_bytes(t);
  return read_results(a, &span, t, *count);
}

bool network_agree(network *a, network *b, arena *scratch) {
  const plan_variant *v = a->variant;
  bool agree = true;
  for (size_t i = 0; i < v->plan->ports.n_outputs && agree; i++) {
    size_t n[2];
    arena_mark here = arena_save(scratch);
    const void *x = read_output(a, i, scratch, &n[0]), *y = read_output(b, i, scratch, &n[1]);
    dtype t = executable_buffer_at(v->executable, v->outputs[i].buffer)->dtype;
    agree = n[0] == n[1] && same_results(t, y, x, n[0]);
    arena_rewind(scratch, here);
  }
  return agree;
}
