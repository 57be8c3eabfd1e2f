#include "laws/laws.h"

#include "ir/subst.h"

typedef struct peeling {
  ir *g;
  const node *fold, *range;
  const node *rest;  /* last: the FOLD of the steps before; else NULL */
  const node **made; /* what the peeled step makes of each state: a value, or a STAGE */
} peeling;

static bool is_array(const node *f, size_t state) { return fold_component(f, state) >= 0; }

static const char *objection(ir *g, const node *f, const node *range) {
  if (fold_emits(f)) return "the FOLD emits values";
  if (fold_ranges(f) > 1) return "the FOLD has another range";
  if (!ix_prove(g, ix_add_const(g, range_extent(range), -1)))
    return "the FOLD is not shown to have a step";
  for (size_t i = 0; i < fold_states(f); i++)
    for (size_t k = 0; k < i && is_array(f, i); k++)
      if (fold_step(f, i) == fold_step(f, k) && fold_component(f, i) == fold_component(f, k))
        return "two states of the FOLD are one array";
  return NULL;
}

/** What an array starts with, where that is a scalar, stands for elements that it has. */
static const char *start_objection(ir *g, const node *f, const node_list *order) {
  for (size_t i = 0; i < order->n; i++) {
    const node *x = order->at[i], *s = x->op == OP_INDEX ? x->src[0] : x;
    if (s->op != OP_STATE || s->src[0] != fold_innermost(f) || s == x) continue;
    size_t state = (size_t)s->ints[0];
    bool scalar = is_array(f, state) && fold_init(f, state)->op != OP_STAGE;
    if (scalar && !ix_prove_inside(g, x->n_src - 1, fold_extents(f, state), x->src + 1))
      return "an array of the FOLD is not shown to be read inside of it";
  }
  return NULL;
}

/** A state before the peeled step, or an element of it. */
static const node *state_before(peeling *p, size_t i, size_t n, const node *const coords[]) {
  const node *f = p->fold, *init = fold_init(f, i);
  if (p->rest) return index_make(p->g, fold_dtype(f, i), p->rest, (int64_t)i, n, coords);
  if (init->op != OP_STAGE) return init;
  return index_make(p->g, fold_dtype(f, i), init, fold_component(f, i), n, coords);
}

/** All steps as one, so that what two share is copied once; of a STAGE's ranges those that `copied`
    gives stand for its own, which are free. */
static const node *copied_steps(peeling *p, map *copied) {
  size_t n = fold_states(p->fold);
  const node **steps = arena_alloc(ir_arena(p->g), n * sizeof *steps);
  for (size_t i = 0; i < n; i++) {
    const node *step = steps[i] = fold_step(p->fold, i);
    if (!is_array(p->fold, i)) continue;
    for (size_t k = 0; k < stage_ranges(step); k++) {
      const node *r = stage_range(step)[k];
      if (map_has(copied, r)) continue;
      const node *extent = subst_ranges(p->g, range_extent(r), copied);
      map_set(ir_arena(p->g), copied, r, (void *)range_copy(p->g, r, extent));
    }
    steps[i] = binder_with_ranges(p->g, step, step->src, 0, NULL);
  }
  return subst_copy(p->g, ir_node(p->g, OP_GROUP, DT_VOID, steps, n, NULL, 0), copied);
}

/** A copy of all steps in which `index` stands for the range, and what was before for the states.
    `fresh`: what stands for the ranges of STAGEs, which are free in it. */
static const node *step_at(peeling *p, const node *index, map *fresh) {
  arena *a = ir_arena(p->g);
  const node *own = range_copy(p->g, p->range, range_extent(p->range));
  map states = {0}, at = {0};
  map_set(a, fresh, p->range, (void *)own);
  map_set(a, &at, own, (void *)index);
  const node *steps = copied_steps(p, fresh);
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

/** The STAGE of a peeled step, of its copy without ranges: terms become the states after it. */
static const node *stepped_stage(peeling *p, const node *stage, const node *like,
                                 const map *fresh) {
  size_t n = stage_ranges(like);
  const node **ranges = arena_alloc(ir_arena(p->g), (n + 1) * sizeof *ranges);
  for (size_t i = 0; i < n; i++) ranges[i] = map_get(fresh, stage_range(like)[i]);
  const node **src = arena_copy(ir_arena(p->g), stage->src, stage->n_src * sizeof *src);
  for (size_t i = 0; i < fold_states(p->fold); i++) {
    if (fold_step(p->fold, i) != like || fold_op(p->fold, i) < 0) continue;
    size_t c = (size_t)fold_component(p->fold, i);
    const node *before = state_before(p, i, stage_rank(stage, c), stage_coords(stage, c));
    src[c] = ir_op2(p->g, (op)fold_op(p->fold, i), before, src[c]);
  }
  return binder_with_ranges(p->g, stage, src, n, ranges);
}

static void make_step(peeling *p, const node *index) {
  map fresh = {0};
  const node *f = p->fold, *steps = step_at(p, index, &fresh);
  p->made = arena_alloc(ir_arena(p->g), fold_states(f) * sizeof *p->made);
  for (size_t i = 0; i < fold_states(f); i++) {
    const node *step = steps->src[i];
    if (is_array(f, i))
      p->made[i] = stepped_stage(p, step, fold_step(f, i), &fresh);
    else if (fold_op(f, i) < 0)
      p->made[i] = step;
    else
      p->made[i] = ir_op2(p->g, (op)fold_op(f, i), state_before(p, i, 0, NULL), step);
  }
}

/** The FOLD of all steps but one: `own` + from stands for its range. */
static const node *others(peeling *p, const node *const inits[], const node *own, int64_t from) {
  ir *g = p->g;
  map with = {0};
  size_t n = fold_states(p->fold);
  const node **src = arena_copy(ir_arena(g), p->fold->src, p->fold->n_src * sizeof *src);
  map_set(ir_arena(g), &with, p->range, (void *)ix_add_const(g, own, from));
  for (size_t i = 0; i < n; i++) {
    src[i] = inits[i];
    src[n + i] = subst(g, state_renamed(g, src[n + i], p->range, own), &with);
  }
  return binder_with_ranges(g, p->fold, src, 1, &own);
}

/** The kernel in which what the peeled step made is read. */
static const node *read_made(peeling *p, const node *sink, const node_list *order) {
  map with = {0};
  for (size_t i = 0; i < order->n; i++) {
    const node *x = order->at[i];
    if (x->op != OP_INDEX || x->src[0] != p->fold) continue;
    size_t state = (size_t)x->ints[0];
    const node *v = p->made[state], *coords[IR_MOST_RANK];
    for (uint32_t k = 1; k < x->n_src; k++) coords[k - 1] = law_coordinate(p->g, x->src[k], &with);
    if (is_array(p->fold, state))
      v = index_make(p->g, (dtype)x->dtype, v, fold_component(p->fold, state), x->n_src - 1,
                     coords);
    map_set(ir_arena(p->g), &with, x, (void *)v);
  }
  return subst(p->g, sink, &with);
}

const node *law_peel(laws *l, const node *sink, const node *range, bool last, const node **rest) {
  ir *g = l->g;
  const node *f = law_binder(l, sink, range), *made;
  if (!f || f->op != OP_FOLD) return law_refuse(l, "no FOLD binds the range");
  node_list order = topo_sort(ir_arena(g), &sink, 1, NULL, NULL);
  const char *why = objection(g, f, range);
  if (!why) why = law_reader_objection(&order, f);
  if (why) return law_refuse(l, why);
  peeling p = {.g = g, .fold = f, .range = range};
  const node *before = ix_add_const(g, range_extent(range), -1);
  bool one = node_is_bits(before, 0);
  why = last && !one ? NULL : start_objection(g, f, &order);
  if (why) return law_refuse(l, why);
  *rest = one ? NULL : range_copy(g, range, before);
  if (last && !one) p.rest = others(&p, f->src, *rest, 0);
  make_step(&p, last ? before : ix_const(g, 0));
  if (last || one)
    made = read_made(&p, sink, &order);
  else
    made = law_replace(l, sink, f, others(&p, p.made, *rest, 1));
  if (law_nests_vectors(l, made, NULL)) return law_refuse(l, "a vector would run inside a vector");
  return law_made(l, sink, made, LAW_PEEL, &(law_args){.subject = range, .number = last}, rest);
}
