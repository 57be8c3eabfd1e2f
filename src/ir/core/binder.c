/* Builds RANGE (loop index), STAGE (array builder), FOLD (reduction and scan), STATE and INDEX
   nodes: lays out their sources and integers in the order of binder_layout.h and interns them. */
#include "ir/core/binder.h"

#include "base/vec.h"

static const node *make_range(ir *g, const node *extent, int64_t id, range_kind kind, int64_t axis,
                              int64_t tail) {
  if (extent->hi < 0) extent = ir_const_bits(g, DT_INDEX, 0); /* in a loop without iterations */
  int64_t ints[] = {id, kind, axis, tail};
  return ir_node(g, OP_RANGE, DT_INDEX, &extent, 1, ints, 4);
}

const node *range_make(ir *g, const node *extent, range_kind kind) {
  return make_range(g, extent, ir_fresh_id(g), kind, 0, 0);
}

const node *range_of_axis(ir *g, const node *extent, size_t axis) {
  return make_range(g, extent, -1 - (int64_t)axis, KIND_LOOP, 0, 0);
}

const node *range_with(ir *g, const node *range, const node *extent, range_kind kind) {
  return make_range(g, extent, range->ints[0], kind, range->ints[2], range->ints[3]);
}

const node *range_on_axis(ir *g, const node *range, range_kind kind, int64_t axis) {
  return make_range(g, range_extent(range), range->ints[0], kind, axis, range->ints[3]);
}

const node *range_clone(ir *g, const node *range, const node *extent) {
  return make_range(g, extent, ir_fresh_id(g), range_kind_of(range), range->ints[2],
                    range->ints[3]);
}

/* STAGE. */

typedef VEC(const node *) sources;
typedef VEC(int64_t) integers;

static void add_all(arena *a, sources *s, const node *const *from, size_t n) {
  for (size_t i = 0; i < n; i++) vec_push(a, s, from[i]);
}

/** Appends the arrays of a binder: ranks to the integers, values, coordinates and extents to the
    sources. */
static void add_arrays(arena *a, sources *src, integers *ints, size_t n, const size_t *ranks,
                       const node *const *values, const node *const *coords,
                       const node *const *extents) {
  size_t total = 0;
  for (size_t i = 0; i < n; i++) {
    vec_push(a, ints, (int64_t)ranks[i]);
    total += ranks[i];
  }
  add_all(a, src, values, n);
  add_all(a, src, coords, total);
  add_all(a, src, extents, total);
}

const node *stage_make(ir *g, const stage_spec *s) {
  arena *a = ir_scratch(g);
  arena_mark here = arena_save(a);
  sources src = {0};
  integers ints = {0};
  int64_t head[STAGE_HEAD] = {[STAGE_VALUES] = (int64_t)s->n_values,
                              [STAGE_RANGES] = (int64_t)s->n_ranges,
                              [STAGE_PINS] = (int64_t)s->n_pins,
                              [STAGE_CUT] = s->cut};
  for (size_t i = 0; i < STAGE_HEAD; i++) vec_push(a, &ints, head[i]);
  add_arrays(a, &src, &ints, s->n_values, s->ranks, s->values, s->coords, s->extents);
  add_all(a, &src, s->ranges, s->n_ranges);
  add_all(a, &src, s->pins, s->n_pins);
  const node *made = ir_node(g, OP_STAGE, DT_VOID, src.at, src.n, ints.at, ints.n);
  arena_rewind(a, here);
  return made;
}

/* FOLD. */

const node *fold_make(ir *g, const fold_spec *s) {
  arena *a = ir_scratch(g);
  arena_mark here = arena_save(a);
  sources src = {0};
  integers ints = {0};
  int64_t head[FOLD_HEAD] = {[FOLD_STATES] = (int64_t)s->n_states,
                             [FOLD_EMITS] = (int64_t)s->n_emits,
                             [FOLD_RANGES] = (int64_t)s->n_ranges,
                             [FOLD_PINS] = (int64_t)s->n_pins};
  for (size_t i = 0; i < FOLD_HEAD; i++) vec_push(a, &ints, head[i]);
  for (size_t i = 0; i < s->n_states; i++) {
    vec_push(a, &ints, s->ops[i]);
    vec_push(a, &ints, s->components ? s->components[i] : -1);
  }
  add_all(a, &src, s->inits, s->n_states);
  add_all(a, &src, s->steps, s->n_states);
  add_arrays(a, &src, &ints, s->n_emits, s->ranks, s->emits, s->coords, s->extents);
  add_all(a, &src, s->ranges, s->n_ranges);
  add_all(a, &src, s->pins, s->n_pins);
  const node *made = ir_node(g, OP_FOLD, DT_VOID, src.at, src.n, ints.at, ints.n);
  arena_rewind(a, here);
  return made;
}

const node *fold_state_make(ir *g, dtype t, const node *innermost, int64_t component) {
  return ir_node(g, OP_STATE, t, &innermost, 1, &component, 1);
}

const node *index_make(ir *g, dtype t, const node *of, int64_t component, size_t rank,
                       const node *const coords[]) {
  arena *a = ir_scratch(g);
  arena_mark here = arena_save(a);
  sources src = {0};
  vec_push(a, &src, of);
  add_all(a, &src, coords, rank);
  const node *made = ir_node(g, OP_INDEX, t, src.at, src.n, &component, 1);
  arena_rewind(a, here);
  return made;
}

const node *binder_with_ranges(ir *g, const node *b, const node *const src[], size_t n,
                               const node *const ranges[]) {
  binder_layout p = binder_layout_of((op)b->op, b->ints);
  arena *a = ir_scratch(g);
  arena_mark here = arena_save(a);
  sources all = {0};
  int64_t *ints = arena_copy(a, b->ints, b->n_int * sizeof *ints);
  ints[b->op == OP_STAGE ? STAGE_RANGES : FOLD_RANGES] = (int64_t)n;
  add_all(a, &all, src, p.ranges);
  add_all(a, &all, ranges, n);
  add_all(a, &all, src + p.pins, p.n_pins);
  const node *made = ir_node(g, (op)b->op, DT_VOID, all.at, all.n, ints, b->n_int);
  arena_rewind(a, here);
  return made;
}

const node *binder_with_slots(ir *g, const node *stage, int64_t slots) {
  size_t all = STAGE_HEAD + stage_n_values(stage);
  arena *a = ir_scratch(g);
  arena_mark here = arena_save(a);
  int64_t *ints = arena_alloc(a, (all + 1) * sizeof *ints);
  for (size_t i = 0; i < all; i++) ints[i] = stage->ints[i];
  ints[all] = slots;
  size_t n = slots > 1 ? all + 1 : all;
  const node *made = ir_node(g, OP_STAGE, DT_VOID, stage->src, stage->n_src, ints, n);
  arena_rewind(a, here);
  return made;
}

const node *binder_with_pin(ir *g, const node *b, const node *pin) {
  arena *a = ir_scratch(g);
  arena_mark here = arena_save(a);
  sources all = {0};
  int64_t *ints = arena_copy(a, b->ints, b->n_int * sizeof *ints);
  ints[b->op == OP_STAGE ? STAGE_PINS : FOLD_PINS]++;
  add_all(a, &all, b->src, b->n_src);
  vec_push(a, &all, pin);
  const node *made = ir_node(g, (op)b->op, DT_VOID, all.at, all.n, ints, b->n_int);
  arena_rewind(a, here);
  return made;
}
