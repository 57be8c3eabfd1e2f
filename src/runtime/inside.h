/* The inside of executables, for executable.c and execution.c. */
#ifndef TENON_RUNTIME_INSIDE_H
#define TENON_RUNTIME_INSIDE_H

#include "device/launch.h"
#include "runtime/executable.h"
#include "schedule/work.h"

typedef struct executable_step {
  step_kind kind;
  const char *name; /* what it computes */
  size_t program;   /* STEP_KERNEL: its number */
  size_t n_buffers;
  const size_t *buffers; /* in a launch's order; inputs, then the result, of a CUSTOM */
  uint64_t scratch;      /* STEP_KERNEL: bytes of a buffer more, for each worker */
  const size_t *values;  /* STEP_KERNEL: the variable of each value; SIZE_MAX: the worker count */
  int64_t uid, output;   /* STEP_CUSTOM */
  /* STEP_LOOP: `buffers` live as long as it runs. */
  size_t n_steps; /* that follow and are run for each trip */
  size_t trips;   /* how many, in `sizes` */
  size_t trip;    /* the variable that is the number of each; SIZE_MAX: nobody reads it */
  const schedule_state *states;
  size_t n_states;
  size_t around; /* the innermost LOOP around a step; SIZE_MAX: none */
} executable_step;

/** How much a kernel does. */
typedef struct executable_work {
  const work_item *items;
  size_t n_items;
  size_t first; /* its sizes, in `work_sizes` */
} executable_work;

/** Which one, of buffers or of a list, a BUFFER or CUSTOM node is. */
typedef struct executable_place {
  int64_t uid, version; /* or output */
  size_t at;
} executable_place;

/** Sorts places, and finds one among them: its `at`, SIZE_MAX if there is none. */
void executable_sort_places(executable_place places[], size_t n);
size_t executable_find_place(const executable_place places[], size_t n, int64_t uid,
                             int64_t version);

struct executable {
  atomic_size_t count;
  const mem *mem;
  arena arena; /* all of what follows */
  const device_target *target;
  char *name;
  executable_buffer *buffers;
  size_t n_buffers;
  executable_place *inputs; /* by uid and version */
  size_t n_inputs;
  size_t *outputs;
  executable_step *steps;
  size_t n_steps;
  tn_program **programs;
  executable_work *works; /* of each program */
  size_t n_programs;
  tn_program_var *vars; /* by name */
  size_t n_vars;
  launch_code sizes; /* elements of each buffer, the sizes asked for, trips of each loop */
  launch_code work_sizes;
  executable_host host;
};

/** Lists the inputs among an executable's buffers. */
void executable_list_inputs(executable *p);

/** The variable of a kernel's value, or SIZE_MAX for the number of workers; false if it is neither.
 */
bool executable_find_value(const executable *p, const char *name, size_t *var);

/** Finds for each step the loop around it. */
void executable_find_loops(executable *p);

#endif
