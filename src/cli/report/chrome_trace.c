/* Builds "complete" events (phase X) of the Trace Event Format: one track of the command's phases
   and runs, and one for each queue of a device. Times are in microseconds since the first phase. */
#include "cli/report/chrome_trace.h"

#include "base/file.h"
#include "cli/core/text_format.h"

#include <stdlib.h>
#include <string.h>

enum { TRACK_COMMAND = 1, TRACK_QUEUES }; /* and one for each further queue */

/* Recording. */

static size_t find_track(chrome_trace *t, const tn_trace_span *span) {
  arena *a = &t->c->arena;
  const char *name = arena_printf(a, "%s %s", span->device, span->queue);
  for (size_t i = 0; i < t->tracks.n; i++)
    if (!strcmp(t->tracks.at[i], name)) return i;
  vec_push(a, &t->tracks, name);
  return t->tracks.n - 1;
}

static void add_span(void *user, const tn_trace_span *span) {
  chrome_trace *t = user;
  chrome_trace_span x = {*span, find_track(t, span)};
  x.span.name = arena_printf(&t->c->arena, "%s", span->name);
  vec_push(&t->c->arena, &t->spans, x);
}

tn_tracer chrome_trace_tracer(chrome_trace *t) { return (tn_tracer){add_span, t, NULL}; }

/* Writing. */

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

static json_t *step_facts(const profile *p, int64_t number) {
  tn_step step = TN_STEP_INIT;
  if (number < 0 || tn_binding_step(p->binding, (size_t)number, &step) != TN_OK) return NULL;
  return json_pack("{s:I, s:I, s:f, s:f, s:I, s:s*}", "step", (json_int_t)(number + 1), "kernel",
                   (json_int_t)(step.kernel + 1), "operations", step.operations, "bytes",
                   step.bytes, "times", (json_int_t)step.times, "library", step.library);
}

static json_t *span_event(const profile *p, const chrome_trace_span *x, int64_t origin) {
  return new_event(&p->c->arena, x->span.name, TRACK_QUEUES + (int)x->track, origin,
                   (time_interval){x->span.begin, x->span.end}, step_facts(p, x->span.step));
}

static json_t *make_trace(const chrome_trace *t, const profile *p) {
  arena *a = &p->c->arena;
  json_t *events = json_array();
  int64_t origin = p->phases.n ? p->phases.at[0].time.begin : p->runs.at[0].time.begin;
  json_array_append_new(events, new_title("process_name", TRACK_COMMAND, "tenon"));
  json_array_append_new(events, new_title("thread_name", TRACK_COMMAND, "command"));
  for (size_t i = 0; i < t->tracks.n; i++)
    json_array_append_new(events, new_title("thread_name", TRACK_QUEUES + (int)i, t->tracks.at[i]));
  for (size_t i = 0; i < p->phases.n; i++)
    json_array_append_new(events, new_event(a, p->phases.at[i].name, TRACK_COMMAND, origin,
                                            p->phases.at[i].time, NULL));
  for (size_t i = 0; i < p->runs.n; i++)
    json_array_append_new(events, new_event(a, i ? "run" : "first run", TRACK_COMMAND, origin,
                                            p->runs.at[i].time, NULL));
  for (size_t i = 0; i < t->spans.n; i++)
    json_array_append_new(events, span_event(p, &t->spans.at[i], origin));
  return json_pack("{s:s, s:o}", "displayTimeUnit", "ms", "traceEvents", events);
}

void chrome_trace_write(const chrome_trace *t, const profile *p, const char *path) {
  json_t *all = make_trace(t, p);
  char *text = all ? json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
  json_decref(all);
  if (!text) diag_raise(&p->c->diag, TN_ERR_MEMORY, "out of memory");
  tn_status s = file_write(path, text, strlen(text), &p->c->diag);
  free(text);
  if (s != TN_OK) diag_rethrow(&p->c->diag);
}
