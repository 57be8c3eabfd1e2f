/* What an execution's last run was like: its sizes, what its steps did, and when, where that is
   noted. */
#ifndef TENON_RUNTIME_RECORD_H
#define TENON_RUNTIME_RECORD_H

#include "runtime/execution.h"

typedef struct record {
  const executable *p;
  int64_t *stamps;       /* of each step, when it began and ended; NULL: never profiled */
  int64_t *first, *busy; /* with them: when it first began, and how long it ran in all trips */
  int64_t *times;        /* how often */
  bool is_profiled;
  bool has_stamps;            /* of the last run */
  bool has_run, is_told;      /* the next two are those of `ran` */
  int64_t *told, *work_sizes; /* the sizes of buffers; and those of what kernels do */
  int64_t *ran;               /* the values of the last run */
  int64_t *room, *work_room;
} record;

/** A record of no run, in an arena. Raises when there is no memory, as does record_open_stamps. */
record record_open(arena *a, const executable *p);

/** Makes the room for times, once. */
void record_open_stamps(record *r, arena *a);

/** A run with values of the variables begins, and ends. */
void record_begin(record *r, const int64_t values[]);
void record_end(record *r, bool done);

/** A step ran from one time to another, in a trip. */
void record_step_ran(record *r, size_t step, int64_t begin, int64_t end);

/** The i-th step, which there is. */
execution_step record_step(record *r, size_t i);

#endif
