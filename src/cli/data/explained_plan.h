/* Lists the contents of a plan's explanation, for printing: its steps, its kernels and the passes
   that made them. */
#ifndef TENON_CLI_DATA_EXPLAINED_PLAN_H
#define TENON_CLI_DATA_EXPLAINED_PLAN_H

#include "base/vec.h"

#include <tenon/unstable/explain.h>

typedef struct explained_plan {
  VEC(tn_explained_step) steps;
  VEC(tn_explained_kernel) kernels;
  VEC(tn_explained_pass) passes;
} explained_plan;

/** Lists an explanation, which must outlive the lists. In the arena, which raises. */
explained_plan explained_plan_list(const tn_explanation *explanation, arena *a);

/** The parts of a predicted time: "instructions 1.2 ms, second cache 0.1 ms, …". */
const char *predicted_parts(arena *a, const tn_explained_time *t);

#endif
