/* Implements the helpers that the steps of the automatic scheduler share: a kernel's binders (loop
   nodes), the test for memory-bound nests, remainders and blocks of ranges. */
#include "codegen/choose/choice.h"
#include "ir/index/row_major_address.h"
#include "target/hardware.h"
#include "target/kernel_estimates.h"
#include "target/scan_axis.h"

size_t choice_decide(choice *c, decision_kind kind, size_t n) {
  size_t at = c->made.n;
  const decision *w = at < c->wanted.n ? &c->wanted.at[at] : NULL;
  decision d = {kind, n, w && w->kind == kind && w->taken < n ? w->taken : 0};
  vec_push(ir_arena(c->laws.g), &c->made, d);
  return d.taken;
}

bool choice_take(choice *c, const node *made) {
  if (made) c->sink = made;
  return made != NULL;
}

kernel_cost choice_cost(const choice *c) {
  arena *scratch = ir_scratch(c->laws.g);
  arena_mark here = arena_save(scratch);
  kernel_summary summary = kernel_summary_of(c->laws.g, c->sink, c->target, c->math);
  kernel_cost cost = kernel_cost_of(scratch, &summary, c->target);
  arena_rewind(scratch, here);
  return cost;
}

node_list choice_binders(const choice *c) {
  node_list all = law_index_of(&c->laws, c->sink).binders, binders = {0};
  for (size_t i = all.n; i-- > 0;)
    if (all.at[i]->op == OP_STAGE || all.at[i]->op == OP_FOLD)
      vec_push(ir_arena(c->laws.g), &binders, all.at[i]);
  return binders;
}

bool choice_at_node_limit(const choice *c) {
  return law_index_of(&c->laws, c->sink).nodes.n >= LAW_MOST_NODES;
}

const node *choice_scanned_range(const choice *c, const node *stage) {
  scan_axis found;
  return scan_axis_match(c->laws.g, stage, c->target, c->math, &found) ? found.along : NULL;
}

bool choice_is_out(const choice *c, const node *stage) {
  return law_find_out(c->sink, stage) != NULL;
}

/* An upper bound: arrays that are not live at once share memory. */
double choice_array_bytes(const choice *c) {
  node_list all = choice_binders(c);
  double bytes = 0;
  for (size_t i = 0; i < all.n; i++)
    if (all.at[i]->op == OP_STAGE && !choice_is_out(c, all.at[i]))
      bytes += estimate_stage_bytes(all.at[i]);
  return bytes;
}

void choice_interchange_outward(choice *c, const node *stage, const node *what, size_t fixed) {
  size_t n = stage_n_ranges(stage), at = fixed;
  const node *const *ranges = stage_range(stage);
  for (size_t i = fixed; i < n; i++) {
    if (range_kind_of(ranges[i]) != KIND_LOOP || !node_is_free_in(ranges[i], what)) continue;
    const node *made = law_order(&c->laws, c->sink, ranges[i], at);
    if (!made) return;
    c->sink = made;
    at++;
  }
}

bool choice_split_remainder(choice *c, const node *range, int64_t factor, const node **whole,
                            const node **rest) {
  ir *g = c->laws.g;
  const node *extent = range_extent(range);
  const node *multiple = ix_scale(g, ix_floordiv(g, extent, ix_const(g, factor)), factor);
  *whole = range;
  *rest = NULL;
  if (multiple == extent) return true;
  law_point end = {factor, true};
  return choice_take(c, law_partition(&c->laws, c->sink, range, end, whole, rest));
}

/** Likely bytes of the PARAMs that a nest reads at unit stride along a range. */
static double streamed_bytes(ir *g, const node_list *nest, const node *range) {
  double bytes = 0;
  map seen = {0};
  for (size_t i = 0; i < nest->n; i++) {
    const node *n = nest->at[i], *from = n->op == OP_INDEX ? n->src[0] : NULL;
    if (!from || from->op != OP_PARAM || map_has(&seen, from)) continue;
    if (!node_is_free_in(range, n) || !read_is_unit_stride(g, range, n)) continue;
    map_set(ir_arena(g), &seen, from, (void *)from);
    bytes += ix_likely(row_major_size(g, from->rank, from->dims)) *
             (double)dtype_bytes((dtype)from->dtype);
  }
  return bytes;
}

bool choice_is_memory_bound(const choice *c, const node_list *nest, const node *range) {
  double bytes = streamed_bytes(c->laws.g, nest, range), operations = 0;
  if (bytes <= MACHINE_MEMORY_BOUND_LLC_SHARE * hardware_llc_bytes(&c->target->hardware))
    return false;
  for (size_t i = 0; i < nest->n; i++) {
    op o = (op)nest->at[i]->op;
    operations +=
        estimate_node_operations(nest->at[i]) * (op_is_elementwise(o) ? op_cost(o) : o == OP_FOLD);
  }
  return operations <= MACHINE_MEMORY_BOUND_OPERATIONS * bytes;
}

const node *choice_tile_range(choice *c, const node *sink, const node *range, int64_t size,
                              const node **inner) {
  const node *outer, *made = law_overlap(&c->laws, sink, range, size, &outer, inner);
  return made ? made : law_split(&c->laws, sink, range, size, &outer, inner);
}
