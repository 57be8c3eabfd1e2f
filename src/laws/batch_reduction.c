/* Implements BATCH: interchanges one loop with a FOLD (reduction and scan) whose states depend on
   each other (a scan, argmax, online softmax) or are arrays already. Every state gets a leading
   dimension over the loop:

     for o { FOLD over k (step(states, o, k)) }
       →   FOLD over k (STAGE over o′ (step(states[o′], o′, k))),  read at [o]

   Arrays that a step builds for one index are hoisted over o′ (hoist_array.c) and stay shared
   between steps. The loop is a LOOP of constant extent; states start from scalars that are free of
   it. */
#include "laws/law_support.h"

#include "ir/core/topo_sort.h"
#include "ir/transform/substitute.h"

typedef struct batch {
  ir *g;
  arena *a;
  const node *fold;
  const node *outer; /* the loop to move the FOLD out of */
} batch;

static bool depends(const batch *x, const node *n) { return node_is_free_in(x->outer, n); }

/** Number of states that a STAGE is the step of. */
static size_t count_steps(const node *fold, const node *stage) {
  size_t n = 0;
  for (size_t i = 0; i < fold_n_states(fold); i++) n += fold_step(fold, i) == stage;
  return n;
}

static const char *state_objection(const batch *x, size_t i) {
  const node *step = fold_step(x->fold, i);
  if (depends(x, fold_init(x->fold, i))) return "a state's start depends on the range";
  if (fold_component(x->fold, i) < 0) return NULL;
  if (fold_init(x->fold, i)->op == OP_STAGE) return "a state starts from an array";
  if (stage_n_values(step) > 1 || count_steps(x->fold, step) > 1)
    return "several states step in one nest";
  return depends(x, step) ? law_hoist_objection(step, x->outer)
                          : "a state does not depend on the range";
}

static const char *fold_objection(const batch *x) {
  const node *f = x->fold, *extent = range_extent(x->outer);
  if (fold_n_emits(f)) return "the FOLD emits values";
  if (fold_n_pins(f)) return "the FOLD is pinned";
  if (!depends(x, f)) return "the FOLD does not depend on the range";
  if (range_kind_of(x->outer) != KIND_LOOP) return "the range is not a loop";
  if (!node_is_const(extent) || node_int(extent) < 1)
    return "the extent of the range is not a number";
  for (size_t i = 0; i < fold_n_ranges(f); i++)
    if (depends(x, range_extent(fold_range(f)[i])))
      return "the extent of a range of the FOLD depends on the range";
  for (size_t i = 0; i < fold_n_states(f); i++) {
    const char *why = state_objection(x, i);
    if (why) return why;
  }
  return NULL;
}

/** Objection to hoisting the arrays inside the steps over `own`. */
static const char *inner_objection(const batch *x, const node *body, const node *own) {
  node_list order = topo_sort(x->a, body->src, body->n_src, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *b = order.at[i];
    if (b->op == OP_STAGE && stage_n_pins(b)) return "a STAGE inside is pinned";
    if (!node_is_free_in(own, b)) continue;
    if (b->op == OP_FOLD && (fold_n_emits(b) || fold_n_pins(b)))
      return "a FOLD inside emits or is pinned";
    for (size_t k = 0; b->op == OP_FOLD && k < fold_n_states(b); k++)
      if (fold_component(b, k) >= 0) return "a state of a FOLD inside is an array";
    if (b->op != OP_STAGE || nodes_contain(body->src, body->n_src, b)) continue;
    const char *why = law_hoist_objection(b, own);
    if (why) return why;
    if (law_extent_depends(&own, 1, b))
      return "an array inside has a range whose extent depends on the range";
  }
  return NULL;
}

/** The steps with every array that depends on `own` built before them, for all indices. */
static const node *hoist_inner_arrays(const batch *x, const node *body, const node *own) {
  for (bool found = true; found;) {
    node_list order = topo_sort(x->a, &body, 1, NULL, NULL);
    found = false;
    for (size_t i = 0; i < order.n && !found; i++) { /* operands before users */
      const node *s = order.at[i], *ignored;
      if (s->op != OP_STAGE || !node_is_free_in(own, s)) continue;
      if (nodes_contain(body->src, body->n_src, s)) continue;
      body = law_hoist_over(x->g, body, s, own, &ignored);
      found = true;
    }
  }
  return body;
}

/** A step with one more leading dimension, over a range of its own: a STAGE. */
static const node *expand_step(const batch *x, const node *step, bool is_array, const node *own) {
  map with = {0};
  const node *r = range_make(x->g, range_extent(own), KIND_LOOP);
  map_set(x->a, &with, own, (void *)r);
  step = subst_fresh_ranges(x->g, step, &with);
  size_t rank = is_array ? stage_rank(step, 0) + 1 : 1;
  size_t n = is_array ? stage_n_ranges(step) + 1 : 1;
  const node **coords = arena_alloc(x->a, rank * sizeof *coords);
  const node **extents = arena_alloc(x->a, rank * sizeof *extents);
  const node **ranges = arena_alloc(x->a, n * sizeof *ranges);
  coords[0] = ranges[0] = r;
  extents[0] = range_extent(r);
  for (size_t i = 1; i < rank; i++) coords[i] = stage_coords(step, 0)[i - 1];
  for (size_t i = 1; i < rank; i++) extents[i] = stage_extents(step, 0)[i - 1];
  for (size_t i = 1; i < n; i++) ranges[i] = stage_range(step)[i - 1];
  const node *value = is_array ? stage_value(step, 0) : step;
  return stage_make(x->g, &(stage_spec){.n_values = 1,
                                        .n_ranges = n,
                                        .values = &value,
                                        .ranks = &rank,
                                        .coords = coords,
                                        .extents = extents,
                                        .ranges = ranges});
}

/** The FOLD of arrays over the loop; NULL: refused, for the reason *why. */
static const node *make_batched_fold(const batch *x, const char **why) {
  map with = {0};
  const node *own = range_make(x->g, range_extent(x->outer), KIND_LOOP);
  map_set(x->a, &with, x->outer, (void *)own);
  const node *f = subst_fresh_ranges(x->g, x->fold, &with);
  size_t n = fold_n_states(f);
  const node **steps = arena_alloc(x->a, n * sizeof *steps);
  int64_t *ops = arena_alloc(x->a, n * sizeof *ops);
  int64_t *components = arena_calloc(x->a, n, sizeof *components);
  const node *body = ir_node(x->g, OP_GROUP, DT_VOID, f->src + n, n, NULL, 0);
  body = law_add_axes(x->g, body, fold_innermost_range(f), NULL, 1, &own);
  *why = inner_objection(x, body, own);
  if (*why) return NULL;
  body = hoist_inner_arrays(x, body, own);
  for (size_t i = 0; i < n; i++) {
    steps[i] = expand_step(x, body->src[i], fold_component(f, i) >= 0, own);
    ops[i] = fold_op(f, i);
  }
  return fold_make(x->g, &(fold_spec){.n_states = n,
                                      .n_ranges = fold_n_ranges(f),
                                      .inits = f->src,
                                      .steps = steps,
                                      .ops = ops,
                                      .components = components,
                                      .ranges = fold_range(f)});
}

const node *law_batch(laws *l, const node *sink, const node *range, const node *outer) {
  const node *f = law_find_binder(l, sink, range);
  if (!f || f->op != OP_FOLD) return law_refuse(l, "no FOLD binds the range");
  batch x = {l->g, ir_arena(l->g), f, outer};
  const char *why = fold_objection(&x);
  if (!why) why = law_move_out_objection(l, sink, f, &outer, 1);
  if (why) return law_refuse(l, why);
  const node *batched = make_batched_fold(&x, &why);
  if (!batched) return law_refuse(l, why);
  const node *made = law_add_axes(l->g, sink, f, batched, 1, &outer);
  law_args args = {.subject = range, .other = outer};
  return law_record(l, sink, made, LAW_BATCH, &args, NULL);
}
