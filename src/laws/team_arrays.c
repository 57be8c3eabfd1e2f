/* Implements the derivation of memory spaces: finds the digits among the coordinates of all arrays,
   takes away those that a reader does not have as its own, and joins the arrays that lowering
   stores as one, which are a FOLD's state and the STAGEs that it starts from and steps to. */
#include "laws/team_arrays.h"

#include "ir/core/topo_sort.h"

/** The digits that the coordinates of a component are; NULL where one is none. */
typedef struct coordinates {
  const node *digit[IR_MAX_RANK];
} coordinates;

typedef struct derivation {
  ir *g;
  arena *a;
  team_arrays t;
  node_list binders; /* sources first */
  map coordinates;   /* STAGE, FOLD → coordinates[components] */
  map folds;         /* innermost RANGE → FOLD */
  map bound;         /* RANGE → its binder */
} derivation;

static size_t n_components(const node *b) {
  return b->op == OP_STAGE ? stage_n_values(b) : fold_n_states(b) + fold_n_emits(b);
}

static size_t rank_of(const node *b, size_t component) {
  return b->op == OP_STAGE ? stage_rank(b, component) : fold_rank(b, component);
}

/** The coordinates at which a component is written; NULL: a scalar. */
static const node *const *coords_of(const node *b, size_t component) {
  if (b->op == OP_STAGE) return stage_coords(b, component);
  size_t states = fold_n_states(b);
  if (component >= states) return fold_coords(b, component - states);
  int64_t of = fold_component(b, component);
  return of < 0 ? NULL : stage_coords(fold_step(b, component), (size_t)of);
}

/** The STAGE by whose ranges a component is written, or the FOLD. */
static const node *writer_of(const node *b, size_t component) {
  if (b->op == OP_STAGE || component >= fold_n_states(b)) return b;
  return fold_component(b, component) < 0 ? b : fold_step(b, component);
}

static bool binds(const node *b, const node *range) {
  const node *const *ranges;
  size_t n = binder_ranges(b, &ranges);
  return nodes_contain(ranges, n, range);
}

static void add_binder(derivation *d, const node *b) {
  const node *const *ranges;
  size_t n = n_components(b);
  coordinates *all = arena_calloc(d->a, n, sizeof *all);
  for (size_t i = 0; i < n; i++)
    for (size_t p = 0; p < rank_of(b, i); p++) {
      const node *x = coords_of(b, i)[p];
      bool is_own = x->op == OP_RANGE && range_is_digit(x) && binds(writer_of(b, i), x);
      all[i].digit[p] = is_own ? x : NULL;
    }
  map_set(d->a, &d->coordinates, b, all);
  if (b->op == OP_FOLD) map_set(d->a, &d->folds, fold_innermost_range(b), (void *)b);
  for (size_t i = 0, k = binder_ranges(b, &ranges); i < k; i++)
    map_set(d->a, &d->bound, ranges[i], (void *)b);
  vec_push(d->a, &d->binders, b);
}

/** Takes away the digits that a read has not as its own. */
static void note_read(derivation *d, const node *index) {
  const node *of = index->src[0];
  size_t component = (size_t)index->ints[0];
  if (of->op == OP_STATE) {
    component = (size_t)of->ints[0];
    of = map_get(&d->folds, of->src[0]);
    if (of && component >= fold_n_states(of)) component -= fold_n_states(of); /* after the step */
  }
  coordinates *all = of ? map_get(&d->coordinates, of) : NULL;
  for (uint32_t p = 0; all && p + 1 < index->n_src; p++) {
    const node *x = index->src[1 + p], **own = &all[component].digit[p];
    bool is_own = *own && x->op == OP_RANGE && range_is_digit(x) && range_is_same_digit(x, *own);
    if (!is_own) *own = NULL;
  }
}

/** Leaves two arrays the digits that they have in common; true: one has changed. */
static bool join(coordinates *a, coordinates *b) {
  bool changed = false;
  for (size_t p = 0; p < IR_MAX_RANK; p++) {
    const node **x = &a->digit[p], **y = &b->digit[p];
    if (*x && *y && range_is_same_digit(*x, *y)) continue;
    changed |= *x || *y;
    *x = *y = NULL;
  }
  return changed;
}

static bool join_states(derivation *d, const node *fold) {
  coordinates *own = map_get(&d->coordinates, fold);
  bool changed = false;
  for (size_t i = 0; i < fold_n_states(fold); i++) {
    int64_t of = fold_component(fold, i);
    if (of < 0) continue;
    coordinates *step = map_get(&d->coordinates, fold_step(fold, i));
    coordinates *init = map_get(&d->coordinates, fold_init(fold, i));
    changed |= join(&own[i], &step[of]);
    if (init) changed |= join(&own[i], &init[of]);
  }
  return changed;
}

/** The kinds from narrow to wide; a kind that is no digit is the narrowest. */
static int width(range_kind k) {
  return k == KIND_GLOBAL ? 3 : k == KIND_LOCAL ? 2 : k == KIND_WARP ? 1 : 0;
}

/** The widest kind of a writer's digits in a coordinate. */
static range_kind widest_in(const node *writer, const node *x) {
  range_kind widest = KIND_LOOP;
  for (uint32_t i = 0; i < x->free->n; i++) {
    const node *r = x->free->at[i];
    if (range_is_digit(r) && binds(writer, r) && width(range_kind_of(r)) > width(widest))
      widest = range_kind_of(r);
  }
  return widest;
}

static const node *const *extents_of(const node *b, size_t component) {
  return b->op == OP_STAGE ? stage_extents(b, component) : fold_extents(b, component);
}

/** True if an array has an element for each index of a digit. */
static bool has_all(const derivation *d, const node *extent, const node *digit) {
  const node *whole = team_digits_find(&d->t.digits, digit)->extent;
  return extent == whole || extent->lo >= whole->hi;
}

static team_array derive_array(const derivation *d, const node *b, size_t component,
                               const coordinates *c) {
  team_array a = {.widest = KIND_LOOP};
  for (size_t p = 0; p < rank_of(b, component); p++) {
    range_kind k = widest_in(writer_of(b, component), coords_of(b, component)[p]);
    if (!c->digit[p] && width(k) > width(a.widest)) a.widest = k;
  }
  for (size_t p = 0; p < rank_of(b, component); p++)
    if (c->digit[p] && width(range_kind_of(c->digit[p])) > width(a.widest)) {
      a.dropped |= UINT32_C(1) << p;
      a.is_partial |= !has_all(d, extents_of(b, component)[p], c->digit[p]);
    }
  return a;
}

/** Adds the ranges that are open around a range: those of its binder outside of it, and those
    around the binder. */
static void add_around(derivation *d, const node *range, node_list *open) {
  const node *b = map_get(&d->bound, range), *const * ranges;
  const node_list *outer = b ? map_get(&d->t.open, b) : NULL;
  for (size_t i = 0; outer && i < outer->n; i++)
    if (!nodes_contain(open->at, open->n, outer->at[i])) vec_push(d->a, open, outer->at[i]);
  for (size_t i = 0, n = b ? binder_ranges(b, &ranges) : 0; i < n; i++) {
    if (!nodes_contain(open->at, open->n, ranges[i])) vec_push(d->a, open, ranges[i]);
    if (ranges[i] == range) return;
  }
}

/** Finds the ranges around each binder, outer binders first. */
static void find_open_ranges(derivation *d) {
  for (size_t i = d->binders.n; i-- > 0;) {
    const node *b = d->binders.at[i];
    node_list *open = arena_calloc(d->a, 1, sizeof *open);
    for (uint32_t k = 0; k < b->free->n; k++) add_around(d, b->free->at[k], open);
    map_set(d->a, &d->t.open, b, open);
  }
}

static derivation derive(ir *g, const node *sink) {
  derivation d = {.g = g, .a = ir_arena(g)};
  node_list nodes = topo_sort(d.a, &sink, 1, NULL, NULL);
  d.t.digits = team_digits_of(g, &nodes);
  for (size_t i = 0; i < nodes.n; i++)
    if (nodes.at[i]->op == OP_STAGE || nodes.at[i]->op == OP_FOLD) add_binder(&d, nodes.at[i]);
  for (size_t i = 0; i < nodes.n; i++)
    if (nodes.at[i]->op == OP_INDEX) note_read(&d, nodes.at[i]);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < d.binders.n; i++)
      if (d.binders.at[i]->op == OP_FOLD) changed |= join_states(&d, d.binders.at[i]);
  }
  for (size_t i = 0; i < d.binders.n; i++) {
    const node *b = d.binders.at[i];
    const coordinates *c = map_get(&d.coordinates, b);
    team_array *all = arena_calloc(d.a, n_components(b), sizeof *all);
    for (size_t k = 0; k < n_components(b); k++) all[k] = derive_array(&d, b, k, &c[k]);
    map_set(d.a, &d.t.arrays, b, all);
  }
  find_open_ranges(&d);
  return d;
}

team_arrays team_arrays_of(ir *g, const node *sink) { return derive(g, sink).t; }

const team_array *team_arrays_find(const team_arrays *t, const node *binder, size_t component) {
  return (const team_array *)map_get(&t->arrays, binder) + component;
}

bool team_differs_along(ir *g, const node *binder, const node *range) {
  if (node_is_free_in(range, binder)) return true;
  node_list nodes = topo_sort(ir_arena(g), &binder, 1, NULL, NULL);
  for (size_t i = 0; i < nodes.n; i++)
    if (nodes.at[i]->op == OP_STATE && node_is_free_in(nodes.at[i]->src[0], binder)) return true;
  return false;
}

storage_space team_array_space(const team_array *a, size_t rank) {
  size_t left = rank - (size_t)__builtin_popcount(a->dropped);
  if (a->widest == KIND_LOCAL) return SPACE_GROUP;
  if (a->widest == KIND_WARP) return SPACE_WARP;
  return left || a->is_partial ? SPACE_SCRATCH : SPACE_REGISTER; /* registers have no conditions */
}
