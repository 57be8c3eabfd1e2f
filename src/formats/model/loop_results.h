/* Results of loops that the host runs: the step that runs a loop keeps them under its run, and
   further steps hand them out, one each. */
#ifndef TENON_FORMATS_MODEL_LOOP_RESULTS_H
#define TENON_FORMATS_MODEL_LOOP_RESULTS_H

#include "base/mem.h"
#include "base/thread.h"

#include <tenon/tensor.h>
#include <tenon/unstable/failure.h>

/** A result of a run: rows of equal shape, one after another; of a state one row. */
typedef struct loop_array {
  bool is_kept; /* it was not handed out so far */
  char *data;
  size_t bytes, capacity;
  tn_shape row;
} loop_array;

/** The results of a run. */
typedef struct loop_results {
  struct loop_results *next;
  const void *run;
  int64_t trips;
  loop_array at[]; /* states, then scan outputs */
} loop_results;

/** The results of a loop's runs, of which several may be under way at once. */
typedef struct results_store {
  const mem *mem;
  size_t n; /* results of a run */
  mutex lock;
  loop_results *first;
} results_store;

void results_store_init(results_store *s, const mem *m, size_t n);
void results_store_free(results_store *s);

/** Takes the results of a run out of the store; NULL: there are none. */
loop_results *results_store_take(results_store *s, const void *run);
void results_store_keep(results_store *s, loop_results *r);

/** Empty results of a run; NULL without memory. */
loop_results *loop_results_open(const results_store *s, const void *run);
void loop_results_free(const results_store *s, loop_results *r); /* NULL is allowed */
bool loop_results_are_empty(const results_store *s, const loop_results *r);

/** Makes room for more bytes behind those that there are. */
tn_status loop_array_grow(const results_store *s, loop_array *x, size_t more, tn_failure *f);
void loop_array_free(const results_store *s, loop_array *x);

#endif
