/* Implements the runs of whole plans. Two networks are compared in rounds A B B A, so that what
   changes slowly, such as the clock of the processor, counts for both alike. */
#include "tune/network_runs.h"

#include "device/memory/span.h"
#include "runtime/execution_memory.h"
#include "tune/same_results.h"

#include <stdlib.h>

enum { ROUNDS = 10, WINS = 8 };

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
  tn_status s = execution_open(&n->execution, v->executable, b->queue, &b->diag);
  if (s != TN_OK) return s;
  execution_share_scratch(n->execution, &b->scratch);
  return set_inputs(n, b);
}

void network_close(network *n) {
  execution_close(n->execution);
  plan_variant_release(n->variant);
  *n = (network){0};
}

tn_status network_run(network *n, int64_t *ns, diag *d) {
  int64_t start = clock_now_ns();
  tn_status s = execution_run(n->execution, d);
  *ns = clock_now_ns() - start;
  return s;
}

tn_status network_bytes(network *n, uint64_t *bytes, diag *d) {
  tn_status s = execution_scratch_bytes(n->execution, bytes, d);
  for (size_t i = 0; i < executable_buffers(n->variant->executable) && s == TN_OK; i++)
    if (execution_is_bindable(n->execution, i)) *bytes += execution_bytes_of(n->execution, i);
  return s;
}

/* Profiles. */

/** Keeps the shortest time of each step in the last run. */
static void keep_shortest(network *n, int64_t ns[]) {
  execution_step step;
  for (size_t i = 0; execution_step_at(n->execution, i, &step); i++)
    if (!ns[i] || step.end - step.begin < ns[i]) ns[i] = step.end - step.begin;
}

static void sum_steps(network *n, const int64_t ns[], kernel_share shares[]) {
  execution_step step;
  for (size_t i = 0; i < executable_kernels(n->variant->executable); i++)
    shares[i] = (kernel_share){0};
  for (size_t i = 0; execution_step_at(n->execution, i, &step); i++) {
    if (step.kernel == SIZE_MAX) continue;
    kernel_share *s = &shares[step.kernel];
    s->ns += ns[i];
    s->calls += step.times;
    if (ns[i] >= s->step_ns) s->step = i, s->step_ns = ns[i];
  }
}

tn_status network_profile(network *n, int runs, kernel_share shares[], diag *d) {
  const mem *m = n->variant->mem;
  size_t n_steps = executable_steps(n->variant->executable);
  int64_t *ns = mem_calloc(m, n_steps + 1, sizeof *ns), whole;
  if (!ns) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  tn_status s = execution_set_profiling(n->execution, true, d);
  for (int i = 0; i < runs && s == TN_OK; i++) {
    s = network_run(n, &whole, d);
    if (s == TN_OK) keep_shortest(n, ns);
  }
  if (s == TN_OK) sum_steps(n, ns, shares);
  if (s == TN_OK) s = execution_set_profiling(n->execution, false, d);
  mem_free(m, ns, (n_steps + 1) * sizeof *ns);
  return s;
}

/* Comparisons. */

/** Adds the mean time of some runs to *sum. */
static tn_status add_runs(network *n, int64_t runs, double *sum, diag *d) {
  tn_status s = TN_OK;
  int64_t ns;
  for (int64_t i = 0; i < runs && s == TN_OK; i++) {
    s = network_run(n, &ns, d);
    *sum += (double)ns / (double)runs;
  }
  return s;
}

static int compare_numbers(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double x[ROUNDS]) {
  qsort(x, ROUNDS, sizeof *x, compare_numbers);
  return (x[(ROUNDS - 1) / 2] + x[ROUNDS / 2]) / 2;
}

tn_status network_compare(network *before, network *after, network_times *t, diag *d) {
  double a[ROUNDS] = {0}, b[ROUNDS] = {0};
  int64_t once, runs = 1;
  int wins = 0;
  tn_status s = network_run(after, &once, d);
  if (s == TN_OK) s = network_run(before, &once, d);
  if (s == TN_OK && once < least_ns) runs = least_ns / (once + 1) + 1;
  for (int i = 0; i < ROUNDS && s == TN_OK; i++) {
    s = add_runs(before, runs, &a[i], d);
    if (s == TN_OK) s = add_runs(after, runs, &b[i], d);
    if (s == TN_OK) s = add_runs(after, runs, &b[i], d);
    if (s == TN_OK) s = add_runs(before, runs, &a[i], d);
    wins += b[i] < a[i];
  }
  if (s != TN_OK) return s;
  *t = (network_times){median(a) / 2, median(b) / 2, false};
  t->is_faster = wins >= WINS && t->after_ns < t->before_ns;
  return s;
}

/** The elements of an output, to be compared; in the arena. */
static void *read_output(network *n, size_t output, arena *a, size_t *count, diag *d) {
  const executable *e = n->variant->executable;
  size_t buffer = n->variant->outputs[output].buffer;
  dtype t = executable_buffer_at(e, buffer)->dtype;
  uint64_t bytes;
  tn_span span = {0};
  diag_require(d, execution_buffer_bytes(n->execution, buffer, &bytes, d));
  if (bytes) diag_require(d, buffer_span(execution_buffer(n->execution, buffer), &span, d));
  *count = bytes / dtype_bytes(t);
  return read_results(a, &span, t, *count);
}

typedef struct agreement {
  network *a, *b;
  arena arena;
  bool agree;
} agreement;

static void compare_outputs(void *arg) {
  agreement *g = arg;
  const plan_variant *v = g->a->variant;
  diag *d = g->arena.diag;
  for (size_t i = 0; i < v->plan->ports.n_outputs && g->agree; i++) {
    size_t n[2];
    const void *x = read_output(g->a, i, &g->arena, &n[0], d);
    const void *y = read_output(g->b, i, &g->arena, &n[1], d);
    dtype t = executable_buffer_at(v->executable, v->outputs[i].buffer)->dtype;
    g->agree = n[0] == n[1] && same_results(t, y, x, n[0]);
  }
}

tn_status network_agree(network *a, network *b, bool *agree, diag *d) {
  agreement g = {.a = a, .b = b, .agree = true};
  arena_init(&g.arena, a->variant->mem, d);
  tn_status s = diag_catch(d, compare_outputs, &g);
  arena_free(&g.arena);
  *agree = s == TN_OK && g.agree;
  return s;
}
