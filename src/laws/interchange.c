#include "laws/laws.h"

#include "ir/subst.h"
#include "ir/topo.h"

typedef struct interchange {
  ir *g;
  const node *fold;
  const node *const *outer; /* the ranges that the states become arrays over */
  size_t n;
} interchange;

static bool depends_on_outer(const interchange *x, const node *n) {
  return law_depends(x->outer, x->n, n);
}

static const char *fold_objection(const interchange *x) {
  const node *f = x->fold;
  if (fold_emits(f)) return "the FOLD emits values";
  for (size_t i = 0; i < fold_states(f); i++)
    if (fold_component(f, i) >= 0) return "a state of the FOLD is an array";
  for (size_t i = 0; i < fold_ranges(f); i++)
    if (depends_on_outer(x, range_extent(fold_range(f)[i])))
      return "the extent of a range of the FOLD depends on one of the ranges";
  for (size_t i = f->n_src - fold_pins(f); i < f->n_src; i++)
    if (depends_on_outer(x, f->src[i])) return "the FOLD is pinned inside one of the ranges";
  return NULL;
}

static const char *range_objection(const interchange *x, size_t i) {
  const node *r = x->outer[i], *e = range_extent(r);
  for (size_t k = 0; k < i; k++)
    if (x->outer[k] == r) return "a range stands twice";
  if (!node_is_const(e) || node_int(e) < 1) return "the extent of a range is not a number";
  return node_is_free_in(r, x->fold) ? NULL : "the FOLD does not depend on one of the ranges";
}

/** The STAGE over `own` of values, which depend on these. */
static const node *stage_over(interchange *x, size_t n_values, const node *const values[],
                              const node *const own[]) {
  arena *a = ir_arena(x->g);
  size_t *ranks = arena_alloc(a, n_values * sizeof *ranks);
  const node **coords = arena_alloc(a, n_values * x->n * sizeof *coords);
  const node **extents = arena_alloc(a, n_values * x->n * sizeof *extents);
  for (size_t i = 0; i < n_values; i++) {
    ranks[i] = x->n;
    for (size_t k = 0; k < x->n; k++) {
      coords[i * x->n + k] = own[k];
      extents[i * x->n + k] = range_extent(own[k]);
    }
  }
  return stage_make(x->g, &(stage_spec){.n_values = n_values,
                                        .n_ranges = x->n,
                                        .values = values,
                                        .ranks = ranks,
                                        .coords = coords,
                                        .extents = extents,
                                        .ranges = own});
}

/** Ranges for a copy of what depends on the outer ones: in lanes or copies too where these are. */
static void copies(interchange *x, map *with, const node *own[]) {
  for (size_t i = 0; i < x->n; i++) {
    range_kind kind = range_kind_of(x->outer[i]);
    bool is_time = kind == KIND_VECTOR || kind == KIND_UNROLL;
    own[i] = range_make(x->g, range_extent(x->outer[i]), is_time ? kind : KIND_LOOP);
    map_set(ir_arena(x->g), with, x->outer[i], (void *)own[i]);
  }
}

/** The states' starts: scalars, or where one depends on the ranges all as arrays of a STAGE. */
static const node *const *inits_of(interchange *x) {
  const node *f = x->fold;
  size_t n = fold_states(f);
  bool depends = false;
  for (size_t i = 0; i < n; i++) depends |= depends_on_outer(x, fold_init(f, i));
  if (!depends) return f->src;
  map with = {0};
  const node **own = arena_alloc(ir_arena(x->g), x->n * sizeof *own);
  const node **inits = arena_alloc(ir_arena(x->g), n * sizeof *inits);
  copies(x, &with, own);
  const node *stage = stage_over(x, n, f->src, x->outer);
  /* As one, so that what two starts share is copied once. */
  const node *body = subst_copy(x->g, binder_with_ranges(x->g, stage, stage->src, 0, NULL), &with);
  stage = binder_with_ranges(x->g, body, body->src, x->n, own);
  for (size_t i = 0; i < n; i++) inits[i] = stage;
  return inits;
}

/** The fold of arrays. */
static const node *interchanged(interchange *x, const node **own) {
  map with = {0};
  copies(x, &with, own);
  const node *f = subst_copy(x->g, x->fold, &with);
  f = law_with_axes(x->g, f, fold_innermost(f), NULL, x->n, own);
  size_t n = fold_states(f);
  const node **steps = arena_alloc(ir_arena(x->g), n * sizeof *steps);
  int64_t *ops = arena_alloc(ir_arena(x->g), n * sizeof *ops);
  int64_t *components = arena_alloc(ir_arena(x->g), n * sizeof *components);
  const node *stage = stage_over(x, n, f->src + n, own);
  for (size_t i = 0; i < n; i++) {
    steps[i] = stage;
    ops[i] = fold_op(f, i);
    components[i] = (int64_t)i;
  }
  return fold_make(x->g, &(fold_spec){.n_states = n,
                                      .n_ranges = fold_ranges(f),
                                      .n_pins = fold_pins(f),
                                      .inits = inits_of(x),
                                      .steps = steps,
                                      .ops = ops,
                                      .components = components,
                                      .ranges = fold_range(f),
                                      .pins = f->src + f->n_src - fold_pins(f)});
}

const node *law_interchange(laws *l, const node *sink, const node *range, const node *const outer[],
                            size_t n, const node *own[]) {
  const node *f = law_binder(l, sink, range);
  if (!f || f->op != OP_FOLD) return law_refuse(l, "no FOLD binds the range");
  if (!n) return law_refuse(l, "there is no range to interchange with");
  interchange x = {l->g, f, outer, n};
  const char *why = fold_objection(&x);
  for (size_t i = 0; i < n && !why; i++) why = range_objection(&x, i);
  if (!why) why = law_place_objection(l, sink, f, outer, n);
  if (why) return law_refuse(l, why);
  const node *made = interchanged(&x, own);
  made = law_with_axes(l->g, sink, f, made, n, outer);
  if (law_nests_vectors(l, made, NULL)) return law_refuse(l, "a vector would run inside a vector");
  law_args args = {.subject = range, .list = outer, .n = n};
  return law_made(l, sink, made, LAW_INTERCHANGE, &args, own);
}
