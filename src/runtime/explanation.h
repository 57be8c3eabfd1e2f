/* Explains a compiled plan in reports: its steps, the reasons for fusion decisions, loop nests,
   applied schedule laws, sources, and the cost of each compiler pass. Filled while the plan is
   compiled. */
#ifndef TENON_RUNTIME_EXPLANATION_H
#define TENON_RUNTIME_EXPLANATION_H

#include "device/core/device_target.h"
#include "runtime/executable_host.h"
#include "schedule/schedule.h"
#include "target/kernel_cost.h"

#include <tenon/unstable/explain.h>

typedef struct explained_step {
  const char *name;
  size_t kernel; /* index into `kernels`; SIZE_MAX: none */
  const char
      *what; /* without a kernel: as a host function says, or a loop with its number of steps */
  VEC(tn_explained_value) values;
  VEC(size_t) reads; /* earlier steps whose results it reads, each once */
  bool is_output;    /* writes an output of the plan */
  size_t n_places;   /* arrays that it writes into larger ones */
  size_t n_copies;   /* arrays that it copies into larger ones */
  bool is_guarded;   /* a run may skip it */
  const char *device;
} explained_step;

typedef VEC(const char *) explained_lines;

typedef struct explained_pass {
  const char *name;
  tn_explained_cost cost; /* sum over all kernels */
} explained_pass;

typedef struct explained_kernel {
  explained_lines loops;    /* as scheduled, from outer to inner */
  explained_lines schedule; /* laws applied to it, in order */
  const char *source;
  bool is_tuned;       /* its schedule was measured */
  const char *library; /* static; NULL: it is compiled */
  tn_explained_time predicted;
  tn_explained_cost cost; /* of its passes, including rendering */
} explained_kernel;

typedef struct explanation {
  arena arena;  /* owns everything; its diag is the compilation's */
  bool reasons; /* records decisions, laws and sources, which costs compile time */
  const char *language, *prelude; /* of sources */
  VEC(explained_step) steps;
  VEC(explained_kernel) kernels;
  VEC(explained_pass) passes; /* in the order of their first end */
  /* During the compilation: */
  tn_explained_cost last; /* counters at the end of the previous pass */
  map whys;               /* tensor → text of the decision */
  explained_lines laws;   /* of the present kernel */
  bool is_tuned;
  tn_explained_time predicted;
} explanation;

/** Opens an empty explanation with an arena of its own. */
void explanation_open(explanation *x, const mem *m, bool reasons);
void explanation_free(explanation *x);

/* For build_executable.c; all of these raise. */

/** Begins the first pass; ends a pass of a kernel, or of all kernels (SIZE_MAX). `name` is static.
 */
void explanation_begin(explanation *x, const ir *g);
void explanation_end_pass(explanation *x, const ir *g, const char *name, size_t kernel);

/** Records the language of sources and what their compiler reads before them. */
void explanation_set_language(explanation *x, const char *language, const char *prelude);

/** Records the reason of a fusion decision, for the step that computes the tensor. */
void explanation_add_decision(explanation *x, const schedule_decision *d);

/** Adds all steps and kernels; `numbers` of a device map a kernel to its index + 1;
    `host` tells what host functions are. */
void explanation_add_steps(explanation *x, const schedule *s, const node_list *kernels,
                           const map numbers[], const device_target *const targets[],
                           const executable_host *host);

/** Begins a kernel, or begins it again if its first schedule took too much scratch memory; says
   that its schedule is a tuned one; adds a law applied to it, and its predicted cost; ends it with
   its index and source. */
void explanation_begin_kernel(explanation *x);
void explanation_add_tuned(explanation *x);
void explanation_add_law(explanation *x, const char *line);
void explanation_add_cost(explanation *x, const kernel_cost *cost);
void explanation_add_source(explanation *x, size_t kernel, const char *source);

#endif
