#include "laws/laws.h"

#include "ir/subst.h"
#include "ir/topo.h"

typedef struct batch {
  ir *g;
  arena *a;
  const node *fold, *outer;
} batch;

static bool depends(const batch *x, const node *n) { return node_is_free_in(x->outer, n); }

/** The states that a STAGE is the step of. */
static size_t times_stepped(const node *fold, const node *stage) {
  size_t n = 0;
  for (size_t i = 0; i < fold_states(fold); i++) n += fold_step(fold, i) == stage;
  return n;
}

static const char *state_objection(const batch *x, size_t i) {
  const node *step = fold_step(x->fold, i);
  if (depends(x, fold_init(x->fold, i))) return "a state's start depends on the range";
  if (fold_component(x->fold, i) < 0) return NULL;
  if (fold_init(x->fold, i)->op == OP_STAGE) return "a state starts from an array";
  if (stage_values(step) > 1 || times_stepped(x->fold, step) > 1)
    return "several states step in one nest";
  return depends(x, step) ? hoist_objection(step, x->outer)
                          : "a state does not depend on the range";
}

static const char *objection(const batch *x) {
  const node *f = x->fold, *extent = range_extent(x->outer);
  if (fold_emits(f)) return "the FOLD emits values";
  if (fold_pins(f)) return "the FOLD is pinned";
  if (!depends(x, f)) return "the FOLD does not depend on the range";
  if (range_kind_of(x->outer) != KIND_LOOP) return "the range is no loop";
  if (!node_is_const(extent) || node_int(extent) < 1)
    return "the extent of the range is not a number";
  for (size_t i = 0; i < fold_ranges(f); i++)
    if (depends(x, range_extent(fold_range(f)[i])))
      return "the extent of a range of the FOLD depends on the range";
  for (size_t i = 0; i < fold_states(f); i++) {
    const char *why = state_objection(x, i);
    if (why) return why;
  }
  return NULL;
}

/** Why what depends on the range in the steps cannot be built over it: it can, where it is read by
    its elements alone. */
static const char *inner_objection(const batch *x, const node *body, const node *own) {
  node_list order = topo_sort(x->a, body->src, body->n_src, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *b = order.at[i];
    if (b->op == OP_STAGE && stage_pins(b)) return "a STAGE inside is pinned";
    if (!node_is_free_in(own, b)) continue;
    if (b->op == OP_FOLD && (fold_emits(b) || fold_pins(b)))
      return "a FOLD inside emits or is pinned";
    for (size_t k = 0; b->op == OP_FOLD && k < fold_states(b); k++)
      if (fold_component(b, k) >= 0) return "a state of a FOLD inside is an array";
    if (b->op != OP_STAGE || law_is_one_of(body->src, body->n_src, b)) continue;
    const char *why = hoist_objection(b, own);
    if (why) return why;
    if (law_length_depends(&own, 1, b))
      return "an array inside is in a range whose extent depends on the range";
  }
  return NULL;
}

/** What the steps read is built before them, for all indices. */
static const node *with_arrays_apart(const batch *x, const node *body, const node *own) {
  for (bool again = true; again;) {
    node_list order = topo_sort(x->a, &body, 1, NULL, NULL);
    again = false;
    for (size_t i = 0; i < order.n && !again; i++) { /* those that others read come first */
      const node *s = order.at[i], *ignored;
      if (s->op != OP_STAGE || !node_is_free_in(own, s)) continue;
      if (law_is_one_of(body->src, body->n_src, s)) continue;
      body = hoist_over(x->g, body, s, own, &ignored);
      again = true;
    }
  }
  return body;
}

/** The step of a state that has a dimension more: over a range of its own. */
static const node *step_over(const batch *x, const node *step, bool is_array, const node *own) {
  map with = {0};
  const node *r = range_make(x->g, range_extent(own), KIND_LOOP);
  map_set(x->a, &with, own, (void *)r);
  step = subst_copy(x->g, step, &with);
  size_t rank = is_array ? stage_rank(step, 0) + 1 : 1;
  size_t n = is_array ? stage_ranges(step) + 1 : 1;
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

/** NULL: *why says why not. */
static const node *interchanged(const batch *x, const char **why) {
  map with = {0};
  const node *own = range_make(x->g, range_extent(x->outer), KIND_LOOP);
  map_set(x->a, &with, x->outer, (void *)own);
  const node *f = subst_copy(x->g, x->fold, &with);
  size_t n = fold_states(f);
  const node **steps = arena_alloc(x->a, n * sizeof *steps);
  int64_t *ops = arena_alloc(x->a, n * sizeof *ops);
  int64_t *components = arena_calloc(x->a, n, sizeof *components);
  const node *body = ir_node(x->g, OP_GROUP, DT_VOID, f->src + n, n, NULL, 0);
  body = law_with_axes(x->g, body, fold_innermost(f), NULL, 1, &own);
  *why = inner_objection(x, body, own);
  if (*why) return NULL;
  body = with_arrays_apart(x, body, own);
  for (size_t i = 0; i < n; i++) {
    steps[i] = step_over(x, body->src[i], fold_component(f, i) >= 0, own);
    ops[i] = fold_op(f, i);
  }
  return fold_make(x->g, &(fold_spec){.n_states = n,
                                      .n_ranges = fold_ranges(f),
                                      .inits = f->src,
                                      .steps = steps,
                                      .ops = ops,
                                      .components = components,
                                      .ranges = fold_range(f)});
}

const node *law_batch(laws *l, const node *sink, const node *range, const node *outer) {
  const node *f = law_binder(l, sink, range);
  if (!f || f->op != OP_FOLD) return law_refuse(l, "no FOLD binds the range");
  batch x = {l->g, ir_arena(l->g), f, outer};
  const char *why = objection(&x);
  if (!why) why = law_place_objection(l, sink, f, &outer, 1);
  if (why) return law_refuse(l, why);
  const node *batched = interchanged(&x, &why);
  if (!batched) return law_refuse(l, why);
  const node *made = law_with_axes(l->g, sink, f, batched, 1, &outer);
  law_args args = {.subject = range, .other = outer};
  return law_made(l, sink, made, LAW_BATCH, &args, NULL);
}
