/* Searches the schedule of a kernel: tries the alternatives of the decisions that its steps report,
   and keeps what the cost model of whole kernels prefers (coordinate descent). An alternative is
   estimated by running all later steps with it, so that its effect on packing, on padded tiles and
   on the order of loops counts, and those of lanes and of blocks with the best tiles for them. The
   search works on a copy of the kernel, of which nothing remains but the decisions; at most
   MOST_ATTEMPTS are tried, so a kernel of many nests is not searched whole.
 */
#include "base/stop.h"
#include "codegen/choose/choice.h"
#include "codegen/choose/nest_analysis.h"
#include "ir/transform/copy_graph.h"
#include "target/machine.h"

#include <math.h>

enum { MOST_ATTEMPTS = 60, MOST_ROUNDS = 3 }; /* for a kernel */

/** A kernel before each of the steps, and after the last. */
typedef struct attempt {
  choice before[CHOICE_STEPS + 1];
  double ns;   /* of one thread */
  double cost; /* kernel_cost_searched */
} attempt;

typedef struct search {
  choice start;      /* with an ir of its own */
  arena *to;         /* of the decisions that it returns */
  size_t left;       /* attempts */
  double most_bytes; /* of arrays */
  attempt best;
  bool has_run; /* of one attempt alone */
  decision_list found;
} search;

/** Applies the steps from a number on. */
static void run_steps(attempt *t, size_t first) {
  for (size_t i = first; i < CHOICE_STEPS; i++) {
    t->before[i + 1] = t->before[i];
    choice_steps[i].apply(&t->before[i + 1]);
  }
  kernel_cost cost = choice_cost(&t->before[CHOICE_STEPS]);
  t->ns = cost.total;
  t->cost = kernel_cost_searched(&cost);
}

typedef struct run {
  attempt *t;
  size_t first;
} run;

static void run_body(void *arg) {
  const run *r = arg;
  run_steps(r->t, r->first);
}

/** Applies the steps from a number on to an alternative; false: it failed, as where an index
   overflows. Raises where memory runs out, a law is at fault, or the diag's condition stops it. */
static bool can_run_steps(attempt *t, size_t first) {
  diag *d = ir_diag(t->before[first].laws.g);
  tn_status status = diag_catch(d, run_body, &(run){t, first});
  if (stops_work(status) || status == TN_ERR_INTERNAL) diag_rethrow(d);
  if (status) diag_clear(d);
  return !status;
}

/** A map that others may add to apart: a shallow copy shares its entries. */
static map copy_map(arena *a, const map *from) {
  map to = {0};
  for (size_t i = 0; i < from->n; i++) map_set(a, &to, from->at[i].key, from->at[i].value);
  return to;
}

static decision_list decisions_of(const attempt *t) { return t->before[CHOICE_STEPS].made; }

/** The kernel with another alternative of a decision: runs the steps again from the one on that
    makes it. Other decisions stay as they are, by their number: where a tile leaves other
    remainders, later ones fall back to the steps' own. False: no attempt is left, it failed, or its
    arrays exceed scratch memory: code generation would go on without any copy. */
static bool make_alternative(search *s, size_t number, size_t alternative, attempt *t) {
  ir *g = s->start.laws.g;
  arena *a = ir_arena(g);
  decision_list made = decisions_of(&s->best);
  size_t first = CHOICE_STEPS - 1;
  if (!s->left) return false;
  stop_check(ir_diag(g));
  *t = s->best;
  while (t->before[first].made.n > number) first--;
  choice *c = &t->before[first];
  c->wanted = decisions_copy(a, &made);
  c->wanted.at[number].taken = alternative;
  c->made = decisions_copy(a, &c->made);
  c->vector_remainders = copy_map(a, &c->vector_remainders);
  s->left--;
  return can_run_steps(t, first) && choice_array_bytes(&t->before[CHOICE_STEPS]) <= s->most_bytes;
}

/** Keeps a kernel if it takes at most a share of the best one's time; returns whether it does. */
static bool keep_if_better(search *s, const attempt *t, double share) {
  bool gains = t->cost <= share * s->best.cost;
  if (gains) s->best = *t;
  return gains;
}

/** True for decisions that later ones follow from: an alternative is judged with the best tiles
   that it has itself. */
static bool has_followers(decision_kind kind) {
  return kind == DECISION_OUTERMOST || kind == DECISION_EXPANSION || kind == DECISION_LANES;
}

/** Tries the alternatives of the decisions without followers from a number on; returns whether one
    gains. The last decisions come first: a tile is judged with the blocks for the caches that suit
    the present one, and fewer steps run again. */
static bool descend(search *s, size_t from) {
  bool gains = false;
  for (size_t i = decisions_of(&s->best).n; i-- > from;)
    for (size_t k = 0; i < decisions_of(&s->best).n && k < decisions_of(&s->best).at[i].n; k++) {
      decision d = decisions_of(&s->best).at[i];
      attempt t;
      if (has_followers(d.kind) || d.taken == k || !make_alternative(s, i, k, &t)) continue;
      gains |= keep_if_better(s, &t, MACHINE_ALTERNATIVE_GAIN);
    }
  return gains;
}

/** Tries an alternative of a decision with the best of its followers; returns whether it gains. */
static bool try_with_followers(search *s, size_t number, size_t alternative) {
  search inner = *s;
  bool is_lanes = decisions_of(&s->best).at[number].kind == DECISION_LANES;
  double share = is_lanes ? MACHINE_OTHER_LANES_GAIN : MACHINE_ALTERNATIVE_GAIN;
  if (!make_alternative(s, number, alternative, &inner.best)) return false;
  inner.left = s->left;
  bool is_same = inner.best.cost == s->best.cost; /* as where a law refused */
  if (!is_same && inner.best.cost <= MACHINE_FOLLOWED_ALTERNATIVE_COST * s->best.cost)
    descend(&inner, number + 1);
  s->left = inner.left;
  return keep_if_better(s, &inner.best, share);
}

/** Tries the alternatives of the decisions with followers; returns whether one gains. */
static bool try_followed(search *s) {
  bool gains = false;
  for (size_t i = 0; i < decisions_of(&s->best).n; i++)
    for (size_t k = 0; i < decisions_of(&s->best).n && k < decisions_of(&s->best).at[i].n; k++) {
      decision d = decisions_of(&s->best).at[i];
      if (has_followers(d.kind) && d.taken != k) gains |= try_with_followers(s, i, k);
    }
  return gains;
}

/** Tries alternatives in rounds, until one gains nothing. Those of decisions with followers are
    tried in the first round, and after others have gained. */
static void try_rounds(search *s) {
  bool gains = true;
  for (int round = 0; round < MOST_ROUNDS && gains; round++) {
    gains = descend(s, 0);
    if (gains || !round) gains |= try_followed(s);
  }
}

/** Copies the kernel into the ir of its own. */
static void copy_kernel(search *s) {
  ir *g = s->start.laws.g;
  s->start.laws.indices = law_indices_new(g);
  ir_copy(g, ir_arena(g), &s->start.sink, 1, NULL, NULL, &s->start.sink);
  s->best.before[0] = s->start;
}

/** Keeps the decisions of the best attempt, which are in an ir that ends with the search. */
static void keep_decisions(search *s) {
  decision_list found = decisions_of(&s->best);
  s->found = decisions_copy(s->to, &found);
}

/** The bytes that arrays of alternatives may have: scratch memory, or as many as the steps' own
    decisions take where that is more, as the sum is an upper bound of what they need. */
static double most_array_bytes(const attempt *own) {
  const choice *c = &own->before[CHOICE_STEPS];
  double scratch = (double)c->target->scratch, bytes = choice_array_bytes(c);
  return !c->target->scratch ? HUGE_VAL : bytes > scratch ? bytes : scratch;
}

static void search_body(void *arg) {
  search *s = arg;
  copy_kernel(s);
  run_steps(&s->best, 0);
  s->most_bytes = most_array_bytes(&s->best);
  s->left = s->best.ns < MACHINE_SEARCHED_KERNEL_NS ? 0 : MOST_ATTEMPTS;
  try_rounds(s);
  keep_decisions(s);
}

static void try_body(void *arg) {
  search *s = arg;
  copy_kernel(s);
  s->has_run = can_run_steps(&s->best, 0);
  if (s->has_run) keep_decisions(s);
}

/** Runs a search on a copy of the kernel, in an ir that ends with it. */
static search *run_search(const choice *c, void (*body)(void *s)) {
  diag *d = ir_diag(c->laws.g);
  search *s = arena_calloc(ir_arena(c->laws.g), 1, sizeof *s);
  s->to = ir_arena(c->laws.g);
  s->start = *c;
  s->start.laws = (laws){.g = ir_new(ir_mem(c->laws.g), d, false)};
  if (!s->start.laws.g) diag_raise(d, TN_ERR_MEMORY, "out of memory");
  tn_status status = diag_catch(d, body, s);
  ir_free(s->start.laws.g);
  if (status) diag_rethrow(d);
  return s;
}

decision_list choice_search(const choice *c) {
  node_list binders = choice_binders(c);
  if (!nest_has_fold(&binders)) return (decision_list){0}; /* tiles are of reductions */
  return run_search(c, search_body)->found;
}

bool choice_try(const choice *c, const decision_list *wanted, decision_list *made, double *ns) {
  choice asked = *c;
  asked.wanted = *wanted;
  const search *s = run_search(&asked, try_body);
  *made = s->found;
  *ns = s->best.cost;
  return s->has_run;
}
