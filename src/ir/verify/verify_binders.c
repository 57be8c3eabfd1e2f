/* Verifies the scoping of loop ranges in kernels. Binders are visited users first; each opens its
   ranges inside the innermost range that is free in it, which gives the nest of open ranges that
   extents, sizes, pins and states are checked against. */
#include "ir/core/binder_layout.h"
#include "ir/verify/verifier.h"

/** The position of a range in the nest of open ranges. */
typedef struct scope {
  const node *binder;
  const node *fold;          /* the FOLD whose innermost range it is; NULL: none */
  const struct scope *outer; /* the range inside which it is opened */
  uint32_t depth;            /* ranges around it */
  bool in_vector;            /* the range or an outer one is of kind vector */
} scope;

static scope *scope_of(const verifier *v, const node *range) { return map_get(&v->scopes, range); }

static void bind_ranges_of(verifier *v, const node *binder) {
  const node *const *ranges;
  size_t n = binder_ranges(binder, &ranges);
  for (size_t i = 0; i < n; i++) {
    scope *s = scope_of(v, ranges[i]);
    if (s->binder)
      verify_fail(v, ranges[i], binder, "the range is bound twice, the second time here");
    s->binder = binder;
    if (binder->op == OP_FOLD && i + 1 == n) s->fold = binder;
  }
}

static void bind_all_ranges(verifier *v) {
  for (size_t i = 0; i < v->order.n; i++)
    if (v->order.at[i]->op == OP_RANGE)
      map_set(&v->work, &v->scopes, v->order.at[i], arena_calloc(&v->work, 1, sizeof(scope)));
  for (size_t i = 0; i < v->order.n; i++)
    if (node_is_binder(v->order.at[i])) bind_ranges_of(v, v->order.at[i]);
  for (size_t i = 0; i < v->order.n; i++) {
    const node *n = v->order.at[i];
    if (n->op == OP_RANGE && !scope_of(v, n)->binder)
      verify_fail(v, n, NULL, "the range has no binder");
  }
}

/** The innermost free range of a binder. The free ranges lie on one path: each has one binder and
    no range is free in a root, so of two binders that both reach this one, one binds its range
    outside of the other. */
static const scope *innermost_free_range(const verifier *v, const node *binder) {
  const scope *inner = NULL;
  for (uint32_t i = 0; i < binder->free->n; i++) {
    const scope *s = scope_of(v, binder->free->at[i]);
    if (!inner || s->depth > inner->depth) inner = s;
  }
  return inner;
}

/** True if `range` is open where `inner` is the innermost open range. */
static bool is_open(const scope *range, const scope *inner) {
  while (inner && inner->depth > range->depth) inner = inner->outer;
  return inner == range;
}

static const scope *open_range(verifier *v, const node *binder, const node *range,
                               const scope *outer) {
  const range_set *needs = range_extent(range)->free;
  scope *s = scope_of(v, range);
  for (uint32_t i = 0; i < needs->n; i++)
    if (!outer || !is_open(scope_of(v, needs->at[i]), outer))
      verify_fail(v, binder, range, "the extent of a range depends on a range that is not open");
  bool vector = range_kind_of(range) == KIND_VECTOR;
  if (vector && outer && outer->in_vector)
    verify_fail(v, binder, range, "a vector inside a vector");
  s->outer = outer;
  s->depth = outer ? outer->depth + 1 : 0;
  s->in_vector = vector || (outer && outer->in_vector);
  return s;
}

/** Fails if a size depends on a state. Its free ranges do not show that: the range that a state is
    known by is free in the state, whether or not the state varies along it. */
static void check_size_is_stateless(verifier *v, const node *n, const node *size) {
  if (!size->free->n) return;
  arena_mark here = arena_save(&v->work);
  node_list order = topo_sort(&v->work, &size, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_STATE && node_is_free_in(order.at[i]->src[0], size))
      verify_fail(v, n, order.at[i], "a size depends on a state");
  arena_rewind(&v->work, here);
}

/** Fails if one of `n` nodes depends on a range of the binder. */
static void check_independent(verifier *v, const node *binder, const node *const *at, size_t n,
                              const char *why) {
  const node *const *ranges;
  size_t count = binder_ranges(binder, &ranges);
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < count; k++)
      if (node_is_free_in(ranges[k], at[i])) verify_fail(v, binder, NULL, why);
}

/** Checks the sizes of the arrays and the pins of a STAGE or FOLD. */
static void check_arrays_and_pins(verifier *v, const node *b) {
  binder_layout p = binder_layout_of((op)b->op, b->ints);
  check_independent(v, b, b->src + p.extents, p.ranges - p.extents,
                    "an array's extent depends on a range of its binder");
  check_independent(v, b, b->src + p.pins, p.n_pins, "a pin depends on a range of its binder");
  for (size_t i = p.extents; i < p.ranges; i++) check_size_is_stateless(v, b, b->src[i]);
  for (size_t i = p.ranges; i < p.pins; i++) check_size_is_stateless(v, b, range_extent(b->src[i]));
}

static bool is_in_fold(const node *n, void *innermost) { return node_is_free_in(innermost, n); }

/** Fails if one of `n` nodes reads a state of the FOLD. */
static void check_stateless(verifier *v, const node *fold, const node *const *at, size_t n,
                            const char *why) {
  const node *innermost = fold_innermost_range(fold);
  arena_mark here = arena_save(&v->work);
  node_list order = topo_sort(&v->work, at, n, is_in_fold, (void *)innermost);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_STATE && order.at[i]->src[0] == innermost)
      verify_fail(v, fold, order.at[i], why);
  arena_rewind(&v->work, here);
}

/** The coordinates and extents of an array state's step do not depend on states and on the FOLD. */
static void check_array_step(verifier *v, const node *fold, size_t state) {
  const node *step = fold_step(fold, state);
  size_t which = (size_t)fold_component(fold, state);
  check_independent(v, fold, stage_extents(step, which), stage_rank(step, which),
                    "the extent of a state depends on a range of its fold");
  check_stateless(v, fold, stage_coords(step, which), stage_rank(step, which),
                  "a coordinate depends on a state");
}

static void check_fold(verifier *v, const node *fold) {
  size_t n = fold_n_states(fold);
  check_independent(v, fold, fold->src, n, "the start of a fold depends on its range");
  for (size_t i = 0; i < n; i++) {
    const node *term = fold_step(fold, i);
    if (fold_component(fold, i) >= 0) {
      check_array_step(v, fold, i);
      term = stage_value(term, (size_t)fold_component(fold, i));
    }
    if (fold_op(fold, i) >= 0)
      check_stateless(v, fold, &term, 1, "a term of an op contains a state of its fold");
  }
  for (size_t i = 0; i < fold_n_emits(fold); i++)
    check_stateless(v, fold, fold_coords(fold, i), fold_rank(fold, n + i),
                    "a coordinate depends on a state");
}

static void check_binder(verifier *v, const node *binder) {
  const node *const *ranges;
  size_t n = binder_ranges(binder, &ranges);
  const scope *outer = innermost_free_range(v, binder);
  for (size_t i = 0; i < n; i++) outer = open_range(v, binder, ranges[i], outer);
  if (binder->op == OP_STAGE || binder->op == OP_FOLD) check_arrays_and_pins(v, binder);
  if (binder->op == OP_STAGE && stage_is_cut(binder) && binder->free->n)
    verify_fail(v, binder, binder->free->at[0], "a cut stage uses a range of its reader");
  if (binder->op == OP_FOLD) check_fold(v, binder);
}

/** Users before sources, so that the free ranges of a binder have their scopes before it. */
void verify_binders(verifier *v) {
  bind_all_ranges(v);
  for (size_t i = 0; i < v->n; i++)
    if (v->roots[i]->free->n)
      verify_fail(v, v->roots[i], v->roots[i]->free->at[0],
                  "a root uses a range outside of its binder");
  for (size_t i = v->order.n; i-- > 0;)
    if (node_is_binder(v->order.at[i])) check_binder(v, v->order.at[i]);
}

static void check_state(verifier *v, const node *state) {
  const node *fold = scope_of(v, state->src[0])->fold;
  if (!fold) verify_fail(v, state, state->src[0], "no fold has this as its innermost range");
  if ((uint64_t)state->ints[0] >= fold_n_states(fold))
    verify_fail(v, state, fold, "the fold has no such state");
  if (state->dtype != fold_dtype(fold, (size_t)state->ints[0]))
    verify_fail(v, state, fold, "the state of the fold has another type");
}

void verify_states(verifier *v) {
  for (size_t i = 0; i < v->order.n; i++) {
    const node *n = v->order.at[i];
    if (n->op == OP_STATE) check_state(v, n);
    if (n->op != OP_INDEX || n->src[0]->op != OP_STATE) continue;
    const node *state = n->src[0], *fold = scope_of(v, state->src[0])->fold;
    if (n->n_src - 1 != fold_rank(fold, (size_t)state->ints[0]))
      verify_fail(v, n, fold, "the state of the fold has another number of coordinates");
  }
}
