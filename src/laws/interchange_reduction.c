/* Implements INTERCHANGE: interchanges a reduction with the loops around it; scalar states become
   arrays over these loops (output tiles inside blocks of K, vectors of partial sums):

     for d { FOLD over k (state ⊕ x(d, k)) }
       →   FOLD over k (STAGE over d′ (state[d′] ⊕ x(d′, k))),  read at [d]

   The extents of d are constants, the FOLD depends on each of them, emits nothing, and no range or
   state that it is inside of is itself inside d. */
#include "laws/law_support.h"

#include "ir/core/topo_sort.h"
#include "ir/transform/substitute.h"

typedef struct interchange {
  ir *g;
  const node *fold;
  const node *const *outer; /* loops to move the FOLD out of */
  size_t n;                 /* number of these */
} interchange;

static bool depends_on_outer(const interchange *x, const node *n) {
  return law_depends_on_any(x->outer, x->n, n);
}

static const char *fold_objection(const interchange *x) {
  const node *f = x->fold;
  if (fold_n_emits(f)) return "the FOLD emits values";
  for (size_t i = 0; i < fold_n_states(f); i++)
    if (fold_component(f, i) >= 0) return "a state of the FOLD is an array";
  for (size_t i = 0; i < fold_n_ranges(f); i++)
    if (depends_on_outer(x, range_extent(fold_range(f)[i])))
      return "the extent of a range of the FOLD depends on one of the ranges";
  for (size_t i = f->n_src - fold_n_pins(f); i < f->n_src; i++)
    if (depends_on_outer(x, f->src[i])) return "the FOLD is pinned inside one of the ranges";
  return NULL;
}

static const char *range_objection(const interchange *x, size_t i) {
  const node *r = x->outer[i], *e = range_extent(r);
  for (size_t k = 0; k < i; k++)
    if (x->outer[k] == r) return "a range is listed twice";
  if (!node_is_const(e) || node_int(e) < 1) return "the extent of a range is not a number";
  return node_is_free_in(r, x->fold) ? NULL : "the FOLD does not depend on one of the ranges";
}

/** A STAGE of values over the ranges `own`, which are also its coordinates. */
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

/** Creates own[i] for outer[i], of the same kind unless that is THREAD, and maps it there. */
static void make_own_ranges(interchange *x, map *with, const node *own[]) {
  for (size_t i = 0; i < x->n; i++) {
    const node *outer = x->outer[i], *extent = range_extent(outer);
    bool is_thread = range_kind_of(outer) == KIND_THREAD;
    own[i] = is_thread ? range_make(x->g, extent, KIND_LOOP) : range_clone(x->g, outer, extent);
    map_set(ir_arena(x->g), with, x->outer[i], (void *)own[i]);
  }
}

/** Initial values of the states: scalars, or arrays of one STAGE if any depends on the ranges. */
static const node *const *make_inits(interchange *x) {
  const node *f = x->fold;
  size_t n = fold_n_states(f);
  bool depends = false;
  for (size_t i = 0; i < n; i++) depends |= depends_on_outer(x, fold_init(f, i));
  if (!depends) return f->src;
  map with = {0};
  const node **own = arena_alloc(ir_arena(x->g), x->n * sizeof *own);
  const node **inits = arena_alloc(ir_arena(x->g), n * sizeof *inits);
  make_own_ranges(x, &with, own);
  const node *stage = stage_over(x, n, f->src, x->outer);
  /* One body, so that operands which initial values share are copied once. */
  const node *body =
      subst_fresh_ranges(x->g, binder_with_ranges(x->g, stage, stage->src, 0, NULL), &with);
  stage = binder_with_ranges(x->g, body, body->src, x->n, own);
  for (size_t i = 0; i < n; i++) inits[i] = stage;
  return inits;
}

/** The FOLD of arrays; `own` gets their ranges. */
static const node *make_array_fold(interchange *x, const node **own) {
  map with = {0};
  make_own_ranges(x, &with, own);
  const node *f = subst_fresh_ranges(x->g, x->fold, &with);
  f = law_add_axes(x->g, f, fold_innermost_range(f), NULL, x->n, own);
  size_t n = fold_n_states(f);
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
                                      .n_ranges = fold_n_ranges(f),
                                      .n_pins = fold_n_pins(f),
                                      .inits = make_inits(x),
                                      .steps = steps,
                                      .ops = ops,
                                      .components = components,
                                      .ranges = fold_range(f),
                                      .pins = f->src + f->n_src - fold_n_pins(f)});
}

const node *law_interchange(laws *l, const node *sink, const node *range, const node *const outer[],
                            size_t n, const node *own[]) {
  const node *f = law_find_binder(l, sink, range);
  if (!f || f->op != OP_FOLD) return law_refuse(l, "no FOLD binds the range");
  if (!n) return law_refuse(l, "there is no range to interchange with");
  interchange x = {l->g, f, outer, n};
  const char *why = fold_objection(&x);
  for (size_t i = 0; i < n && !why; i++) why = range_objection(&x, i);
  if (!why) why = law_move_out_objection(l, sink, f, outer, n);
  if (why) return law_refuse(l, why);
  const node *made = make_array_fold(&x, own);
  made = law_add_axes(l->g, sink, f, made, n, outer);
  if (law_has_nested_vectors(l, made, NULL))
    return law_refuse(l, "a vector would run inside a vector");
  law_args args = {.subject = range, .list = outer, .n = n};
  return law_record(l, sink, made, LAW_INTERCHANGE, &args, own);
}
