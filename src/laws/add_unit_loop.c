/* Implements UNIT: adds a unit loop to a STAGE (array builder), STAGE over r… → STAGE over u, r…,
   with an outermost range u of extent 1. KIND gives that range to threads where a nest has no other
   range for them: one worker runs it. */
#include "ir/index/index_arithmetic.h"
#include "laws/law_support.h"

const node *law_unit(laws *l, const node *sink, const node *stage, const node **unit) {
  ir *g = l->g;
  if (stage->op != OP_STAGE) return law_refuse(l, "the binder is not a STAGE");
  size_t n = stage_n_ranges(stage);
  const node **all = arena_alloc(ir_arena(g), (n + 1) * sizeof *all);
  all[0] = *unit = range_make(g, ix_const(g, 1), KIND_LOOP);
  for (size_t i = 0; i < n; i++) all[i + 1] = stage_range(stage)[i];
  const node *made = binder_with_ranges(g, stage, stage->src, n + 1, all);
  made = law_replace(l, sink, stage, made);
  return law_record(l, sink, made, LAW_UNIT, &(law_args){.subject = stage}, unit);
}
