/* Asks a kernel for teams of workers for the memory and the workers of its groups, and makes its
   ranges digits: steps of its schedule share this. */
#include "codegen/choose/teams.h"
#include "laws/team_arrays.h"

double team_shared_bytes(const choice *c, const node *sink) {
  ir *g = c->laws.g;
  team_arrays t = team_arrays_of(g, sink);
  node_list order = topo_sort(ir_arena(g), &sink, 1, NULL, NULL);
  double bytes = 0;
  for (size_t i = 0; i < order.n; i++) {
    const node *b = order.at[i];
    if (b->op == OP_FOLD && range_is_digit(fold_innermost_range(b)))
      bytes += (double)(2 * fold_n_states(b) * sizeof(double)) * (double)t.digits.workers;
    for (size_t k = 0; b->op == OP_STAGE && k < stage_n_values(b); k++) {
      if (team_arrays_find(&t, b, k)->widest == KIND_LOOP || law_find_out(sink, b)) continue;
      double elements = (double)stage_slots(b);
      for (size_t p = 0; p < stage_rank(b, k); p++) elements *= (double)stage_extents(b, k)[p]->hi;
      const node_list *open = map_get(&t.open, b);
      for (size_t p = 0; p < open->n; p++)
        if (range_is_digit(open->at[p]) && range_kind_of(open->at[p]) != KIND_GLOBAL &&
            team_differs_along(g, b, open->at[p]))
          elements *= (double)node_int(team_digits_find(&t.digits, open->at[p])->extent);
      bytes += elements * (double)dtype_bytes((dtype)stage_value(b, k)->dtype);
    }
  }
  return bytes;
}

int64_t team_side(const choice *c, int64_t axis) {
  node_list nodes = law_index_of(&c->laws, c->sink).nodes;
  team_digits t = team_digits_of(c->laws.g, &nodes);
  for (size_t i = 0; i < t.all.n; i++)
    if (t.all.at[i].kind == KIND_LOCAL && t.all.at[i].axis == axis)
      return node_int(t.all.at[i].extent);
  return 0;
}

bool team_set_digit(choice *c, const node **range, range_kind kind, int64_t axis) {
  const node *changed;
  if (!*range) return true;
  if (!choice_take(c, law_kind_on_axis(&c->laws, c->sink, *range, kind, axis, &changed)))
    return false;
  *range = changed;
  return true;
}
