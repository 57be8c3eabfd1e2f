/* An executable: a schedule compiled for its devices, mostly one, as the list of plan steps that an
   execution runs (kernels, host functions, loops) over indexed buffers, with every size as an
   expression over the plan's variables. Immutable once built and reference-counted; usable from any
   thread. */
#ifndef TENON_RUNTIME_EXECUTABLE_H
#define TENON_RUNTIME_EXECUTABLE_H

#include "device/program/program.h"
#include "runtime/build_request.h"
#include "runtime/executable_queues.h"
#include "runtime/uid_index.h"
#include "schedule/kernels/kernel_counts.h"

typedef enum buffer_role {
  BUFFER_ROLE_INPUT,   /* a BUFFER of the graph; each execution binds its memory */
  BUFFER_ROLE_OUTPUT,  /* a root's value that is in no input: its own memory in each execution */
  BUFFER_ROLE_SCRATCH, /* live between two steps; the execution plans its place */
  BUFFER_ROLE_STATE,   /* of a loop: an alias, bound in each trip to the buffer that holds the
                          state, or that receives it (double buffering) */
  BUFFER_ROLE_VIEW     /* a part of the memory of an output or scratch buffer */
} buffer_role;

typedef struct executable_buffer {
  dtype dtype;
  buffer_role role;
  bool is_written;      /* an input that is changed in place */
  int64_t uid, version; /* BUFFER_ROLE_INPUT: of the BUFFER node */
  size_t first, last;   /* BUFFER_ROLE_SCRATCH: live range, in steps, inclusive */
  size_t within;        /* BUFFER_ROLE_VIEW: the buffer that it is a part of, */
  uint64_t start;       /* from this element on */
  size_t segment;       /* in which it gets its place: its size is known, and that of `within` */
  size_t device;        /* index into `targets` */
} executable_buffer;

/** A size that a run computes: an element, which the host reads when its segment begins. */
typedef struct executable_item {
  const char *name; /* of the tensor whose element it is, for messages; "": none */
  size_t buffer;    /* of one i64 */
  size_t var;       /* the variable that it becomes */
  int64_t min;
  size_t most;    /* the greatest value, an index into `sizes` */
  size_t guard;   /* index into `sizes`: it has no bounds where that is 0; SIZE_MAX: always */
  size_t segment; /* n_segments: no step needs it */
  size_t writer;  /* the step that computes it */
} executable_item;

/** A plan step. A loop's body is the `n_steps` steps that follow it. */
typedef struct executable_step {
  step_kind kind;
  const char *name; /* the operations it computes, for reports */
  size_t program;   /* STEP_KERNEL: index into `programs` */
  size_t n_buffers;
  const size_t *buffers; /* STEP_KERNEL: in launch order; STEP_CUSTOM: inputs, then the result;
                            STEP_LOOP: those that stay live for the whole loop */
  uint64_t scratch;      /* STEP_KERNEL: bytes of an extra buffer for each worker; 0: none */
  const size_t *values;  /* STEP_KERNEL: variable of each launch value; SIZE_MAX: worker count */
  int64_t uid, output;   /* STEP_CUSTOM: of the node */
  /* STEP_LOOP: */
  size_t n_steps; /* steps of the body, inner loops with their bodies included */
  size_t trips;   /* index of the trip count in `sizes` */
  size_t trip;    /* variable that holds the trip's number; SIZE_MAX: unread */
  const schedule_state *states;
  size_t n_states;
  size_t until; /* the state that ends the loop where it is true, a bool; SIZE_MAX: none */
  /* Any step: */
  size_t parent;        /* the innermost loop that contains it; SIZE_MAX: none */
  size_t segment;       /* steps between two reads of ITEMs are a segment */
  size_t guard;         /* index into `sizes`: skipped where that is 0; SIZE_MAX: never */
  size_t guard_segment; /* in which its guards, those of loops around it too, are known */
  size_t device;        /* that it runs on; STEP_COPY: to which it copies buffer 1, as buffer 0 */
} executable_step;

/** Numbers of things by segment: those of segment s are at[first[s]] … at[first[s + 1] − 1]. What
    only sizes of roots need is in segment n_segments. */
typedef struct segment_list {
  size_t *at, *first;
} segment_list;

/** The things that become known, or are due, as segments begin, each list in ascending order. */
typedef struct executable_segments {
  segment_list terms;   /* of `sizes` */
  segment_list results; /* of `sizes`, but those of buffers */
  segment_list buffers, steps, items;
} executable_segments;

/** Operation and byte counts of a kernel. */
typedef struct executable_kernel_counts {
  const kernel_count_term *items;
  size_t n_items;
  size_t first; /* index of its first size in `count_sizes` */
} executable_kernel_counts;

typedef struct executable {
  atomic_size_t count; /* references */
  const mem *mem;
  arena arena; /* owns everything below */
  const device_target *target;
  executable_host host;
  char *name;
  executable_buffer *buffers;
  size_t n_buffers;
  uid_index_entry *inputs; /* BUFFER_ROLE_INPUT buffers by (uid, version) */
  size_t n_inputs;
  size_t *outputs; /* buffer of each root */
  executable_step *steps;
  size_t n_steps;
  tn_program **programs;                   /* the distinct kernels */
  executable_kernel_counts *kernel_counts; /* of each program */
  size_t n_programs;
  size_t n_compiled;    /* programs that no cache had when it was built */
  tn_program_var *vars; /* sorted by name */
  size_t n_vars;
  bool has_guards;
  executable_item *items; /* `most` of each depends on earlier ones alone */
  size_t n_items, n_segments;
  executable_segments segments;
  segment_list users; /* steps by the buffer of which they list a part; empty without guards */
  size_t *root_sizes; /* of each root: its first size in `sizes`; NULL: there are no ITEMs */
  launch_exprs sizes; /* elements of each buffer; trip counts, guards, bounds of ITEMs, sizes of
                         roots */
  launch_exprs count_sizes;      /* sizes in `kernel_counts` */
  const device_target **targets; /* of each device; the first is `target` */
  size_t n_targets;
  size_t *program_devices; /* of each program */
  executable_queues queues;
  schedule_slot *slots; /* of watched nodes */
  size_t n_slots;
} executable;

executable *executable_retain(executable *p);
void executable_release(executable *p); /* NULL is allowed */

size_t executable_buffers(const executable *p);
const executable_buffer *executable_buffer_at(const executable *p, size_t i);
/** The buffer that holds the value of a root. */
size_t executable_output(const executable *p, size_t root);

/** True if runs compute sizes, of roots too: execution_root_sizes tells these. */
bool executable_computes_sizes(const executable *p);
/** The buffer of BUFFER(uid, version); SIZE_MAX if it is not read. */
size_t executable_input(const executable *p, int64_t uid, int64_t version);
size_t executable_steps(const executable *p);
/** The number of distinct kernels, counted for each device. */
size_t executable_kernels(const executable *p);

/** Number of these that no cache had when the executable was built. */
size_t executable_compiled_kernels(const executable *p);

/** True if a step writes its k-th buffer, or, of a loop, may. */
bool executable_step_writes(const executable *p, const executable_step *s, size_t k);

/** Orders variables (tn_program_var) by name. */
int executable_compare_vars(const void *a, const void *b);

/** The number of variables, which are sorted by name. */
size_t executable_vars(const executable *p);
const tn_program_var *executable_var_at(const executable *p, size_t i);
/** The variable of that name; SIZE_MAX if there is none. */
size_t executable_var(const executable *p, const char *name);

/** The device that a buffer is on. */
static inline tn_device *executable_device_of(const executable *p, size_t buffer) {
  return p->targets[p->buffers[buffer].device]->device;
}

/** The device of the first queue: of all lists, where there is one queue. */
static inline tn_device *executable_first_device(const executable *p) {
  return p->targets[p->queues.at[0].device]->device;
}

/** The library that a step is a call of; NULL: none. */
static inline const char *executable_step_library(const executable *p, size_t step) {
  const executable_step *s = &p->steps[step];
  return s->kind == STEP_KERNEL ? p->programs[s->program]->library : NULL;
}

/* For the builders of executables (build_executable.c, plan_record.c): */

/** Sets the targets of the devices that the request's graph names, in the arena. Raises
    TN_ERR_DEVICE for one that the request lacks. */
void executable_set_targets(executable *p, const executable_request *r, size_t n_devices);

/** Fills `inputs` from `buffers`. */
void executable_index_inputs(executable *p);

/** Resolves the name of a kernel's launch value to a variable, or to SIZE_MAX for the number of
    workers; false if it is neither. */
bool executable_resolve_value(const executable *p, const char *name, size_t *var);

/** True if a step, or a loop that contains it, has a guard that is known in a segment, and 0. */
bool executable_skips(const executable *p, size_t step, size_t segment, const int64_t sizes[]);

/** Sets `parent` of each step. */
void executable_link_loops(executable *p);

/** Numbers the sizes of all roots, from the size `first` on. */
void executable_set_root_sizes(executable *p, const node *const roots[], size_t n, size_t first);

/** Divides the steps into segments, by the ITEMs that decide sizes which they mention; false if a
    step mentions one before it is computed. Works in `work`. Raises TN_ERR_MEMORY. */
bool executable_link_items(executable *p, arena *work);

#endif
