/* Marks short innermost loops as unrolled: the target's compiler repeats their bodies, as the
   exit of a loop of three iterations, the taps of a window, is mispredicted each time. The loop
   itself stays one in the program, so the number of nodes does not grow. */
#include "codegen/codegen.h"
#include "codegen/lower/loop_tree.h"
#include "ir/core/binder.h"
#include "ir/transform/substitute.h"
#include "target/machine.h"

static bool is_short(const loop *l) {
  const node *extent = range_extent(l->range);
  return !l->has_loops && range_kind_of(l->range) == KIND_LOOP && node_is_const(extent) &&
         node_int(extent) > 1 && node_int(extent) <= MACHINE_SHORT_LOOP_MOST;
}

const node *codegen_short_loops(ir *g, const node *sink) {
  arena *a = ir_arena(g);
  node_list order = topo_sort(a, &sink, 1, NULL, NULL);
  loop_tree tree;
  map with = {0};
  loop_tree_make(&tree, a, &order);
  for (size_t i = 0; i < order.n; i++) {
    const loop *l = order.at[i]->op == OP_RANGE ? map_get(&tree.loops, order.at[i]) : NULL;
    if (l && is_short(l))
      map_set(a, &with, l->range,
              (void *)range_with(g, l->range, range_extent(l->range), KIND_UNROLL));
  }
  return subst(g, sink, &with);
}
