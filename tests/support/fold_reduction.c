/* Builds a reduction in a kernel: a FOLD, the IR's reduction and scan node, and the INDEX that
   reads its state. */
#include "support/fold_reduction.h"

const node *fold_make_reduction(ir *g, op o, const node *v, size_t n, const node *const ranges[]) {
  uint64_t start = 0;
  dtype t = (dtype)v->dtype;
  op_identity(o, t, &start);
  const node *init = ir_const_bits(g, t, start);
  int64_t ops[] = {o};
  const node *fold = fold_make(
      g,
      &(fold_spec){
          .n_states = 1, .n_ranges = n, .inits = &init, .steps = &v, .ops = ops, .ranges = ranges});
  return index_make(g, t, fold, 0, 0, NULL);
}
