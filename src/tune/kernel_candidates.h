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

/** Where the filling of the queue is. */
typedef struct candidate_fill {
  bool is_open;        /* schedules are still added */
  bool has_neighbours; /* the first filling is over, with those that differ in one decision */
  size_t decision, alternative; /* the next neighbour's */
  int drawn;                    /* random ones */
  int n;                        /* fillings since a schedule was given */
} candidate_fill;

typedef struct kernel_candidates {
  arena *arena; /* of all lists; raises */
  const node *sink;
  codegen_options options;
  decision_list present;       /* decisions of the schedule that others are made from */
  double best;                 /* the shortest predicted time so far */
  kernel_candidate usual;      /* what compiling finds */
  const char *library;         /* decisions that stand for a call of one; NULL: there is none */
  string_map seen;             /* texts of schedules that are not given (again) */
  VEC(kernel_candidate) queue; /* the one with the shortest time last, once it is filled */
  candidate_fill fill;
  uint64_t random;
  uint64_t n_predicted;
} kernel_candidates;

/** Begins with the schedule that compiling finds; false if there is none, or it has no other. It is
    given too, unless it is skipped. `library`: decisions that stand for a call of a library in
    place of the kernel, which is given first of the others; NULL: none does. */
bool kernel_candidates_begin(kernel_candidates *k, arena *a, const node *sink,
                             const codegen_options *o, const char *library,
                             kernel_candidate *usual);

/** Makes a schedule the present one; false, without an effect, if the kernel has none with exactly
    these decisions. A call of the library has no decisions, and is predicted to take as long as the
    usual schedule: later candidates differ from the schedule before it. */
bool kernel_candidates_take(kernel_candidates *k, const char *text, kernel_candidate *taken);

/** Marks a schedule as one that is not to be given. */
void kernel_candidates_skip(kernel_candidates *k, const char *text);

typedef enum candidate_answer {
  CANDIDATE_GIVEN,
  CANDIDATE_SOUGHT, /* one schedule was predicted, and more are to be before one is given */
  CANDIDATE_NONE    /* none is left, or none was found */
} candidate_answer;

/** Gives another schedule, or takes one step towards it. */
candidate_answer kernel_candidates_next(kernel_candidates *k, kernel_candidate *next);

#endif
