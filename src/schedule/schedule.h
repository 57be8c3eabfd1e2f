/* From a tensor graph to kernels: the passes, in the order in which schedule_make calls them. */
#ifndef TENON_SCHEDULE_SCHEDULE_H
#define TENON_SCHEDULE_SCHEDULE_H

#include "base/map.h"
#include "base/vec.h"
#include "ir/topo.h"

#include <tenon/unstable/backend.h>

/** A stretch of memory that steps read and write. */
typedef struct schedule_buffer {
  dtype dtype;
  const node *size;   /* number of elements, an index expression over VARs */
  const node *origin; /* the BUFFER leaf it is, in the caller's graph; NULL: made by the plan */
  bool is_output;     /* some root's value: it outlives the plan */
  bool is_written;    /* a BUFFER that a SET writes in place */
  bool is_by_turns;   /* `now` or `next` of a loop's state: it has no memory of its own */
  size_t first, last; /* steps between which it is in use; only for what the plan makes */
} schedule_buffer;

/** What people call a node of the graph. */
typedef struct schedule_label {
  const node *node; /* below a root */
  const char *text;
} schedule_label;

typedef enum step_kind { STEP_KERNEL, STEP_CUSTOM, STEP_LOOP } step_kind;

/** The buffers of a state of a loop. In a trip `now` is the one that the state is in, and `next`
    the one that it is computed into: after the last trip the result. Where all three are one, the
    state is copied there before the first trip, and changed there; else the first trip reads the
    init, and the others write the result and the spare by turns. */
typedef struct schedule_state {
  size_t init, result, now, next, spare;
} schedule_state;

/** A loop of the plan: the steps that follow are run for each trip. */
typedef struct schedule_loop {
  const node
      *trips; /* how many, an index expression over VARs; of none, the results are the inits */
  const node *trip; /* the variable that is the number of each */
  const schedule_state *states;
  size_t n_states;
  size_t n_steps; /* those of loops inside of it too */
} schedule_loop;

typedef struct schedule_step {
  step_kind kind;
  const node *kernel;    /* STEP_KERNEL: SINK whose PARAM slots are positions in `buffers` */
  const node *custom;    /* STEP_CUSTOM: the CUSTOM node; its inputs' buffers, then its result's */
  const size_t *buffers; /* numbers of schedule buffers */
  size_t n_buffers;
  size_t n_outputs;             /* no CUSTOM: it writes that many of them, the first ones */
  node_list scalars;            /* STEP_KERNEL: VARs of the graph's that the kernel's are, by number
                                   (ir/scalars.h) */
  const schedule_loop *loop;    /* STEP_LOOP; its buffers: all that live as long as it runs */
  const struct loop_plan *plan; /* STEP_LOOP: what is scheduled for it (passes.h) */
  node_list values; /* the tensors that it computes, in the schedule's own graph; none: it copies */
  const char *name; /* the labels of what it computes, or its ops */
} schedule_step;

typedef struct schedule {
  VEC(schedule_buffer) buffers;
  VEC(schedule_step) steps; /* in an order that respects every dependence */
  const size_t *outputs;    /* the buffer of each root */
} schedule;

/** What was decided about a value: whether it is written to memory, or computed where it is read.
    Prices are nanoseconds beyond computing it once, INFINITY where something cannot be. */
typedef struct schedule_decision {
  const node *tensor;
  size_t readers; /* kernels that read it */
  bool is_written;
  bool is_hosted;   /* by a reader that computes it anyway */
  const char *must; /* why it had to be; NULL: it was a matter of prices */
  double inlined;   /* where each of its elements is read */
  double placed;    /* in arrays inside of kernels */
  double kept;      /* the better of both for each reader */
  double written;
} schedule_decision;

/** What a schedule is made of. `roots` are nodes of any ir; what is made is in the scratch ir `g`.
    `may_overwrite` says whether the storage of a BUFFER may be written in place by a SET on it
    (else its contents are copied first). */
typedef struct schedule_request {
  const node *const *roots;
  size_t n_roots;
  bool (*may_overwrite)(void *user, const node *buffer);
  void *user;
  /** Called after each pass with its name and result; may raise. NULL: nobody watches. */
  void (*after)(void *watcher, const char *pass, const node *const roots[], size_t n);
  /** Called for each value when it is decided; may raise. NULL: nobody wants to know. */
  void (*decided)(void *watcher, const schedule_decision *d);
  void *watcher;
  const schedule_label *labels; /* in any order; each may stand in the names of several steps */
  size_t n_labels;
  int math;         /* math_mode */
  size_t vector;    /* bytes of the widest vector; 0: there are none */
  size_t arguments; /* most buffers of a kernel; 0: any number */
  uint64_t scratch; /* most bytes of arrays of its own that a kernel builds; 0: any number */
  tn_hardware hardware;
  int policy; /* grouping_policy: for tests */
  uint64_t seed;
} schedule_request;

schedule *schedule_make(ir *g, const schedule_request *r);

#endif
