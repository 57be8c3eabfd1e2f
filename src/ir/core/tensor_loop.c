/* Builds and reads LOOP nodes (scans over tensors), and finds nodes that use a loop's inner values
   outside of it: free loop ranges are propagated from sources to users as small sorted sets. */
#include "ir/core/tensor_loop.h"

#include "ir/core/affine.h"

static size_t add_all(const node *to[], size_t n, const node *const from[], size_t more) {
  for (size_t i = 0; i < more; i++) to[n + i] = from[i];
  return n + more;
}

const node *loop_make(ir *g, arena *a, const loop_spec *s) {
  const node **src = arena_alloc(a, (1 + 2 * (s->n_states + s->n_emits)) * sizeof *src);
  int64_t ints[] = {(int64_t)s->n_states, (int64_t)s->n_emits, (int64_t)s->until - 1};
  size_t n = add_all(src, 0, &s->range, 1);
  n = add_all(src, n, s->inits, s->n_states);
  n = add_all(src, n, s->steps, s->n_states);
  n = add_all(src, n, s->emits, s->n_emits);
  n = add_all(src, n, s->places, s->n_emits);
  return ir_node(g, OP_LOOP, DT_VOID, src, n, ints, s->until ? 3 : 2);
}

const node *loop_carry_make(ir *g, const node *range, int64_t component, const node *init) {
  const node *src[IR_MAX_RANK + 1] = {range};
  size_t n = add_all(src, 1, init->dims, init->rank);
  return ir_node(g, OP_CARRY, (dtype)init->dtype, src, n, &component, 1);
}

size_t loop_result_sizes(const node *l, size_t component, const node *sizes[]) {
  bool is_state = component < loop_n_states(l);
  const node *like =
      is_state ? loop_init(l, component) : loop_emit(l, component - loop_n_states(l));
  const node *trips = range_extent(loop_range(l));
  return add_all(sizes, add_all(sizes, 0, &trips, !is_state), like->dims, like->rank);
}

dtype loop_result_dtype(const node *l, size_t component) {
  size_t n = loop_n_states(l);
  return (dtype)(component < n ? loop_init(l, component) : loop_emit(l, component - n))->dtype;
}

const node *loop_result(ir *g, const node *l, size_t component) {
  const node *src[IR_MAX_RANK + 2] = {l};
  int64_t ints[] = {(int64_t)component, 1, 0};
  size_t n = 1 + loop_result_sizes(l, component, src + 1);
  return ir_node(g, OP_RESULT, loop_result_dtype(l, component), src, n, ints, 3);
}

const node *loop_init(const node *l, size_t state) { return l->src[1 + state]; }
const node *loop_step(const node *l, size_t state) { return l->src[1 + loop_n_states(l) + state]; }
const node *loop_emit(const node *l, size_t emit) {
  return l->src[1 + 2 * loop_n_states(l) + emit];
}

const node *loop_emit_index(const node *l, size_t emit) {
  return l->src[1 + 2 * loop_n_states(l) + loop_n_emits(l) + emit];
}

map loop_bound_ranges(arena *a, const node *const nodes[], size_t n) {
  map bound = {0};
  for (size_t i = 0; i < n; i++)
    if (nodes[i]->op == OP_LOOP) map_set(a, &bound, loop_range(nodes[i]), NULL);
  return bound;
}

/** The union of two sets without the range `without` (NULL: all). Sets are sorted by id. */
static const range_set *union_without(arena *a, const range_set *x, const range_set *y,
                                      const node *without) {
  if (!without && range_set_is_subset(y, x)) return x;
  if (!without && range_set_is_subset(x, y)) return y;
  range_set *s = arena_alloc(a, sizeof *s + (x->n + y->n) * sizeof *s->at);
  s->n = 0;
  for (uint32_t i = 0, k = 0; i < x->n || k < y->n;) {
    bool first = k == y->n || (i < x->n && x->at[i]->id <= y->at[k]->id);
    const node *r = first ? x->at[i++] : y->at[k++];
    if (r != without && (!s->n || s->at[s->n - 1] != r)) s->at[s->n++] = r;
  }
  return s;
}

static const range_set *set_of_one(arena *a, const node *range) {
  range_set *s = arena_alloc(a, sizeof *s + sizeof *s->at);
  s->n = 1;
  s->at[0] = range;
  return s;
}

const bool *loop_find_unbound(arena *a, const node *const nodes[], size_t n) {
  static const range_set none;
  map sets = {0}; /* node → the ranges, where there are any */
  bool *open = arena_calloc(a, n + 1, sizeof *open);
  for (size_t i = 0; i < n; i++) {
    const node *x = nodes[i];
    const range_set *s = x->op == OP_RANGE ? set_of_one(a, x) : &none;
    for (uint32_t k = 0; k < x->n_src && sets.n; k++) {
      const range_set *of = map_get(&sets, x->src[k]);
      if (of) s = union_without(a, s, of, NULL);
    }
    if (x->op == OP_LOOP) s = union_without(a, s, &none, loop_range(x));
    open[i] = s->n > 0;
    if (open[i]) map_set(a, &sets, x, (void *)s);
  }
  return open;
}

void loop_refuse_unbound(diag *d) {
  diag_raise(d, TN_ERR_ARGUMENT,
             "the tensor depends on the steps of a loop and has a value inside of the loop only");
}

bool loop_is_emit_index(const node *range, const node *place) {
  const node *trips = range_extent(range);
  if (place == range) return true;
  bool counts_down = ix_coefficient(place, range) == -1 && ix_terms(place) == ix_terms(trips) + 1 &&
                     ix_offset(place) == ix_offset(trips) - 1;
  for (size_t i = 0; counts_down && i < ix_terms(trips); i++)
    counts_down = ix_coefficient(place, ix_atom(trips, i)) == ix_coefficient_at(trips, i);
  return counts_down;
}
