/* tenon explain: what a model became, and why. */
#include "base/file.h"
#include "base/thread.h"
#include "cli/files.h"
#include "cli/load.h"
#include "cli/page.h"
#include "cli/profile.h"
#include "cli/text.h"
#include "device/pool.h"
#include "formats/model.h"

#include <stdio.h>
#include <string.h>

typedef struct explain_options {
  option_list input, size;
  int64_t kernel, threads;
  uint64_t seed;
  const char *output, *device;
} explain_options;

static const option options[] = {
    {"output", OPTION_TEXT, offsetof(explain_options, output), "FILE",
     "write all of it as one page of HTML that needs no network; -o is the same", 0, 0, 0},
    {"kernel", OPTION_NUMBER, offsetof(explain_options, kernel), "N",
     "tell of this kernel alone, with its source", 1, INT32_MAX, 0},
    {"input", OPTION_LIST, offsetof(explain_options, input), FEED_VALUE, FEED_ABOUT, 0, 0, 0},
    {"size", OPTION_LIST, offsetof(explain_options, size), LOAD_SIZE_VALUE, LOAD_SIZE_ABOUT, 0, 0,
     0},
    {"threads", OPTION_NUMBER, offsetof(explain_options, threads), "N",
     "threads to use (default: as many as physical cores)", 1, POOL_MOST, 0},
    {"device", OPTION_TEXT, offsetof(explain_options, device), "NAME",
     "where to run (default: CPU); tenon devices lists what there is", 0, 0, 0},
    {"seed", OPTION_BITS, offsetof(explain_options, seed), "N",
     "start of the random numbers (default: 0)", 0, 0, 0},
};

typedef struct explaining {
  command *c;
  tn_model_desc desc;
  profile profile;
  explanation x;
} explaining;

/* Text. */

static void print_lines(arena *a, const char *title, const explained_lines *lines) {
  for (size_t i = 0; i < lines->n; i++)
    printf("  %-8s  %s\n", i ? "" : title, text_safe(a, lines->at[i]));
}

static void print_step(const explaining *e, size_t i) {
  arena *a = &e->c->arena;
  const explained_step *s = &e->x.steps.at[i];
  printf("\nstep %zu: %s\n", i + 1, text_safe(a, s->name));
  for (size_t k = 0; k < s->reads.n; k++)
    printf("%s%zu%s", k ? ", " : "  reads     steps ", s->reads.at[k] + 1,
           k + 1 < s->reads.n ? "" : "\n");
  for (size_t k = 0; k < s->values.n; k++)
    printf("  %-8s  %s\n            %s\n", k ? "" : "computes", text_safe(a, s->values.at[k].text),
           text_safe(a, s->values.at[k].why));
  if (s->kernel == SIZE_MAX) {
    printf("  kernel    none: %s\n", s->what);
    return;
  }
  const explained_kernel *k = &e->x.kernels.at[s->kernel];
  printf("  kernel    %zu\n", s->kernel + 1);
  print_lines(a, "loops", &k->loops);
  print_lines(a, "schedule", &k->schedule);
}

static void print_kernel(const explaining *e, size_t kernel) {
  if (kernel >= e->x.kernels.n)
    command_misuse(e->c, "--kernel: %s has %s", e->c->operand,
                   text_count(&e->c->arena, e->x.kernels.n, "kernel"));
  for (size_t i = 0; i < e->x.steps.n; i++)
    if (e->x.steps.at[i].kernel == kernel) print_step(e, i);
  printf("\n%s", text_safe_lines(&e->c->arena, e->x.kernels.at[kernel].source));
}

static void print_all(const explaining *e) {
  profile_print(&e->profile);
  for (size_t i = 0; i < e->x.steps.n; i++) print_step(e, i);
}

/* The model. */

static void add_output(files *f, const char *file) {
  if (!strcmp(file, "-")) command_misuse(f->c, "--output writes to a file, not to %s", file);
  files_write(f, "output", file);
}

static void run(void *arg) {
  explaining *e = arg;
  command *c = e->c;
  const explain_options *o = c->options;
  profile *p = &e->profile;
  tn_model *m;
  tn_binding *b;
  command_check(c, feed_load(c, &e->desc, &o->input, &m));
  files touched = {.c = c};
  files_read_model(&touched, m);
  if (o->output) add_output(&touched, o->output);
  feeds in = feed_make(c, m, &o->input, o->seed);
  files_read_inputs(&touched, &in);
  c->context->explanation = &e->x;
  command_check(c, tn_model_bind(m, &b));
  c->context->explanation = NULL;
  feed_bind(c, &in, b);
  if (o->kernel) {
    print_kernel(e, (size_t)o->kernel - 1);
    return;
  }
  profile_begin(p, b, true);
  profile_run_once(p);
  profile_run_more(p);
  profile_sum_up(p);
  if (!o->output) {
    print_all(e);
    return;
  }
  str page = page_make(p, &e->x, feed_sizes(c, &in, m));
  if (file_write(o->output, str_text(&page), page.n, &c->diag)) diag_rethrow(&c->diag);
  command_note(c, "wrote the page to %s", o->output);
}

static int act(command *c) {
  const explain_options *o = c->options;
  explaining e = {.c = c, .profile = {.c = c}};
  if (o->kernel && o->output) command_misuse(c, "--kernel is for text, not for a page");
  feed_check_list(c, "input", FEED_VALUE, &o->input);
  e.desc = load_sizes(c, &o->size);
  command_open(c, o->device, o->threads);
  command_check_open(c);
  explanation_open(&e.x, &mem_system, true);
  tn_status s = diag_catch(&c->diag, run, &e);
  explanation_free(&e.x);
  if (s != TN_OK) diag_rethrow(&c->diag);
  return EXIT_DONE;
}

static const char about[] =
    "The table is that of tenon run --profile. Then, for each step: the steps whose results it\n"
    "reads; what it computes, with what was decided about each value and by which prices; the\n"
    "kernel that it runs, its loops as it was scheduled, and the laws that were applied to it.\n\n"
    "A value is written to memory, or computed where it is read: in place, or as an array that\n"
    "a kernel builds for itself. Prices are modelled, not measured: the time that each way\n"
    "takes beyond computing the value once.\n\n"
    "The page has the same, a drawing of the graph, and the source of all kernels.\n\n"
    "The lines of a schedule are its laws. r0, r1 … are ranges of loops, e0 is an expression\n"
    "over elements of buffers and s0 an array without ranges, by their numbers in the kernel;\n"
    "after a colon stand the ranges that a law makes, \"-\" for one that would have one index.\n"
    "tn_kernel_make (tenon/unstable/ir.h) takes such lines for a kernel of yours. The laws:\n"
#define LAW(name, function, arguments, made, file, does) "\n  " #name " " arguments "\n      " does
#include "laws/laws.def"
    "\n\nWhat stands in them:\n"
#define LAW_WORD(name, argument, means) "\n  " #name ": " means
#include "laws/laws.def"
    ;

const verb verb_explain = {
    .name = "explain",
    .summary = "Tells which kernels a model became, why, and how long each takes",
    .operand = "MODEL",
    .about = about,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .options_bytes = sizeof(explain_options),
    .letters = "o",
    .act = act,
};
