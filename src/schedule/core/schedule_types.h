/* Data types of scheduling: the request (a tensor graph and the target's limits) and the result, an
   ordered list of steps (kernels, calls of host functions, loops) over numbered buffers. schedule.h
   has the entry point. */
#ifndef TENON_SCHEDULE_CORE_SCHEDULE_TYPES_H
#define TENON_SCHEDULE_CORE_SCHEDULE_TYPES_H

#include "base/map.h"
#include "base/vec.h"
#include "ir/core/topo_sort.h"

#include <tenon/unstable/backend.h>

/** An array that steps read and write. A view is a part of another buffer. */
typedef struct schedule_buffer {
  dtype dtype;
  const node *size;        /* number of elements, an index expression over VARs */
  const node *origin;      /* the BUFFER of the caller's graph that it is; NULL: the plan's own */
  bool is_output;          /* holds a root's value: it outlives the plan */
  bool is_written;         /* a SET writes it in place */
  bool is_double_buffered; /* `now` or `next` of a loop state: has no memory of its own */
  size_t n_places;         /* arrays that lie inside of it, written by several steps */
  size_t within;           /* a view: the number of the buffer that it is a part of, + 1; else 0 */
  int64_t start;           /* a view: its first element there */
  int64_t padding;         /* elements of `size` beyond the array, for views that end there */
  size_t first, last;      /* first and last step that uses it; of buffers that are used, but of no
                              view */
  size_t device;
} schedule_buffer;

/** The name that the caller gave to a node of the graph. */
typedef struct schedule_label {
  const node *node; /* reachable from a root */
  const char *text; /* "": none, it is in no name */
} schedule_label;

typedef enum step_kind {
  STEP_KERNEL,
  STEP_CUSTOM,
  STEP_LOOP,
  STEP_COPY /* of an array to another device */
} step_kind;

/** The buffers of a loop's state. A trip reads the state from `now` and writes it to `next`. Where
    `now`, `next` and `result` are one buffer, the init is copied there before the first trip and
    the state changed in place. Otherwise the first trip reads `init`, and trips write `result` and
    `spare` in turn, so that the last one writes `result`. */
typedef struct schedule_state {
  size_t init, result, now, next, spare;
} schedule_state;

/** A loop of the plan: runs the `n_steps` steps that follow it once a trip. */
typedef struct schedule_loop {
  /** Number of trips, an index expression over VARs; 0: the results are the inits. */
  const node *trips;
  const node *trip; /* VAR: the number of the current trip, from 0 */
  const schedule_state *states;
  size_t n_states;
  size_t n_steps; /* including those of loops inside */
  size_t until;   /* of `states`: the loop ends where it is true; SIZE_MAX: none */
} schedule_loop;

/** A size that the run computes: an ITEM, which kernels know as a variable. The plan has a root
   more for its element, an i64 of rank 0, which the host reads before the steps that mention the
    variable. */
typedef struct schedule_item {
  const node *var;
  const node *value; /* the root */
  int64_t min;
  const node *most;         /* the greatest value, an index expression over VARs */
  const size_t *bounded_by; /* the earlier ITEMs that `most` mentions */
  size_t n_bounded_by;
  const char *name; /* of the tensor whose element it is, for messages */
} schedule_item;

/** The ITEMs of a graph, in an order in which `most` mentions earlier ones alone. */
typedef struct schedule_items {
  VEC(schedule_item) at;
  size_t first;    /* the root of the first one; the others follow */
  node_list sizes; /* of the roots before, one root after the other */
  map of;          /* VAR → its number + 1 */
} schedule_items;

typedef struct schedule_step {
  step_kind kind;
  const node *kernel;    /* STEP_KERNEL: SINK whose PARAM slots are positions in `buffers` */
  const node *custom;    /* STEP_CUSTOM: the CUSTOM node; its inputs' buffers, then its result's */
  const size_t *buffers; /* numbers of schedule buffers */
  size_t n_buffers;
  size_t n_outputs;          /* of `buffers`, the first ones: those it writes; STEP_CUSTOM: unset */
  size_t n_places, n_copies; /* arrays inside of others that it computes; that it copies */
  node_list scalars;         /* STEP_KERNEL: the VAR of the graph behind each lifted VAR of the
                                kernel (liftable_scalars.h) */
  const schedule_loop *loop; /* STEP_LOOP: `buffers` are all that live while the loop runs */
  const struct extracted_loop *plan; /* STEP_LOOP: its body (outline_loops.h) */
  node_list values; /* tensors of the normalised graph that it computes; none: a copy */
  size_t *items;    /* buffers of the ITEMs whose variables it mentions, and of those that bound
                       them */
  size_t n_items;
  const char *name;  /* the labels of the tensors it computes, or their ops */
  const node *guard; /* an index from 0 to 1: the step is skipped where it is 0; NULL: never */
  size_t device;     /* that it runs on; of a copy, the one that it copies to */
} schedule_step;

/** Where the value of a labelled node is. */
typedef struct schedule_slot {
  size_t buffer;       /* that holds all of it, in row-major order; SIZE_MAX: none, as where it is
                          computed in its readers */
  bool is_overwritten; /* a later step of the plan changes the buffer in place */
} schedule_slot;

typedef struct schedule {
  VEC(schedule_buffer) buffers;
  VEC(schedule_step) steps;    /* in an order that respects every dependence */
  const size_t *outputs;       /* the buffer of each root, then of each ITEM */
  const schedule_items *items; /* NULL: there are none */
  const node **item_guards;    /* of each ITEM: an index from 0 to 1: the host does not check it
                                  where it is 0; NULL: it always does */
  schedule_slot *slots;        /* of each labelled node */
  size_t n_slots;
} schedule;

/** The buffer in whose memory a buffer is: itself, or the one that a view is a part of. */
static inline size_t schedule_storage(const schedule *s, size_t buffer) {
  return s->buffers.at[buffer].within ? s->buffers.at[buffer].within - 1 : buffer;
}

/** Fusion's decision about a value: written to memory, or computed where it is read. Costs are
    nanoseconds beyond computing it once; INFINITY: impossible. */
typedef struct schedule_decision {
  const node *tensor;
  size_t readers; /* kernels that read it */
  bool is_written;
  bool is_hosted;     /* written by a reader that computes it anyway */
  const char *reason; /* why these costs do not decide (static); NULL: they do */
  double inlined;     /* cost if computed where each element is read */
  double placed;      /* cost if built in arrays inside of kernels */
  double fused;       /* cost with the better of both for each reader */
  double written;     /* cost if written to memory */
} schedule_decision;

/** Policy of fusion and layouts; tests use the other two. */
typedef enum fusion_policy {
  FUSION_BY_COST,
  FUSION_NONE,  /* every value in memory */
  FUSION_RANDOM /* any choice that is legal */
} fusion_policy;

/** Calls during scheduling; each may raise. NULL: none. */
typedef struct schedule_observer {
  /** After each pass, with its name and result. */
  void (*after)(void *user, const char *pass, const node *const roots[], size_t n);
  /** For each value when fusion decides it. */
  void (*decided)(void *user, const schedule_decision *d);
  void *user;
} schedule_observer;

/** The modelled time of a scheduled kernel. */
typedef struct kernel_estimates {
  /** ns; with the best schedule that is found, or the first one. NULL: kernels have no costs. */
  double (*estimate)(void *user, size_t device, const node *kernel, bool is_searched);
  void *user;
} kernel_estimates;

/** Limits and hardware of the target. */
typedef struct schedule_target {
  size_t vector;    /* bytes of the widest vector; 0: no vectors */
  size_t arguments; /* most buffers of a kernel; 0: any number */
  uint64_t scratch; /* most bytes of scratch arrays of a kernel; 0: any number */
  uint32_t rows;    /* a bit for each TENSOR_ROW that is an instruction */
  bool teams;       /* teams of workers compute a kernel */
  tn_hardware hardware;
} schedule_target;

/** Options of the fusion search. */
typedef struct fusion_choice {
  int policy;             /* fusion_policy: FUSION_BY_COST but in tests */
  uint64_t seed;          /* of FUSION_RANDOM */
  bool is_without_places; /* every array has a buffer of its own (for tests) */
} fusion_choice;

/** A graph to schedule. */
typedef struct schedule_request {
  const node *const *roots; /* nodes of any ir */
  size_t n_roots;
  /** True if a SET may write a BUFFER's storage in place; else its contents are copied first. */
  bool (*may_overwrite)(void *user, const node *buffer);
  void *user;
  const schedule_label *labels; /* in any order; one may be in the names of several steps */
  size_t n_labels;
  int math; /* math_mode */
  schedule_target target;
  fusion_choice search;
  kernel_estimates estimates; /* of groupings */
  schedule_observer observer;
  const schedule_target *more; /* of devices 1 …: `target` is that of device 0, and of others */
  size_t n_more;
} schedule_request;

/** The target of a device of a graph. */
static inline const schedule_target *schedule_target_of(const schedule_request *r, size_t device) {
  return device && device <= r->n_more ? &r->more[device - 1] : &r->target;
}

#endif
