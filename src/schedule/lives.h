/* What lives between the steps of a schedule, in whatever order they run. Sizes that vary are
   typical ones: orders are compared by them, and memory is planned anew when they are known. */
#ifndef TENON_SCHEDULE_LIVES_H
#define TENON_SCHEDULE_LIVES_H

#include "schedule/schedule.h"

/** The array `to` of a step may be written over `from`, which it reads, if that dies there. */
typedef struct reuse {
  size_t to, from; /* buffers */
} reuse;

typedef VEC(reuse) reuses;

/** The buffers of a step, each once: those that it writes, then the others. */
typedef struct step_uses {
  const size_t *buffers;
  size_t n, n_written;
  reuses may; /* what its index maps allow */
} step_uses;

typedef struct lives {
  arena *a;
  size_t n_steps, n_buffers;
  step_uses *steps;
  uint64_t *bytes; /* of each buffer that is the plan's own memory; 0 of others */
  size_t *users;   /* how many steps use it */
} lives;

/** `may` is still empty. */
lives lives_of(ir *g, const schedule *s);

/* Orders are lists of the steps' numbers; NULL: as they are. */

/** For each of the steps, in an order: the bytes that live while it runs if each array has its own;
    and what is taken of what the steps may reuse, as nothing needs the old contents any more.
    Returns the most that live at once with that. */
double lives_peak(const lives *l, const size_t order[], double need[], reuses taken[]);

/** The bytes of a plan for an order, in which `taken` (of each step in that order) is reused. */
uint64_t lives_bytes(const lives *l, const size_t order[], const reuses taken[]);

/** The buffer in whose memory each one is. */
size_t *lives_homes(const lives *l, const reuses taken[]);

/** Whether every step, in this order, finds what it reads: nothing was written over it. */
bool lives_hold(const lives *l, const size_t order[], const size_t homes[]);

/** Writes into a schedule's buffers between which steps they are in use. */
void lives_set(schedule *s);

#endif
