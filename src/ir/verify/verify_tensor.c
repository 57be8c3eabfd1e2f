/* Verifies tensor graphs: a SET (write to a view) writes a view of its tensor by movements, and
   loops are closed: each range has one LOOP, each CARRY a state of its LOOP, and nothing leaks out
   of a loop but RESULTs. */
#include "ir/core/tensor_loop.h"
#include "ir/verify/verifier.h"

static void check_set(verifier *v, const node *set) {
  const node *at = set->src[1];
  while (at != set->src[0] && (at->op == OP_RESHAPE || at->op == OP_PERMUTE || at->op == OP_SLICE))
    at = at->src[0];
  if (at != set->src[0]) verify_fail(v, set, at, "the view is not one of the tensor that is set");
}

/** Sizes, extents and host functions depend on no loop. Free ranges are known in scratch irs
    only. */
static void check_loop_independence(verifier *v, const node *n) {
  for (size_t i = 0; i < n->rank; i++)
    if (n->dims[i]->free->n) verify_fail(v, n, n->dims[i], "a size depends on the range of a loop");
  if (n->op == OP_RANGE && range_extent(n)->free->n)
    verify_fail(v, n, range_extent(n), "the extent of a loop depends on the range of a loop");
  if (n->op == OP_CUSTOM && n->free->n)
    verify_fail(v, n, n->free->at[0], "a host function depends on the range of a loop");
}

static void check_loop(verifier *v, map *loop_of, const node *loop) {
  const node *range = loop_range(loop);
  if (map_has(loop_of, range))
    verify_fail(v, range, loop, "the range is bound twice, the second time here");
  map_set(&v->work, loop_of, range, (void *)loop);
  for (size_t i = 0; i < loop_n_states(loop); i++)
    if (node_is_free_in(range, loop_init(loop, i)))
      verify_fail(v, loop, loop_init(loop, i), "the start of a loop depends on its range");
  for (size_t i = 0; i < loop_n_emits(loop); i++)
    if (!loop_is_emit_index(range, loop_emit_index(loop, i)))
      verify_fail(v, loop, loop_emit_index(loop, i), "a loop does not emit to each place once");
}

static void check_carry(verifier *v, const map *loop_of, const node *carry) {
  const node *loop = map_get(loop_of, carry->src[0]);
  if (!loop) verify_fail(v, carry, carry->src[0], "no loop has this as its range");
  if ((uint64_t)carry->ints[0] >= loop_n_states(loop))
    verify_fail(v, carry, loop, "the loop has no such state");
  const node *init = loop_init(loop, (size_t)carry->ints[0]);
  if (init->dtype != carry->dtype || !ir_same_shape(init, carry))
    verify_fail(v, carry, init, "the state of the loop has another type or shape");
}

void verify_tensors(verifier *v) {
  map loop_of = {0};
  for (size_t i = 0; i < v->order.n; i++) {
    const node *n = v->order.at[i];
    check_loop_independence(v, n);
    if (n->op == OP_SET) check_set(v, n);
    if (n->op == OP_LOOP) check_loop(v, &loop_of, n);
  }
  for (size_t i = 0; i < v->order.n; i++) {
    const node *n = v->order.at[i];
    if (n->op == OP_CARRY) check_carry(v, &loop_of, n);
    if (n->op == OP_RANGE && !map_has(&loop_of, n))
      verify_fail(v, n, NULL, "the range has no binder");
  }
  for (size_t i = 0; i < v->n; i++)
    if (v->roots[i]->free->n)
      verify_fail(v, v->roots[i], v->roots[i]->free->at[0],
                  "a root uses a range outside of its loop");
}
