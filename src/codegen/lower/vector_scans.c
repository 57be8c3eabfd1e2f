/* Vectorises scans along their own axis. A loop that steps one register and stores it after each
   step, as that of a cumulative sum along a row,

     for r < n { s = s ⊕ x(r); y[r] = v(s, r) }

   becomes a loop over vectors of lanes, and one over the rest of the indices:

     for q < n div L { for l < L, VECTOR { s = s ⊕ x(qL + l); y[qL + l] = v(s, qL + l) } }

   Where bounds checks hold from an index a to an index b alone, so that x is padded or y is cut off
   outside, the vectors are those from a to b, and a loop over the indices below a runs before.
   expand_unroll_vector.c computes the states of all lanes in log L steps, so that one ⊕ a vector
   is in the chain from step to step, not L. The steps are regrouped so: ⊕ must be associative, for
   floats by the math mode. Loads and stores must be consecutive along r, upwards or downwards, or
   not depend on it.
   Targets with teams have no vectors. */
#include "codegen/codegen.h"
#include "codegen/lower/split_loops.h"
#include "ir/core/binder.h"
#include "ir/core/math_mode.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"
#include "target/scan_axis.h"

typedef struct scanning {
  ir *g;
  const codegen_options *options;
} scanning;

/** A loop that is a scan. */
typedef struct scan_loop {
  const node *end, *range;
  const node *state; /* AFTER of the register by which a step reads it */
  size_t widest;     /* bytes of an element */
  scan_span span;    /* the indices of its vectors */
} scan_loop;

static bool is_register_outside(const node *storage, const node *range) {
  const node *root = node_storage_root(storage);
  return root->op == OP_ALLOC && root->ints[1] == 0 && !node_is_free_in(range, root);
}

/** True if a store to the register writes s ⊕ x, with s the state before it. */
static bool combines_state(const node *store) {
  const node *step = store->src[2], *state = store->src[0];
  if (step->n_src != 2 || !op_is_commutative((op)step->op)) return false;
  bool reads[2];
  for (int i = 0; i < 2; i++)
    reads[i] = step->src[i]->op == OP_LOAD && step->src[i]->src[0] == state;
  return reads[0] != reads[1];
}

/** True if a step is s ⊕ x with an associative ⊕, and s the state before it. */
static bool is_associative_step(const scanning *s, const scan_loop *l, const node *store) {
  const node *step = store->src[2], *state = store->src[0];
  uint64_t neutral;
  return combines_state(store) && op_identity((op)step->op, (dtype)step->dtype, &neutral) &&
         math_may_reorder_scan(s->options->math, (op)step->op, (dtype)step->dtype) &&
         state->op == OP_AFTER && node_is_free_in(l->range, state);
}

/** True for a read of the state before or after its step. */
static bool reads_state(const scan_loop *l, const node *load) {
  const node *at = load->src[0];
  bool is_after_step = at->op == OP_AFTER && at->n_src == 2 && at->src[1]->op == OP_STORE &&
                       at->src[1]->src[0] == l->state;
  return at == l->state || is_after_step;
}

/** True if an access may be in lanes: of the state, or of memory. */
static bool may_be_in_lanes(const scanning *s, scan_loop *l, const node *n) {
  size_t bytes = dtype_bytes((dtype)(n->op == OP_LOAD ? n : n->src[2])->dtype);
  if (bytes > l->widest) l->widest = bytes;
  if (is_register_outside(n->src[0], l->range)) return n->op == OP_STORE || reads_state(l, n);
  return node_storage_root(n->src[0])->op == OP_PARAM &&
         scan_span_limit(s->g, l->range, n->src[1], n->op == OP_STORE, &l->span);
}

static bool inside(const node *n, void *range) { return node_is_free_in(range, n); }

/** True if nothing in a loop but its one step forbids lanes: no loop, no array of its own. */
static bool has_vector_body(const scanning *s, scan_loop *l) {
  node_list order =
      topo_sort(ir_arena(s->g), l->end->src + 1, l->end->n_src - 1, inside, (void *)l->range);
  size_t readers = 0;
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (!node_is_free_in(l->range, n)) continue;
    if (n->op == OP_END || n->op == OP_ALLOC || node_is_binder(n)) return false;
    if (n->op != OP_LOAD && n->op != OP_STORE) continue;
    if (!may_be_in_lanes(s, l, n)) return false;
    readers += n->op == OP_LOAD && n->src[0] == l->state;
  }
  return readers == 1;
}

/** True for a loop that no vector or copy is around. */
static bool is_plain_loop(const node *end) {
  if (range_kind_of(end->src[0]) != KIND_LOOP) return false;
  for (uint32_t i = 0; i < end->free->n; i++)
    if (range_kind_of(end->free->at[i]) == KIND_VECTOR ||
        range_kind_of(end->free->at[i]) == KIND_UNROLL)
      return false;
  return true;
}

/** True if a loop is a scan of one register. */
static bool find_scan(const scanning *s, const node *end, scan_loop *l) {
  *l = (scan_loop){.end = end, .range = end->src[0], .span = scan_span_of(s->g, end->src[0])};
  size_t steps = 0;
  if (!is_plain_loop(end) || end->n_src < 3) return false;
  for (uint32_t i = 1; i < end->n_src; i++) {
    const node *n = end->src[i];
    if (n->op != OP_STORE) return false;
    if (!is_register_outside(n->src[0], l->range)) continue;
    if (steps++ || !is_associative_step(s, l, n)) return false;
    l->state = n->src[0];
  }
  return steps == 1 && has_vector_body(s, l);
}

/** The state behind the part of the loop `before`; NULL: the loop's own. */
static void set_state(scanning *s, const scan_loop *l, const node *before, map *known) {
  const node *const src[] = {node_storage_root(l->state), before, l->range};
  if (!before) return;
  const node *state = ir_node(s->g, OP_AFTER, (dtype)l->state->dtype, src, 3, NULL, 0);
  map_set(ir_arena(s->g), known, l->state, (void *)state);
}

/** True if a step is still s ⊕ x where the span's checks hold: of x that is neutral there, as 0 of
   a sum, simplification leaves s alone. */
static bool is_same_step(const scan_loop *l, const node *was, const node *now) {
  if (node_storage_root(was->src[0]) != node_storage_root(l->state)) return true;
  return now->src[2]->op == was->src[2]->op && combines_state(now);
}

/** The loop over `count` whole vectors from the span's first index on, in which the span's checks
    hold; NULL: it has no step. */
static const node *vector_part(scanning *s, const scan_loop *l, const node *count, int64_t lanes,
                               const node *before) {
  ir *g = s->g;
  const node *q = range_make(g, count, KIND_LOOP);
  const node *lane = range_make(g, ix_const(g, lanes), KIND_VECTOR);
  const node **src = arena_alloc(ir_arena(g), l->end->n_src * sizeof *src);
  const node *at = ix_add(g, ix_add(g, l->span.low, ix_scale(g, q, lanes)), lane);
  map moved = {0}, known = {0};
  map_set(ir_arena(g), &moved, l->range, (void *)at);
  set_state(s, l, before, &known);
  for (size_t i = 0; i < l->span.checks.n; i++)
    map_set(ir_arena(g), &known, l->span.checks.at[i], (void *)ir_const_bits(g, DT_BOOL, 1));
  src[0] = lane;
  for (uint32_t i = 1; i < l->end->n_src; i++) {
    src[i] = subst_fresh_ranges(g, subst(g, l->end->src[i], &known), &moved);
    if (!is_same_step(l, l->end->src[i], src[i])) return NULL;
  }
  const node *inner[] = {q, ir_node(g, OP_END, DT_VOID, src, l->end->n_src, NULL, 0)};
  return ir_node(g, OP_END, DT_VOID, inner, 2, NULL, 0);
}

/** The loop over the indices from `from` to `to`, which goes on with the state behind `before`. */
static const node *scalar_part(scanning *s, const scan_loop *l, const node *from, const node *to,
                               const node *before) {
  map known = {0};
  set_state(s, l, before, &known);
  return split_loops_part(s->g, l->end, from, to, &known);
}

static bool split_scan(void *user, const node *end, const node *now, node_list *parts) {
  scanning *s = user;
  scan_loop l;
  (void)end;
  if (!find_scan(s, now, &l)) return false;
  int64_t lanes = scan_axis_lanes(&s->options->target, l.widest, l.range);
  if (!lanes) return false;
  const node *zero = ix_const(s->g, 0), *width = ix_const(s->g, lanes);
  const node *count = ix_floordiv(s->g, ix_sub(s->g, l.span.high, l.span.low), width);
  const node *end_of_vectors = ix_add(s->g, l.span.low, ix_scale(s->g, count, lanes));
  const node *first = scalar_part(s, &l, zero, l.span.low, NULL);
  const node *vectors = vector_part(s, &l, count, lanes, first);
  if (!vectors) return false;
  const node *rest = scalar_part(s, &l, end_of_vectors, range_extent(l.range), vectors);
  if (first) vec_push(ir_arena(s->g), parts, first);
  vec_push(ir_arena(s->g), parts, vectors);
  if (rest) vec_push(ir_arena(s->g), parts, rest);
  return true;
}

const node *codegen_vector_scans(ir *g, const node *sink, const codegen_options *o) {
  scanning s = {.g = g, .options = o};
  if (!o->target.vector_bytes || o->target.team_workers) return sink;
  return split_loops_replace(g, sink, split_scan, &s);
}
