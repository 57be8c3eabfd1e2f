/* Implements the choice of stores by the cost of whole kernels, a local search that starts from
   the grouping of the fusion search with its forced stores. A candidate is a value: one that is
   stored by choice may be computed in its readers, and one that a kernel computes beside a
   reduction, a scan or updates may be stored. Each round turns over candidates no two of which
   concern one kernel, builds all kernels, and compares those that changed, joined where they
   compute the same values: one trial estimates many candidates apart. What gains is kept if all
   kernels together gain. */
#include "schedule/grouping/choose_stores.h"

#include "ir/core/likely_value.h"
#include "schedule/fuse/fusion_group.h"
#include "target/machine.h"

#include <math.h>
#include <stdlib.h>

enum {
  MOST_ROUNDS = 8,
  MOST_IDLE_ROUNDS = 4, /* in a row, of which nothing is kept */
  MOST_GROUPED = 32768, /* values in all groupings that are made: bounds the time for huge graphs */
  LEAST_POINTS = 64     /* elements of a value that may be stored */
};

typedef VEC(size_t) numbers;

/** A grouping: its steps, and where its values are. */
typedef struct grouping_state {
  const schedule *s;
  bool *stored; /* of each value: in memory by choice */
  numbers *in;  /* of each value: the steps whose kernels compute it */
} grouping_state;

typedef struct chooser {
  arena *a;
  const grouping_trials *t;
  values *v;
  value_list *readers; /* of each value, by position */
  numbers order;       /* positions of values, in the order in which they are tried */
  bool *tried;         /* of each value */
  map costs[2];   /* kernel → device → its cost: with the first schedule, with the best one */
  size_t most;    /* kernels that may be searched */
  int idle;       /* rounds since one of which something was kept */
  size_t grouped; /* values in the groupings made so far */
  grouping_state base;
} chooser;

static double cost_of(chooser *c, const schedule_step *step, bool is_searched) {
  const kernel_estimates *p = c->t->estimates;
  map *costs = map_get(&c->costs[is_searched], step->kernel);
  if (!costs)
    map_set(c->a, &c->costs[is_searched], step->kernel,
            costs = arena_calloc(c->a, 1, sizeof *costs));
  const void *device = (const void *)(uintptr_t)(step->device + 1);
  double *known = map_get(costs, device);
  if (known) return *known;
  known = arena_alloc(c->a, sizeof *known);
  *known = p->estimate(p->user, step->device, step->kernel, is_searched) + MACHINE_KERNEL_CALL_NS;
  map_set(c->a, costs, device, known);
  return *known;
}

/** The grouping that follows from the present wishes. */
static grouping_state make_state(chooser *c) {
  grouping_state x = {.s = c->t->make(c->t->user)};
  c->grouped += c->v->at.n;
  x.stored = arena_calloc(c->a, c->v->at.n + 1, sizeof *x.stored);
  x.in = arena_calloc(c->a, c->v->at.n + 1, sizeof *x.in);
  for (size_t i = 0; i < c->v->at.n; i++) {
    const value_placement *p = c->v->at.at[i]->places;
    x.stored[i] = p->home && p->is_free;
  }
  for (size_t i = 0; i < x.s->steps.n; i++) {
    const schedule_step *s = &x.s->steps.at[i];
    for (size_t k = 0; s->kernel && k < s->values.n; k++) {
      const value *v = map_get(&c->v->of, s->values.at[k]);
      if (v) vec_push(c->a, &x.in[v->position], i);
    }
  }
  return x;
}

/* Candidates. */

static double points_of(const node *const dims[], size_t rank) {
  double points = 1;
  for (size_t k = 0; k < rank; k++) points *= ix_likely(dims[k]);
  return points;
}

static bool is_read_out_of_place(const value *reader, const value *v) {
  for (size_t k = 0; k < reader->inputs.elements.n; k++) {
    const node *read = reader->inputs.elements.at[k];
    if (read->src[0] == v->tensor && !value_reads_in_place(reader, read, v->rank)) return true;
  }
  return false;
}

/** True if a value ends a chain of elementwise values: a reduction, or one that is read by a
    reduction, out of place, or several times. */
static bool ends_chain(const chooser *c, const value *v) {
  const value_list *r = &c->readers[v->position];
  if (value_is_reduction(v) || r->n > 1) return true;
  for (size_t i = 0; i < r->n; i++) {
    const value *reader = r->at[i];
    if (value_is_reduction(reader) || is_read_out_of_place(reader, v)) return true;
  }
  return false;
}

/** True for a term of a contraction: it has more elements than its operands and each reader. */
static bool is_term(const chooser *c, const value *v) {
  double points = points_of(v->dims, v->rank), operands = 0;
  const value_list *r = &c->readers[v->position];
  if (value_is_reduction(v)) return false;
  for (size_t i = 0; i < v->inputs.tensors.n; i++) {
    const node *x = v->inputs.tensors.at[i];
    operands += points_of(x->dims, x->rank);
  }
  for (size_t i = 0; i < r->n; i++) {
    const value *reader = r->at[i];
    if (points_of(reader->dims, reader->rank) >= points) return false;
  }
  return points > operands;
}

static bool may_be_stored(const chooser *c, const value *v) {
  if (!v->body || value_is_never_stored(v) || v->memory.is_never_inlined || v->memory.stores.n)
    return false;
  return points_of(v->dims, v->rank) >= LEAST_POINTS && ends_chain(c, v) && !is_term(c, v);
}

/** True if a step computes another reduction, or updates. */
static bool has_other_reduction(const chooser *c, const schedule_step *s, const value *v) {
  for (size_t k = 0; k < s->values.n; k++) {
    const value *other = map_get(&c->v->of, s->values.at[k]);
    if (other && other != v && (value_is_reduction(other) || other->updates)) return true;
  }
  return false;
}

static bool is_candidate(const chooser *c, const value *v) {
  if (v->memory.wish == WISH_KEPT) return false;
  const numbers *in = &c->base.in[v->position];
  if (c->base.stored[v->position]) return true;
  for (size_t i = 0; i < in->n; i++)
    if (has_other_reduction(c, &c->base.s->steps.at[in->at[i]], v)) return may_be_stored(c, v);
  return false;
}

static bool is_any_set(const bool set[], const numbers *at) {
  for (size_t i = 0; i < at->n; i++)
    if (set[at->at[i]]) return true;
  return false;
}

static void set_all(bool set[], const numbers *at) {
  for (size_t i = 0; i < at->n; i++) set[at->at[i]] = true;
}

/** Claims the kernels that a candidate concerns; false: another one of the round concerns them. */
static bool claim_kernels(const chooser *c, bool claimed[], const value *v) {
  const value_list *r = &c->readers[v->position];
  size_t n = c->base.stored[v->position] ? r->n : 0; /* else its readers are in the same kernels */
  if (is_any_set(claimed, &c->base.in[v->position])) return false;
  for (size_t i = 0; i < n; i++)
    if (is_any_set(claimed, &c->base.in[r->at[i]->position])) return false;
  set_all(claimed, &c->base.in[v->position]);
  for (size_t i = 0; i < n; i++) set_all(claimed, &c->base.in[r->at[i]->position]);
  return true;
}

/* Comparing two groupings. */

typedef struct comparison {
  const grouping_state *before, *after;
  size_t n_before, n; /* steps: those of `before` are followed by those of `after` */
  size_t *parent;     /* of each step, in a forest of those that changed; SIZE_MAX: it did not */
  double *was, *now;  /* of each root: ns of its steps before and after */
  bool *is_estimated; /* of each root: its costs are final */
} comparison;

static size_t root_of(const comparison *x, size_t i) {
  while (x->parent[i] != i) i = x->parent[i] = x->parent[x->parent[i]];
  return i;
}

static const schedule_step *step_at(const comparison *x, size_t i) {
  return i < x->n_before ? &x->before->s->steps.at[i] : &x->after->s->steps.at[i - x->n_before];
}

static bool is_same_step(const schedule_step *a, const schedule_step *b) {
  bool same = a->kernel == b->kernel && a->values.n == b->values.n;
  for (size_t i = 0; same && i < a->values.n; i++) same = a->values.at[i] == b->values.at[i];
  return same;
}

/** Leaves out steps that are in both groupings. */
static void drop_equal_steps(chooser *c, const comparison *x) {
  map after = {0}; /* first value of a step → its number */
  for (size_t i = x->n_before; i < x->n; i++)
    if (step_at(x, i)->values.n)
      map_set(c->a, &after, step_at(x, i)->values.at[0], (void *)(uintptr_t)i);
  for (size_t i = 0; i < x->n_before; i++) {
    const schedule_step *s = step_at(x, i);
    size_t k = s->values.n ? (size_t)(uintptr_t)map_get(&after, s->values.at[0]) : 0;
    if (k && is_same_step(s, step_at(x, k))) x->parent[i] = x->parent[k] = SIZE_MAX;
  }
}

/** Joins the steps that compute the same values. */
static void join_steps(chooser *c, const comparison *x) {
  map first = {0}; /* value → the first step that computes it + 1 */
  for (size_t i = 0; i < x->n; i++)
    for (size_t k = 0; x->parent[i] != SIZE_MAX && k < step_at(x, i)->values.n; k++) {
      const node *tensor = step_at(x, i)->values.at[k];
      size_t other = (size_t)(uintptr_t)map_get(&first, tensor);
      if (other)
        x->parent[root_of(x, i)] = root_of(x, other - 1);
      else
        map_set(c->a, &first, tensor, (void *)(uintptr_t)(i + 1));
    }
}

/** Adds the costs of the steps from `first` to before `end` that changed to those of their roots,
    which begin as 0. */
static void add_costs(chooser *c, const comparison *x, size_t first, size_t end, bool is_searched) {
  double *to = first < x->n_before ? x->was : x->now;
  for (size_t i = 0; i < x->n; i++)
    if (!x->is_estimated[i]) to[i] = 0;
  for (size_t i = first; i < end; i++)
    if (x->parent[i] != SIZE_MAX && !x->is_estimated[root_of(x, i)])
      to[root_of(x, i)] += cost_of(c, step_at(x, i), is_searched);
}

static bool is_gain(double was, double now) { return now < (1 - MACHINE_GROUPING_GAIN) * was; }

/** True if two times of first schedules decide: searches could not reverse their order, or the
    quota of searches is spent. */
static bool is_decided(const chooser *c, double was, double now) {
  bool is_clear = now < (1 - MACHINE_CLEAR_GROUPING_GAIN) * was;
  return !is_gain(was, now) || is_clear || c->costs[true].n >= c->most;
}

/** Compares two groupings. The best schedules are searched only where first ones leave it open:
    those of the kernels before, and those after where their first ones gain nothing more then. */
static comparison compare(chooser *c, const grouping_state *before, const grouping_state *after) {
  comparison x = {.before = before, .after = after, .n_before = before->s->steps.n};
  x.n = x.n_before + after->s->steps.n;
  x.parent = arena_alloc(c->a, (x.n + 1) * sizeof *x.parent);
  x.was = arena_calloc(c->a, x.n + 1, sizeof *x.was);
  x.now = arena_calloc(c->a, x.n + 1, sizeof *x.now);
  x.is_estimated = arena_calloc(c->a, x.n + 1, sizeof *x.is_estimated);
  for (size_t i = 0; i < x.n; i++) x.parent[i] = step_at(&x, i)->kernel ? i : SIZE_MAX;
  drop_equal_steps(c, &x);
  join_steps(c, &x);
  add_costs(c, &x, 0, x.n_before, false);
  add_costs(c, &x, x.n_before, x.n, false);
  for (size_t i = 0; i < x.n; i++) x.is_estimated[i] = is_decided(c, x.was[i], x.now[i]);
  add_costs(c, &x, 0, x.n_before, true);
  for (size_t i = 0; i < x.n; i++)
    x.is_estimated[i] = x.is_estimated[i] || is_gain(x.was[i], x.now[i]);
  add_costs(c, &x, x.n_before, x.n, true);
  return x;
}

static double total_gain(const comparison *x) {
  double gain = 0;
  for (size_t i = 0; i < x->n; i++) gain += x->was[i] - x->now[i];
  return gain;
}

/** True if the changed kernels that compute a value take less time than before, by a margin. */
static bool gains(const comparison *x, const value *v) {
  const numbers *in = &x->before->in[v->position];
  for (size_t i = 0; i < in->n; i++) {
    if (x->parent[in->at[i]] == SIZE_MAX) continue;
    size_t root = root_of(x, in->at[i]);
    return is_gain(x->was[root], x->now[root]);
  }
  return false;
}

/* Rounds. */

/** True if a value has an axis of which only a run knows the size. */
static bool is_open(const value *v) {
  for (size_t k = 0; k < v->rank; k++)
    if (!node_is_const(v->dims[k])) return true;
  return false;
}

/** A value's position, with the elements of its largest reader if it is open; else 0. */
typedef struct candidate_rank {
  size_t position;
  double points;
} candidate_rank;

static int compare_ranks(const void *x, const void *y) {
  const candidate_rank *a = x, *b = y;
  if (a->points != b->points) return a->points < b->points ? 1 : -1;
  return a->position < b->position ? -1 : a->position > b->position;
}

/** Orders values: open ones come first, by the elements of their largest readers, which are those
   of contractions' terms. No array of open rows is built for a block of them
    (codegen/choose/array_expansion.c), so that a contraction that computes its operand has no
    register tile, and rounds are few. */
static numbers order_candidates(const chooser *c) {
  size_t n = c->v->at.n;
  candidate_rank *ranks = arena_calloc(c->a, n + 1, sizeof *ranks);
  numbers order = {0};
  for (size_t i = 0; i < n; i++) {
    const value_list *r = &c->readers[i];
    ranks[i].position = i;
    if (!is_open(c->v->at.at[i])) continue;
    for (size_t k = 0; k < r->n; k++)
      ranks[i].points = fmax(ranks[i].points, points_of(r->at[k]->dims, r->at[k]->rank));
  }
  qsort(ranks, n, sizeof *ranks, compare_ranks);
  for (size_t i = 0; i < n; i++) vec_push(c->a, &order, ranks[i].position);
  return order;
}

/** A value whose wish a round changes. */
typedef struct turned {
  value *v;
  store_wish before;
} turned;

typedef VEC(turned) turns;

static turns turn_candidates(chooser *c) {
  turns all = {0};
  bool *claimed = arena_calloc(c->a, c->base.s->steps.n + 1, sizeof *claimed);
  for (size_t k = 0; k < c->order.n; k++) {
    size_t i = c->order.at[k];
    value *v = c->v->at.at[i];
    if (c->tried[i] || !is_candidate(c, v) || !claim_kernels(c, claimed, v)) continue;
    vec_push(c->a, &all, (turned){v, v->memory.wish});
    c->tried[i] = true;
    v->memory.wish = c->base.stored[i] ? WISH_INLINED : WISH_STORED;
  }
  return all;
}

/** True if so many more groupings may be made. */
static bool may_make(const chooser *c, size_t groupings) {
  return c->grouped + groupings * c->v->at.n <= MOST_GROUPED;
}

/** Turns candidates and keeps what gains; false: there are no more, none gained for long, or the
    graph is too large for a further round. */
static bool try_round(chooser *c) {
  if (!may_make(c, 2)) return false;
  turns t = turn_candidates(c);
  if (!t.n) return false;
  size_t kept = 0;
  grouping_state trial = make_state(c);
  comparison x = compare(c, &c->base, &trial);
  for (size_t i = 0; i < t.n; i++) {
    bool keeps = gains(&x, t.at[i].v);
    kept += keeps;
    if (!keeps) t.at[i].v->memory.wish = t.at[i].before;
  }
  c->idle++;
  if (!kept) return c->idle < MOST_IDLE_ROUNDS;
  if (kept < t.n) trial = make_state(c);
  x = compare(c, &c->base, &trial);
  if (total_gain(&x) > 0) {
    c->base = trial;
    c->idle = 0;
  } else
    for (size_t i = 0; i < t.n; i++) t.at[i].v->memory.wish = t.at[i].before;
  return c->idle < MOST_IDLE_ROUNDS;
}

void grouping_choose_stores(ir *g, const grouping_trials *t, values *v) {
  chooser c = {.a = ir_arena(g), .t = t, .v = v};
  c.readers = values_readers(c.a, v);
  c.order = order_candidates(&c);
  c.tried = arena_calloc(c.a, v->at.n + 1, sizeof *c.tried);
  if (!may_make(&c, 3)) return;
  c.base = make_state(&c);
  c.most = c.base.s->steps.n;
  for (int round = 0; round < MOST_ROUNDS && try_round(&c);) round++;
}
