/* Leaves out steps of a run whose results are there from the run before: kernels outside of loops
   that alone write their buffers, where nothing that they read has changed. Scratch memory is not
   shared between buffers then, so that results stay. */
#ifndef TENON_RUNTIME_STEP_REUSE_H
#define TENON_RUNTIME_STEP_REUSE_H

#include "base/arena.h"
#include "device/queue/command_list.h"

#include <stdbool.h>

struct execution;

typedef struct step_reuse {
  bool is_on;
  bool is_valid;    /* the last run succeeded, and sizes and scratch memory are as they were */
  bool *may_skip;   /* by step */
  bool *is_touched; /* by buffer: an input whose contents may differ from those in the last run */
  bool *is_moved;   /* by buffer: an input or output that is in other memory than in the last run */
  bool *is_changed; /* by buffer: contents differ from those in the last run, as far as the run at
                       hand has come */
  bool *runs;       /* by step: in the run at hand */
  bool *recorded;   /* by step: in the list of its section */
  tn_commands **lists; /* by section: of some of its steps; NULL: none */
} step_reuse;

/** Finds the steps that may be left out. Raises. */
void step_reuse_open(struct execution *e);
void step_reuse_release(struct execution *e);

/** Forgets what the last run left behind: the next one runs all steps. */
static inline void step_reuse_forget(step_reuse *r) { r->is_valid = false; }

/** Notes that contents of an input may have changed, or that it is in other memory. */
static inline void step_reuse_touch(step_reuse *r, size_t buffer) {
  if (r->is_touched) r->is_touched[buffer] = true;
}
static inline void step_reuse_move(step_reuse *r, size_t buffer) {
  if (r->is_moved) r->is_moved[buffer] = true;
}

/** Decides which steps a run needs. Memory has been placed. */
void step_reuse_begin(struct execution *e);

/** The run ended. */
void step_reuse_end(struct execution *e, bool succeeded);

/** True unless the run at hand leaves a step out. */
static inline bool step_reuse_runs(const step_reuse *r, size_t step) {
  return !r->is_on || r->runs[step];
}

/** True if the run at hand needs all steps from `first` on, `n` of them. */
bool step_reuse_runs_all(const step_reuse *r, size_t first, size_t n);

#endif
