/* FOLD: its states are storage that holds their starts; in its loop they are loaded, then stored
   to, then what is emitted is stored; STATE is a load that the fold's ranges, as sources of its
   AFTER, keep inside the loop. An array state is written by the loops of its step where
   folds_in_place allows it; else the step is an array of its own, which other loops add to the
   state after all loads. */
#include "codegen/lowering.h"
#include "ir/address.h"

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

void lower_add_fold(lowering *l, const node *fold) {
  scan *s = arena_calloc(l->a, 1, sizeof *s);
  s->fold = fold;
  map_set(l->a, &l->scans, fold_innermost(fold), s);
}

/* Its states hold their starts. */

static const node *state_start(lowering *l, const scan *s, size_t i, const node *alloc) {
  const node *f = s->fold, *init = fold_init(f, i);
  int64_t component = fold_component(f, i);
  const node *step = component < 0 ? NULL : fold_step(f, i);
  if (init->op == OP_STAGE) return lower_take(l, init, (size_t)component, f, alloc, -1);
  return lower_fill(l, &s->before[i], alloc, lowered(l, init), step, (size_t)component, f);
}

static void open_fold(lowering *l, scan *s) {
  const node *f = s->fold;
  size_t n = fold_states(f), n_ranges = fold_ranges(f);
  s->ranges = lowered_all(l, fold_range(f), n_ranges);
  s->alloc = arena_alloc(l->a, n * sizeof *s->alloc);
  s->load = arena_calloc(l->a, n, sizeof *s->load);
  s->before = arena_alloc(l->a, n * sizeof *s->before);
  for (size_t i = 0; i < n; i++) {
    size_t rank = fold_rank(f, i);
    s->before[i] = (home){NULL, rank, lowered_all(l, fold_extents(f, i), rank)};
    s->alloc[i] = lower_array(l, fold_dtype(f, i), f, rank, s->before[i].extents);
    const node *first = state_start(l, s, i, s->alloc[i]);
    s->before[i].storage = lower_after(l, s->alloc[i], &first, 1, s->ranges, n_ranges);
  }
}

/* All states step at once. What is stored to a state waits for the loads of all steps from
   it. */

/** A scalar, or an element in place: there is one load, if any. */
static const node *to_store_to(lowering *l, const scan *s, size_t i) {
  const node *at = s->before[i].storage;
  return s->load[i] && fold_states(s->fold) > 1 ? lower_after(l, at, &s->load[i], 1, NULL, 0) : at;
}

/** The store of a state's step, at an address. */
static const node *step_store(lowering *l, const scan *s, size_t i, const node *address,
                              const node *v) {
  int64_t o = fold_op(s->fold, i);
  const node *at = to_store_to(l, s, i);
  if (o >= 0) {
    const node *old = lower_load(l, (dtype)v->dtype, s->before[i].storage, address);
    v = ir_op2(l->g, (op)o, old, v);
  }
  return lower_store(l, at, address, v);
}

static void set_after(lowering *l, scan *s, size_t i, const node *effect) {
  s->after[i] = s->before[i];
  s->after[i].storage = lower_after(l, s->alloc[i], &effect, 1, NULL, 0);
}

/** The loops of a stage that write in place all states whose step it is. */
static const node *step_in_place(lowering *l, scan *s, const node *stage) {
  size_t n = fold_states(s->fold), count = 0, *levels = arena_alloc(l->a, n * sizeof *levels);
  const node **effects = arena_alloc(l->a, n * sizeof *effects);
  for (size_t i = 0; i < n; i++) {
    if (fold_step(s->fold, i) != stage) continue;
    size_t c = (size_t)fold_component(s->fold, i);
    effects[count] =
        step_store(l, s, i, lower_address(l, stage, c), lowered(l, stage_value(stage, c)));
    levels[count++] = stage_level(stage, c);
  }
  const node *const *ranges = lowered_all(l, stage_range(stage), stage_ranges(stage));
  const node *effect = lower_close(l, effects, levels, count, ranges, stage_ranges(stage));
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
  const node *v = lowered(l, fold_step(s->fold, i));
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
    const node *to = lower_after(l, s->before[i].storage, waits->at, waits->n, NULL, 0);
    size_t c = (size_t)fold_component(f, i);
    const node *effect = lower_take(l, fold_step(f, i), c, fold_step(f, i), to, fold_op(f, i));
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

/* What it emits, and its loops. */

static home emitted(lowering *l, scan *s, size_t e) {
  const node *f = s->fold;
  size_t component = fold_states(f) + e, rank = fold_rank(f, component);
  home h = {NULL, rank, lowered_all(l, fold_extents(f, component), rank)};
  h.storage = lower_array(l, fold_dtype(f, component), f, rank, h.extents);
  const node *address = address_of(l->g, rank, h.extents, lowered_all(l, fold_coords(f, e), rank));
  const node *to = lower_after(l, h.storage, s->ranges, fold_ranges(f), NULL, 0);
  vec_push(l->a, &s->effects, lower_store(l, to, address, lowered(l, fold_emit(f, e))));
  return h;
}

void lower_fold(lowering *l, const node *f) {
  scan *s = map_get(&l->scans, fold_innermost(f));
  size_t n = fold_states(f), count = n + fold_emits(f);
  home *homes = arena_alloc(l->a, count * sizeof *homes);
  step_fold(l, s);
  for (size_t i = 0; i < n; i++) {
    homes[i] = s->before[i];
    homes[i].storage = s->alloc[i];
  }
  for (size_t i = n; i < count; i++) homes[i] = emitted(l, s, i - n);
  const node *end = lower_close(l, s->effects.at, NULL, s->effects.n, s->ranges, fold_ranges(f));
  for (size_t i = 0; i < count; i++)
    homes[i].storage = lower_after(l, homes[i].storage, &end, 1, NULL, 0);
  map_set(l->a, &l->homes, f, homes);
}

/* Its states, as other nodes see them. */

node_list lower_state_needs(lowering *l, const node *n) {
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

void lower_state(lowering *l, const node *n) {
  scan *s = map_get(&l->scans, n->src[0]);
  if (n->ints[0] >= (int64_t)fold_states(s->fold))
    step_fold(l, s);
  else if (!s->before)
    open_fold(l, s);
}

/** Both states of a scan: those of steps, then those of emitted values. */
const node *lower_state_index(lowering *l, const node *n) {
  scan *s = map_get(&l->scans, n->src[0]->src[0]);
  size_t i = (size_t)n->src[0]->ints[0], states = fold_states(s->fold);
  if (i >= states) return lower_element(l, n, &s->after[i - states]);
  return s->load[i] = lower_element(l, n, &s->before[i]);
}
