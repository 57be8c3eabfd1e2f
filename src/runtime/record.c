#include "runtime/record.h"

#include "runtime/inside.h"

#include <string.h>

record record_open(arena *a, const executable *p) {
  return (record){
      .p = p,
      .ran = arena_calloc(a, p->n_vars + 1, sizeof(int64_t)),
      .told = arena_calloc(a, p->sizes.n_results + 1, sizeof(int64_t)),
      .room = arena_calloc(a, p->sizes.n_steps + 1, sizeof(int64_t)),
      .work_sizes = arena_calloc(a, p->work_sizes.n_results + 1, sizeof(int64_t)),
      .work_room = arena_calloc(a, p->work_sizes.n_steps + 1, sizeof(int64_t)),
  };
}

void record_open_stamps(record *r, arena *a) {
  size_t n = r->p->n_steps + 1;
  if (r->stamps) return;
  r->first = arena_calloc(a, n, sizeof *r->first);
  r->busy = arena_calloc(a, n, sizeof *r->busy);
  r->times = arena_calloc(a, n, sizeof *r->times);
  r->stamps = arena_calloc(a, 2 * n, sizeof *r->stamps);
}

/* Runs. */

void record_begin(record *r, const int64_t values[]) {
  size_t bytes = r->p->n_vars * sizeof *r->ran;
  r->is_told = r->is_told && !memcmp(r->ran, values, bytes);
  memcpy(r->ran, values, bytes);
  r->has_run = true;
  r->has_stamps = false;
  for (size_t i = 0; r->is_profiled && i < r->p->n_steps; i++) r->times[i] = r->busy[i] = 0;
}

void record_step_ran(record *r, size_t step, int64_t begin, int64_t end) {
  if (!r->times[step]++) r->first[step] = begin;
  r->busy[step] += end - begin;
}

/** The steps of a loop as if each ran all its trips before the next one began. */
static void lay_out_times(record *r) {
  for (size_t i = 0; i < r->p->n_steps; i++) {
    int64_t at = r->first[i];
    for (size_t k = i + 1; k <= i + r->p->steps[i].n_steps; k += 1 + r->p->steps[k].n_steps) {
      r->first[k] = at;
      at += r->busy[k];
    }
  }
}

void record_end(record *r, bool done) {
  r->has_stamps = done && r->is_profiled;
  if (r->has_stamps) lay_out_times(r);
}

/* Steps. */

/** Finds the sizes of the last run; false before any. */
static bool find_told(record *r) {
  const executable *p = r->p;
  diag d = {0};
  if (r->has_run && !r->is_told)
    r->is_told = launch_eval(&p->sizes, r->ran, r->room, r->told, &d) == TN_OK &&
                 launch_eval(&p->work_sizes, r->ran, r->work_room, r->work_sizes, &d) == TN_OK;
  return r->is_told;
}

static work_amount work_of_step(const record *r, const executable_step *step) {
  work_amount w = {0, 0};
  const executable *p = r->p;
  if (step->kind == STEP_KERNEL) {
    const executable_work *x = &p->works[step->program];
    return work_amount_of(x->items, x->n_items, r->work_sizes + x->first);
  }
  for (size_t i = 0; step->kind == STEP_CUSTOM && i < step->n_buffers; i++) {
    size_t b = step->buffers[i];
    w.bytes += (double)r->told[b] * (double)dtype_bytes(p->buffers[b].dtype);
  }
  return w;
}

/** How often a step ran. */
static uint64_t times_of(const record *r, const executable_step *step) {
  uint64_t times = 1;
  for (; step->around != SIZE_MAX; step = &r->p->steps[step->around]) {
    int64_t trips = r->told[r->p->steps[step->around].trips];
    times *= trips > 0 ? (uint64_t)trips : 0;
  }
  return times;
}

execution_step record_step(record *r, size_t i) {
  const executable_step *step = &r->p->steps[i];
  execution_step out = {
      .name = step->name, .kernel = SIZE_MAX, .n_steps = step->n_steps, .times = 1};
  if (step->kind == STEP_KERNEL) out.kernel = step->program;
  if (find_told(r)) {
    out.work = work_of_step(r, step);
    out.times = times_of(r, step);
  }
  out.work.operations *= (double)out.times;
  out.work.bytes *= (double)out.times;
  if (!r->has_stamps) return out;
  out.begin = r->first[i] - r->first[0];
  out.end = out.begin + r->busy[i];
  return out;
}
