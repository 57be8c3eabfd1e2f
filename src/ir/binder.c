#include "ir/binder.h"

#include "base/vec.h"
#include "ir/index.h"

/* Ranges. */

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

const node *range_copy(ir *g, const node *range, const node *extent) {
  return make_range(g, extent, ir_fresh(g), range_kind_of(range), range->ints[2], range->ints[3]);
}

/* The integers: how many there are of each part, then facts of each state and array. */

enum { STAGE_VALUES, STAGE_RANGES, STAGE_PINS, STAGE_CUT, STAGE_HEAD };
enum { FOLD_STATES, FOLD_EMITS, FOLD_RANGES, FOLD_PINS, FOLD_HEAD };
enum { MOST_RANGES = 256 };

int64_t fold_op_of(const int64_t ints[], size_t state) { return ints[FOLD_HEAD + 2 * state]; }

int64_t fold_component_of(const int64_t ints[], size_t state) {
  return ints[FOLD_HEAD + 2 * state + 1];
}

/** The ranks of the arrays, which stand last. */
static const int64_t *ranks_of(op o, const int64_t ints[]) {
  return o == OP_STAGE ? ints + STAGE_HEAD : ints + FOLD_HEAD + 2 * ints[FOLD_STATES];
}

static binder_parts counts_of(op o, const int64_t ints[]) {
  if (o == OP_STAGE)
    return (binder_parts){.arrays = (size_t)ints[STAGE_VALUES],
                          .n_ranges = (size_t)ints[STAGE_RANGES],
                          .n_pins = (size_t)ints[STAGE_PINS]};
  return (binder_parts){.states = (size_t)ints[FOLD_STATES],
                        .arrays = (size_t)ints[FOLD_EMITS],
                        .n_ranges = (size_t)ints[FOLD_RANGES],
                        .n_pins = (size_t)ints[FOLD_PINS]};
}

/** The number of coordinates of the arrays before one of them. */
static size_t coords_before(op o, const int64_t ints[], size_t array) {
  const int64_t *ranks = ranks_of(o, ints);
  size_t n = 0;
  for (size_t i = 0; i < array; i++) n += (size_t)ranks[i];
  return n;
}

binder_parts binder_parts_of(op o, const int64_t ints[]) {
  binder_parts p = counts_of(o, ints);
  size_t coords = coords_before(o, ints, p.arrays);
  p.values = 2 * p.states;
  p.coords = p.values + p.arrays;
  p.extents = p.coords + coords;
  p.ranges = p.extents + coords;
  p.pins = p.ranges + p.n_ranges;
  p.end = p.pins + p.n_pins;
  return p;
}

static bool is_count(int64_t n, size_t n_src) { return n >= 0 && (uint64_t)n <= n_src; }

const char *binder_objection(op o, const int64_t ints[], size_t n_int, size_t n_src) {
  size_t head = o == OP_STAGE ? (size_t)STAGE_HEAD : (size_t)FOLD_HEAD;
  if (n_int < head) return "wrong number of integers";
  for (size_t i = 0; i < head; i++)
    if (!(o == OP_STAGE && i == STAGE_CUT) && !is_count(ints[i], n_src))
      return "more parts than sources";
  binder_parts p = counts_of(o, ints);
  if (o == OP_STAGE && !p.arrays) return "a stage needs a value";
  if (o == OP_STAGE && ints[STAGE_CUT] & ~INT64_C(1)) return "cut is 0 or 1";
  if (o == OP_FOLD && !p.states) return "a fold needs a state";
  if (o == OP_FOLD && !p.n_ranges) return "a fold needs a range";
  if (p.n_ranges > MOST_RANGES) return "too many ranges";
  if (n_int != head + 2 * p.states + p.arrays) return "wrong number of integers";
  const int64_t *ranks = ranks_of(o, ints);
  for (size_t i = 0; i < p.arrays; i++)
    if (!is_count(ranks[i], IR_MOST_RANK)) return "more than 31 dimensions";
  return binder_parts_of(o, ints).end == n_src ? NULL : "wrong number of sources";
}

static binder_parts parts_of(const node *b) { return binder_parts_of((op)b->op, b->ints); }

static size_t rank_of(const node *b, size_t array) {
  return (size_t)ranks_of((op)b->op, b->ints)[array];
}

static const node *const *coords_of(const node *b, size_t array) {
  return b->src + parts_of(b).coords + coords_before((op)b->op, b->ints, array);
}

static const node *const *extents_of(const node *b, size_t array) {
  return b->src + parts_of(b).extents + coords_before((op)b->op, b->ints, array);
}

/* STAGE. */

size_t stage_values(const node *s) { return (size_t)s->ints[STAGE_VALUES]; }
size_t stage_ranges(const node *s) { return (size_t)s->ints[STAGE_RANGES]; }
size_t stage_pins(const node *s) { return (size_t)s->ints[STAGE_PINS]; }
bool stage_is_cut(const node *s) { return s->ints[STAGE_CUT] != 0; }
size_t stage_rank(const node *s, size_t value) { return rank_of(s, value); }
const node *const *stage_coords(const node *s, size_t value) { return coords_of(s, value); }
const node *const *stage_extents(const node *s, size_t value) { return extents_of(s, value); }
const node *const *stage_range(const node *s) { return s->src + parts_of(s).ranges; }

/** What is shared out is inside of that, also where all of it is one worker's. */
static bool uses_range(const node *s, size_t value, const node *range) {
  const node *const *coords = stage_coords(s, value);
  bool uses = range_kind_of(range) == KIND_THREAD || node_is_free_in(range, stage_value(s, value));
  for (size_t i = 0; i < stage_rank(s, value); i++) uses |= node_is_free_in(range, coords[i]);
  return uses;
}

size_t stage_level(const node *s, size_t value) {
  size_t level = stage_ranges(s);
  while (level && !uses_range(s, value, stage_range(s)[level - 1])) level--;
  return level;
}

/** Whether an index is one range, or several of which each counts in as many as those before it
    have: from 0 to a size. */
static bool is_mixed_radix(const node *x, const node *size) {
  int64_t unit = 1;
  if (x->op == OP_RANGE) return range_extent(x) == size;
  for (size_t left = ix_terms(x); left; left--) {
    size_t i = 0;
    while (i < ix_terms(x) && ix_factor(x, i) != unit) i++;
    if (i == ix_terms(x) || ix_atom(x, i)->op != OP_RANGE) return false;
    if (!node_is_const(range_extent(ix_atom(x, i)))) return false;
    unit *= node_int(range_extent(ix_atom(x, i)));
  }
  return !ix_offset(x) && node_is_bits(size, (uint64_t)unit);
}

bool stage_is_whole(const node *s, size_t value) {
  const node *const *x = stage_coords(s, value), *const *dims = stage_extents(s, value);
  size_t used = 0;
  for (size_t i = 0; i < stage_rank(s, value); i++)
    if (!node_is_bits(dims[i], 1) && !is_mixed_radix(x[i], dims[i])) return false;
  for (size_t k = 0; k < stage_ranges(s); k++) {
    size_t times = 0;
    for (size_t i = 0; i < stage_rank(s, value); i++)
      times += node_is_free_in(stage_range(s)[k], x[i]);
    if (times > 1) return false;
    used += times;
  }
  return used == stage_ranges(s);
}

typedef VEC(const node *) sources;
typedef VEC(int64_t) integers;

static void add_all(arena *a, sources *s, const node *const *from, size_t n) {
  for (size_t i = 0; i < n; i++) vec_push(a, s, from[i]);
}

/** The arrays of a binder as it is made: their values, coordinates, extents and ranks. */
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
  arena *a = ir_arena(g);
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
  return ir_node(g, OP_STAGE, DT_VOID, src.at, src.n, ints.at, ints.n);
}

/* FOLD. */

size_t fold_states(const node *f) { return (size_t)f->ints[FOLD_STATES]; }
size_t fold_emits(const node *f) { return (size_t)f->ints[FOLD_EMITS]; }
size_t fold_ranges(const node *f) { return (size_t)f->ints[FOLD_RANGES]; }
size_t fold_pins(const node *f) { return (size_t)f->ints[FOLD_PINS]; }
int64_t fold_op(const node *f, size_t state) { return fold_op_of(f->ints, state); }
int64_t fold_component(const node *f, size_t state) { return fold_component_of(f->ints, state); }
const node *const *fold_range(const node *f) { return f->src + parts_of(f).ranges; }
const node *fold_innermost(const node *f) { return fold_range(f)[fold_ranges(f) - 1]; }
const node *fold_emit(const node *f, size_t emit) { return f->src[parts_of(f).values + emit]; }
const node *const *fold_coords(const node *f, size_t emit) { return coords_of(f, emit); }

bool fold_is_of_scalars(const node *f) {
  if (fold_emits(f)) return false;
  for (size_t i = 0; i < fold_states(f); i++)
    if (fold_component(f, i) >= 0) return false;
  return true;
}

static bool is_array_state(const node *f, size_t component) {
  return component < fold_states(f) && fold_component(f, component) >= 0;
}

dtype fold_dtype(const node *f, size_t component) {
  const node *value = component < fold_states(f) ? fold_init(f, component)
                                                 : fold_emit(f, component - fold_states(f));
  if (is_array_state(f, component))
    value = stage_value(fold_step(f, component), (size_t)fold_component(f, component));
  return (dtype)value->dtype;
}

size_t fold_rank(const node *f, size_t component) {
  if (component >= fold_states(f)) return rank_of(f, component - fold_states(f));
  if (!is_array_state(f, component)) return 0;
  return stage_rank(fold_step(f, component), (size_t)fold_component(f, component));
}

const node *const *fold_extents(const node *f, size_t component) {
  if (component >= fold_states(f)) return extents_of(f, component - fold_states(f));
  if (!is_array_state(f, component)) return NULL;
  return stage_extents(fold_step(f, component), (size_t)fold_component(f, component));
}

const node *fold_make(ir *g, const fold_spec *s) {
  arena *a = ir_arena(g);
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
  int64_t ops[] = {o};
  const node *fold = fold_make(
      g,
      &(fold_spec){
          .n_states = 1, .n_ranges = n, .inits = &init, .steps = &v, .ops = ops, .ranges = ranges});
  return index_make(g, t, fold, 0, 0, NULL);
}

/* Binders. */

bool node_is_binder(const node *n) {
  return n->op == OP_STAGE || n->op == OP_FOLD || n->op == OP_END || n->op == OP_LOOP;
}

size_t binder_ranges_of(op o, const int64_t ints[], const node *const *src,
                        const node *const **first) {
  if (o == OP_END || o == OP_LOOP) {
    *first = src;
    return 1;
  }
  binder_parts p = binder_parts_of(o, ints);
  *first = src + p.ranges;
  return p.n_ranges;
}

size_t binder_ranges(const node *b, const node *const **first) {
  return binder_ranges_of((op)b->op, b->ints, b->src, first);
}

size_t range_place(const node *const ranges[], const node *range) {
  size_t i = 0;
  while (ranges[i] != range) i++;
  return i;
}

const node *binder_with_ranges(ir *g, const node *b, const node *const src[], size_t n,
                               const node *const ranges[]) {
  binder_parts p = parts_of(b);
  sources all = {0};
  int64_t *ints = arena_copy(ir_arena(g), b->ints, b->n_int * sizeof *ints);
  ints[b->op == OP_STAGE ? STAGE_RANGES : FOLD_RANGES] = (int64_t)n;
  add_all(ir_arena(g), &all, src, p.ranges);
  add_all(ir_arena(g), &all, ranges, n);
  add_all(ir_arena(g), &all, src + p.pins, p.n_pins);
  return ir_node(g, (op)b->op, DT_VOID, all.at, all.n, ints, b->n_int);
}

const node *binder_with_pin(ir *g, const node *b, const node *pin) {
  sources all = {0};
  int64_t *ints = arena_copy(ir_arena(g), b->ints, b->n_int * sizeof *ints);
  ints[b->op == OP_STAGE ? STAGE_PINS : FOLD_PINS]++;
  add_all(ir_arena(g), &all, b->src, b->n_src);
  vec_push(ir_arena(g), &all, pin);
  return ir_node(g, (op)b->op, DT_VOID, all.at, all.n, ints, b->n_int);
}
