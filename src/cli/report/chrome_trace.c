/* Builds "complete" events (phase X) of the Trace Event Format: one track of the command's phases
   and runs, one of the device's steps. Times are in microseconds since the first phase. */
#include "cli/report/chrome_trace.h"

#include "base/file.h"
#include "cli/core/text_format.h"

#include <stdlib.h>
#include <string.h>

enum { TRACK_COMMAND = 1, TRACK_STEPS = 2 };

static json_t *new_event(arena *a, const char *name, int track, int64_t origin, time_interval t,
                         json_t *args) {
  return json_pack("{s:o, s:s, s:i, s:i, s:f, s:f, s:o}", "name", text_json(a, name), "ph", "X",
                   "pid", 1, "tid", track, "ts", (double)(t.begin - origin) / 1e3, "dur",
                   (double)(t.end - t.begin) / 1e3, "args", args ? args : json_object());
}

static json_t *new_title(const char *event, int track, const char *name) {
  return json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "name", event, "ph", "M", "pid", 1, "tid",
                   track, "args", "name", name);
}

/** Adds a run and its steps. The device has a clock of its own, so the first step is aligned with
   the start of the run. */
static void add_run_events(const profile *p, json_t *events, int64_t origin, size_t number) {
  arena *a = &p->c->arena;
  const profile_run *r = &p->runs.at[number];
  tn_step step = TN_STEP_INIT;
  json_array_append_new(
      events, new_event(a, number ? "run" : "first run", TRACK_COMMAND, origin, r->time, NULL));
  for (size_t i = 0; tn_binding_step(p->binding, i, &step) == TN_OK; i++) {
    time_interval t = {r->time.begin + r->steps[i].begin, r->time.begin + r->steps[i].end};
    json_t *args = json_pack("{s:I, s:I, s:f, s:f, s:I}", "step", (json_int_t)(i + 1), "kernel",
                             (json_int_t)(step.kernel + 1), "operations", step.operations, "bytes",
                             step.bytes, "times", (json_int_t)step.times);
    json_array_append_new(events, new_event(a, step.name, TRACK_STEPS, origin, t, args));
  }
}

static json_t *make_trace(const profile *p) {
  json_t *events = json_array();
  int64_t origin = p->phases.n ? p->phases.at[0].time.begin : p->runs.at[0].time.begin;
  json_array_append_new(events, new_title("process_name", TRACK_COMMAND, "tenon"));
  json_array_append_new(events, new_title("thread_name", TRACK_COMMAND, "command"));
  json_array_append_new(events,
                        new_title("thread_name", TRACK_STEPS, command_check_context(p->c).device));
  for (size_t i = 0; i < p->phases.n; i++)
    json_array_append_new(events, new_event(&p->c->arena, p->phases.at[i].name, TRACK_COMMAND,
                                            origin, p->phases.at[i].time, NULL));
  for (size_t i = 0; i < p->runs.n; i++) add_run_events(p, events, origin, i);
  return json_pack("{s:s, s:o}", "displayTimeUnit", "ms", "traceEvents", events);
}

void chrome_trace_write(const profile *p, const char *path) {
  json_t *all = make_trace(p);
  char *text = all ? json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
  json_decref(all);
  if (!text) diag_raise(&p->c->diag, TN_ERR_MEMORY, "out of memory");
  tn_status s = file_write(path, text, strlen(text), &p->c->diag);
  free(text);
  if (s != TN_OK) diag_rethrow(&p->c->diag);
}
