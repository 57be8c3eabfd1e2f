#include "ir/binder.h"

#include "base/vec.h"

const char *range_kind_name(range_kind k) {
  static const char *const names[KIND_LIMIT] = {"loop",   "unroll", "vector", "thread",
                                                "global", "local",  "warp"};
  return k < KIND_LIMIT ? names[k] : "?";
}

static const node *make_range(ir *g, const node *extent, int64_t id, range_kind kind, int64_t axis,
                              int64_t tail) {
  if (extent->hi < 0) extent = ix_const(g, 0); /* inside a loop that has no iteration */
  int64_t ints[] = {id, kind, axis, tail};
  return ir_node(g, OP_RANGE, DT_INDEX, &extent, 1, ints, 4);
}

const node *range_make(ir *g, const node *extent, range_kind kind) {
  return make_range(g, extent, ir_fresh(g), kind, 0, 0);
}

const node *range_with(ir *g, const node *range, const node *extent, range_kind kind) {
  return make_range(g, extent, range->ints[0], kind, range->ints[2], range->ints[3]);
}

typedef VEC(const node *) sources;

static void add_all(arena *a, sources *s, const node *const *from, size_t n) {
  for (size_t i = 0; i < n; i++) vec_push(a, s, from[i]);
}

const node *stage_make(ir *g, const stage_spec *s) {
  arena *a = ir_arena(g);
  sources src = {0};
  VEC(int64_t) ints = {0};
  int64_t head[] = {(int64_t)s->n_values, (int64_t)s->n_ranges, (int64_t)s->n_pins, s->cut};
  for (size_t i = 0; i < 4; i++) vec_push(a, &ints, head[i]);
  size_t coords = 0;
  for (size_t i = 0; i < s->n_values; i++) {
    vec_push(a, &ints, (int64_t)s->ranks[i]);
    coords += s->ranks[i];
  }
  add_all(a, &src, s->values, s->n_values);
  add_all(a, &src, s->coords, coords);
  add_all(a, &src, s->extents, coords);
  add_all(a, &src, s->ranges, s->n_ranges);
  add_all(a, &src, s->pins, s->n_pins);
  return ir_node(g, OP_STAGE, DT_VOID, src.at, src.n, ints.at, ints.n);
}

/** The number of coordinates of the values before `value`. */
static size_t coords_before(const node *s, size_t value) {
  size_t n = 0;
  for (size_t i = 0; i < value; i++) n += stage_rank(s, i);
  return n;
}

const node *const *stage_coords(const node *s, size_t value) {
  return s->src + stage_values(s) + coords_before(s, value);
}

const node *const *stage_extents(const node *s, size_t value) {
  return s->src + stage_values(s) + coords_before(s, stage_values(s)) + coords_before(s, value);
}

const node *const *stage_range(const node *s) {
  return s->src + stage_values(s) + 2 * coords_before(s, stage_values(s));
}

const node *fold_make(ir *g, const fold_spec *s) {
  arena *a = ir_arena(g);
  sources src = {0};
  VEC(int64_t) ints = {0};
  int64_t head[] = {(int64_t)s->n_states, (int64_t)s->n_ranges, (int64_t)s->n_pins};
  for (size_t i = 0; i < 3; i++) vec_push(a, &ints, head[i]);
  for (size_t i = 0; i < s->n_states; i++) vec_push(a, &ints, s->ops[i]);
  add_all(a, &src, s->inits, s->n_states);
  add_all(a, &src, s->steps, s->n_states);
  add_all(a, &src, s->ranges, s->n_ranges);
  add_all(a, &src, s->pins, s->n_pins);
  return ir_node(g, OP_FOLD, DT_VOID, src.at, src.n, ints.at, ints.n);
}

const node *state_make(ir *g, dtype t, const node *innermost, int64_t component) {
  return ir_node(g, OP_STATE, t, &innermost, 1, &component, 1);
}

const node *index_make(ir *g, dtype t, const node *of, int64_t component, size_t rank,
                       const node *const coords[]) {
  sources src = {0};
  vec_push(ir_arena(g), &src, of);
  add_all(ir_arena(g), &src, coords, rank);
  return ir_node(g, OP_INDEX, t, src.at, src.n, &component, 1);
}

const node *fold_reduce(ir *g, op o, const node *v, size_t n, const node *const ranges[]) {
  uint64_t start = 0;
  dtype t = (dtype)v->dtype;
  op_identity(o, t, &start);
  const node *init = ir_const_bits(g, t, start);
  const node *state = index_make(g, t, state_make(g, t, ranges[n - 1], 0), 0, 0, NULL);
  const node *step = ir_op2(g, o, state, v);
  int64_t ops[] = {o};
  const node *fold = fold_make(g, &(fold_spec){.n_states = 1,
                                               .n_ranges = n,
                                               .inits = &init,
                                               .steps = &step,
                                               .ops = ops,
                                               .ranges = ranges});
  return index_make(g, t, fold, 0, 0, NULL);
}

bool node_is_binder(const node *n) {
  return n->op == OP_STAGE || n->op == OP_FOLD || n->op == OP_END;
}

size_t binder_ranges_of(const node *b, const node *const *src, const node *const **first) {
  if (b->op == OP_END) {
    *first = src;
    return 1;
  }
  if (b->op == OP_FOLD) {
    *first = src + 2 * fold_states(b);
    return fold_ranges(b);
  }
  *first = src + stage_values(b) + 2 * coords_before(b, stage_values(b));
  return stage_ranges(b);
}

size_t binder_ranges(const node *b, const node *const **first) {
  return binder_ranges_of(b, b->src, first);
}
