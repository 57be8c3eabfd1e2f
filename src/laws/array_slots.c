/* Implements DEPTH: double buffering, also in more than two slots. Iteration i of the innermost
   loop around an array uses slot i mod d, while the array of iteration i + d − 1 is built:

     for r { A = STAGE(v(r)); … A … }
       →   for p < d − 1 { A[p] = STAGE(v(p)) }
           for r { A[(r + d − 1) mod d] = STAGE(v(r + d − 1)); … A[r mod d] … }

   Copies of an element are not ordered before they are waited for, so none is stored twice. The
   kernel keeps one STAGE, and lowering makes both of it (codegen/lower/lower_slots.c). A later
   law may break a condition: lowering asks again, and builds such an array where it is read. */
#include "laws/array_slots.h"

#include "ir/core/topo_sort.h"
#include "ir/index/write_once.h"
#include "laws/law_support.h"

enum { MOST_SLOTS = 8 };

const char *array_slots_objection(ir *g, const node *sink, const team_arrays *t, const node *stage,
                                  const node **turn) {
  if (stage->op != OP_STAGE || stage_n_values(stage) != 1 || stage_is_cut(stage))
    return "the STAGE is not one array";
  node_list order = topo_sort(ir_arena(g), &sink, 1, NULL, NULL);
  const char *why = law_readers_objection(&order, stage);
  if (why) return why;
  if (team_array_space(team_arrays_find(t, stage, 0), stage_rank(stage, 0)) == SPACE_REGISTER)
    return "the array is a register";
  if (!stage_writes_once(stage, 0)) return "elements of the array may be copied twice at a time";
  if (!law_computes_from_buffers(ir_arena(g), stage) ||
      law_reads_output(&(laws){.g = g}, sink, stage))
    return "the array depends on what the kernel computes";
  const node_list *open = map_get(&t->open, stage);
  for (size_t i = 0; i < open->n; i++)
    if (range_kind_of(open->at[i]) == KIND_VECTOR) return "the array is built inside of a vector";
  *turn = open->n ? vec_last(open) : NULL;
  bool is_loop = *turn && range_kind_of(*turn) == KIND_LOOP;
  return is_loop ? NULL : "the array is not built directly inside of a loop";
}

const node *law_depth(laws *l, const node *sink, const node *stage, int64_t slots) {
  const node *turn;
  if (slots < 2 || slots > MOST_SLOTS) return law_refuse(l, "an array has 2 to 8 slots");
  if (stage->op != OP_STAGE || law_find_out(sink, stage))
    return law_refuse(l, "the STAGE is not one array");
  team_arrays t = team_arrays_of(l->g, sink);
  const char *why = array_slots_objection(l->g, sink, &t, stage, &turn);
  if (why) return law_refuse(l, why);
  const node *made = law_replace(l, sink, stage, binder_with_slots(l->g, stage, slots));
  law_args args = {.subject = stage, .number = slots};
  return law_record(l, sink, made, LAW_DEPTH, &args, NULL);
}
