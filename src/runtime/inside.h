/* The inside of plans, for plan.c and binding.c. */
#ifndef TENON_RUNTIME_INSIDE_H
#define TENON_RUNTIME_INSIDE_H

#include "device/launch.h"
#include "runtime/plan.h"

typedef struct plan_step {
  step_kind kind;
  size_t program; /* STEP_KERNEL: its number */
  size_t n_buffers;
  const size_t
      *buffers;        /* of the plan: in a launch's order; inputs, then the result, of a CUSTOM */
  int64_t uid, output; /* STEP_CUSTOM */
} plan_step;

struct plan {
  atomic_size_t count;
  const mem *mem;
  arena arena; /* all of what follows */
  const device_target *target;
  char *name;
  plan_buffer *buffers;
  size_t n_buffers;
  size_t *outputs;
  plan_step *steps;
  size_t n_steps;
  tn_program **programs;
  size_t n_programs;
  tn_program_var *vars; /* by name */
  size_t n_vars;
  launch_code sizes; /* elements of each buffer, then the sizes asked for */
  plan_host host;
};

#endif
