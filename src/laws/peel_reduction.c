/* Implements PEEL, loop peeling: takes the first or last step out of a FOLD (reduction and scan)
   over one range of extent n ≥ 1:

     first:  FOLD over r < n from i
               →   FOLD over r < n − 1 (step at r + 1) from (step at 0 from i)
     last:   FOLD over r < n from i
               →   (step at n − 1 from FOLD over r < n − 1 from i), in each reader

   First saves writing initial values only to read them back; last fuses an epilogue into the final
   step, whose extents may be constant. Nothing is emitted. Array states become STAGEs. */
#include "laws/law_support.h"

#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "ir/index/write_once.h"
#include "ir/transform/substitute.h"

typedef struct peeling {
  ir *g;
  const node *fold, *range;
  const node *before;  /* peeling the last step: the FOLD of the steps before it; else NULL */
  const node **result; /* of the peeled step for each state: a value, or a STAGE */
} peeling;

static bool is_array(const node *f, size_t state) { return fold_component(f, state) >= 0; }

static const char *fold_objection(ir *g, const node *f, const node *range) {
  if (fold_n_emits(f)) return "the FOLD emits values";
  if (fold_n_ranges(f) > 1) return "the FOLD has another range";
  if (!ix_prove_nonnegative(g, ix_add_const(g, range_extent(range), -1)))
    return "the FOLD is not proved to have a step";
  for (size_t i = 0; i < fold_n_states(f); i++)
    for (size_t k = 0; k < i && is_array(f, i); k++)
      if (fold_step(f, i) == fold_step(f, k) && fold_component(f, i) == fold_component(f, k))
        return "two states of the FOLD share an array";
  return NULL;
}

/** Objection to reading an array state as the scalar that it starts from: only elements inside the
    array have that value. */
static const char *start_objection(ir *g, const node *f, const node_list *order) {
  for (size_t i = 0; i < order->n; i++) {
    const node *x = order->at[i], *s = x->op == OP_INDEX ? x->src[0] : x;
    if (s->op != OP_STATE || s->src[0] != fold_innermost_range(f) || s == x) continue;
    size_t state = (size_t)s->ints[0];
    bool is_scalar_start = is_array(f, state) && fold_init(f, state)->op != OP_STAGE;
    if (is_scalar_start && !ix_prove_in_bounds(g, x->n_src - 1, fold_extents(f, state), x->src + 1))
      return "an array of the FOLD is not proved to be read inside its bounds";
  }
  return NULL;
}

/** Value of a state before the peeled step; of an array state, its element at `coords`. */
static const node *state_before(peeling *p, size_t i, size_t n, const node *const coords[]) {
  const node *f = p->fold, *init = fold_init(f, i);
  if (p->before) return index_make(p->g, fold_dtype(f, i), p->before, (int64_t)i, n, coords);
  if (init->op != OP_STAGE) return init;
  return index_make(p->g, fold_dtype(f, i), init, fold_component(f, i), n, coords);
}

/** A copy of all steps as one body, so that shared operands are copied once. STAGEs lose their
    ranges; the fresh copies of these, in `copied`, are free in the body. */
static const node *copy_steps(peeling *p, map *copied) {
  size_t n = fold_n_states(p->fold);
  const node **steps = arena_alloc(ir_arena(p->g), n * sizeof *steps);
  for (size_t i = 0; i < n; i++) {
    const node *step = steps[i] = fold_step(p->fold, i);
    if (!is_array(p->fold, i)) continue;
    law_copy_ranges(p->g, stage_range(step), stage_n_ranges(step), copied);
    steps[i] = binder_with_ranges(p->g, step, step->src, 0, NULL);
  }
  return subst_fresh_ranges(p->g, ir_node(p->g, OP_GROUP, DT_VOID, steps, n, NULL, 0), copied);
}

/** A copy of all steps with the range replaced by `index`, and states by their values before.
   `fresh` gets the copies of the ranges of STAGEs, which are free in it. */
static const node *copy_steps_at(peeling *p, const node *index, map *fresh) {
  arena *a = ir_arena(p->g);
  const node *own = range_clone(p->g, p->range, range_extent(p->range));
  map states = {0}, at = {0};
  map_set(a, fresh, p->range, (void *)own);
  map_set(a, &at, own, (void *)index);
  const node *steps = copy_steps(p, fresh);
  node_list order = topo_sort(a, &steps, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *x = order.at[i];
    if (x->op != OP_INDEX || x->src[0]->op != OP_STATE || x->src[0]->src[0] != own) continue;
    const node **coords = arena_alloc(a, x->n_src * sizeof *coords);
    for (uint32_t k = 1; k < x->n_src; k++) coords[k - 1] = subst(p->g, x->src[k], &states);
    size_t state = (size_t)x->src[0]->ints[0];
    map_set(a, &states, x, (void *)state_before(p, state, x->n_src - 1, coords));
  }
  return subst(p->g, subst(p->g, steps, &states), &at);
}

/** The STAGE of a peeled step from its copy without ranges: `original` gives the ranges; terms of
    states with an op are combined with the states before. */
static const node *make_step_stage(peeling *p, const node *stage, const node *original,
                                   const map *fresh) {
  size_t n = stage_n_ranges(original);
  const node **ranges = arena_alloc(ir_arena(p->g), (n + 1) * sizeof *ranges);
  for (size_t i = 0; i < n; i++) ranges[i] = map_get(fresh, stage_range(original)[i]);
  const node **src = arena_copy(ir_arena(p->g), stage->src, stage->n_src * sizeof *src);
  for (size_t i = 0; i < fold_n_states(p->fold); i++) {
    if (fold_step(p->fold, i) != original || fold_op(p->fold, i) < 0) continue;
    size_t c = (size_t)fold_component(p->fold, i);
    const node *before = state_before(p, i, stage_rank(stage, c), stage_coords(stage, c));
    src[c] = ir_op2(p->g, (op)fold_op(p->fold, i), before, src[c]);
  }
  return binder_with_ranges(p->g, stage, src, n, ranges);
}

static void make_step(peeling *p, const node *index) {
  map fresh = {0};
  const node *f = p->fold, *steps = copy_steps_at(p, index, &fresh);
  p->result = arena_alloc(ir_arena(p->g), fold_n_states(f) * sizeof *p->result);
  for (size_t i = 0; i < fold_n_states(f); i++) {
    const node *step = steps->src[i];
    if (is_array(f, i))
      p->result[i] = make_step_stage(p, step, fold_step(f, i), &fresh);
    else if (fold_op(f, i) < 0)
      p->result[i] = step;
    else
      p->result[i] = ir_op2(p->g, (op)fold_op(f, i), state_before(p, i, 0, NULL), step);
  }
}

/** The FOLD of the remaining steps over `own`; own + from replaces the range. */
static const node *make_remaining_fold(peeling *p, const node *const inits[], const node *own,
                                       int64_t from) {
  ir *g = p->g;
  map with = {0};
  size_t n = fold_n_states(p->fold);
  const node **src = arena_copy(ir_arena(g), p->fold->src, p->fold->n_src * sizeof *src);
  map_set(ir_arena(g), &with, p->range, (void *)ix_add_const(g, own, from));
  for (size_t i = 0; i < n; i++) {
    src[i] = inits[i];
    src[n + i] = subst(g, law_rename_state(g, src[n + i], p->range, own), &with);
  }
  return binder_with_ranges(g, p->fold, src, 1, &own);
}

/** The kernel with reads of the FOLD replaced by the results of the peeled step. */
static const node *read_results(peeling *p, const node *sink, const node_list *order) {
  map with = {0};
  for (size_t i = 0; i < order->n; i++) {
    const node *x = order->at[i];
    if (x->op != OP_INDEX || x->src[0] != p->fold) continue;
    size_t state = (size_t)x->ints[0];
    const node *v = p->result[state], *coords[IR_MAX_RANK];
    for (uint32_t k = 1; k < x->n_src; k++)
      coords[k - 1] = law_replace_coordinate(p->g, x->src[k], &with);
    if (is_array(p->fold, state))
      v = index_make(p->g, (dtype)x->dtype, v, fold_component(p->fold, state), x->n_src - 1,
                     coords);
    map_set(ir_arena(p->g), &with, x, (void *)v);
  }
  return subst(p->g, sink, &with);
}

const node *law_peel(laws *l, const node *sink, const node *range, bool last, const node **rest) {
  ir *g = l->g;
  const node *f = law_find_binder(l, sink, range), *made;
  if (!f || f->op != OP_FOLD) return law_refuse(l, "no FOLD binds the range");
  for (size_t i = 0; i < fold_n_states(f); i++)
    if (fold_component(f, i) >= 0 &&
        !stage_is_bijection(fold_step(f, i), (size_t)fold_component(f, i)))
      return law_refuse(l, "a step alone does not write all elements of its state");
  node_list order = law_index_of(l, sink).nodes;
  const char *why = fold_objection(g, f, range);
  if (!why) why = law_readers_objection(&order, f);
  if (why) return law_refuse(l, why);
  peeling p = {.g = g, .fold = f, .range = range};
  const node *last_index = ix_add_const(g, range_extent(range), -1);
  bool is_only_step = node_is_bits(last_index, 0);
  why = last && !is_only_step ? NULL : start_objection(g, f, &order);
  if (why) return law_refuse(l, why);
  *rest = is_only_step ? NULL : range_clone(g, range, last_index);
  if (last && !is_only_step) p.before = make_remaining_fold(&p, f->src, *rest, 0);
  make_step(&p, last ? last_index : ix_const(g, 0));
  if (last || is_only_step)
    made = read_results(&p, sink, &order);
  else
    made = law_replace(l, sink, f, make_remaining_fold(&p, p.result, *rest, 1));
  if (law_has_nested_vectors(l, made, NULL))
    return law_refuse(l, "a vector would run inside a vector");
  return law_record(l, sink, made, LAW_PEEL, &(law_args){.subject = range, .number = last}, rest);
}
