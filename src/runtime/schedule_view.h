/* A schedule as callers see it: steps, kernels, buffers and slots, copied from the schedule's
   graph, with offsets where all sizes are numbers. */
#ifndef TENON_RUNTIME_SCHEDULE_VIEW_H
#define TENON_RUNTIME_SCHEDULE_VIEW_H

#include "base/map.h"
#include "device/core/device_target.h"
#include "schedule/core/schedule_types.h"

typedef struct view_step {
  const char *name;
  const char *what; /* kind of a step without a kernel; "": it has one */
  size_t kernel;    /* SIZE_MAX: none */
  const size_t *buffers;
  size_t n_buffers, n_outputs;
  size_t n_steps; /* of a loop: steps of its body */
  const char *device;
} view_step;

typedef struct view_kernel {
  const char *name, *text;
  size_t n_steps;      /* that run it */
  const char *library; /* static; NULL: it is compiled */
} view_kernel;

typedef struct view_buffer {
  const char *kind;
  dtype dtype;
  int64_t elements; /* −1: they vary */
  size_t first, last;
  size_t within;   /* of a view: the buffer that it is a part of; SIZE_MAX: none */
  uint64_t offset; /* in the plan's own memory, or of a view in its buffer, in bytes */
  bool is_own;     /* in the plan's own memory */
} view_buffer;

typedef struct schedule_view {
  arena arena; /* of all below */
  VEC(view_step) steps;
  VEC(view_kernel) kernels;
  VEC(view_buffer) buffers;
  schedule_slot *slots; /* of watched nodes */
  size_t n_slots;
  bool has_offsets; /* all sizes are numbers, and there is one device */
  uint64_t bytes;   /* of the plan's own memory */
} schedule_view;

/** Fills an open view; the last `n_watched` slots of the schedule are the watched ones;
    `programs` of a device: kernel → its index + 1. Raises. */
void schedule_view_fill(schedule_view *v, const schedule *s, const node_list *kernels,
                        const map programs[], const device_target *const targets[],
                        size_t n_watched);

#endif
