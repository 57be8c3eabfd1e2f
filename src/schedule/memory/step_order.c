/* Orders the steps of a schedule for the least memory. The best order is NP-hard to find, so three
   are made, each in nearly linear time, and the one whose memory plan is smallest is taken, the
   present order first. Depth first: of the operands of a step, the one whose making needs most
   beyond its result comes first (R. Sethi, J. D. Ullman: The generation of optimal code for
   arithmetic expressions, J. ACM 17, 1970). Greedy, from the first step on and from the last one
   back: always the step that lets live bytes grow least. Dependences: a reader waits for the writer
   before it, a writer for the writer and the readers before it; of an array that several steps
   write in parts, a step waits only for those that access the same elements. */
#include "schedule/memory/step_order.h"

#include "schedule/memory/part_dependences.h"

#include <stdlib.h>
#include <string.h>

/** For each step a list of others: list[first[i]] … list[first[i + 1] − 1]. */
typedef struct links {
  size_t *first, *list;
} links;

typedef struct ordering {
  arena *a;
  const lives *l;
  links before, after; /* steps that a step waits for; steps that wait for it */
  links users;         /* steps that use a buffer */
} ordering;

/* Dependences. */

static size_t of_from(const step_edge *e) { return e->from; }
static size_t of_to(const step_edge *e) { return e->to; }

/** The edges as lists by one end (a counting sort). */
static links group_edges(arena *a, const step_edges *e, size_t n, size_t (*key)(const step_edge *),
                         size_t (*other)(const step_edge *)) {
  links l = {arena_calloc(a, n + 2, sizeof *l.first), arena_alloc(a, (e->n + 1) * sizeof *l.list)};
  size_t *next = l.first + 1; /* while filling: the next position of each list */
  for (size_t i = 0; i < e->n; i++) next[key(&e->at[i]) + 1]++;
  for (size_t i = 0; i < n; i++) next[i + 1] += next[i];
  for (size_t i = 0; i < e->n; i++) l.list[next[key(&e->at[i])]++] = other(&e->at[i]);
  return l;
}

/** The uses of a buffer so far. */
typedef struct last_uses {
  size_t writer; /* + 1 */
  VEC(size_t) readers;
  part_uses parts; /* of a buffer that several steps write in parts */
} last_uses;

static step_edges dependences(arena *a, const lives *l) {
  last_uses *last = arena_calloc(a, l->n_buffers + 1, sizeof *last);
  step_edges all = {0};
  for (size_t i = 0; i < l->n_steps; i++)
    for (size_t k = 0; k < l->steps[i].n; k++) {
      last_uses *b = &last[l->steps[i].buffers[k]];
      const array_accesses *parts = l->steps[i].parts ? &l->steps[i].parts[k] : NULL;
      if (parts && (array_part_is_any(&parts->read) || array_part_is_any(&parts->written))) {
        vec_push(a, &b->parts, (part_use){i, parts});
        continue;
      }
      if (b->writer) vec_push(a, &all, (step_edge){b->writer - 1, i});
      if (k >= l->steps[i].n_written) {
        vec_push(a, &b->readers, i);
        continue;
      }
      for (size_t r = 0; r < b->readers.n; r++) vec_push(a, &all, (step_edge){b->readers.at[r], i});
      b->readers.n = 0;
      b->writer = i + 1;
    }
  for (size_t i = 0; i < l->n_buffers; i++)
    if (last[i].parts.n) part_dependences_add(a, &last[i].parts, &all);
  return all;
}

static ordering ordering_of(arena *a, const lives *l) {
  ordering o = {.a = a, .l = l};
  step_edges waits = dependences(a, l), uses = {0};
  o.before = group_edges(a, &waits, l->n_steps, of_to, of_from);
  o.after = group_edges(a, &waits, l->n_steps, of_from, of_to);
  for (size_t i = 0; i < l->n_steps; i++)
    for (size_t k = 0; k < l->steps[i].n; k++)
      vec_push(a, &uses, (step_edge){l->steps[i].buffers[k], i});
  o.users = group_edges(a, &uses, l->n_buffers, of_from, of_to);
  return o;
}

/* Depth first. */

typedef struct making {
  size_t step;
  double need, leaves; /* live bytes while it and its operands are made; and afterwards */
} making;

static int compare_rest(const void *a, const void *b) {
  const making *x = a, *y = b;
  double rest = (y->need - y->leaves) - (x->need - x->leaves);
  return rest < 0 ? -1 : rest > 0 ? 1 : (x->step > y->step) - (x->step < y->step);
}

static double bytes_made(const lives *l, const step_accesses *u) {
  double sum = 0;
  for (size_t k = 0; k < u->n_written; k++) sum += (double)l->bytes[u->buffers[k]];
  return sum;
}

/** Sorts the operands of a step, and computes its need and result with that order. */
static making plan_operands(ordering *o, size_t step, const making made[], making room[]) {
  size_t *list = o->before.list + o->before.first[step];
  size_t n = o->before.first[step + 1] - o->before.first[step];
  making m = {step, 0, bytes_made(o->l, &o->l->steps[step])};
  double live = 0;
  for (size_t i = 0; i < n; i++) room[i] = made[list[i]];
  qsort(room, n, sizeof *room, compare_rest);
  for (size_t i = 0; i < n; i++) {
    list[i] = room[i].step;
    if (i && list[i] == list[i - 1]) continue; /* for several arrays */
    if (live + room[i].need > m.need) m.need = live + room[i].need;
    live += room[i].leaves;
  }
  if (live + m.leaves > m.need) m.need = live + m.leaves;
  return m;
}

/** Lists the steps that nothing waits for, the most demanding first. Returns their number. */
static size_t list_roots(ordering *o, making made[], making roots[]) {
  size_t n = 0;
  for (size_t i = 0; i < o->l->n_steps; i++)
    if (o->after.first[i] == o->after.first[i + 1]) roots[n++] = made[i];
  qsort(roots, n, sizeof *roots, compare_rest);
  return n;
}

static size_t *depth_first_order(ordering *o) {
  size_t n = o->l->n_steps, done = 0, depth = 0;
  making *made = arena_alloc(o->a, (n + 1) * sizeof *made);
  making *room = arena_alloc(o->a, (o->before.first[n] + n + 1) * sizeof *room);
  size_t *order = arena_alloc(o->a, (n + 1) * sizeof *order);
  size_t *stack = arena_alloc(o->a, (n + 1) * sizeof *stack);
  size_t *next = arena_copy(o->a, o->before.first, (n + 1) * sizeof *next);
  bool *is_met = arena_calloc(o->a, n + 1, sizeof *is_met);
  for (size_t i = 0; i < n; i++) made[i] = plan_operands(o, i, made, room);
  size_t n_roots = list_roots(o, made, room);
  for (size_t r = 0; r < n_roots; r++) {
    stack[depth++] = room[r].step;
    while (depth) {
      size_t step = stack[depth - 1];
      if (next[step] == o->before.first[step + 1]) {
        order[done++] = step;
        depth--;
        continue;
      }
      size_t b = o->before.list[next[step]++];
      if (!is_met[b]) stack[depth++] = b;
      is_met[b] = true;
    }
  }
  return order;
}

/* Greedy. */

/** A ready step with its growth when it was added. */
typedef struct entry {
  double growth;
  size_t step;
} entry;

typedef struct greedy {
  ordering *o;
  links before, after;
  bool is_back;   /* backwards from the last step */
  size_t *waits;  /* steps that each step still waits for; SIZE_MAX: it is done */
  size_t *left;   /* users of each buffer that are not done */
  double *growth; /* bytes by which live memory grows if a step comes next */
  VEC(entry) heap;
} greedy;

/** True if an entry comes before another: by growth, then as in the present order, from the start
   of the walk. */
static bool is_sooner(const greedy *s, entry a, entry b) {
  if (a.growth != b.growth) return a.growth < b.growth;
  return s->is_back ? a.step > b.step : a.step < b.step;
}

static void add_entry(greedy *s, size_t step) {
  vec_push(s->o->a, &s->heap, (entry){s->growth[step], step});
  entry *h = s->heap.at, e = vec_last(&s->heap);
  size_t i = s->heap.n - 1;
  for (; i && is_sooner(s, e, h[(i - 1) / 2]); i = (i - 1) / 2) h[i] = h[(i - 1) / 2];
  h[i] = e;
}

static entry pop_entry(greedy *s) {
  entry *h = s->heap.at, top = h[0], e = h[--s->heap.n];
  size_t i = 0, n = s->heap.n;
  for (size_t k; (k = 2 * i + 1) < n; i = k) {
    if (k + 1 < n && is_sooner(s, h[k + 1], h[k])) k++;
    if (!is_sooner(s, h[k], e)) break;
    h[i] = h[k];
  }
  h[i] = e;
  return top;
}

/** The ready step of least growth; outdated entries are dropped. */
static size_t pop_ready_step(greedy *s) {
  for (;;) {
    entry e = pop_entry(s);
    if (s->waits[e.step] != SIZE_MAX && s->growth[e.step] == e.growth) return e.step;
  }
}

static void lower_growth(greedy *s, size_t buffer) {
  const links *users = &s->o->users;
  for (size_t i = users->first[buffer]; i < users->first[buffer + 1]; i++) {
    size_t step = users->list[i];
    if (s->waits[step] == SIZE_MAX) continue;
    s->growth[step] -= (double)s->o->l->bytes[buffer];
    if (!s->waits[step]) add_entry(s, step);
  }
}

/** Accounts for a use: a buffer lives from its first user to its last one. */
static void use_buffer(greedy *s, size_t buffer) {
  const lives *l = s->o->l;
  if (!l->bytes[buffer]) return;
  if (s->left[buffer] == l->users[buffer]) lower_growth(s, buffer);
  if (--s->left[buffer] == 1) lower_growth(s, buffer);
}

static void finish_step(greedy *s, size_t step) {
  const step_accesses *u = &s->o->l->steps[step];
  s->waits[step] = SIZE_MAX;
  for (size_t k = 0; k < u->n; k++) use_buffer(s, u->buffers[k]);
  for (size_t i = s->after.first[step]; i < s->after.first[step + 1]; i++)
    if (!--s->waits[s->after.list[i]]) add_entry(s, s->after.list[i]);
}

/** The growth of a step whose buffers have no user yet; a buffer with one user is gone after it. */
static double initial_growth(const lives *l, size_t step) {
  double sum = 0;
  for (size_t k = 0; k < l->steps[step].n; k++) {
    size_t b = l->steps[step].buffers[k];
    if (l->users[b] > 1) sum += (double)l->bytes[b];
  }
  return sum;
}

static size_t *greedy_order(ordering *o, bool is_back) {
  const lives *l = o->l;
  size_t n = l->n_steps;
  greedy s = {.o = o,
              .before = is_back ? o->after : o->before,
              .after = is_back ? o->before : o->after,
              .is_back = is_back,
              .waits = arena_alloc(o->a, (n + 1) * sizeof *s.waits),
              .left = arena_copy(o->a, l->users, (l->n_buffers + 1) * sizeof *s.left),
              .growth = arena_alloc(o->a, (n + 1) * sizeof *s.growth)};
  size_t *order = arena_alloc(o->a, (n + 1) * sizeof *order);
  for (size_t i = 0; i < n; i++) {
    s.waits[i] = s.before.first[i + 1] - s.before.first[i];
    s.growth[i] = initial_growth(l, i);
  }
  for (size_t i = 0; i < n; i++)
    if (!s.waits[i]) add_entry(&s, i);
  for (size_t i = 0; i < n; i++) {
    size_t step = pop_ready_step(&s);
    order[is_back ? n - 1 - i : i] = step;
    finish_step(&s, step);
  }
  return order;
}

/* The choice. */

static uint64_t bytes_needed(const lives *l, const size_t order[]) {
  double *need = arena_alloc(l->a, (l->n_steps + 1) * sizeof *need);
  reuses *taken = arena_calloc(l->a, l->n_steps + 1, sizeof *taken);
  liveness_peak_bytes(l, order, need, taken);
  return liveness_plan_bytes(l, order, taken);
}

#ifdef TENON_VERIFY
static void check_order(const ordering *o, const size_t order[]) {
  size_t *at = arena_alloc(o->a, (o->l->n_steps + 1) * sizeof *at);
  for (size_t i = 0; i < o->l->n_steps; i++) at[i] = SIZE_MAX;
  for (size_t i = 0; i < o->l->n_steps; i++) at[order[i]] = i;
  for (size_t i = 0; i < o->l->n_steps; i++)
    for (size_t k = o->before.first[i]; k < o->before.first[i + 1]; k++)
      if (at[i] == SIZE_MAX || at[o->before.list[k]] >= at[i])
        diag_raise(o->a->diag, TN_ERR_INTERNAL,
                   "a step is ordered before a step that it depends on");
}
#endif

static void apply_order(lives *l, schedule *s, const size_t order[]) {
  schedule_step *steps = arena_copy(l->a, s->steps.at, s->steps.n * sizeof *steps);
  step_accesses *uses = arena_copy(l->a, l->steps, l->n_steps * sizeof *uses);
  for (size_t i = 0; i < l->n_steps; i++) {
    s->steps.at[i] = steps[order[i]];
    l->steps[i] = uses[order[i]];
  }
}

static const size_t *choose_smallest(const lives *l, size_t *const orders[], size_t n) {
  const size_t *best = NULL;
  uint64_t least = bytes_needed(l, NULL);
  for (size_t i = 0; i < n; i++) {
    uint64_t bytes = bytes_needed(l, orders[i]);
    if (bytes >= least) continue;
    least = bytes;
    best = orders[i];
  }
  return best;
}

void step_order_choose(lives *l, uint64_t seed, schedule *s) {
  if (l->n_steps < 3) return;
  ordering o = ordering_of(l->a, l);
  size_t *orders[] = {depth_first_order(&o), greedy_order(&o, false), greedy_order(&o, true)};
  enum { N = sizeof orders / sizeof *orders };
#ifdef TENON_VERIFY
  for (size_t i = 0; i < N; i++) check_order(&o, orders[i]);
#endif
  const size_t *order = seed ? orders[seed % N] : choose_smallest(l, orders, N);
  if (order) apply_order(l, s, order);
}
