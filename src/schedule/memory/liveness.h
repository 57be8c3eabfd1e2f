/* Analyses the liveness of buffers: which ones live between the steps of a schedule, in a given
   order, and how much memory that takes. Open sizes count as likely ones: orders are compared
   by them, and memory is planned anew when the sizes are known. */
#ifndef TENON_SCHEDULE_MEMORY_LIVENESS_H
#define TENON_SCHEDULE_MEMORY_LIVENESS_H

#include "schedule/core/schedule_types.h"

/** A step may write its result `to` over its operand `from`, if `from` dies there. */
typedef struct reuse {
  size_t to, from; /* buffers */
} reuse;

typedef VEC(reuse) reuses;

/** The buffers of a step, each once: those that it writes first. */
typedef struct step_accesses {
  const size_t *buffers;
  size_t n, n_written;
  const struct array_accesses *parts; /* of each buffer that has places; NULL: there is none */
  reuses may;                         /* in-place reuses that its index maps allow */
} step_accesses;

typedef struct lives {
  arena *a;
  size_t n_steps, n_buffers;
  step_accesses *steps;
  uint64_t *bytes; /* of each buffer in the plan's own memory; 0 for others */
  size_t *users;   /* for each buffer, the steps that use it */
} lives;

/** The accesses of all steps, in the ir's scratch arena; their possible reuses are still empty. */
lives liveness_of(ir *g, const schedule *s);

/* An order is a list of step numbers; NULL: the present order. */

/** Fills in for each step, in an order, the bytes that live while it runs if no memory is reused in
    place (`need`), and the reuses that are possible then as the operand dies (`taken`). Returns the
    most bytes that live at once with these reuses. */
double liveness_peak_bytes(const lives *l, const size_t order[], double need[], reuses taken[]);

/** The bytes of the memory plan for an order with the reuses `taken`, of each step in that order.
 */
uint64_t liveness_plan_bytes(const lives *l, const size_t order[], const reuses taken[]);

/** For each buffer the one whose memory it shares (itself, without reuse). */
size_t *liveness_storage(const lives *l, const reuses taken[]);

/** True if no step, in this order, reads a buffer that was written over before. */
bool liveness_is_safe(const lives *l, const size_t order[], const size_t homes[]);

/** Sets the first and last step that uses each buffer of a schedule. */
void liveness_set_ranges(schedule *s);

#endif
