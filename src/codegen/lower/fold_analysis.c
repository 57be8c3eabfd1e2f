/* Prepares FOLDs (the IR's reductions and scans) for lowering: rewrites emitted values to read
   the loop-carried state after the step, and finds the loop ranges that each array's storage
   depends on and the array states that can be updated in place. Each is a sweep over the kernel
   in topological order. */
#include "codegen/lower/fold_analysis.h"

#include "ir/core/binder.h"
#include "ir/core/topo_sort.h"
#include "ir/index/write_once.h"
#include "ir/transform/substitute.h"

/* Separation of emitted values from steps. */

typedef struct separation {
  ir *g;
  arena *a;
  const node *fold;
  map holders; /* nodes that contain a state of the FOLD */
  map with;    /* STATE or range → its replacement in emitted values */
} separation;

/** True for a state before the step, and for nodes that contain one. */
static bool holds_state(const separation *s, const node *n) {
  if (n->op == OP_STATE && n->src[0] == fold_innermost_range(s->fold) &&
      n->ints[0] < (int64_t)fold_n_states(s->fold))
    return true;
  for (uint32_t i = 0; i < n->n_src; i++)
    if (map_has(&s->holders, n->src[i])) return true;
  return false;
}

static bool is_replaced(const separation *s, const node *n) {
  if (map_has(&s->holders, n)) return true;
  for (uint32_t i = 0; i < n->free->n; i++)
    if (map_has(&s->with, n->free->at[i])) return true;
  return false;
}

/** Clones the ranges of a binder, the outer ones first. */
static void clone_ranges(separation *s, const node *binder) {
  const node *const *ranges;
  size_t n = binder_ranges(binder, &ranges);
  for (size_t i = 0; i < n; i++) {
    const node *extent = subst(s->g, range_extent(ranges[i]), &s->with);
    map_set(s->a, &s->with, ranges[i], (void *)range_clone(s->g, ranges[i], extent));
  }
}

/** Fills s->with; false: emitted values contain no state. */
static bool find_replacements(separation *s, const node *const *emits, size_t n_emits) {
  node_list order = topo_sort(s->a, emits, n_emits, NULL, NULL);
  int64_t n = (int64_t)fold_n_states(s->fold);
  for (size_t i = 0; i < order.n; i++) {
    const node *at = order.at[i];
    if (!holds_state(s, at)) continue;
    map_set(s->a, &s->holders, at, (void *)at);
    if (at->op == OP_STATE)
      map_set(s->a, &s->with, at,
              (void *)fold_state_make(s->g, (dtype)at->dtype, at->src[0], n + at->ints[0]));
  }
  for (size_t i = order.n; i-- > 0 && s->with.n;) /* outer binders first */
    if (node_is_binder(order.at[i]) && is_replaced(s, order.at[i])) clone_ranges(s, order.at[i]);
  return s->with.n > 0;
}

/** The FOLD with its emitted values separated; NULL if they are already. */
static const node *separate_fold(ir *g, const node *fold) {
  separation s = {.g = g, .a = ir_arena(g), .fold = fold};
  binder_layout p = binder_layout_of(OP_FOLD, fold->ints);
  if (!p.arrays || !find_replacements(&s, fold->src + p.values, p.arrays)) return NULL;
  const node **src = arena_copy(s.a, fold->src, fold->n_src * sizeof *src);
  for (size_t i = p.values; i < p.coords; i++) src[i] = subst(g, src[i], &s.with);
  return ir_with_sources(g, fold, src);
}

const node *fold_analysis_separate_emits(ir *g, const node *sink) {
  node_list order = topo_sort(ir_arena(g), &sink, 1, NULL, NULL);
  for (size_t i = order.n; i-- > 0;) {
    if (order.at[i]->op != OP_FOLD) continue;
    const node *with = separate_fold(g, order.at[i]);
    if (!with) continue;
    map one = {0};
    map_set(ir_arena(g), &one, order.at[i], (void *)with);
    sink = subst(g, sink, &one);
    order = topo_sort(ir_arena(g), &sink, 1, NULL, NULL);
    i = order.n;
  }
  return sink;
}

/* Scopes of storage. */

typedef struct dependence {
  ir *g;
  arena *a;
  map folds; /* innermost RANGE → its FOLD */
  map reads; /* node → range_set of the innermost ranges of the FOLDs whose states it reads */
} dependence;

/** The set of a range alone, without the ranges that its extent depends on. */
static const range_set *range_alone(ir *g, const node *range) {
  const range_set *s = range->free;
  for (uint32_t i = 0; i < range->free->n; i++)
    if (range->free->at[i] != range) s = range_set_without(g, s, range->free->at[i]);
  return s;
}

/** Records the FOLDs whose states a node reads: those of its sources, and its own as a STATE. */
static void note_states(dependence *d, const node *n) {
  const range_set *all = n->op == OP_STATE ? range_alone(d->g, n->src[0]) : NULL;
  for (uint32_t i = 0; i < n->n_src; i++) {
    const range_set *reads = map_get(&d->reads, n->src[i]);
    if (reads) all = all ? range_set_union(d->g, all, reads) : reads;
  }
  if (all && n->op == OP_FOLD) all = range_set_without(d->g, all, fold_innermost_range(n));
  if (all && all->n) map_set(d->a, &d->reads, n, (void *)all);
  if (n->op == OP_FOLD) map_set(d->a, &d->folds, fold_innermost_range(n), (void *)n);
}

void fold_analysis_scopes(ir *g, const node *sink, map *places) {
  dependence d = {.g = g, .a = ir_arena(g)};
  node_list order = topo_sort(d.a, &sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) note_states(&d, order.at[i]);
  for (size_t i = order.n; i-- > 0;) { /* FOLDs before the readers of their states */
    const node *b = order.at[i];
    if (b->op != OP_STAGE && b->op != OP_FOLD) continue;
    const range_set *place = b->free, *reads = map_get(&d.reads, b);
    for (uint32_t k = 0; reads && k < reads->n; k++) {
      const node *fold = map_get(&d.folds, reads->at[k]);
      place = range_set_union(g, place, map_get(places, fold));
      for (size_t r = 0; r < fold_n_ranges(fold); r++)
        place = range_set_union(g, place, fold_range(fold)[r]->free);
    }
    map_set(d.a, places, b, (void *)place);
  }
}

/* Array states that step in place. */

typedef struct uses {
  arena *a;
  map folds;   /* innermost RANGE → its FOLD */
  map stepped; /* STAGE → the FOLD that it is a step of */
  map refused; /* STAGEs that must not write in place */
} uses;

static void refuse_stage(uses *u, const node *stage) { map_set(u->a, &u->refused, stage, NULL); }

static void note_step(uses *u, const node *fold, size_t i) {
  const node *step = fold_step(fold, i), *other = map_get(&u->stepped, step);
  map_set(u->a, &u->stepped, step, (void *)fold);
  if (other && other != fold) refuse_stage(u, step);
  if (!node_is_free_in(fold_innermost_range(fold), step)) refuse_stage(u, step);
  if (!stage_writes_once(step, (size_t)fold_component(fold, i))) refuse_stage(u, step);
}

/** Refuses the step of a state that is read at another element than the step writes. */
static void note_read(uses *u, const node *n) {
  const node *state = n->src[0], *fold = map_get(&u->folds, state->src[0]);
  size_t i = (size_t)state->ints[0];
  if (i >= fold_n_states(fold) || fold_component(fold, i) < 0) return;
  const node *step = fold_step(fold, i);
  const node *const *coords = stage_coords(step, (size_t)fold_component(fold, i));
  for (uint32_t k = 1; k < n->n_src; k++)
    if (n->src[k] != coords[k - 1]) refuse_stage(u, step);
}

static void note_uses(uses *u, const node *n) {
  size_t states = n->op == OP_FOLD ? fold_n_states(n) : 0;
  for (uint32_t i = 0; i < n->n_src; i++) {
    bool steps = i >= states && i < 2 * states;
    if (n->src[i]->op == OP_STAGE && !steps) refuse_stage(u, n->src[i]);
  }
  for (size_t i = 0; i < states; i++)
    if (fold_component(n, i) >= 0) note_step(u, n, i);
  if (n->op == OP_INDEX && n->src[0]->op == OP_STATE) note_read(u, n);
}

void fold_analysis_in_place(arena *a, const node *sink, map *in_place) {
  uses u = {.a = a};
  node_list order = topo_sort(a, &sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_FOLD)
      map_set(a, &u.folds, fold_innermost_range(order.at[i]), (void *)order.at[i]);
  for (size_t i = 0; i < order.n; i++) note_uses(&u, order.at[i]);
  for (size_t i = 0; i < order.n; i++)
    if (map_has(&u.stepped, order.at[i]) && !map_has(&u.refused, order.at[i]))
      map_set(a, in_place, order.at[i], (void *)order.at[i]);
}
