#include "ir/loop.h"

static size_t add_all(const node *to[], size_t n, const node *const from[], size_t more) {
  for (size_t i = 0; i < more; i++) to[n + i] = from[i];
  return n + more;
}

const node *loop_make(ir *g, arena *a, const loop_spec *s) {
  const node **src = arena_alloc(a, (1 + 2 * (s->n_states + s->n_emits)) * sizeof *src);
  int64_t ints[] = {(int64_t)s->n_states, (int64_t)s->n_emits};
  size_t n = add_all(src, 0, &s->range, 1);
  n = add_all(src, n, s->inits, s->n_states);
  n = add_all(src, n, s->steps, s->n_states);
  n = add_all(src, n, s->emits, s->n_emits);
  n = add_all(src, n, s->places, s->n_emits);
  return ir_node(g, OP_LOOP, DT_VOID, src, n, ints, 2);
}

const node *carry_make(ir *g, const node *range, int64_t component, const node *init) {
  const node *src[IR_MOST_RANK + 1] = {range};
  size_t n = add_all(src, 1, init->dims, init->rank);
  return ir_node(g, OP_CARRY, (dtype)init->dtype, src, n, &component, 1);
}

size_t loop_result_sizes(const node *l, size_t component, const node *sizes[]) {
  bool is_state = component < loop_states(l);
  const node *like = is_state ? loop_init(l, component) : loop_emit(l, component - loop_states(l));
  const node *trips = range_extent(loop_range(l));
  return add_all(sizes, add_all(sizes, 0, &trips, !is_state), like->dims, like->rank);
}

dtype loop_result_dtype(const node *l, size_t component) {
  size_t n = loop_states(l);
  return (dtype)(component < n ? loop_init(l, component) : loop_emit(l, component - n))->dtype;
}

const node *loop_result(ir *g, const node *l, size_t component) {
  const node *src[IR_MOST_RANK + 2] = {l};
  int64_t ints[] = {(int64_t)component, 1, 0};
  size_t n = 1 + loop_result_sizes(l, component, src + 1);
  return ir_node(g, OP_RESULT, loop_result_dtype(l, component), src, n, ints, 3);
}

const node *loop_init(const node *l, size_t state) { return l->src[1 + state]; }
const node *loop_step(const node *l, size_t state) { return l->src[1 + loop_states(l) + state]; }
const node *loop_emit(const node *l, size_t emit) { return l->src[1 + 2 * loop_states(l) + emit]; }

const node *loop_place(const node *l, size_t emit) {
  return l->src[1 + 2 * loop_states(l) + loop_emits(l) + emit];
}

map loop_bound(arena *a, const node *const nodes[], size_t n) {
  map bound = {0};
  for (size_t i = 0; i < n; i++)
    if (nodes[i]->op == OP_LOOP) map_set(a, &bound, loop_range(nodes[i]), NULL);
  return bound;
}

bool loop_is_place(const node *range, const node *place) {
  const node *trips = range_extent(range);
  if (place == range) return true;
  bool counts_down = ix_coefficient(place, range) == -1 && ix_terms(place) == ix_terms(trips) + 1 &&
                     ix_offset(place) == ix_offset(trips) - 1;
  for (size_t i = 0; counts_down && i < ix_terms(trips); i++)
    counts_down = ix_coefficient(place, ix_atom(trips, i)) == ix_factor(trips, i);
  return counts_down;
}
