/* Recorded times of kernels: the text of a recording, which the recorder writes and the test of the
   cost model reads, and the schedules of its kernels by the compiler of today.

     machine NAME, DATE
     target 64 32 1 …                     the fields of recorded_target, in order
     kernel NETWORK NUMBER                a kernel of the first network that has it
     %0 = …                               its graph, as ir/text/print.h writes it
     schedule DECISIONS HASH NS           a schedule as codegen/decisions.h writes it, the hash of
   its linear program, and the shortest time of a call

   The first schedule of a kernel is the one that the search found when it was recorded. */
#ifndef TENON_BENCH_CORPUS_H
#define TENON_BENCH_CORPUS_H

#include "codegen/codegen.h"

#include <stdio.h>

enum { CORPUS_HASH_BYTES = 17 };

typedef struct recorded_schedule {
  const char *decisions, *hash;
  double ns;
} recorded_schedule;

typedef struct recorded_kernel {
  const char *network, *name, *text;
  VEC(recorded_schedule) schedules;
} recorded_kernel;

typedef struct corpus {
  const char *machine;
  codegen_options options; /* target and math mode */
  VEC(recorded_kernel) kernels;
} corpus;

/** Reads a recording; all of it is in the arena. Raises TN_ERR_FORMAT. */
corpus corpus_read(arena *a, char *text);

/** Writes the first lines of a recording. */
void corpus_write_target(FILE *to, const codegen_options *o);

/** A schedule by the compiler of today. */
typedef struct corpus_schedule {
  kernel_cost cost;
  char hash[CORPUS_HASH_BYTES];
} corpus_schedule;

/** Schedules a kernel in an ir that has nothing else; false: it has no schedule with these
    decisions, or no code. `summary`: of the scheduled kernel, in the ir's arena; or NULL. */
bool corpus_schedule_of(ir *g, const recorded_kernel *k, const char *decisions,
                        const codegen_options *o, corpus_schedule *s, kernel_summary *summary);

#endif
