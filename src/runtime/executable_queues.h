/* The queues of an executable: a queue for the kernels of each device, and one for the copies to
   it. Steps of one queue run in order; a step waits for those of other queues that access the same
   buffers, unless it is ordered after them already. Queues meet where a section of the plan ends:
   at both ends of a loop, where the host reads sizes, and where steps are skipped. A plan whose
   steps all run on one device has one queue, and nothing waits. */
#ifndef TENON_RUNTIME_EXECUTABLE_QUEUES_H
#define TENON_RUNTIME_EXECUTABLE_QUEUES_H

#include <stdbool.h>
#include <stddef.h>

struct executable;

typedef struct executable_queue {
  size_t device;
  bool copies; /* to the device; else its kernels and host functions run there */
} executable_queue;

typedef struct executable_queues {
  executable_queue *at; /* the first is that of the kernels of device 0, or of the only device */
  size_t n;
  /* With several queues: */
  size_t *of_step;
  size_t *first_wait, *waits; /* step i waits for waits[first_wait[i]] … waits[first_wait[i + 1] −
                                 1], steps of other queues of its section */
  bool *is_awaited;           /* each step, by others */
  size_t *free_buffer;        /* of each buffer: the step after which its memory may be used again,
                                 by any queue of its device */
  size_t *free_step;          /* likewise of each step's own memory */
} executable_queues;

/** Finds the queues of an executable whose steps, loops and segments are linked. Raises through its
    arena. */
void executable_link_queues(struct executable *p);

/** True if a section of the plan begins at a step: a loop or a segment begins or ends there, or
    steps that are skipped together. */
bool executable_begins_section(const struct executable *p, size_t step);

#endif
