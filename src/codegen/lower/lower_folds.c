/* Lowers FOLDs, the IR's reductions and scans, to loops. The states are storage that holds their
   initial values; in the loop they are loaded, then stored to, then emitted values are stored. A
   STATE is a load whose AFTER (its dependences) has the FOLD's ranges as sources, which keeps it
   inside the loop. An array state is written by the loops of its step where fold_analysis_in_place
   allows that; else the step is an array of its own, which further loops add to the state after all
   loads. These loops visit the elements that the step writes; where only the step's coordinates
   tell which those are, they visit all, and the step's array starts as the state or as the op's
   identity. */
#include "codegen/lower/lowering.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/tile_match.h"
#include "ir/transform/substitute.h"

/** A FOLD while it is lowered: states are initialised before the first load of one, stepped before
    the first load of a state after its step, and the loop is closed last. */
typedef struct scan {
  const node *fold;
  const node **ranges;    /* lowered */
  const node **alloc;     /* of each state */
  home *before, *after;   /* states before and after the step; NULL: not lowered yet */
  const node **load;      /* of each state in a step; NULL: none yet */
  node_list effects;      /* of an iteration */
  const tile_match *tile; /* the step is one; NULL: it is a loop */
  const warp_tile *warp;  /* likewise of a warp */
} scan;

void lower_fold_register(lowering *l, const node *fold) {
  scan *s = arena_calloc(l->a, 1, sizeof *s);
  s->fold = fold;
  tile_match m;
  warp_tile w;
  if (tile_match_fold(l->g, fold, &m)) s->tile = arena_copy(l->a, &m, sizeof m);
  if (warp_tile_match(l->g, &l->teams, fold, &w)) s->warp = arena_copy(l->a, &w, sizeof w);
  l->has_warp_tiles |= s->warp != NULL;
  map_set(l->a, &l->scans, fold_innermost_range(fold), s);
}

/* Sums in tiles: one store of a whole tile of the state stands for the loops over it. */

/** A vector op of as many lanes as a tile has words. */
static const node *make_words(lowering *l, op o, dtype t, int words, const node *const src[],
                              size_t n, const int64_t *columns) {
  return ir_make(l->g, &(node_spec){.op = o,
                                    .dtype = t,
                                    .lanes = (uint16_t)words,
                                    .src = src,
                                    .n_src = n,
                                    .ints = columns,
                                    .n_int = columns != NULL});
}

/** The address of a tile's first element in the state, from those of its coordinates. */
static const node *first_of_tile(lowering *l, const home *h, const node *const *coords) {
  const node **first = arena_copy(l->a, coords, h->rank * sizeof *first);
  first[h->rank - 2] = first[h->rank - 1] = ix_const(l->g, 0);
  return lower_address(l, h, first);
}

/** Fills a state with 0, a tile at a time. */
static const node *fill_tiles(lowering *l, const scan *s, const tile_match *m, const node *to) {
  const node *stage = fold_step(s->fold, 0), *zero = fold_init(s->fold, 0);
  const home *h = &s->before[0];
  size_t n = stage_n_ranges(stage) - 2;
  const node **loops = arena_alloc(l->a, (n + 1) * sizeof *loops);
  const node **coords = arena_copy(l->a, stage_coords(stage, 0), h->rank * sizeof *coords);
  map with = {0};
  for (size_t i = 0; i < n; i++) {
    const node *r = stage_range(stage)[i];
    loops[i] = range_clone(l->g, r, subst_ranges(l->g, lower_node(l, range_extent(r)), &with));
    map_set(l->a, &with, r, (void *)loops[i]);
  }
  for (size_t i = 0; i < h->rank; i++) coords[i] = subst_ranges(l->g, coords[i], &with);
  const node *value =
      make_words(l, OP_SPLAT, (dtype)zero->dtype, m->tile->m * m->tile->n, &zero, 1, NULL);
  const node *effect = lower_store(l, to, first_of_tile(l, h, coords), value);
  return lower_close_loops(l, &effect, NULL, 1, loops, n);
}

/** The words of an operand; NULL: they do not lie as the tile's. */
static const node *load_operand(lowering *l, const node *x, const node *row, const node *column,
                                int rows, int columns) {
  const node *load = lower_node(l, x), *first;
  int64_t apart, n = columns;
  row = lower_node(l, row);
  column = lower_node(l, column);
  if (load->op != OP_LOAD || !tile_match_address(l->g, load->src[1], row, column, &first, &apart))
    return NULL;
  const node *src[] = {load->src[0], first, ix_const(l->g, apart)};
  return make_words(l, OP_LOAD, (dtype)load->dtype, rows * columns, src, 3, &n);
}

/** The store that steps a tile of the state; NULL: it is no tile's. */
static const node *step_tile(lowering *l, const scan *s, const tile_match *m) {
  const tensor_tile *t = m->tile;
  const node *stage = fold_step(s->fold, 0), *const *r = m->range;
  const home *h = &s->before[0];
  const node *x = load_operand(l, m->x, r[TILE_M], r[TILE_K], t->m, t->k);
  const node *y = load_operand(l, m->y, r[TILE_K], r[TILE_N], t->k, t->n);
  if (!x || !y) return NULL;
  dtype type = (dtype)h->storage->dtype;
  const node *at =
      first_of_tile(l, h, lower_nodes(l, stage_coords(stage, 0), stage_rank(stage, 0)));
  const node *sum =
      make_words(l, OP_LOAD, type, t->m * t->n, (const node *[]){h->storage, at}, 2, NULL);
  const node *value = make_words(l, t->op, type, t->m * t->n, (const node *[]){sum, x, y}, 3, NULL);
  return lower_store(l, h->storage, at, value);
}

/* Initial values. */

static const node *initialise_state(lowering *l, const scan *s, size_t i, const node *alloc) {
  const node *f = s->fold, *init = fold_init(f, i);
  int64_t component = fold_component(f, i);
  const node *step = component < 0 ? NULL : fold_step(f, i);
  home to = s->before[i];
  to.storage = alloc;
  if (init->op == OP_STAGE) return lower_copy_array(l, init, (size_t)component, f, &to, -1);
  if (s->tile) return fill_tiles(l, s, s->tile, alloc);
  return lower_fill(l, &s->before[i], alloc, lower_node(l, init), step, (size_t)component, f);
}

static void initialise_states(lowering *l, scan *s) {
  const node *f = s->fold;
  size_t n = fold_n_states(f), n_ranges = fold_n_ranges(f);
  s->ranges = lower_nodes(l, fold_range(f), n_ranges);
  s->alloc = arena_alloc(l->a, n * sizeof *s->alloc);
  s->load = arena_calloc(l->a, n, sizeof *s->load);
  s->before = arena_alloc(l->a, n * sizeof *s->before);
  for (size_t i = 0; i < n; i++) {
    s->before[i] = lower_home(l, f, i);
    s->alloc[i] = s->before[i].storage;
    const output_part *part = s->before[i].part;
    bool starts = !part || !lower_starts_as_output(f, i, part);
    const node *first = starts ? initialise_state(l, s, i, s->alloc[i]) : NULL;
    s->before[i].storage = lower_after(l, s->alloc[i], &first, starts, s->ranges, n_ranges);
  }
}

/* Steps. All states step at once: a store to a state waits for the loads of it in all steps. */

/** The storage of a scalar state, or one stepped in place, after its load, of which there is at
   most one. */
static const node *storage_after_load(lowering *l, const scan *s, size_t i) {
  const node *at = s->before[i].storage;
  return s->load[i] && fold_n_states(s->fold) > 1 ? lower_after(l, at, &s->load[i], 1, NULL, 0)
                                                  : at;
}

/** The store of a state's step, for an array at lowered coordinates. */
static const node *step_store(lowering *l, const scan *s, size_t i, const node *const *coords,
                              const node *v) {
  int64_t o = fold_op(s->fold, i);
  const home *h = &s->before[i];
  if (o >= 0) v = ir_op2(l->g, (op)o, lower_home_load(l, (dtype)v->dtype, h, coords), v);
  return lower_store(l, storage_after_load(l, s, i), lower_address(l, h, coords), v);
}

static void set_stepped(lowering *l, scan *s, size_t i, const node *effect) {
  s->after[i] = s->before[i];
  s->after[i].storage = lower_after(l, s->alloc[i], &effect, 1, NULL, 0);
}

/** The loops of a stage, which write in place all states that it is the step of. */
static const node *step_in_place(lowering *l, scan *s, const node *stage) {
  const node *const *range = stage_range(stage);
  const node *tile = s->tile   ? step_tile(l, s, s->tile)
                     : s->warp ? lower_warp_tile(l, s->warp, stage, &s->before[0])
                               : NULL;
  if (tile) {
    size_t outer = stage_n_ranges(stage) - 2;
    tile = lower_close_loops(l, &tile, NULL, 1, lower_loops(l, range, outer), outer);
    set_stepped(l, s, 0, tile);
    return tile;
  }
  size_t n = fold_n_states(s->fold), count = 0, *levels = arena_alloc(l->a, n * sizeof *levels);
  const node **effects = arena_alloc(l->a, n * sizeof *effects);
  for (size_t i = 0; i < n; i++) {
    if (fold_step(s->fold, i) != stage) continue;
    size_t c = (size_t)fold_component(s->fold, i);
    const node **coords = lower_nodes(l, stage_coords(stage, c), stage_rank(stage, c));
    effects[count] = step_store(l, s, i, coords, lower_node(l, stage_value(stage, c)));
    levels[count++] = stage_loop_depth(stage, c);
  }
  const node *const *loops = lower_loops(l, range, stage_n_ranges(stage));
  const node *effect = lower_close_loops(l, effects, levels, count, loops, stage_n_ranges(stage));
  for (size_t i = 0; i < n; i++)
    if (fold_step(s->fold, i) == stage) set_stepped(l, s, i, effect);
  return effect;
}

/** True for the first of the states that share a step stage. */
static bool is_first_of_stage(const node *fold, size_t i) {
  for (size_t k = 0; k < i; k++)
    if (fold_step(fold, k) == fold_step(fold, i)) return false;
  return true;
}

/** True for nodes of a FOLD's loop that are not inside of deeper loops. */
static bool is_in_body(const node *n, void *innermost) {
  return n->op != OP_END && node_is_free_in(innermost, n);
}

/** Adds the effects that a scalar step depends on: loads of states, and whole loops. */
static void add_step_effects(lowering *l, const scan *s, const node *value, node_list *waits) {
  const node *innermost = s->ranges[fold_n_ranges(s->fold) - 1];
  node_list order = topo_sort(l->a, &value, 1, is_in_body, (void *)innermost);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i], *root = n->op == OP_LOAD ? node_storage_root(n->src[0]) : NULL;
    bool waits_for = n->op == OP_END;
    for (size_t k = 0; k < fold_n_states(s->fold); k++) waits_for |= root && root == s->alloc[k];
    if (waits_for) vec_push(l->a, waits, n);
  }
}

static bool is_in_place(const lowering *l, const scan *s, size_t i) {
  return map_has(&l->in_place, fold_step(s->fold, i));
}

static const node *step_scalar(lowering *l, scan *s, size_t i, node_list *waits) {
  const node *v = lower_node(l, fold_step(s->fold, i));
  const node *effect = step_store(l, s, i, NULL, v);
  set_stepped(l, s, i, effect);
  add_step_effects(l, s, v, waits);
  return effect;
}

/** Steps scalars and states in place; adds the effects that other states follow to `waits`. */
static void step_in_loop(lowering *l, scan *s, node_list *waits) {
  const node *f = s->fold;
  for (size_t i = 0; i < fold_n_states(f); i++) {
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

/** Steps the other array states from the arrays of their stages. */
static void step_from_arrays(lowering *l, scan *s, const node_list *waits) {
  const node *f = s->fold;
  for (size_t i = 0; i < fold_n_states(f); i++) {
    if (fold_component(f, i) < 0 || is_in_place(l, s, i)) continue;
    home to = s->before[i];
    to.storage = lower_after(l, to.storage, waits->at, waits->n, NULL, 0);
    size_t c = (size_t)fold_component(f, i);
    const node *effect =
        lower_copy_array(l, fold_step(f, i), c, fold_step(f, i), &to, fold_op(f, i));
    set_stepped(l, s, i, effect);
    vec_push(l->a, &s->effects, effect);
  }
}

static void step_fold(lowering *l, scan *s) {
  node_list waits = {0};
  if (s->after) return;
  if (!s->before) initialise_states(l, s);
  s->after = arena_alloc(l->a, fold_n_states(s->fold) * sizeof *s->after);
  step_in_loop(l, s, &waits);
  step_from_arrays(l, s, &waits);
}

/* Emitted values, and the loop. */

static home store_emitted(lowering *l, scan *s, size_t e) {
  const node *f = s->fold;
  home h = lower_home(l, f, fold_n_states(f) + e);
  const node *address = lower_address(l, &h, lower_nodes(l, fold_coords(f, e), h.rank));
  const node *to = lower_after(l, h.storage, s->ranges, fold_n_ranges(f), NULL, 0);
  vec_push(l->a, &s->effects, lower_store(l, to, address, lower_node(l, fold_emit(f, e))));
  return h;
}

void lower_fold(lowering *l, const node *f) {
  if (lower_is_team_fold(f)) {
    lower_team_fold(l, f);
    return;
  }
  scan *s = map_get(&l->scans, fold_innermost_range(f));
  size_t n = fold_n_states(f), count = n + fold_n_emits(f);
  home *homes = arena_alloc(l->a, count * sizeof *homes);
  step_fold(l, s);
  for (size_t i = 0; i < n; i++) {
    homes[i] = s->before[i];
    homes[i].storage = s->alloc[i];
  }
  for (size_t i = n; i < count; i++) homes[i] = store_emitted(l, s, i - n);
  const node *end =
      lower_close_loops(l, s->effects.at, NULL, s->effects.n, s->ranges, fold_n_ranges(f));
  for (size_t i = 0; i < count; i++)
    homes[i].storage = lower_after(l, homes[i].storage, &end, 1, NULL, 0);
  map_set(l->a, &l->homes, f, homes);
}

/* Steps that are arrays of their own, and start as the state. */

/** A FOLD with those steps pinned inside of its loop that would start as a state before it. */
static const node *pin_steps(lowering *l, const node *f) {
  const node *innermost = fold_innermost_range(f);
  const node **src = arena_copy(l->a, f->src, f->n_src * sizeof *src);
  size_t n = fold_n_states(f);
  bool changes = false;
  for (size_t i = 0; i < n; i++) {
    const node *step = fold_step(f, i);
    if (fold_component(f, i) < 0 || node_is_free_in(innermost, step) ||
        lower_may_repeat(l, step, (size_t)fold_component(f, i)))
      continue;
    for (size_t k = 0; k < n; k++) /* of all states, as one nest writes them */
      if (fold_step(f, k) == step) src[n + k] = binder_with_pin(l->g, step, innermost);
    changes = true;
  }
  return changes ? ir_with_sources(l->g, f, src) : f;
}

const node *lower_pin_steps(lowering *l, const node *sink) {
  node_list order = topo_sort(l->a, &sink, 1, NULL, NULL);
  map with = {0};
  for (size_t i = 0; i < order.n; i++) {
    if (order.at[i]->op != OP_FOLD) continue;
    const node *f = order.at[i], *pinned = pin_steps(l, with.n ? subst(l->g, f, &with) : f);
    if (pinned != f) map_set(l->a, &with, f, (void *)pinned);
  }
  return with.n ? subst(l->g, sink, &with) : sink;
}

void lower_find_starts(lowering *l, const node_list *order) {
  for (size_t i = 0; i < order->n; i++) {
    const node *f = order->at[i];
    for (size_t k = 0; f->op == OP_FOLD && k < fold_n_states(f); k++) {
      const node *step = fold_step(f, k);
      if (fold_component(f, k) >= 0 && !map_has(&l->in_place, step) &&
          !lower_may_repeat(l, step, (size_t)fold_component(f, k)))
        map_set(l->a, &l->starts, step, (void *)f);
    }
  }
}

const node *lower_start(lowering *l, const node *stage, size_t value, const home *to) {
  const node *f = map_get(&l->starts, stage);
  for (size_t i = 0; f && i < fold_n_states(f); i++) {
    if (fold_step(f, i) != stage || fold_component(f, i) != (int64_t)value) continue;
    scan *s = map_get(&l->scans, fold_innermost_range(f));
    uint64_t bits;
    dtype t = (dtype)to->storage->dtype;
    if (fold_op(f, i) < 0) {
      if (!s->before) initialise_states(l, s);
      return lower_copy_home(l, &s->before[i], to, to->storage);
    }
    if (!op_right_identity((op)fold_op(f, i), t, &bits))
      diag_raise(ir_diag(l->g), TN_ERR_INTERNAL, "a FOLD's op has no identity");
    return lower_fill(l, to, to->storage, ir_const_bits(l->g, t, bits), NULL, 0, stage);
  }
  return NULL;
}

/* STATEs in other nodes. */

/** Nodes to be lowered before the first states, and the first steps, of a FOLD, n sources in all.
 */
static void add_dependences(lowering *l, const node *f, size_t before, node_list *to) {
  size_t states = fold_n_states(f);
  for (size_t i = 0; i < before; i++) vec_push(l->a, to, f->src[i]);
  for (size_t i = 0; i < states; i++)
    for (size_t k = 0; k < fold_rank(f, i); k++) vec_push(l->a, to, fold_extents(f, i)[k]);
  for (size_t i = 0; i < fold_n_ranges(f); i++) vec_push(l->a, to, fold_range(f)[i]);
  const range_set *place = map_get(&l->places, f);
  for (uint32_t i = 0; i < place->n; i++) vec_push(l->a, to, place->at[i]);
}

node_list lower_state_dependences(lowering *l, const node *n) {
  const node *f = ((const scan *)map_get(&l->scans, n->src[0]))->fold;
  size_t states = fold_n_states(f);
  node_list needs = {0};
  add_dependences(l, f, n->ints[0] < (int64_t)states ? states : 2 * states, &needs);
  return needs;
}

node_list lower_start_dependences(lowering *l, const node *stage, const node *fold) {
  node_list needs = {0};
  add_dependences(l, fold, fold_n_states(fold), &needs);
  for (uint32_t i = 0; i < stage->n_src; i++) vec_push(l->a, &needs, stage->src[i]);
  return needs;
}

void lower_state(lowering *l, const node *n) {
  scan *s = map_get(&l->scans, n->src[0]);
  if (n->ints[0] >= (int64_t)fold_n_states(s->fold))
    step_fold(l, s);
  else if (!s->before)
    initialise_states(l, s);
}

/* States below the FOLD's number are those of steps, the others those of emitted values. */
const node *lower_state_load(lowering *l, const node *n) {
  scan *s = map_get(&l->scans, n->src[0]->src[0]);
  size_t i = (size_t)n->src[0]->ints[0], states = fold_n_states(s->fold);
  if (i >= states) return lower_element_load(l, n, &s->after[i - states]);
  return s->load[i] = lower_element_load(l, n, &s->before[i]);
}
