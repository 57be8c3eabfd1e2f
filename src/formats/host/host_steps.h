/* Steps of a model that a function of the host computes, as no kernel can: operators on strings,
   and decoders. In the graph each is a CUSTOM node, whose uid is the step's number. */
#ifndef TENON_FORMATS_HOST_HOST_STEPS_H
#define TENON_FORMATS_HOST_HOST_STEPS_H

#include "base/arena.h"
#include "base/vec.h"
#include "formats/host/string_table.h"

#include <stdatomic.h>

/** The arrays of a step: row-major inputs, then the result, which is to be filled. */
typedef struct host_arrays {
  size_t n_inputs;
  void *const *data;
  const uint64_t *bytes;
  const void *run; /* one for all steps of a run, and no other run at the time */
} host_arrays;

typedef struct host_step {
  const char *name; /* of the operator, in messages */
  const char *what; /* kind of the step, for explanations; NULL: the usual one */
  tn_status (*run)(const void *options, string_table *strings, const host_arrays *a,
                   tn_failure *failure);
  void (*destroy)(const void *options);                   /* NULL: the arena has all of them */
  const void *options;                                    /* in the arena of the steps */
  const struct host_steps *(*inner)(const void *options); /* the steps of a graph that the step
                                                             runs, or NULL; NULL: it runs none */
} host_step;

/** The steps of a graph, counted by the graph and by plans. */
typedef struct host_steps {
  atomic_size_t count;
  const mem *mem;
  arena arena;           /* of the options, while the graph is imported */
  string_table *strings; /* the file's, which outlives the steps */
  VEC(host_step) all;
} host_steps;

/** No steps yet; `d`, in which the arena raises, is that of the import. NULL without memory. */
host_steps *host_steps_open(const mem *m, string_table *strings, diag *d);
host_steps *host_steps_retain(host_steps *s);
void host_steps_release(host_steps *s); /* NULL is allowed */

/** Forgets all steps, before any plan has them. NULL is allowed. */
void host_steps_clear(host_steps *s);

/** Runs step `number`. Several threads may, at once. */
tn_status host_steps_run(const host_steps *s, int64_t number, const host_arrays *a,
                         tn_failure *failure);

/** `what` of step `number`; NULL: the usual. */
const char *host_steps_what(const host_steps *s, int64_t number);

#endif
