/* Builder of tensor loops (ir/core/tensor_loop.h), the scans of JAX and of ONNX Scan and Loop:
   checks that states keep their type and shape, and makes the nodes of the results. */
#include "ir/core/tensor_loop.h"
#include "ir/core/topo_sort.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"

bool build_depends_on_loop(builder *b, const node *x) {
  node_list order = topo_sort(b->arena, &x, 1, NULL, NULL);
  return loop_find_unbound(b->arena, order.at, order.n)[order.n - 1];
}

const node *build_loop_range(builder *b, const node *steps) {
  if (build_depends_on_loop(b, steps))
    diag_raise(b->diag, TN_ERR_UNSUPPORTED,
               "the number of steps of a loop depends on the step of the loop around it");
  if (steps->hi < 0)
    diag_raise(b->diag, TN_ERR_SHAPE, "a loop has %s steps, which is negative",
               size_text(b, steps));
  return range_make(b->ir, steps, KIND_LOOP);
}

const node *build_loop_index(builder *b, const node *range, bool reverse) {
  if (!reverse) return range;
  return ix_sub(b->ir, ix_add_const(b->ir, range_extent(range), -1), range);
}

value build_loop_state(builder *b, const node *range, size_t i, value init) {
  return value_of(loop_carry_make(b->ir, range, (int64_t)i, value_typed(b, init).node));
}

value build_loop_entry(builder *b, value x, const node *index) {
  const node *one = ix_const(b->ir, 1);
  sizes rest = sizes_remove(sizes_of(x.node), 0);
  return value_of(shape_reshape(b, shape_slice(b, x.node, 0, index, one, 1), &rest));
}

/** Raises unless the next value of a state has the type and the shape of its init. */
static void check_next_state(builder *b, size_t i, value init, value step) {
  sizes before = sizes_of(init.node), after = sizes_of(step.node);
  if (init.node->dtype != step.node->dtype)
    diag_raise(b->diag, TN_ERR_DTYPE, "state %zu of a loop has type %s; its next value has %s", i,
               dtype_name((dtype)init.node->dtype), dtype_name((dtype)step.node->dtype));
  if (!sizes_equal(&before, &after))
    diag_raise(b->diag, TN_ERR_SHAPE, "state %zu of a loop has shape %s; its next value has %s", i,
               sizes_text(b, &before), sizes_text(b, &after));
}

/** A state that is the number of steps that ran. */
static void add_step_count(builder *b, const node *range, const node **init, const node **step) {
  *init = ir_const_int(b->ir, DT_I64, 0);
  *step = ir_cast(b->ir, ix_add_const(b->ir, range, 1), DT_I64);
}

/** The entries of an emitted array that the steps which ran wrote: the first ones, or, if the
   places count down, the last ones. */
static const node *emitted_entries(builder *b, const node *all, const node *range,
                                   const node *place, const node *n) {
  const node *from = place == range ? ix_const(b->ir, 0) : ix_sub(b->ir, all->dims[0], n);
  return shape_slice(b, all, 0, from, n, 1);
}

void build_loop_until(builder *b, const node *range, const value inits[], const value steps[],
                      size_t n_states, size_t until, const value emits[],
                      const node *const places[], size_t n_emits, value out[]) {
  bool counts = until != SIZE_MAX && n_emits;
  size_t n = n_states + n_emits, own = n_states + counts;
  const node **all = arena_alloc(b->arena, (2 * n + 3) * sizeof *all);
  loop_spec s = {.range = range, .n_states = own, .n_emits = n_emits, .inits = all};
  s.steps = all + own;
  s.emits = all + 2 * own;
  s.places = all + 2 * own + n_emits;
  s.until = until == SIZE_MAX ? 0 : until + 1;
  for (size_t i = 0; i < n_states; i++) {
    value init = value_typed(b, inits[i]), step = value_typed(b, steps[i]);
    check_next_state(b, i, init, step);
    all[i] = init.node;
    all[own + i] = step.node;
  }
  if (counts) add_step_count(b, range, &all[n_states], &all[own + n_states]);
  for (size_t i = 0; i < n_emits; i++) {
    all[2 * own + i] = value_typed(b, emits[i]).node;
    rank_check(b, all[2 * own + i]->rank + 1u);
    all[2 * own + n_emits + i] = places[i];
  }
  if (!n) return;
  const node *loop = loop_make(b->ir, b->arena, &s), *ran = NULL;
  for (size_t i = 0; i < n_states; i++) out[i] = value_of(loop_result(b->ir, loop, i));
  if (counts)
    ran = ir_item(b->ir, loop_result(b->ir, loop, n_states), NULL, 0, range_extent(range));
  for (size_t i = 0; i < n_emits; i++) {
    const node *made = loop_result(b->ir, loop, own + i);
    out[n_states + i] = value_of(ran ? emitted_entries(b, made, range, places[i], ran) : made);
  }
}

void build_loop(builder *b, const node *range, const value inits[], const value steps[],
                size_t n_states, const value emits[], const node *const places[], size_t n_emits,
                value out[]) {
  build_loop_until(b, range, inits, steps, n_states, SIZE_MAX, emits, places, n_emits, out);
}
