/* Draws random legal schedules of a kernel: applies up to five laws (schedule transformations) with
   random arguments, each of which checks its own legality. Leaves out those that change the order
   of an ordered reduction, make many copies of a body, or multiply the kernel's work. */
#include "schedules.h"

#include "../ir/random_law.h"
#include "ir/core/math_mode.h"

enum {
  MOST_LAWS = 5,
  TRIES = 12, /* most laws refuse most arguments */
  MOST_IN_LANES = 16,
  MOST_COPIES = 8,
  TIMES = 4, /* largest growth of the work by a law */
  LITTLE = 1 << 12
};

typedef struct scheduling {
  laws laws;
  rng *r;
  const node *sink;
  bool reorders; /* reductions have no order */
  size_t applied;
} scheduling;

/** Returns the number of iterations of all nests. */
static double work_of(scheduling *s, const node *sink) {
  double sum = 0;
  node_list order = topo_sort(ir_arena(s->laws.g), &sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *b = order.at[i], *const * ranges;
    double times = 1;
    if (!node_is_binder(b)) continue;
    for (size_t k = binder_ranges(b, &ranges); k-- > 0;)
      times *= (double)range_extent(ranges[k])->hi;
    for (uint32_t k = 0; k < b->free->n; k++) times *= (double)range_extent(b->free->at[k])->hi;
    sum += times;
  }
  return sum;
}

/** False for laws that reorder a reduction whose order is fixed, or copy too much. THREAD is
    applied to whole kernels only. */
static bool is_wanted(scheduling *s, law which, const law_args *a) {
  const node *b = law_facts_of(which)->arguments[0] == 'R'
                      ? law_find_binder(&s->laws, s->sink, a->subject)
                      : NULL;
  bool orders = which == LAW_ORDER || which == LAW_NEST || which == LAW_PARTITION;
  if (which == LAW_TENSOR && !tensor_rows[a->number].is_exact && !s->reorders) return false;
  if (orders && b && b->op == OP_FOLD && !s->reorders) return false;
  if (which != LAW_KIND) return true;
  int64_t most = range_extent(a->subject)->hi;
  return (a->number == KIND_VECTOR && most <= MOST_IN_LANES) ||
         (a->number == KIND_UNROLL && most <= MOST_COPIES);
}

static void apply_one(scheduling *s) {
  const node *principals[IR_MAX_RANK + 8];
  for (int i = 0; i < TRIES; i++) {
    law which = (law)rng_below(s->r, LAWS);
    law_args a = random_args(&s->laws, s->r, which, s->sink);
    if (!a.subject) return; /* the kernel has no range */
    if (!is_wanted(s, which, &a)) continue;
    const node *made = law_apply(&s->laws, s->sink, which, &a, principals);
    if (!made || work_of(s, made) > TIMES * work_of(s, s->sink) + LITTLE) continue;
    s->sink = made;
    s->applied++;
    return;
  }
}

/** Parallelises one range of each output, as a kernel is parallel as a whole. */
static void share_out(scheduling *s) {
  const node *before = s->sink;
  for (uint32_t i = 0; i < s->sink->n_src; i++) {
    const node *out = s->sink->src[i], *stage = out->src[out->n_src - 1], *changed;
    size_t n = stage_n_ranges(stage);
    const node *range = n ? stage_range(stage)[rng_below(s->r, n)] : NULL;
    bool loops = range && range_kind_of(range) == KIND_LOOP;
    const node *made = loops ? law_kind(&s->laws, s->sink, range, KIND_THREAD, &changed) : NULL;
    s->sink = made ? made : before;
    s->applied += made != NULL;
    if (!made) return;
  }
}

const node *random_schedule(ir *g, rng *r, const node *sink, bool reorders, size_t *applied) {
  scheduling s = {.r = r, .laws = {.g = g}, .sink = sink, .reorders = reorders};
  for (size_t k = 1 + rng_below(r, MOST_LAWS); k > 0; k--) apply_one(&s);
  if (rng_chance(r, 40)) share_out(&s);
  *applied += s.applied;
  return s.sink;
}

/* Teams. */

/** True for a FOLD whose result may depend on the order of its terms, which a tree changes. */
static bool has_order(const node *b) {
  for (size_t i = 0; b->op == OP_FOLD && i < fold_n_states(b); i++)
    if (fold_op(b, i) < 0 || !math_may_reorder(MATH_EXACT, fold_dtype(b, i))) return true;
  return false;
}

/** Makes a range a digit, or splits one so that it may become one. */
static void apply_digit(scheduling *s) {
  static const range_kind kinds[] = {KIND_GLOBAL, KIND_LOCAL, KIND_LOCAL, KIND_WARP};
  laws *l = &s->laws;
  const node *range = random_range(l, s->r, s->sink), *a, *b, *made = NULL;
  if (!range || has_order(law_find_binder(l, s->sink, range))) return;
  bool is_loop = range_kind_of(range) == KIND_LOOP;
  if (is_loop && rng_chance(s->r, 30))
    made = law_split(l, s->sink, range, rng_between(s->r, 2, 4), &a, &b);
  else if (is_loop)
    made =
        law_kind_on_axis(l, s->sink, range, kinds[rng_below(s->r, 4)], rng_between(s->r, 0, 2), &a);
  if (!made) return;
  s->sink = made;
  s->applied++;
}

/** Builds arrays ahead that may be. */
static void apply_slots(scheduling *s) {
  node_list order = topo_sort(ir_arena(s->laws.g), &s->sink, 1, NULL, NULL), ranges = {0};
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_STAGE && stage_n_ranges(order.at[i]))
      vec_push(ir_arena(s->laws.g), &ranges, stage_range(order.at[i])[0]);
  for (size_t i = 0; i < ranges.n; i++) {
    const node *stage = law_find_binder(&s->laws, s->sink, ranges.at[i]);
    const node *made = law_depth(&s->laws, s->sink, stage, rng_between(s->r, 2, 4));
    if (!made || rng_chance(s->r, 30)) continue;
    s->sink = made;
    s->applied++;
  }
}

static bool has_digits(scheduling *s) {
  node_list order = topo_sort(ir_arena(s->laws.g), &s->sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_RANGE && range_is_digit(order.at[i])) return true;
  return false;
}

const node *random_team_schedule(ir *g, rng *r, const node *sink, bool reorders, size_t *applied) {
  scheduling s = {.r = r,
                  .laws = {.g = g, .workers = RANDOM_WORKERS, .warp = RANDOM_WARP},
                  .sink = sink,
                  .reorders = reorders};
  for (size_t k = 2 + rng_below(r, 4 * MOST_LAWS); k > 0; k--) {
    if (rng_chance(r, 30))
      apply_one(&s);
    else
      apply_digit(&s);
  }
  apply_slots(&s);
  *applied += s.applied;
  return has_digits(&s) ? s.sink : NULL;
}
