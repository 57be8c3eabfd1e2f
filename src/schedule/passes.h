/* The passes of schedule_make, and what they hand on. */
#ifndef TENON_SCHEDULE_PASSES_H
#define TENON_SCHEDULE_PASSES_H

#include "base/map.h"
#include "ir/topo.h"
#include "schedule/lives.h"

/** normalise.c: the graph copied into a scratch ir, BUFFERs as PARAMs numbered in order of
    appearance, and simplified. */
typedef struct loop_plan loop_plan;
typedef struct normalised {
  const node **roots;
  size_t n_roots;
  const node **labelled;     /* what has become of the node of each label */
  VEC(const node *) origins; /* the BUFFER behind each PARAM slot */
  map copies;                /* nodes that copy what they move: kernels of their own */
  map last_copy;             /* a node → the last copy of it */
  VEC(loop_plan *) loops;    /* of the RESULTs in it, by number − 1 */
} normalised;
void schedule_normalise(ir *g, const schedule_request *r, normalised *out);

/** A loop whose body is a graph of its own, over PARAMs in the place of what it reads and writes.
 */
struct loop_plan {
  const node *loop; /* the LOOP that it was */
  const node *trip; /* a variable: the number of the trip */
  size_t depth;     /* loops around it */
  normalised body;
  size_t *now, *next; /* slots of each state; equal: it is changed where it is */
  size_t *emits;      /* slots of the emitted arrays */
  size_t *captured;   /* slots of what is read of the graph around it, beyond the inits */
  size_t n_captured;
  bool *is_written; /* each slot */
};

/** loops.c: takes the outermost LOOPs out of a graph that has `depth` loops around it. */
void schedule_loops(ir *g, const schedule_request *r, normalised *n, size_t depth);

/** loops.c: whether a result is a state that no trip changes, which the step of the loop leaves
 * out.
 */
bool loops_is_fixed(const loop_plan *p, size_t component);

/** loops.c: whether a trip may write the array of a PARAM; `user`: its loop_plan. */
bool loops_may_write(void *user, const node *param);

/** loops.c: puts the steps of loops' bodies, which `make` schedules, behind those of the loops. */
typedef schedule *(*schedule_maker)(ir *g, const schedule_request *r, normalised *n, size_t depth);
void schedule_bodies(ir *g, const schedule_request *r, schedule *s, schedule_maker make);

/** versions.c: copies where a SET may not write over the old contents, or a root is an input. */
void schedule_versions(ir *g, const schedule_request *r, normalised *n);

/** versions.c: what a copy of an array is: a movement that changes nothing. */
const node *versions_identity(ir *g, const node *x);

/** versions.c: all other readers of what each of these SETs changes read a copy, made before. */
void versions_copy_for_readers(ir *g, normalised *n, const node *const sets[], size_t n_sets);

/** lanes.c: ranges along which an array lies in blocks of whole vectors become two. */
void schedule_lanes(ir *g, const schedule_request *r, schedule *s);

/** layouts.c: which axis of each array of the plan's own is consecutive. */
void schedule_layouts(ir *g, const schedule_request *r, schedule *s);

/** order.c: the steps in an order for which the plan needs less memory, where one is found; or, if
    `seed` is not 0, in one of those that are tried. */
void schedule_order(lives *l, uint64_t seed, schedule *s);

/** reuse.c: what the index maps of each step allow to be written over what it reads. */
void schedule_find_reuses(ir *g, const schedule *s, lives *l);

/** reuse.c: dying arrays that results are written over, where that makes the plan smaller (or
    `always`), become one buffer with them. Other buffers keep their numbers. */
void schedule_reuse(ir *g, const lives *l, bool always, schedule *s);

/** rename.c: the buffers of a kernel whose PARAMs are numbered as buffers: outputs first. */
const size_t *kernel_buffers(ir *g, const node *sink, size_t *n);

/** rename.c: steps' kernels with their PARAMs numbered by position among the step's buffers, and
    their ranges by order, so that equal kernels are the same node. */
void schedule_rename(ir *g, schedule *s);

#endif
