/* Implements `tenon tune`, which measures other schedules of a model's kernels and keeps those that
   make its runs faster. */
#include "cli/core/interrupt.h"
#include "cli/core/math_option.h"
#include "cli/core/text_format.h"
#include "cli/data/file_conflicts.h"
#include "cli/data/load_model.h"
#include "cli/data/model_inputs.h"
#include "cli/verbs/verb_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct tune_options {
  option_list input, size;
  const char *duration, *output, *device, *math;
  int64_t threads;
  uint64_t seed;
  bool json;
} tune_options;

static const option options[] = {
    {"for", OPTION_STRING, offsetof(tune_options, duration), "TIME",
     "time to spend: 30s, 10m or 1h (default: 10m)", 0, 0, 0},
    {"output", OPTION_STRING, offsetof(tune_options, output), "FILE",
     "read and append to FILE instead of the file in the cache folder; later runs\n"
     "read it with TENON_TUNED=FILE",
     0, 0, 0},
    THREADS_OPTION(tune_options),
    {"device", OPTION_STRING, offsetof(tune_options, device), "NAME",
     "device to run on (default: CPU); tenon devices lists them", 0, 0, 0},
    {"input", OPTION_LIST, offsetof(tune_options, input), INPUT_OPTION_VALUE, INPUT_OPTION_HELP, 0,
     0, 0},
    {"size", OPTION_LIST, offsetof(tune_options, size), SIZE_OPTION_VALUE, SIZE_OPTION_HELP, 0, 0,
     0},
    MATH_OPTION(tune_options),
    {"seed", OPTION_UINT64, offsetof(tune_options, seed), "N",
     "seed of the random inputs (default: 0)", 0, 0, 0},
    {"json", OPTION_FLAG, offsetof(tune_options, json), NULL, "print JSON", 0, 0, 0},
};

/** Seconds of a time such as 10m. Raises as command_usage_error for any other text. */
static double parse_duration(command *c, const char *text) {
  enum { MOST_DIGITS = 6 };
  size_t digits = strspn(text, "0123456789");
  const char *unit = text + digits;
  double factor = !strcmp(unit, "s") ? 1 : !strcmp(unit, "m") ? 60 : !strcmp(unit, "h") ? 3600 : 0;
  double seconds = digits && digits <= MOST_DIGITS ? strtod(text, NULL) * factor : 0;
  if (seconds <= 0)
    command_usage_error(c, "--for must be a time such as 30s, 10m or 1h, not \"%s\"", text);
  return seconds;
}

/** Tells how runs changed: "unchanged", "2.1 % faster". */
static const char *text_change(char *text, size_t bytes, const tn_tuning *t) {
  double percent = (1 - t->after_ms / t->before_ms) * 100;
  if (t->after_ms == t->before_ms)
    snprintf(text, bytes, "unchanged");
  else
    snprintf(text, bytes, "%.2g %% %s", percent < 0 ? -percent : percent,
             percent < 0 ? "slower" : "faster");
  return text;
}

/** The state of the progress that tuning shows. */
typedef struct tune_display {
  command *c;
  const char *duration;
  int64_t last; /* line without a terminal; 0: none */
} tune_display;

/** Prints a line at the beginning and each minute. */
static void print_state(tune_display *d, const tn_tuning *t, const char *state) {
  const int64_t interval_ns = 60 * (int64_t)1000000000, now = clock_now_ns();
  arena *a = &d->c->arena;
  if (d->last && now - d->last < interval_ns) return;
  if (d->last)
    command_print_note(d->c, "%s", state);
  else
    command_print_note(d->c, "tuning %s for %s; measurements go to %s",
                       text_escape(a, d->c->operand), d->duration, text_escape(a, t->file));
  d->last = now;
}

/** Shows the state; false once a signal asks to end. */
static bool show(void *user, const tn_tuning *t) {
  tune_display *d = user;
  char text[160], change[32];
  long left = (long)t->seconds_left;
  snprintf(text, sizeof text,
           "%" PRIu64 " of %" PRIu64 " kernel%s faster, %" PRIu64
           " schedule%s measured, run %s, %ld:%02ld left",
           t->faster, t->kernels, t->kernels == 1 ? "" : "s", t->measured,
           t->measured == 1 ? "" : "s", text_change(change, sizeof change, t), left / 60,
           left % 60);
  if (progress_has_terminal())
    progress_show(&d->c->progress, text);
  else
    print_state(d, t, text);
  return !interrupt_is_noticed();
}

/** Why no schedule was kept; NULL: one was, or time ran out before the first was measured. */
static const char *why_none_kept(arena *a, const tn_tuning *t) {
  if (t->kept || (t->ran_out && !t->measured)) return NULL;
  if (!t->kernels) return "no kernel has other schedules";
  if (!t->measured)
    return arena_printf(a, "none of %s promises to be faster, or all were measured before",
                        text_count(a, t->predicted, "schedule"));
  if (!t->faster)
    return arena_printf(a, "none of %s that %s measured is faster than that of its kernel",
                        text_count(a, t->measured, "schedule"), t->measured == 1 ? "was" : "were");
  return arena_printf(a, "faster schedules of %s make whole runs no faster",
                      text_count(a, t->faster, "kernel"));
}

/** How many of the kernels that are kept are calls of the library. */
static const char *by_library(arena *a, const tn_tuning *t) {
  if (!t->library_kept) return "";
  return arena_printf(a, ", %" PRIu64 " of them by %s", t->library_kept,
                      text_escape(a, t->library));
}

static void print_text(command *c, const tn_tuning *t) {
  arena *a = &c->arena;
  printf("kernels    %" PRIu64 " with other schedules, %" PRIu64 " faster with one, %" PRIu64
         " kept%s\nschedules  %" PRIu64 " predicted, %" PRIu64 " measured\n",
         t->kernels, t->faster, t->kept, by_library(a, t), t->predicted, t->measured);
  if (t->library)
    printf("library    %s measured for %s, faster for %" PRIu64 "\n", text_escape(a, t->library),
           text_count(a, t->library_measured, "kernel"), t->library_faster);
  const char *why = why_none_kept(a, t);
  if (why) printf("kept       none: %s\n", why);
  char change[32];
  text_change(change, sizeof change, t);
  if (t->after_ms == t->before_ms)
    printf("run        %s, %s\n", text_time(a, t->after_ms), change);
  else
    printf("run        %s (%s → %s)\n", change, text_time(a, t->before_ms),
           text_time(a, t->after_ms));
  printf("file       %s\n", text_escape(a, t->file));
}

static void print_json(command *c, const tn_tuning *t) {
  arena *a = &c->arena;
  text_json_print(
      a, json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:o, s:o, s:I, s:I, s:I}", "name",
                   text_json(a, c->operand), "kernels", (json_int_t)t->kernels, "predicted",
                   (json_int_t)t->predicted, "measured", (json_int_t)t->measured, "faster",
                   (json_int_t)t->faster, "kept", (json_int_t)t->kept, "before_ms", t->before_ms,
                   "after_ms", t->after_ms, "file", text_json(a, t->file), "library",
                   text_json(a, t->library), "library_measured", (json_int_t)t->library_measured,
                   "library_faster", (json_int_t)t->library_faster, "library_kept",
                   (json_int_t)t->library_kept));
}

static int act(command *c) {
  const tune_options *o = c->options;
  tn_tune_desc how = TN_TUNE_DESC_INIT;
  tn_tuning result = TN_TUNING_INIT;
  tn_model *m;
  tn_binding *b;
  tune_display display = {.c = c, .duration = o->duration ? o->duration : "10m"};
  how.seconds = parse_duration(c, display.duration);
  how.progress = show;
  how.user = &display;
  model_inputs_check_option(c, "input", INPUT_OPTION_VALUE, &o->input);
  tn_model_desc desc = load_model_parse_sizes(c, &o->size);
  desc.tunable = true;
  c->tuned = o->output;
  math_option_parse(c, o->math);
  command_open_context(c, o->device, o->threads, NULL);
  command_check_context(c);
  command_check_status(c, model_inputs_load_model(c, &desc, &o->input, &m));
  file_set touched = {.c = c};
  file_conflicts_add_model(&touched, m);
  model_inputs in = model_inputs_make(c, m, &o->input, o->seed);
  file_conflicts_add_inputs(&touched, &in);
  if (o->output) file_conflicts_add_target(&touched, "output", o->output);
  command_check_status(c, tn_model_bind(m, &b));
  model_inputs_bind(c, &in, b);
  command_check_binding(c, tn_binding_run(b), b);
  interrupt_defer();
  command_check_binding(c, tn_tune(b, &how, &result), b);
  if (interrupt_is_noticed()) command_print_note(c, "ended early; what was found so far is kept");
  if (result.ran_out && !result.measured)
    command_print_note(c, "time ran out before any schedule was measured; --for gives more");
  if (o->json)
    print_json(c, &result);
  else
    print_text(c, &result);
  return EXIT_DONE;
}

const verb verb_tune = {
    .name = "tune",
    .summary = "Measure other schedules of a model's kernels, and keep faster ones",
    .operand = "MODEL",
    .examples = "tenon tune model.onnx --for 10m\n"
                "tenon tune model.onnx --size batch=8 --threads 4\n"
                "tenon tune model.onnx --for 1h -o tuned.txt",
    .about =
        "Each kernel's schedule is varied and measured beside the present one, on the given\n"
        "threads; kernels with the most to gain come first. In the end whole runs are measured\n"
        "with and without the new schedules, and those that gain nothing are dropped. The "
        "schedules\n"
        "that are kept are used by all later runs of kernels that are equal, on any number of\n"
        "threads, by the same machine and compiler. Float results may be rounded differently.\n\n"
        "Measurements are appended to a file at once: a later call goes on where one was ended,\n"
        "also by a kill. Ctrl-C ends the search and keeps what it has found; the second one ends\n"
        "the command. TENON_TUNED=off uses no tuned schedules; tenon explain tells which kernels\n"
        "have one. Where standard error is no terminal, the state is printed once a minute.\n\n"
        "--json: name; kernels (with other schedules); predicted, measured (schedules); faster,\n"
        "kept (kernels); before_ms, after_ms (of a run); file; library (of which kernels may be "
        "calls:\n"
        "TENON_VENDOR; null: none), library_measured, library_faster, library_kept (kernels).",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .options_bytes = sizeof(tune_options),
    .letters = "o",
    .act = act,
};
