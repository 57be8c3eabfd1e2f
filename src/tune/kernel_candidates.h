/* Enumerates other schedules of a kernel for the tuner: first the one that compiling finds, where
   another is the present one, then those that differ from the present one in one decision, then
   random ones that differ in two. The cost model orders them, and drops those that it expects to be
   far slower than the best. */
#ifndef TENON_TUNE_KERNEL_CANDIDATES_H
#define TENON_TUNE_KERNEL_CANDIDATES_H

#include "base/map.h"
#include "codegen/codegen.h"

typedef struct kernel_candidate {
  const char *text; /* of the decisions */
  double predicted; /* ns */
} kernel_candidate;

typedef struct kernel_candidates {
  arena *arena; /* of all lists; raises */
  const node *sink;
  codegen_options options;
  decision_list present;       /* decisions of the schedule that others are made from */
  double best;                 /* the shortest predicted time so far */
  kernel_candidate usual;      /* what compiling finds */
  string_map seen;             /* texts of schedules that are not given (again) */
  VEC(kernel_candidate) queue; /* the one with the shortest time last */
  bool has_neighbours;         /* the queue got those that differ in one decision */
  uint64_t random;
  uint64_t n_predicted;
} kernel_candidates;

/** Begins with the schedule that compiling finds; false if there is none, or it has no other. It is
    given too, unless it is skipped. */
bool kernel_candidates_begin(kernel_candidates *k, arena *a, const node *sink,
                             const codegen_options *o, kernel_candidate *usual);

/** Makes a schedule the present one; false, without an effect, if the kernel has none with exactly
    these decisions. */
bool kernel_candidates_take(kernel_candidates *k, const char *text, kernel_candidate *taken);

/** Marks a schedule as one that is not to be given. */
void kernel_candidates_skip(kernel_candidates *k, const char *text);

/** Gives another schedule; false: none is left, or none was found. */
bool kernel_candidates_next(kernel_candidates *k, kernel_candidate *next);

#endif
