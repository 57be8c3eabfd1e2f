/* Binders become storage, stores and loops.

   STAGE  → ALLOC, STORE, END over its ranges; its readers load from AFTER(ALLOC, END)
   OUT    → the same into its params
   FOLD   → STORE of init, STORE of step in the loop, END; STATE is a load after init inside the
            loop (the fold's ranges are sources of that AFTER, which keeps it there)
   An ALLOC's sources are the free ranges of its binder: its place, one storage an iteration. */
#include "codegen/address.h"
#include "codegen/codegen.h"
#include "ir/binder.h"
#include "ir/topo.h"

#include "base/map.h"

enum { SPACE_REGISTER, SPACE_SCRATCH };

/** Where a component of a binder lives once it is lowered. */
typedef struct home {
  const node *storage; /* as a reader sees it: AFTER(…) */
  size_t rank;
  const node *const *extents;
} home;

typedef struct lowering {
  ir *g;
  arena *a;
  map image;   /* node → lowered node */
  map homes;   /* STAGE or FOLD → home[components] */
  map states;  /* innermost RANGE of a fold → home[states], as its step sees them */
  map fold_of; /* innermost RANGE of a fold → the fold */
  map outs;    /* STAGEs that are written by an OUT */
} lowering;

static const node *image(lowering *l, const node *n) { return map_get(&l->image, n); }

static const node **images(lowering *l, const node *const *from, size_t n) {
  const node **to = arena_alloc(l->a, n * sizeof *to);
  for (size_t i = 0; i < n; i++) to[i] = image(l, from[i]);
  return to;
}

static const node *alloc_make(lowering *l, dtype t, const node *binder, const node *size,
                              int64_t space) {
  const range_set *place = binder->free;
  const node **src = arena_alloc(l->a, (place->n + 1) * sizeof *src);
  src[0] = size;
  for (uint32_t i = 0; i < place->n; i++) src[i + 1] = image(l, place->at[i]);
  int64_t ints[] = {ir_fresh(l->g), space};
  return ir_node(l->g, OP_ALLOC, t, src, place->n + 1, ints, 2);
}

/** AFTER(storage, effects and ranges …). */
static const node *after(lowering *l, const node *storage, const node *const *what, size_t n,
                         const node *const *more, size_t n_more) {
  const node **src = arena_alloc(l->a, (n + n_more + 1) * sizeof *src);
  src[0] = storage;
  for (size_t i = 0; i < n; i++) src[i + 1] = what[i];
  for (size_t i = 0; i < n_more; i++) src[n + i + 1] = more[i];
  return ir_node(l->g, OP_AFTER, (dtype)storage->dtype, src, n + n_more + 1, NULL, 0);
}

static const node *load(lowering *l, dtype t, const node *storage, const node *address) {
  return ir_node(l->g, OP_LOAD, t, (const node *[]){storage, address}, 2, NULL, 0);
}

static const node *store(lowering *l, const node *storage, const node *address, const node *value) {
  return ir_node(l->g, OP_STORE, DT_VOID, (const node *[]){storage, address, value}, 3, NULL, 0);
}

/** Closes ranges around effects, from the innermost out; the effects in order of their number. */
static const node *close(lowering *l, const node *const *effects, size_t n_effects,
                         const node *const *ranges, size_t n) {
  const node **src = arena_alloc(l->a, (n_effects + 1) * sizeof *src);
  for (size_t i = 0; i < n_effects; i++) src[i + 1] = effects[i];
  size_t count = n_effects;
  for (size_t i = n; i-- > 0;) {
    src[0] = ranges[i];
    src[1] = ir_node(l->g, OP_END, DT_VOID, src, count + 1, NULL, 0);
    count = 1;
  }
  if (!n && n_effects > 1) return ir_node(l->g, OP_GROUP, DT_VOID, effects, n_effects, NULL, 0);
  return src[1];
}

/* INDEX: a load from wherever the value lives. */

static const node *element(lowering *l, const node *n, const home *h) {
  const node **coords = images(l, n->src + 1, n->n_src - 1);
  const node *address = address_of(l->g, h->rank, h->extents, coords);
  return load(l, (dtype)n->dtype, h->storage, address);
}

static const node *lower_index(lowering *l, const node *n) {
  const node *of = n->src[0];
  home param;
  if (of->op == OP_PARAM) {
    param = (home){image(l, of), of->rank, images(l, of->dims, of->rank)};
    return element(l, n, &param);
  }
  const home *all = of->op == OP_STATE ? map_get(&l->states, of->src[0]) : map_get(&l->homes, of);
  return element(l, n, &all[of->op == OP_STATE ? of->ints[0] : n->ints[0]]);
}

/* STAGE and OUT. */

static const node *stage_address(lowering *l, const node *s, size_t i) {
  size_t rank = stage_rank(s, i);
  const node **coords = images(l, stage_coords(s, i), rank);
  return address_of(l->g, rank, images(l, stage_extents(s, i), rank), coords);
}

static const node *store_all(lowering *l, const node *s, const node *const *storage) {
  size_t n = stage_values(s);
  const node **effects = arena_alloc(l->a, n * sizeof *effects);
  for (size_t i = 0; i < n; i++)
    effects[i] = store(l, storage[i], stage_address(l, s, i), image(l, stage_value(s, i)));
  return close(l, effects, n, images(l, stage_range(s), stage_ranges(s)), stage_ranges(s));
}

static void lower_stage(lowering *l, const node *s) {
  size_t n = stage_values(s);
  const node **storage = arena_alloc(l->a, n * sizeof *storage);
  home *homes = arena_alloc(l->a, n * sizeof *homes);
  for (size_t i = 0; i < n; i++) {
    size_t rank = stage_rank(s, i);
    homes[i] = (home){NULL, rank, images(l, stage_extents(s, i), rank)};
    const node *size = address_size(l->g, rank, homes[i].extents);
    int64_t space = rank ? SPACE_SCRATCH : SPACE_REGISTER;
    storage[i] = alloc_make(l, (dtype)stage_value(s, i)->dtype, s, size, space);
  }
  const node *end = store_all(l, s, storage);
  for (size_t i = 0; i < n; i++) homes[i].storage = after(l, storage[i], &end, 1, NULL, 0);
  map_set(l->a, &l->homes, s, homes);
}

static const node *lower_out(lowering *l, const node *out) {
  return store_all(l, out->src[out->n_src - 1], images(l, out->src, out->n_src - 1));
}

/* FOLD. */

static void open_fold(lowering *l, const node *f) {
  size_t n = fold_states(f), n_ranges = fold_ranges(f);
  const node **ranges = images(l, fold_range(f), n_ranges);
  home *states = arena_alloc(l->a, n * sizeof *states);
  for (size_t i = 0; i < n; i++) {
    const node *init = image(l, fold_init(f, i));
    const node *at = alloc_make(l, (dtype)init->dtype, f, ix_const(l->g, 1), SPACE_REGISTER);
    const node *first = store(l, at, ix_const(l->g, 0), init);
    states[i] = (home){after(l, at, &first, 1, ranges, n_ranges), 0, NULL};
  }
  map_set(l->a, &l->states, fold_range(f)[n_ranges - 1], states);
}

/** All states step at once: a store waits for the loads of every other step. */
static void lower_fold(lowering *l, const node *f) {
  size_t n = fold_states(f), n_ranges = fold_ranges(f);
  home *states = map_get(&l->states, fold_range(f)[n_ranges - 1]);
  home *homes = arena_alloc(l->a, n * sizeof *homes);
  const node **steps = images(l, &f->src[n], n), **effects = arena_alloc(l->a, n * sizeof *steps);
  for (size_t i = 0; i < n; i++) {
    const node *at = n > 1 ? after(l, states[i].storage, steps, n, NULL, 0) : states[i].storage;
    effects[i] = store(l, at, ix_const(l->g, 0), steps[i]);
  }
  const node *end = close(l, effects, n, images(l, fold_range(f), n_ranges), n_ranges);
  for (size_t i = 0; i < n; i++) {
    const node *at = states[i].storage->src[0];
    homes[i] = (home){after(l, at, &end, 1, NULL, 0), 0, NULL};
  }
  map_set(l->a, &l->homes, f, homes);
}

/** A fold that no step asked for its state is opened here. */
static void lower_fold_whole(lowering *l, const node *f) {
  if (!map_has(&l->states, fold_range(f)[fold_ranges(f) - 1])) open_fold(l, f);
  lower_fold(l, f);
}

static const node *rebuild(lowering *l, const node *n) {
  const node **src = images(l, n->src, n->n_src);
  return ir_with_sources(l->g, n, src);
}

static const node *lower_node(lowering *l, const node *n) {
  switch (n->op) {
  case OP_INDEX: return lower_index(l, n);
  case OP_STAGE:
    if (!map_has(&l->outs, n)) lower_stage(l, n);
    return n;
  case OP_FOLD: lower_fold_whole(l, n); return n;
  case OP_STATE: return n;
  case OP_OUT: return lower_out(l, n);
  default: return rebuild(l, n);
  }
}

static void lower_graph(lowering *l, const node *const roots[], size_t n);

/** What a STATE needs before its fold is reached: storage at the fold's place, holding init. */
static void before_state(lowering *l, const node *state) {
  const node *f = map_get(&l->fold_of, state->src[0]);
  if (map_has(&l->states, state->src[0])) return;
  lower_graph(l, f->src, fold_states(f));
  lower_graph(l, fold_range(f), fold_ranges(f));
  lower_graph(l, f->free->at, f->free->n);
  open_fold(l, f);
}

static bool is_new(const node *n, void *user) {
  const lowering *l = user;
  return !map_has(&l->image, n);
}

static void lower_graph(lowering *l, const node *const roots[], size_t n) {
  node_list order = topo_sort(l->a, roots, n, is_new, l);
  for (size_t i = 0; i < order.n; i++) {
    const node *at = order.at[i];
    if (!is_new(at, l)) continue;
    if (at->op == OP_STATE) before_state(l, at);
    map_set(l->a, &l->image, at, (void *)lower_node(l, at));
  }
}

const node *codegen_lower(ir *g, const node *sink) {
  lowering l = {.g = g, .a = ir_arena(g)};
  node_list order = topo_sort(l.a, &sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (n->op == OP_FOLD) map_set(l.a, &l.fold_of, fold_range(n)[fold_ranges(n) - 1], (void *)n);
    if (n->op == OP_OUT) map_set(l.a, &l.outs, n->src[n->n_src - 1], (void *)n);
  }
  lower_graph(&l, &sink, 1);
  return image(&l, sink);
}
