/* What a plan is and why, in words: kept while it is compiled, for who asks. */
#ifndef TENON_RUNTIME_EXPLANATION_H
#define TENON_RUNTIME_EXPLANATION_H

#include "schedule/schedule.h"

/** A value that a step computes. */
typedef struct explained_value {
  const char *text; /* "reduce add f32 [64, n]" */
  const char *why;  /* what was decided about it, and by which prices; "": nothing */
} explained_value;

typedef struct explained_step {
  const char *name;
  size_t kernel;    /* SIZE_MAX: none */
  const char *what; /* it is then: a host function, or a loop of how many of the next steps */
  VEC(explained_value) values;
  VEC(size_t) reads; /* the steps before it whose results it reads, each once */
  bool is_output;    /* it makes a result of the plan */
} explained_step;

typedef VEC(const char *) explained_lines;

/** What a part of the compilation took. */
typedef struct explained_cost {
  int64_t ns;
  uint64_t nodes; /* made */
  uint64_t rules; /* fired */
} explained_cost;

typedef struct explained_pass {
  const char *name;
  explained_cost cost; /* for all kernels together */
} explained_pass;

typedef struct explained_kernel {
  explained_lines loops;    /* as it was scheduled, from outer to inner */
  explained_lines schedule; /* the laws that were applied to it */
  const char *source;
  explained_cost cost; /* of its passes, up to its source */
} explained_kernel;

typedef struct explanation {
  arena arena;  /* of all of it; its diag is whoever's compiles */
  bool reasons; /* decisions, laws and sources are kept, which takes time of its own */
  VEC(explained_step) steps;
  VEC(explained_kernel) kernels;
  VEC(explained_pass) passes; /* in the order in which they first ended */
  /* While it is made: */
  explained_cost last; /* at the end of the pass before */
  map whys;            /* tensor → what was decided about it */
  explained_lines at;  /* of the kernel at hand */
} explanation;

/** Empty, with memory of its own. */
void explanation_open(explanation *x, const mem *m, bool reasons);
void explanation_free(explanation *x);

/* For the compilation of an executable; all of them raise. */

/** The first pass begins; and a pass ends, of a kernel or (SIZE_MAX) of all of them. `name` is
    static. */
void explanation_begin(explanation *x, const ir *g);
void explanation_pass(explanation *x, const ir *g, const char *name, size_t kernel);

void explanation_decided(explanation *x, const schedule_decision *d);

/** All steps; the number of a kernel + 1 is `number`'s. */
void explanation_scheduled(explanation *x, const schedule *s, const node_list *kernels,
                           const map *number);

/** A kernel that code is made for, again where the first try took too much memory; a law that is
    applied to it; and at its end its number and its source. */
void explanation_begin_kernel(explanation *x);
void explanation_law(explanation *x, const char *line);
void explanation_rendered(explanation *x, size_t kernel, const char *source);

#endif
