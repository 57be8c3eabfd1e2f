/* Computes the profile of a run: sums the timestamps of each step over its trips, and evaluates the
   operation and byte counts of each step from the sizes that the run had. */
#include "runtime/run_profile.h"

#include <string.h>

run_profile run_profile_open(arena *a, const executable *p) {
  return (run_profile){
      .p = p,
      .vars = arena_calloc(a, p->n_vars + 1, sizeof(int64_t)),
      .sizes =
          {
              .elements = arena_calloc(a, p->sizes.n_results + 1, sizeof(int64_t)),
              .terms = launch_terms_open(a, p->sizes.n_terms),
              .count_sizes = arena_calloc(a, p->count_sizes.n_results + 1, sizeof(int64_t)),
              .count_terms = launch_terms_open(a, p->count_sizes.n_terms),
          },
  };
}

void run_profile_open_timestamps(run_profile *r, arena *a) {
  size_t n = r->p->n_steps + 1;
  if (r->times.stamps) return;
  r->times.first = arena_calloc(a, n, sizeof(int64_t));
  r->times.busy = arena_calloc(a, n, sizeof(int64_t));
  r->times.count = arena_calloc(a, n, sizeof(int64_t));
  r->times.shift = arena_calloc(a, r->p->queues.n, sizeof(int64_t));
  r->times.seen = arena_calloc(a, 2 * n, sizeof(int64_t));
  r->times.stamps = arena_calloc(a, 2 * n, sizeof(int64_t));
}

/* Runs. */

void run_profile_begin(run_profile *r) {
  r->has_run = true;
  r->has_times = false;
  for (size_t i = 0; r->is_profiled && i < r->p->n_steps; i++)
    r->times.count[i] = r->times.busy[i] = 0;
  for (size_t i = 0; r->is_profiled && i < r->p->queues.n; i++) r->times.shift[i] = INT64_MAX;
}

static size_t queue_of(const run_profile *r, size_t step) {
  return r->p->queues.n > 1 ? r->p->queues.of_step[step] : 0;
}

int64_t run_profile_shift(const run_profile *r, size_t step) {
  return r->times.shift[queue_of(r, step)];
}

void run_profile_add_step(run_profile *r, size_t step) {
  const int64_t *stamps = r->times.stamps + 2 * step, *seen = r->times.seen + 2 * step;
  int64_t *shift = &r->times.shift[queue_of(r, step)];
  for (size_t i = 0; i < 2; i++)
    if (seen[i] - stamps[i] < *shift) *shift = seen[i] - stamps[i];
  run_profile_add_loop(r, step, stamps[0], stamps[1]);
}

void run_profile_add_loop(run_profile *r, size_t step, int64_t begin, int64_t end) {
  if (!r->times.count[step]++) r->times.first[step] = begin;
  r->times.busy[step] += end - begin;
}

/** Brings the times of all steps to the host's clock, which those of loops are by. */
static void shift_steps(run_profile *r) {
  for (size_t i = 0; i < r->p->n_steps; i++)
    if (r->times.count[i] && r->p->steps[i].kind != STEP_LOOP)
      r->times.first[i] += run_profile_shift(r, i);
}

/** Lays out the steps of each loop as if each ran all its trips before the next one began. */
static void lay_out_loop_steps(run_profile *r) {
  for (size_t i = 0; i < r->p->n_steps; i++) {
    int64_t at = r->times.first[i];
    for (size_t k = i + 1; k <= i + r->p->steps[i].n_steps; k += 1 + r->p->steps[k].n_steps) {
      r->times.first[k] = at;
      at += r->times.busy[k];
    }
  }
}

void run_profile_end(run_profile *r, const int64_t vars[], bool succeeded) {
  size_t bytes = r->p->n_vars * sizeof *r->vars;
  r->sizes.is_evaluated = r->sizes.is_evaluated && !memcmp(r->vars, vars, bytes);
  memcpy(r->vars, vars, bytes);
  r->has_times = succeeded && r->is_profiled;
  if (!r->has_times) return;
  shift_steps(r);
  lay_out_loop_steps(r);
}

/* Steps. */

static void evaluate(launch_terms *t, const launch_exprs *c, const int64_t vars[],
                     int64_t results[]) {
  launch_terms_eval(t, c, NULL, c->n_terms, vars);
  for (size_t i = 0; i < c->n_results; i++) results[i] = launch_terms_result(t, c, i);
}

/** Evaluates the sizes of the last run, once; false if there was no run. Those of steps that it
    skipped may have no value. */
static bool evaluate_sizes(run_profile *r) {
  profile_sizes *s = &r->sizes;
  if (r->has_run && !s->is_evaluated) {
    evaluate(&s->terms, &r->p->sizes, r->vars, s->elements);
    evaluate(&s->count_terms, &r->p->count_sizes, r->vars, s->count_sizes);
    s->is_evaluated = true;
  }
  return s->is_evaluated;
}

/** Counts of one trip: a host function or a copy counts the bytes of its arrays, a loop nothing. */
static kernel_counts count_step(const run_profile *r, const executable_step *step) {
  kernel_counts counts = {0, 0};
  const executable *p = r->p;
  if (step->kind == STEP_KERNEL) {
    const executable_kernel_counts *k = &p->kernel_counts[step->program];
    return kernel_counts_evaluate(k->items, k->n_items, r->sizes.count_sizes + k->first);
  }
  bool has_bytes = step->kind == STEP_CUSTOM || step->kind == STEP_COPY;
  for (size_t i = 0; has_bytes && i < step->n_buffers; i++) {
    size_t b = step->buffers[i];
    counts.bytes += (double)r->sizes.elements[b] * (double)dtype_bytes(p->buffers[b].dtype);
  }
  return counts;
}

/** Runs of a step: the product of the trip counts of the loops that contain it; 0 where a guard
    skipped it. */
static uint64_t count_trips(const run_profile *r, size_t i) {
  const executable_step *step = &r->p->steps[i];
  uint64_t times = !executable_skips(r->p, i, r->p->n_segments, r->sizes.elements);
  for (; step->parent != SIZE_MAX; step = &r->p->steps[step->parent]) {
    const executable_step *loop = &r->p->steps[step->parent];
    int64_t trips =
        loop->until == SIZE_MAX ? r->sizes.elements[loop->trips] : r->trips_run[step->parent];
    times *= trips > 0 ? (uint64_t)trips : 0;
  }
  return times;
}

/** When the first step that ran began, as far as step i tells: with several queues any may be it.
 */
static int64_t first_begin(const run_profile *r, size_t i) {
  bool is_any = r->p->queues.n > 1;
  int64_t first = r->times.first[i];
  for (size_t k = is_any ? r->p->n_steps : i; k-- > 0;)
    if (r->times.count[k] && (!is_any || r->times.first[k] < first)) first = r->times.first[k];
  return first;
}

execution_step run_profile_step(run_profile *r, size_t i) {
  const executable_step *step = &r->p->steps[i];
  execution_step out = {
      .name = step->name, .kernel = SIZE_MAX, .n_steps = step->n_steps, .times = 1};
  out.device = r->p->targets[step->device]->device->name;
  if (step->kind == STEP_KERNEL) out.kernel = step->program;
  out.library = executable_step_library(r->p, i);
  if (evaluate_sizes(r)) {
    out.times = count_trips(r, i);
    if (out.times) out.work = count_step(r, step);
  }
  out.work.operations *= (double)out.times;
  out.work.bytes *= (double)out.times;
  if (!r->has_times || !r->times.count[i]) return out;
  out.begin = r->times.first[i] - first_begin(r, i);
  out.end = out.begin + r->times.busy[i];
  return out;
}
