/* Profiles a binding: runs it with step times on and derives, for each step, the time in the run
   of median length, the rates, and the share of the nearer roof of the roofline model. Writes
   tables and JSON. */
#include "cli/measure/step_profile.h"

#include "base/thread.h"
#include "cli/core/text_format.h"
#include "cli/measure/machine_peak.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_MORE = 10 };
static const int64_t enough_ns = 1000000000;

/* Running. */

void profile_start(profile *p, tn_binding *b, bool steps) {
  p->binding = b;
  command_check_binding(p->c, tn_binding_profile(b, steps), b);
}

void profile_add_phase(profile *p, const char *name, int64_t begin) {
  vec_push(&p->c->arena, &p->phases, (profile_phase){name, {begin, clock_now_ns()}});
}

void profile_run_once(profile *p) {
  arena *a = &p->c->arena;
  profile_run r = {.time.begin = clock_now_ns()};
  VEC(time_interval) steps = {0};
  tn_step step = TN_STEP_INIT;
  command_check_binding(p->c, tn_binding_run(p->binding), p->binding);
  r.time.end = clock_now_ns();
  for (size_t i = 0; tn_binding_step(p->binding, i, &step) == TN_OK; i++)
    vec_push(a, &steps, (time_interval){step.begin, step.end});
  r.steps = steps.at;
  vec_push(a, &p->runs, r);
}

void profile_run_more(profile *p) {
  int64_t start = clock_now_ns();
  int left = RUNS_MORE;
  do profile_run_once(p);
  while (--left && clock_now_ns() - start < enough_ns);
}

/* Summary. */

static double ms_of(time_interval t) { return (double)(t.end - t.begin) / 1e6; }

static int compare_runs(const void *a, const void *b) {
  double x = ms_of((*(const profile_run *const *)a)->time),
         y = ms_of((*(const profile_run *const *)b)->time);
  return (x > y) - (x < y);
}

/** The run of median length, without the first run if there are more. Steps and the whole are
    taken from one run: medians of each by itself would contradict each other where a machine that
    does other work lengthens runs at different steps. */
static const profile_run *median_run(const profile *p) {
  size_t first = p->runs.n > 1, n = p->runs.n - first;
  const profile_run **runs = arena_alloc(&p->c->arena, n * sizeof *runs);
  for (size_t i = 0; i < n; i++) runs[i] = &p->runs.at[first + i];
  qsort(runs, n, sizeof *runs, compare_runs);
  return runs[(n - 1) / 2];
}

static void set_rates(const profile *p, profile_step *s) {
  const tn_step *f = &s->facts;
  s->gflops = f->operations > 0 && s->ms > 0 ? f->operations / s->ms / 1e6 : NAN;
  s->gbps = f->bytes > 0 && s->ms > 0 ? f->bytes / s->ms / 1e6 : NAN;
  bool has_peak = !machine_peak_why_none(p->c, &p->used, f->library);
  double compute = has_peak ? s->gflops / p->peak_gflops : NAN, memory = s->gbps / p->peak_gbps;
  s->is_memory = !(compute >= memory);
  s->peak_fraction = s->is_memory ? memory : compute;
  if (isnan(s->peak_fraction))
    s->is_memory = isnan(compute), s->peak_fraction = fmax(compute, memory);
}

/** The time of a step without that of the steps in it, so that shares add up to the whole. */
static double own_ms(const profile *p, size_t i) {
  const profile_step *s = &p->steps.at[i];
  double ms = s->ms;
  for (size_t k = i + 1; k <= i + s->facts.steps && k < p->steps.n;) {
    ms -= p->steps.at[k].ms;
    k += 1 + p->steps.at[k].facts.steps;
  }
  return fmax(ms, 0);
}

static void measure_peaks(profile *p) {
  arena *a = &p->c->arena;
  const tn_context_info *used = &p->used;
  tn_processor_info processor = TN_PROCESSOR_INFO_INIT;
  command_check_status(p->c, tn_processor_get(p->c->context, &processor));
  p->no_peak = machine_peak_why_none(p->c, used, NULL);
  p->peak_gflops = p->peak_gbps = NAN;
  if (p->no_peak) return;
  p->peak_gflops = machine_peak_gflops(used->threads, used->vector_bytes, a);
  p->peak_gbps = machine_peak_bandwidth(used->threads, (double)processor.last_cache_bytes, a);
}

void profile_summarise(profile *p) {
  arena *a = &p->c->arena;
  p->used = command_check_context(p->c);
  measure_peaks(p);
  const profile_run *run = median_run(p);
  p->ms = ms_of(run->time);
  profile_step s = {.facts = TN_STEP_INIT};
  size_t outer = 0; /* index of the next step outside of all loops */
  for (size_t i = 0; tn_binding_step(p->binding, i, &s.facts) == TN_OK; i++) {
    s.ms = ms_of(run->steps[i]);
    if (i == outer) {
      p->steps_ms += s.ms; /* the time of a loop includes that of its steps */
      outer += 1 + s.facts.steps;
    }
    set_rates(p, &s);
    vec_push(a, &p->steps, s);
  }
  for (size_t i = 0; i < p->steps.n; i++)
    p->steps.at[i].share = p->steps_ms > 0 ? own_ms(p, i) / p->steps_ms : 0;
}

/* Output. */

const char *profile_peak_text(arena *a, const profile_step *s) {
  if (isnan(s->peak_fraction)) return "-";
  return arena_printf(a, "%.0f %% %s", 100 * s->peak_fraction, s->is_memory ? "memory" : "compute");
}

static const char *time_column(arena *a, double ms) {
  enum { WIDE = 10 };
  const char *text = text_time(a, ms);
  size_t n = text_columns(text);
  return arena_printf(a, "%*s%s", n < WIDE ? (int)(WIDE - n) : 0, "", text);
}

void profile_print(const profile *p) {
  arena *a = &p->c->arena;
  printf("%5s %6s %10s %7s %8s %7s  %-13s %s\n", "step", "kernel", "time", "share", "GFLOP/s",
         "GB/s", "of peak", "computes");
  for (size_t i = 0; i < p->steps.n; i++) {
    const profile_step *s = &p->steps.at[i];
    const char *kernel = s->facts.kernel < 0 ? "-" : arena_printf(a, "%lld", s->facts.kernel + 1LL);
    printf("%5zu %6s %s %5.1f %% %8s %7s  %-13s %s%s\n", i + 1, kernel, time_column(a, s->ms),
           100 * s->share, text_rate(a, s->gflops), text_rate(a, s->gbps), profile_peak_text(a, s),
           text_escape(a, s->facts.name),
           s->facts.times == 1 ? ""
                               : arena_printf(a, " (%s)", text_count(a, s->facts.times, "time")));
  }
  size_t counted = p->runs.n - (p->runs.n > 1);
  printf("all run on %s, queue compute\n", p->used.device);
  printf("steps take %s of a run's %s, the median of %s\n", text_time(a, p->steps_ms),
         text_time(a, p->ms), text_count(a, counted, "run"));
  if (p->no_peak)
    printf("the peaks are unknown: %s\n", p->no_peak);
  else
    printf("the measured peaks are %s GFLOP/s and %s GB/s\n", text_rate(a, p->peak_gflops),
           text_rate(a, p->peak_gbps));
}

static json_t *json_step(const profile *p, const profile_step *s) {
  json_t *kernel = s->facts.kernel < 0 ? json_null() : json_integer(s->facts.kernel + 1);
  return json_pack("{s:o, s:o, s:f, s:f, s:f, s:f, s:o, s:o, s:o, s:s, s:I, s:I}", "name",
                   text_json(&p->c->arena, s->facts.name), "kernel", kernel, "ms", s->ms, "share",
                   s->share, "operations", s->facts.operations, "bytes", s->facts.bytes, "gflops",
                   text_json_number(s->gflops), "gbps", text_json_number(s->gbps), "peak_fraction",
                   text_json_number(s->peak_fraction), "peak", s->is_memory ? "memory" : "compute",
                   "steps", (json_int_t)s->facts.steps, "times", (json_int_t)s->facts.times);
}

json_t *profile_json(const profile *p) {
  json_t *steps = json_array();
  for (size_t i = 0; i < p->steps.n; i++)
    json_array_append_new(steps, json_step(p, &p->steps.at[i]));
  return json_pack("{s:I, s:f, s:f, s:o, s:o, s:o}", "runs",
                   (json_int_t)(p->runs.n - (p->runs.n > 1)), "ms", p->ms, "steps_ms", p->steps_ms,
                   "peak_gflops", text_json_number(p->peak_gflops), "peak_gbps",
                   text_json_number(p->peak_gbps), "steps", steps);
}
