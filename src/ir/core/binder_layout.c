/* Implements the readers of STAGE (array builder) and FOLD (reduction and scan) nodes: computes
   where each part of a binder's sources begins, from the counts in its first integers and the ranks
   in the last ones. */
#include "ir/core/binder_layout.h"

enum { MOST_RANGES = 256 };

const char *range_kind_name(range_kind k) {
  static const char *const names[KIND_LIMIT] = {"loop",   "unroll", "vector", "thread",
                                                "global", "local",  "warp",   "tile"};
  return k < KIND_LIMIT ? names[k] : "?";
}

const node *node_vector_range(const node *n) {
  for (uint32_t i = 0; i < n->free->n; i++)
    if (range_kind_of(n->free->at[i]) == KIND_VECTOR) return n->free->at[i];
  return NULL;
}

int64_t fold_op_of(const int64_t ints[], size_t state) { return ints[FOLD_HEAD + 2 * state]; }

int64_t fold_component_of(const int64_t ints[], size_t state) {
  return ints[FOLD_HEAD + 2 * state + 1];
}

/** The ranks of the arrays. */
static const int64_t *ranks_of(op o, const int64_t ints[]) {
  return o == OP_STAGE ? ints + STAGE_HEAD : ints + FOLD_HEAD + 2 * ints[FOLD_STATES];
}

static binder_layout counts_of(op o, const int64_t ints[]) {
  if (o == OP_STAGE)
    return (binder_layout){.arrays = (size_t)ints[STAGE_VALUES],
                           .n_ranges = (size_t)ints[STAGE_RANGES],
                           .n_pins = (size_t)ints[STAGE_PINS]};
  return (binder_layout){.states = (size_t)ints[FOLD_STATES],
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

binder_layout binder_layout_of(op o, const int64_t ints[]) {
  binder_layout p = counts_of(o, ints);
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

const char *binder_check_layout(op o, const int64_t ints[], size_t n_int, size_t n_src) {
  size_t head = o == OP_STAGE ? (size_t)STAGE_HEAD : (size_t)FOLD_HEAD;
  if (n_int < head) return "wrong number of integers";
  for (size_t i = 0; i < head; i++)
    if (!(o == OP_STAGE && i == STAGE_CUT) && !is_count(ints[i], n_src))
      return "more parts than sources";
  binder_layout p = counts_of(o, ints);
  if (o == OP_STAGE && !p.arrays) return "a stage needs a value";
  if (o == OP_STAGE && ints[STAGE_CUT] & ~INT64_C(1)) return "cut is 0 or 1";
  if (o == OP_FOLD && !p.states) return "a fold needs a state";
  if (o == OP_FOLD && !p.n_ranges) return "a fold needs a range";
  if (p.n_ranges > MOST_RANGES) return "too many ranges";
  size_t all = head + 2 * p.states + p.arrays;
  bool has_slots = o == OP_STAGE && n_int == all + 1;
  if (n_int != all && !has_slots) return "wrong number of integers";
  if (has_slots && ints[all] < 2) return "several slots are two or more";
  const int64_t *ranks = ranks_of(o, ints);
  for (size_t i = 0; i < p.arrays; i++)
    if (!is_count(ranks[i], IR_MAX_RANK)) return "more than 31 dimensions";
  return binder_layout_of(o, ints).end == n_src ? NULL : "wrong number of sources";
}

static binder_layout layout_of(const node *b) { return binder_layout_of((op)b->op, b->ints); }

static size_t rank_of(const node *b, size_t array) {
  return (size_t)ranks_of((op)b->op, b->ints)[array];
}

static const node *const *coords_of(const node *b, size_t array) {
  return b->src + layout_of(b).coords + coords_before((op)b->op, b->ints, array);
}

static const node *const *extents_of(const node *b, size_t array) {
  return b->src + layout_of(b).extents + coords_before((op)b->op, b->ints, array);
}

/* STAGE. */

size_t stage_n_values(const node *s) { return (size_t)s->ints[STAGE_VALUES]; }
size_t stage_n_ranges(const node *s) { return (size_t)s->ints[STAGE_RANGES]; }
size_t stage_n_pins(const node *s) { return (size_t)s->ints[STAGE_PINS]; }
bool stage_is_cut(const node *s) { return s->ints[STAGE_CUT] != 0; }

int64_t stage_slots(const node *s) {
  size_t all = STAGE_HEAD + stage_n_values(s);
  return s->n_int > all ? s->ints[all] : 1;
}

size_t stage_rank(const node *s, size_t value) { return rank_of(s, value); }
const node *const *stage_coords(const node *s, size_t value) { return coords_of(s, value); }
const node *const *stage_extents(const node *s, size_t value) { return extents_of(s, value); }
const node *const *stage_range(const node *s) { return s->src + layout_of(s).ranges; }

bool stage_is_in_registers(const node *s) {
  for (size_t i = 0; i < stage_n_ranges(s); i++) {
    range_kind kind = range_kind_of(stage_range(s)[i]);
    if (kind != KIND_UNROLL && kind != KIND_VECTOR && kind != KIND_TILE) return false;
  }
  return true;
}

/** A value is written inside a THREAD range even if it does not depend on it: each worker writes
    its own share. */
static bool uses_range(const node *s, size_t value, const node *range) {
  const node *const *coords = stage_coords(s, value);
  bool uses = range_kind_of(range) == KIND_THREAD || node_is_free_in(range, stage_value(s, value));
  for (size_t i = 0; i < stage_rank(s, value); i++) uses |= node_is_free_in(range, coords[i]);
  return uses;
}

size_t stage_loop_depth(const node *s, size_t value) {
  size_t level = stage_n_ranges(s);
  while (level && !uses_range(s, value, stage_range(s)[level - 1])) level--;
  return level;
}

/* FOLD. */

size_t fold_n_states(const node *f) { return (size_t)f->ints[FOLD_STATES]; }
size_t fold_n_emits(const node *f) { return (size_t)f->ints[FOLD_EMITS]; }
size_t fold_n_ranges(const node *f) { return (size_t)f->ints[FOLD_RANGES]; }
size_t fold_n_pins(const node *f) { return (size_t)f->ints[FOLD_PINS]; }
int64_t fold_op(const node *f, size_t state) { return fold_op_of(f->ints, state); }
int64_t fold_component(const node *f, size_t state) { return fold_component_of(f->ints, state); }
const node *const *fold_range(const node *f) { return f->src + layout_of(f).ranges; }
const node *fold_innermost_range(const node *f) { return fold_range(f)[fold_n_ranges(f) - 1]; }
const node *fold_emit(const node *f, size_t emit) { return f->src[layout_of(f).values + emit]; }
const node *const *fold_coords(const node *f, size_t emit) { return coords_of(f, emit); }

bool fold_has_scalar_states(const node *f) {
  if (fold_n_emits(f)) return false;
  for (size_t i = 0; i < fold_n_states(f); i++)
    if (fold_component(f, i) >= 0) return false;
  return true;
}

static bool is_array_state(const node *f, size_t component) {
  return component < fold_n_states(f) && fold_component(f, component) >= 0;
}

dtype fold_dtype(const node *f, size_t component) {
  const node *value = component < fold_n_states(f) ? fold_init(f, component)
                                                   : fold_emit(f, component - fold_n_states(f));
  if (is_array_state(f, component))
    value = stage_value(fold_step(f, component), (size_t)fold_component(f, component));
  return (dtype)value->dtype;
}

size_t fold_rank(const node *f, size_t component) {
  if (component >= fold_n_states(f)) return rank_of(f, component - fold_n_states(f));
  if (!is_array_state(f, component)) return 0;
  return stage_rank(fold_step(f, component), (size_t)fold_component(f, component));
}

const node *const *fold_extents(const node *f, size_t component) {
  if (component >= fold_n_states(f)) return extents_of(f, component - fold_n_states(f));
  if (!is_array_state(f, component)) return NULL;
  return stage_extents(fold_step(f, component), (size_t)fold_component(f, component));
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
  binder_layout p = binder_layout_of(o, ints);
  *first = src + p.ranges;
  return p.n_ranges;
}

size_t binder_ranges(const node *b, const node *const **first) {
  return binder_ranges_of((op)b->op, b->ints, b->src, first);
}

size_t range_position(const node *const ranges[], const node *range) {
  size_t i = 0;
  while (ranges[i] != range) i++;
  return i;
}
