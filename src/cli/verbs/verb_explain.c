/* Implements `tenon explain`, which prints the steps and kernels that a model became, the decisions
   behind them, and their times; or writes all of it as a page of HTML. */
#include "base/file.h"
#include "base/str.h"
#include "base/thread.h"
#include "cli/core/math_option.h"
#include "cli/core/text_format.h"
#include "cli/data/explained_plan.h"
#include "cli/data/file_conflicts.h"
#include "cli/data/load_model.h"
#include "cli/measure/graph_lines.h"
#include "cli/measure/step_profile.h"
#include "cli/report/html_page.h"
#include "cli/verbs/verb_table.h"

#include <stdio.h>
#include <string.h>
#include <tenon/unstable/ir.h>
#include <tenon/unstable/model_file.h>

typedef struct explain_options {
  option_list input, size;
  int64_t kernel, threads;
  uint64_t seed;
  const char *output, *device, *variants, *math;
} explain_options;

static const option options[] = {
    {"output", OPTION_STRING, offsetof(explain_options, output), "FILE",
     "write a self-contained page of HTML to FILE", 0, 0, 0},
    {"kernel", OPTION_NUMBER, offsetof(explain_options, kernel), "N",
     "print only kernel N, as a source that compiles on its own", 1, INT32_MAX, 0},
    {"input", OPTION_LIST, offsetof(explain_options, input), INPUT_OPTION_VALUE, INPUT_OPTION_HELP,
     0, 0, 0},
    {"size", OPTION_LIST, offsetof(explain_options, size), SIZE_OPTION_VALUE, SIZE_OPTION_HELP, 0,
     0, 0},
    VARIANTS_OPTION(explain_options),
    MATH_OPTION(explain_options),
    THREADS_OPTION(explain_options),
    {"device", OPTION_STRING, offsetof(explain_options, device), "NAME",
     "device to run on (default: CPU); tenon devices lists them", 0, 0, 0},
    {"seed", OPTION_UINT64, offsetof(explain_options, seed), "N",
     "seed of the random inputs (default: 0)", 0, 0, 0},
};

typedef struct explanation {
  command *c;
  profile profile;
  explained_plan plan;
  graph_lines graphs; /* and a line about loops that the host runs */
} explanation;

/* Text. */

static void add_lines(str *to, const char *title, const char *const lines[], size_t n) {
  for (size_t i = 0; i < n; i++)
    str_addf(to, "  %-8s  %s\n", i ? "" : title, text_escape(to->arena, lines[i]));
}

/** The first step that runs the kernel of a step. */
static size_t first_step_with_kernel(const explanation *e, size_t i) {
  size_t first = 0;
  while (e->plan.steps.at[first].kernel != e->plan.steps.at[i].kernel) first++;
  return first;
}

static void add_step(str *to, const explanation *e, size_t i) {
  arena *a = to->arena;
  const tn_explained_step *s = &e->plan.steps.at[i];
  str_addf(to, "step %zu: %s\n", i + 1, text_escape(a, s->name));
  for (size_t k = 0; k < s->n_reads; k++)
    str_addf(to, "%s%zu%s",
             k                ? ", "
             : s->n_reads > 1 ? "  reads     steps "
                              : "  reads     step ",
             s->reads[k] + 1, k + 1 < s->n_reads ? "" : "\n");
  for (size_t k = 0; k < s->n_values; k++)
    str_addf(to, "  %-8s  %s\n            %s\n", k ? "" : "computes",
             text_escape(a, s->values[k].text), text_escape(a, s->values[k].why));
  if (s->n_places)
    str_addf(to, "  writes    %s of larger arrays\n", text_count(a, s->n_places, "piece"));
  if (s->is_guarded) str_add(to, "  skipped   in runs that take another branch\n");
  if (s->n_copies)
    str_addf(to, "  copies    %s of larger arrays\n", text_count(a, s->n_copies, "piece"));
  if (s->kernel < 0) {
    str_addf(to, "  kernel    none: %s\n", s->what);
    return;
  }
  const tn_explained_kernel *k = &e->plan.kernels.at[s->kernel];
  size_t first = first_step_with_kernel(e, i);
  if (first < i) {
    str_addf(to, "  kernel    %lld, as in step %zu\n", (long long)s->kernel + 1, first + 1);
    return;
  }
  str_addf(to, "  kernel    %lld\n", (long long)s->kernel + 1);
  add_lines(to, "loops", k->loops, k->n_loops);
  add_lines(to, "schedule", k->schedule, k->n_schedule);
  if (k->library)
    str_addf(to, "  library   %s computes it, as measured to be faster\n", k->library);
  else if (k->tuned)
    str_add(to, "  tuned     the schedule was found by measuring\n");
  if (k->predicted.total > 0)
    str_addf(to, "  predicted %s on one thread: %s\n", text_time(a, k->predicted.total * 1e-6),
             predicted_parts(a, &k->predicted));
}

/** Adds lines to a text, as comments of the language of kernels. */
static void add_comments(str *to, const char *lines, const char *language) {
  const char *mark = !strcmp(language, "llvm") ? ";" : "//";
  for (size_t n; *lines; lines += n) {
    n = strcspn(lines, "\n") + 1;
    str_addf(to, "%s%s%.*s", mark, *lines == '\n' ? "" : " ", (int)n, lines);
  }
}

/** Prints the steps that run a kernel, numbered from 1, and its source, with all that its compiler
    reads. */
static void print_kernel(const explanation *e, int64_t number) {
  arena *a = &e->c->arena;
  if ((uint64_t)number > e->plan.kernels.n)
    command_usage_error(e->c, "--kernel: %s has only %s", e->c->operand,
                        text_count(a, e->plan.kernels.n, "kernel"));
  const tn_explained_kernel *k = &e->plan.kernels.at[number - 1];
  str about = str_new(a), all = str_new(a);
  for (size_t i = 0; i < e->plan.steps.n; i++)
    if (e->plan.steps.at[i].kernel == number - 1) add_step(&about, e, i);
  add_comments(&all, str_text(&about), k->language);
  str_addf(&all, "\n%s%s", k->prelude, k->source);
  fputs(text_escape_keep_newlines(a, str_text(&all)), stdout);
}

static void print_steps(const explanation *e, const char *exact) {
  size_t places = 0, copies = 0;
  for (size_t i = 0; i < e->plan.steps.n; i++) {
    places += e->plan.steps.at[i].n_places;
    copies += e->plan.steps.at[i].n_copies;
  }
  profile_print(&e->profile);
  if (places) printf("%s written into larger arrays\n", text_count(&e->c->arena, places, "piece"));
  if (copies) printf("%s copied into larger arrays\n", text_count(&e->c->arena, copies, "piece"));
  for (size_t i = 0; i < e->graphs.lines.n; i++) puts(e->graphs.lines.at[i]);
  if (exact) puts(text_escape(&e->c->arena, exact));
  for (size_t i = 0; i < e->plan.steps.n; i++) {
    str step = str_new(&e->c->arena);
    add_step(&step, e, i);
    printf("\n%s", str_text(&step));
  }
}

/* The model. */

static void add_output(file_set *f, const char *file) {
  if (!strcmp(file, "-")) command_usage_error(f->c, "--output must be a file, not %s", file);
  file_conflicts_add_target(f, "output", file);
}

static void write_page(const explanation *e, const char *sizes, const char *exact) {
  command *c = e->c;
  const char *file = ((const explain_options *)c->options)->output;
  str page = html_page_make(&e->profile, &e->plan, &e->graphs, sizes, exact);
  if (file_write(file, str_text(&page), page.n, &c->diag)) diag_rethrow(&c->diag);
  command_print_note(c, "wrote the page to %s", file);
}

static void profile_steps(profile *p, tn_binding *b) {
  profile_start(p, b, true);
  profile_run_once(p);
  profile_run_more(p);
  profile_summarise(p);
}

/** Tells where the kernels of loops are that the host runs: bodies are plans of their own. */
static void add_line_about_loops(explanation *e, const tn_model *m) {
  const char *node, *what;
  if (tn_model_host_loop(m, 0, &node, &what) != TN_OK) return;
  const char *line =
      "bodies of loops that the host runs are plans of their own, which runs compile: "
      "tenon run --trace FILE shows their steps";
  vec_push(&e->c->arena, &e->graphs.lines, line);
}

static int act(command *c) {
  const explain_options *o = c->options;
  explanation e = {.c = c, .profile = {.c = c}};
  if (o->kernel && o->output) command_usage_error(c, "--kernel and --output cannot be combined");
  model_inputs_check_option(c, "input", INPUT_OPTION_VALUE, &o->input);
  tn_model_desc desc = load_model_parse_sizes(c, &o->size);
  load_model_parse_variants(c, o->variants, &desc);
  tn_model *m;
  tn_binding *b;
  tn_explanation *items;
  math_option_parse(c, o->math);
  command_open_context(c, o->device, o->threads, NULL);
  command_check_context(c);
  command_check_status(c, model_inputs_load_model(c, &desc, &o->input, &m));
  file_set touched = {.c = c};
  file_conflicts_add_model(&touched, m);
  if (o->output) add_output(&touched, o->output);
  model_inputs in = model_inputs_make(c, m, &o->input, o->seed);
  file_conflicts_add_inputs(&touched, &in);
  command_check_status(c, tn_explain(c->context, true, &items));
  command_check_status(c, tn_model_bind(m, &b));
  model_inputs_bind(c, &in, b);
  command_check_binding(c, tn_binding_prepare(b), b);
  e.plan = explained_plan_list(items, &c->arena);
  if (o->kernel) {
    print_kernel(&e, o->kernel);
    return EXIT_DONE;
  }
  profile_steps(&e.profile, b);
  e.graphs = graph_lines_find(c, b);
  add_line_about_loops(&e, m);
  const char *exact = load_model_exact_text(c, m);
  if (o->output)
    write_page(&e, model_inputs_sizes_text(c, &in, m), exact);
  else
    print_steps(&e, exact);
  return EXIT_DONE;
}

/** Prints the laws of schedules, then their arguments. */
static void print_laws(void) {
  const char *name, *arguments, *about;
  bool has_title = false;
  for (size_t i = 0; tn_law_get(i, &name, &arguments, &about) == TN_OK; i++) {
    if (arguments) {
      printf("\n  %s %s\n      %s", name, arguments, about);
      continue;
    }
    if (!has_title) fputs("\n\nArguments of laws:\n", stdout);
    has_title = true;
    printf("\n  %s: %s", name, about);
  }
}

static const char about[] =
    "The table is that of tenon run --profile. For each step follow the steps whose results it\n"
    "reads; the values that it computes, with the decision about each and the estimated costs;\n"
    "its kernel, the kernel's loops after scheduling, and the laws that were applied.\n\n"
    "A piece of a larger array is a value that a concatenation holds: its kernel writes it\n"
    "there, and nothing copies it.\n\n"
    "A value is either written to memory, or computed in its reader: in place, or as an array\n"
    "inside the reader's kernel. Costs are estimates of the cost model, not measurements: the\n"
    "time beyond computing the value once.\n\n"
    "A tuned schedule was found by tenon tune; other schedules are what the cost model prefers.\n\n"
    "Kernels in a graph are handed to the device as one piece, from the second run on. The times\n"
    "are of kernels that were handed over one by one.\n\n"
    "The page contains the same, a drawing of the graph, and the sources of all kernels.\n\n"
    "Each line of a schedule is a law, a transformation of the kernel. r0, r1, … are ranges of\n"
    "loops, e0 is an expression over elements of buffers and s0 an array without ranges, each\n"
    "by its number in the kernel. After a colon follow the ranges that the law creates, \"-\" for\n"
    "one of a single index. tn_kernel_make (tenon/unstable/ir.h) applies such lines to kernels\n"
    "of your own. Laws:\n";

const verb verb_explain = {
    .name = "explain",
    .summary = "Explain the kernels of a compiled model, with reasons and times",
    .operand = "MODEL",
    .examples = "tenon explain model.onnx\n"
                "tenon explain model.onnx --size batch=8 -o why.html\n"
                "tenon explain model.onnx --kernel 3",
    .about = about,
    .print_more = print_laws,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .options_bytes = sizeof(explain_options),
    .letters = "o",
    .act = act,
};
