/* Binders become storage, stores and loops.

   STAGE  → ALLOC, STORE, END over its ranges; its readers load from AFTER(ALLOC, END)
   OUT    → the same into its params
   FOLD   → its states are storage that holds their starts; in its loop they are loaded, then
            stored to, then what is emitted is stored; STATE is a load that the fold's ranges, as
            sources of its AFTER, keep inside the loop
   An array state is written by the loops of its step where folds_in_place allows it; else the step
   is an array of its own, which other loops add to the state after all loads.
   An ALLOC's sources are the ranges that its contents depend on: one storage an iteration. */
#include "codegen/codegen.h"
#include "codegen/folds.h"
#include "codegen/tails.h"
#include "ir/address.h"
#include "ir/binder.h"
#include "ir/subst.h"
#include "ir/topo.h"
#include "laws/laws.h"

#include "base/map.h"

enum { SPACE_REGISTER, SPACE_SCRATCH };

/** Where a component of a binder lives once it is lowered. */
typedef struct home {
  const node *storage; /* as a reader sees it: AFTER(…) */
  size_t rank;
  const node *const *extents;
} home;

/** A FOLD while it is lowered: its states are opened before the first load of one, stepped before
    the first load of a state after its step, and closed last. */
typedef struct scan {
  const node *fold;
  const node **ranges;  /* images */
  const node **alloc;   /* of each state */
  home *before, *after; /* states as steps and as emitted values see them; NULL: not yet */
  const node **load;    /* of each state, in a step; NULL: none yet */
  node_list effects;    /* of an iteration */
} scan;

typedef struct lowering {
  ir *g;
  arena *a;
  map image;    /* node → lowered node */
  map homes;    /* STAGE or FOLD → home[components] */
  map scans;    /* innermost RANGE of a fold → scan */
  map direct;   /* STAGE that one OUT writes and nothing reads → OUT */
  map in_place; /* STAGEs that write states of their fold */
  map places;   /* STAGE or FOLD → the ranges of its storage */
  map lanes;    /* ranges that are, or are inside of, vectors */
} lowering;

static const node *image(lowering *l, const node *n) { return map_get(&l->image, n); }

static const node **images(lowering *l, const node *const *from, size_t n) {
  const node **to = arena_alloc(l->a, n * sizeof *to);
  for (size_t i = 0; i < n; i++) to[i] = image(l, from[i]);
  return to;
}

static const node *alloc_make(lowering *l, dtype t, const node *binder, const node *size,
                              int64_t space) {
  const range_set *place = map_get(&l->places, binder);
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

static const node *group(lowering *l, const node_list *effects) {
  if (effects->n == 1) return effects->at[0];
  return ir_node(l->g, OP_GROUP, DT_VOID, effects->at, effects->n, NULL, 0);
}

/** Closes ranges around effects; an effect stands inside as many of them as its level says (NULL:
    all of them). */
static const node *close(lowering *l, const node *const *effects, const size_t *levels, size_t n,
                         const node *const *ranges, size_t n_ranges) {
  node_list inside = {0};
  for (size_t level = n_ranges;; level--) {
    for (size_t i = 0; i < n; i++)
      if ((levels ? levels[i] : n_ranges) == level) vec_push(l->a, &inside, effects[i]);
    if (!level) return group(l, &inside);
    if (!inside.n) continue;
    const node **src = arena_alloc(l->a, (inside.n + 1) * sizeof *src);
    src[0] = ranges[level - 1];
    for (size_t i = 0; i < inside.n; i++) src[i + 1] = inside.at[i];
    const node *end = ir_node(l->g, OP_END, DT_VOID, src, inside.n + 1, NULL, 0);
    inside = (node_list){0};
    vec_push(l->a, &inside, end);
  }
}

/** Storage for an array, or a register for one element. */
static const node *array_make(lowering *l, dtype t, const node *binder, size_t rank,
                              const node *const *extents) {
  int64_t space = rank ? SPACE_SCRATCH : SPACE_REGISTER;
  return alloc_make(l, t, binder, address_size(l->g, rank, extents), space);
}

/* INDEX: a load from wherever the value lives. */

static const node *element(lowering *l, const node *n, const home *h) {
  const node **coords = images(l, n->src + 1, n->n_src - 1);
  const node *address = address_of(l->g, h->rank, h->extents, coords);
  return load(l, (dtype)n->dtype, h->storage, address);
}

/** Both states of a scan: those of steps, then those of emitted values. */
static const node *lower_state_index(lowering *l, const node *n) {
  scan *s = map_get(&l->scans, n->src[0]->src[0]);
  size_t i = (size_t)n->src[0]->ints[0], states = fold_states(s->fold);
  if (i >= states) return element(l, n, &s->after[i - states]);
  return s->load[i] = element(l, n, &s->before[i]);
}

static const node *lower_index(lowering *l, const node *n) {
  const node *of = n->src[0];
  if (of->op == OP_STATE) return lower_state_index(l, n);
  if (of->op == OP_PARAM) {
    home param = {image(l, of), of->rank, images(l, of->dims, of->rank)};
    return element(l, n, &param);
  }
  const home *all = map_get(&l->homes, of);
  return element(l, n, &all[n->ints[0]]);
}

/* STAGE and OUT. */

static const node *stage_address(lowering *l, const node *s, size_t i) {
  size_t rank = stage_rank(s, i);
  const node **coords = images(l, stage_coords(s, i), rank);
  return address_of(l->g, rank, images(l, stage_extents(s, i), rank), coords);
}

/** A store that is done in all iterations of loops: also of those that its address does not tell,
    so that those of parts of a loop are not one. */
static const node *store_inside(lowering *l, const node *storage, const node *address,
                                const node *value, const node *const *ranges, size_t n) {
  const node **src = arena_alloc(l->a, (n + 3) * sizeof *src);
  size_t count = 0;
  src[count++] = storage;
  src[count++] = address;
  src[count++] = value;
  for (size_t i = 0; i < n; i++) {
    range_kind kind = range_kind_of(ranges[i]);
    bool is_loop = kind != KIND_UNROLL && kind != KIND_VECTOR;
    if (is_loop && !node_is_free_in(ranges[i], address)) src[count++] = ranges[i];
  }
  return ir_node(l->g, OP_STORE, DT_VOID, src, count, NULL, 0);
}

static const node *store_all(lowering *l, const node *s, const node *const *storage) {
  size_t n = stage_values(s), *levels = arena_alloc(l->a, n * sizeof *levels);
  const node *const *ranges = images(l, stage_range(s), stage_ranges(s));
  const node **effects = arena_alloc(l->a, n * sizeof *effects);
  for (size_t i = 0; i < n; i++) {
    levels[i] = stage_level(s, i);
    effects[i] = store_inside(l, storage[i], stage_address(l, s, i), image(l, stage_value(s, i)),
                              ranges, levels[i]);
  }
  return close(l, effects, levels, n, ranges, stage_ranges(s));
}

static void lower_stage(lowering *l, const node *s) {
  size_t n = stage_values(s);
  const node **storage = arena_alloc(l->a, n * sizeof *storage);
  home *homes = arena_alloc(l->a, n * sizeof *homes);
  for (size_t i = 0; i < n; i++) {
    size_t rank = stage_rank(s, i);
    homes[i] = (home){NULL, rank, images(l, stage_extents(s, i), rank)};
    storage[i] = array_make(l, (dtype)stage_value(s, i)->dtype, s, rank, homes[i].extents);
  }
  const node *end = store_all(l, s, storage);
  for (size_t i = 0; i < n; i++) homes[i].storage = after(l, storage[i], &end, 1, NULL, 0);
  map_set(l->a, &l->homes, s, homes);
}

/* Loops over whole arrays. */

/** Ranges over the elements of an array, and the coordinates that they make. */
typedef struct nest {
  const node **ranges, **coords;
  size_t n;
} nest;

static nest whole_nest(lowering *l, size_t rank, const node *const *extents) {
  nest e = {arena_alloc(l->a, rank * sizeof *e.ranges), arena_alloc(l->a, rank * sizeof *e.coords),
            0};
  for (size_t i = 0; i < rank; i++) {
    bool one = node_is_bits(extents[i], 1);
    e.coords[i] = one ? ix_const(l->g, 0) : range_make(l->g, extents[i], KIND_LOOP);
    if (!one) e.ranges[e.n++] = e.coords[i];
  }
  return e;
}

static bool reads_memory(lowering *l, const node *const *n, size_t count) {
  node_list order = topo_sort(l->a, n, count, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_INDEX) return true;
  return false;
}

/** A range like another, in lanes only where there are none around `reader`. */
static const node *range_like(lowering *l, const node *range, const node *extent,
                              const node *reader) {
  bool in_lanes = false;
  for (uint32_t i = 0; i < reader->free->n; i++)
    in_lanes |= map_has(&l->lanes, reader->free->at[i]);
  if (range_kind_of(range) == KIND_VECTOR && in_lanes) return range_make(l->g, extent, KIND_LOOP);
  return range_copy(l->g, range, extent);
}

/** The loops of a stage's value once more, over the elements that they write, so that no other
    ones are touched; over all elements where that is not known. They run where `reader` does. */
static nest nest_like(lowering *l, const node *stage, size_t value, const node *reader) {
  size_t rank = stage_rank(stage, value), level = stage_level(stage, value);
  const node *const *ranges = stage_range(stage), *const *coords = stage_coords(stage, value);
  if (!stage_writes_once(stage, value) || reads_memory(l, ranges, level) ||
      reads_memory(l, coords, rank))
    return whole_nest(l, rank, images(l, stage_extents(stage, value), rank));
  nest e = {arena_alloc(l->a, level * sizeof *e.ranges), arena_alloc(l->a, rank * sizeof *e.coords),
            level};
  map with = {0};
  for (size_t i = 0; i < level; i++) {
    const node *extent = subst_ranges(l->g, range_extent(ranges[i]), &with);
    e.ranges[i] = range_like(l, ranges[i], extent, reader);
    map_set(l->a, &with, ranges[i], (void *)e.ranges[i]);
  }
  for (size_t i = 0; i < rank; i++) e.coords[i] = subst_ranges(l->g, coords[i], &with);
  return e;
}

/** Whether a stage's value is shown to write all elements of its array, each once. */
static bool writes_all(const node *stage, size_t value) {
  double written = 1, elements = 1;
  for (size_t i = 0; i < stage_level(stage, value); i++) {
    const node *extent = range_extent(stage_range(stage)[i]);
    written *= node_is_const(extent) ? (double)node_int(extent) : 0;
  }
  for (size_t i = 0; i < stage_rank(stage, value); i++)
    elements *= (double)stage_extents(stage, value)[i]->hi;
  return written == elements && stage_writes_once(stage, value);
}

/** Puts a stage's array, which is lowered, into other storage: o < 0, or what the op makes of both.
 */
static const node *take_array(lowering *l, const node *stage, size_t value, const node *reader,
                              const node *to, int64_t o) {
  const home *from = (const home *)map_get(&l->homes, stage) + value;
  dtype t = (dtype)to->dtype;
  nest e = nest_like(l, stage, value, reader);
  const node *address = address_of(l->g, from->rank, from->extents, e.coords);
  const node *x = load(l, t, from->storage, address);
  if (o >= 0) x = ir_op2(l->g, (op)o, load(l, t, to, address), x);
  x = store(l, to, address, x);
  return close(l, &x, NULL, 1, e.ranges, e.n);
}

static const node *fill_array(lowering *l, const nest *e, const home *h, const node *to,
                              const node *value) {
  const node *x = store(l, to, address_of(l->g, h->rank, h->extents, e->coords), value);
  return close(l, &x, NULL, 1, e->ranges, e->n);
}

/** What reads a param, of the nodes of a nest, as seen inside of the first ranges of it: the loads,
    and the loops of those that other ranges are around. */
static node_list reads_inside(lowering *l, const node *param, const node_list *nodes,
                              const node *const *values, size_t n_values, const range_set *inside) {
  node_list reads = {0};
  map deeper = {0}; /* what such a load is below, outside of no loop yet */
  for (size_t i = 0; i < nodes->n; i++) {
    const node *n = nodes->at[i];
    bool is_read = n->op == OP_LOAD && node_storage_root(n->src[0]) == param;
    for (uint32_t k = 0; k < n->n_src && !is_read; k++) is_read = map_has(&deeper, n->src[k]);
    if (!is_read) continue;
    bool is_whole = n->op == OP_LOAD || n->op == OP_END;
    if (is_whole && range_set_within(n->free, inside))
      vec_push(l->a, &reads, n);
    else
      map_set(l->a, &deeper, n, (void *)n);
  }
  for (size_t i = 0; i < n_values; i++)
    if (map_has(&deeper, values[i]))
      diag_raise(ir_diag(l->g), TN_ERR_INTERNAL, "a param is read in loops inside of its store's");
  return reads;
}

/** The params of an OUT. One that the kernel reads too is stored to after it is loaded: also what
    other values are computed from is old. */
static const node **params_after_reads(lowering *l, const node *out) {
  const node *stage = out->src[out->n_src - 1], **params = images(l, out->src, out->n_src - 1);
  const node **values = images(l, stage->src, stage_values(stage));
  const node *const *ranges = images(l, stage_range(stage), stage_ranges(stage));
  node_list nodes = topo_sort(l->a, values, stage_values(stage), NULL, NULL);
  for (size_t i = 0; i + 1 < out->n_src; i++) {
    const range_set *inside = ix_const(l->g, 0)->free;
    for (size_t k = 0; k < stage_level(stage, i); k++)
      inside = ir_range_union(l->g, inside, ranges[k]->free);
    node_list reads = reads_inside(l, params[i], &nodes, values, stage_values(stage), inside);
    if (reads.n) params[i] = after(l, params[i], reads.at, reads.n, NULL, 0);
  }
  return params;
}

static const node *lower_out(lowering *l, const node *out) {
  const node *stage = out->src[out->n_src - 1], **params = images(l, out->src, out->n_src - 1);
  node_list effects = {0};
  if (map_get(&l->direct, stage) == out) return store_all(l, stage, params_after_reads(l, out));
  for (size_t i = 0; i + 1 < out->n_src; i++)
    vec_push(l->a, &effects, take_array(l, stage, i, out, params[i], -1));
  return group(l, &effects);
}

/* FOLD: its states hold their starts. */

static const node *start(lowering *l, const scan *s, size_t i, const node *alloc) {
  const node *init = fold_init(s->fold, i), *step = fold_step(s->fold, i);
  const home *h = &s->before[i];
  size_t component = (size_t)fold_component(s->fold, i);
  if (init->op == OP_STAGE) return take_array(l, init, component, s->fold, alloc, -1);
  bool as_stepped = fold_component(s->fold, i) >= 0 && writes_all(step, component);
  nest e = as_stepped ? nest_like(l, step, component, s->fold) : whole_nest(l, h->rank, h->extents);
  return fill_array(l, &e, h, alloc, image(l, init));
}

static void open_fold(lowering *l, scan *s) {
  const node *f = s->fold;
  size_t n = fold_states(f), n_ranges = fold_ranges(f);
  s->ranges = images(l, fold_range(f), n_ranges);
  s->alloc = arena_alloc(l->a, n * sizeof *s->alloc);
  s->load = arena_calloc(l->a, n, sizeof *s->load);
  s->before = arena_alloc(l->a, n * sizeof *s->before);
  for (size_t i = 0; i < n; i++) {
    size_t rank = fold_rank(f, i);
    s->before[i] = (home){NULL, rank, images(l, fold_extents(f, i), rank)};
    s->alloc[i] = array_make(l, fold_dtype(f, i), f, rank, s->before[i].extents);
    const node *first = start(l, s, i, s->alloc[i]);
    s->before[i].storage = after(l, s->alloc[i], &first, 1, s->ranges, n_ranges);
  }
}

/* FOLD: all states step at once. What is stored to a state waits for the loads of all steps from
   it. */

/** A scalar, or an element in place: there is one load, if any. */
static const node *to_store_to(lowering *l, const scan *s, size_t i) {
  const node *at = s->before[i].storage;
  return s->load[i] && fold_states(s->fold) > 1 ? after(l, at, &s->load[i], 1, NULL, 0) : at;
}

/** The store of a state's step, at an address. */
static const node *step_store(lowering *l, const scan *s, size_t i, const node *address,
                              const node *v) {
  int64_t o = fold_op(s->fold, i);
  const node *at = to_store_to(l, s, i);
  if (o >= 0) {
    const node *old = load(l, (dtype)v->dtype, s->before[i].storage, address);
    v = ir_op2(l->g, (op)o, old, v);
  }
  return store(l, at, address, v);
}

static void set_after(lowering *l, scan *s, size_t i, const node *effect) {
  s->after[i] = s->before[i];
  s->after[i].storage = after(l, s->alloc[i], &effect, 1, NULL, 0);
}

/** The loops of a stage that write in place all states whose step it is. */
static const node *step_in_place(lowering *l, scan *s, const node *stage) {
  size_t n = fold_states(s->fold), count = 0, *levels = arena_alloc(l->a, n * sizeof *levels);
  const node **effects = arena_alloc(l->a, n * sizeof *effects);
  for (size_t i = 0; i < n; i++) {
    if (fold_step(s->fold, i) != stage) continue;
    size_t c = (size_t)fold_component(s->fold, i);
    effects[count] =
        step_store(l, s, i, stage_address(l, stage, c), image(l, stage_value(stage, c)));
    levels[count++] = stage_level(stage, c);
  }
  const node *const *ranges = images(l, stage_range(stage), stage_ranges(stage));
  const node *effect = close(l, effects, levels, count, ranges, stage_ranges(stage));
  for (size_t i = 0; i < n; i++)
    if (fold_step(s->fold, i) == stage) set_after(l, s, i, effect);
  return effect;
}

/** Whether the state is the first that steps by its stage. */
static bool is_first_of_stage(const node *fold, size_t i) {
  for (size_t k = 0; k < i; k++)
    if (fold_step(fold, k) == fold_step(fold, i)) return false;
  return true;
}

/** What runs in a fold's loop, without what is inside the loops in it. */
static bool is_in_body(const node *n, void *innermost) {
  return n->op != OP_END && node_is_free_in(innermost, n);
}

/** Adds what a scalar step computes its value with: loads of states, and whole loops. */
static void add_waits(lowering *l, const scan *s, const node *value, node_list *waits) {
  const node *innermost = s->ranges[fold_ranges(s->fold) - 1];
  node_list order = topo_sort(l->a, &value, 1, is_in_body, (void *)innermost);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i], *root = n->op == OP_LOAD ? node_storage_root(n->src[0]) : NULL;
    bool waits_for = n->op == OP_END;
    for (size_t k = 0; k < fold_states(s->fold); k++) waits_for |= root && root == s->alloc[k];
    if (waits_for) vec_push(l->a, waits, n);
  }
}

static bool is_in_place(const lowering *l, const scan *s, size_t i) {
  return map_has(&l->in_place, fold_step(s->fold, i));
}

static const node *step_scalar(lowering *l, scan *s, size_t i, node_list *waits) {
  const node *v = image(l, fold_step(s->fold, i));
  const node *effect = step_store(l, s, i, ix_const(l->g, 0), v);
  set_after(l, s, i, effect);
  add_waits(l, s, v, waits);
  return effect;
}

/** Steps scalars and what is written in place; `waits` is what the other states wait for. */
static void step_early(lowering *l, scan *s, node_list *waits) {
  const node *f = s->fold;
  for (size_t i = 0; i < fold_states(f); i++) {
    if (fold_component(f, i) < 0) {
      vec_push(l->a, &s->effects, step_scalar(l, s, i, waits));
    } else if (!is_first_of_stage(f, i)) {
      continue;
    } else if (is_in_place(l, s, i)) {
      vec_push(l->a, &s->effects, step_in_place(l, s, fold_step(f, i)));
      vec_push(l->a, waits, vec_last(&s->effects));
    } else {
      const home *h = map_get(&l->homes, fold_step(f, i));
      vec_push(l->a, waits, h->storage->src[1]);
    }
  }
}

/** Steps the other arrays, from what their stages wrote. */
static void step_late(lowering *l, scan *s, const node_list *waits) {
  const node *f = s->fold;
  for (size_t i = 0; i < fold_states(f); i++) {
    if (fold_component(f, i) < 0 || is_in_place(l, s, i)) continue;
    const node *to = after(l, s->before[i].storage, waits->at, waits->n, NULL, 0);
    size_t c = (size_t)fold_component(f, i);
    const node *effect = take_array(l, fold_step(f, i), c, fold_step(f, i), to, fold_op(f, i));
    set_after(l, s, i, effect);
    vec_push(l->a, &s->effects, effect);
  }
}

static void step_fold(lowering *l, scan *s) {
  node_list waits = {0};
  if (s->after) return;
  if (!s->before) open_fold(l, s);
  s->after = arena_alloc(l->a, fold_states(s->fold) * sizeof *s->after);
  step_early(l, s, &waits);
  step_late(l, s, &waits);
}

/* FOLD: what it emits, and its loops. */

static home emitted(lowering *l, scan *s, size_t e) {
  const node *f = s->fold;
  size_t component = fold_states(f) + e, rank = fold_rank(f, component);
  home h = {NULL, rank, images(l, fold_extents(f, component), rank)};
  h.storage = array_make(l, fold_dtype(f, component), f, rank, h.extents);
  const node *address = address_of(l->g, rank, h.extents, images(l, fold_coords(f, e), rank));
  const node *to = after(l, h.storage, s->ranges, fold_ranges(f), NULL, 0);
  vec_push(l->a, &s->effects, store(l, to, address, image(l, fold_emit(f, e))));
  return h;
}

static void lower_fold(lowering *l, const node *f) {
  scan *s = map_get(&l->scans, fold_innermost(f));
  size_t n = fold_states(f), count = n + fold_emits(f);
  home *homes = arena_alloc(l->a, count * sizeof *homes);
  step_fold(l, s);
  for (size_t i = 0; i < n; i++) {
    homes[i] = s->before[i];
    homes[i].storage = s->alloc[i];
  }
  for (size_t i = n; i < count; i++) homes[i] = emitted(l, s, i - n);
  const node *end = close(l, s->effects.at, NULL, s->effects.n, s->ranges, fold_ranges(f));
  for (size_t i = 0; i < count; i++)
    homes[i].storage = after(l, homes[i].storage, &end, 1, NULL, 0);
  map_set(l->a, &l->homes, f, homes);
}

/* One node. */

static const node *rebuild(lowering *l, const node *n) {
  return subst_rebuild(l->g, n, images(l, n->src, n->n_src));
}

/** The first load of a state, before or after its step, brings its fold so far. */
static void lower_state(lowering *l, const node *n) {
  scan *s = map_get(&l->scans, n->src[0]);
  if (n->ints[0] >= (int64_t)fold_states(s->fold))
    step_fold(l, s);
  else if (!s->before)
    open_fold(l, s);
}

static const node *lower_node(lowering *l, const node *n) {
  switch (n->op) {
  case OP_INDEX: return lower_index(l, n);
  case OP_STAGE:
    if (!map_has(&l->direct, n) && !map_has(&l->in_place, n)) lower_stage(l, n);
    return n;
  case OP_FOLD: lower_fold(l, n); return n;
  case OP_STATE: lower_state(l, n); return n;
  case OP_OUT: return lower_out(l, n);
  default: return rebuild(l, n);
  }
}

/* All nodes, in an order in which a STATE comes after what its storage needs: the starts of its
   fold, and if it is one after the step, the steps too. */

typedef struct frame {
  const node *n;
  const node *const *needs;
  size_t count, next;
} frame;

typedef struct walk {
  lowering *l;
  map seen;
  VEC(frame) stack;
} walk;

static node_list needs_of_state(lowering *l, const node *n) {
  const node *f = ((const scan *)map_get(&l->scans, n->src[0]))->fold;
  size_t states = fold_states(f), before = n->ints[0] < (int64_t)states ? states : 2 * states;
  node_list needs = {0};
  for (size_t i = 0; i < before; i++) vec_push(l->a, &needs, f->src[i]);
  for (size_t i = 0; i < states; i++)
    for (size_t k = 0; k < fold_rank(f, i); k++) vec_push(l->a, &needs, fold_extents(f, i)[k]);
  for (size_t i = 0; i < fold_ranges(f); i++) vec_push(l->a, &needs, fold_range(f)[i]);
  const range_set *place = map_get(&l->places, f);
  for (uint32_t i = 0; i < place->n; i++) vec_push(l->a, &needs, place->at[i]);
  return needs;
}

static void enter(walk *w, const node *n) {
  if (map_has(&w->seen, n)) return;
  map_set(w->l->a, &w->seen, n, NULL);
  node_list needs = {0};
  if (n->op == OP_STATE) needs = needs_of_state(w->l, n);
  frame f = {n, needs.n ? needs.at : n->src, needs.n ? needs.n : n->n_src, 0};
  vec_push(w->l->a, &w->stack, f);
}

static void lower_all(lowering *l, const node *sink) {
  walk w = {.l = l};
  enter(&w, sink);
  while (w.stack.n) {
    frame *f = &vec_last(&w.stack);
    if (f->next < f->count) {
      enter(&w, f->needs[f->next++]);
      continue;
    }
    const node *n = f->n;
    w.stack.n--;
    map_set(l->a, &l->image, n, (void *)lower_node(l, n));
  }
}

static void add_scan(lowering *l, const node *fold) {
  scan *s = arena_calloc(l->a, 1, sizeof *s);
  s->fold = fold;
  map_set(l->a, &l->scans, fold_innermost(fold), s);
}

/** Stages that have one user, an OUT, are written straight into its params. */
static void find_direct(lowering *l, const node_list *order) {
  map users = {0};
  for (size_t i = 0; i < order->n; i++)
    for (uint32_t k = 0; k < order->at[i]->n_src; k++) {
      const node *n = order->at[i], *s = n->src[k];
      bool only = s->op == OP_STAGE && n->op == OP_OUT && !map_has(&users, s);
      if (s->op == OP_STAGE) map_set(l->a, &users, s, only ? (void *)n : NULL);
    }
  for (size_t i = 0; i < order->n; i++) {
    const node *out = map_get(&users, order->at[i]);
    if (out) map_set(l->a, &l->direct, order->at[i], (void *)out);
  }
}

const node *codegen_lower(ir *g, const node *sink) {
  lowering l = {.g = g, .a = ir_arena(g)};
  sink = folds_separate(g, sink);
  node_list order = topo_sort(l.a, &sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_FOLD) add_scan(&l, order.at[i]);
  find_direct(&l, &order);
  folds_in_place(l.a, sink, &l.in_place);
  folds_places(g, sink, &l.places);
  law_inside_vectors(g, sink, NULL, &l.lanes);
  lower_all(&l, sink);
  return tails_apart(g, image(&l, sink));
}
