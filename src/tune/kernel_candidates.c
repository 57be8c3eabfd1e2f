/* Implements the enumeration of schedules. A wish for other decisions is run through the steps of
   the scheduler, which may answer it with others: what they made is the schedule. */
#include "tune/kernel_candidates.h"

#include "base/random.h"

#include <stdlib.h>
#include <string.h>

/** Schedules that are predicted to take a larger multiple of the shortest time are not given. */
static const double most_predicted = 1.5;

/** Random schedules that are tried to find some that are new. */
enum { DRAWS = 48 };

/** Runs the steps of the scheduler; `wanted` NULL: those that compiling finds. False: they failed.
 */
static bool predict(kernel_candidates *k, const decision_list *wanted, decision_list *made,
                    double *ns) {
  codegen_options o = k->options;
  o.decisions = wanted;
  k->n_predicted++;
  if (!codegen_predict_apart(k->arena->mem, k->sink, &o, k->arena, made, ns)) return false;
  if (*ns < k->best) k->best = *ns;
  return true;
}

static bool has_alternatives(const decision_list *d) {
  for (size_t i = 0; i < d->n; i++)
    if (d->at[i].n > 1) return true;
  return false;
}

void kernel_candidates_skip(kernel_candidates *k, const char *text) {
  if (!string_map_get(&k->seen, text)) string_map_set(k->arena, &k->seen, text, k);
}

bool kernel_candidates_begin(kernel_candidates *k, arena *a, const node *sink,
                             const codegen_options *o, const char *library,
                             kernel_candidate *usual) {
  *k = (kernel_candidates){.arena = a,
                           .sink = sink,
                           .options = *o,
                           .library = library,
                           .best = 1e300,
                           .random = UINT64_C(0x2545f4914f6cdd1d)};
  if (!predict(k, NULL, &k->present, &usual->predicted)) return false;
  if (!library && !has_alternatives(&k->present)) return false;
  usual->text = decisions_text(a, &k->present);
  k->usual = *usual;
  return true;
}

bool kernel_candidates_take(kernel_candidates *k, const char *text, kernel_candidate *taken) {
  decision_list wanted, made;
  double ns;
  if (k->library && !strcmp(text, k->library)) {
    kernel_candidates_skip(k, k->library);
    *taken = (kernel_candidate){k->library, k->usual.predicted};
    return true;
  }
  if (!decisions_parse(k->arena, text, &wanted) || !predict(k, &wanted, &made, &ns) ||
      !decisions_equal(&wanted, &made))
    return false;
  *taken = (kernel_candidate){decisions_text(k->arena, &made), ns};
  k->present = made;
  k->queue.n = 0;
  k->fill = (candidate_fill){.n = 0};
  kernel_candidates_skip(k, taken->text);
  return true;
}

/** Adds the schedule that a wish leads to, if it is new. */
static void add(kernel_candidates *k, const decision_list *wanted) {
  decision_list made;
  double ns;
  if (!predict(k, wanted, &made, &ns)) return;
  const char *text = decisions_text(k->arena, &made);
  if (string_map_get(&k->seen, text)) return;
  kernel_candidates_skip(k, text);
  vec_push(k->arena, &k->queue, (kernel_candidate){text, ns});
}

/** The present decisions but for one; false: all of these were given. */
static bool next_neighbour(kernel_candidates *k, decision_list *wanted) {
  candidate_fill *f = &k->fill;
  for (; f->decision < k->present.n; f->decision++, f->alternative = 0) {
    const decision *d = &k->present.at[f->decision];
    if (f->alternative == d->taken) f->alternative++;
    if (f->alternative >= d->n) continue;
    *wanted = decisions_copy(k->arena, &k->present);
    wanted->at[f->decision].taken = f->alternative++;
    return true;
  }
  return false;
}

static size_t draw(kernel_candidates *k, size_t below) {
  return (size_t)(random_next(&k->random) % below);
}

/** The present decisions but for two random ones; false: enough of these were given. */
static bool next_random(kernel_candidates *k, decision_list *wanted) {
  if (k->fill.drawn == DRAWS || !k->present.n) return false;
  k->fill.drawn++;
  *wanted = decisions_copy(k->arena, &k->present);
  for (int change = 0; change < 2; change++) {
    decision *d = &wanted->at[draw(k, wanted->n)];
    d->taken = draw(k, d->n);
  }
  return true;
}

static int compare_times(const void *a, const void *b) {
  double x = ((const kernel_candidate *)a)->predicted, y = ((const kernel_candidate *)b)->predicted;
  return (x < y) - (x > y); /* the longest first */
}

/** Adds one schedule to the queue, the first time one that differs in one decision, or sorts the
    queue once there are no more. */
static void fill_queue(kernel_candidates *k) {
  candidate_fill *f = &k->fill;
  decision_list wanted;
  if (f->has_neighbours ? next_random(k, &wanted) : next_neighbour(k, &wanted)) {
    add(k, &wanted);
    return;
  }
  *f = (candidate_fill){.has_neighbours = true, .n = f->n + 1};
  if (k->queue.n) qsort(k->queue.at, k->queue.n, sizeof *k->queue.at, compare_times);
}

candidate_answer kernel_candidates_next(kernel_candidates *k, kernel_candidate *next) {
  enum { MOST_FILLS = 4 };
  candidate_fill *f = &k->fill;
  if (!string_map_get(&k->seen, k->usual.text)) {
    *next = k->usual;
    kernel_candidates_skip(k, next->text);
    return CANDIDATE_GIVEN;
  }
  if (k->library && !string_map_get(&k->seen, k->library)) {
    *next = (kernel_candidate){k->library, k->usual.predicted};
    kernel_candidates_skip(k, next->text);
    return CANDIDATE_GIVEN;
  }
  if (!f->is_open && k->queue.n && vec_last(&k->queue).predicted <= most_predicted * k->best) {
    *next = vec_pop(&k->queue);
    f->n = 0;
    return CANDIDATE_GIVEN;
  }
  if (!f->is_open && f->n == MOST_FILLS) {
    f->n = 0;
    return CANDIDATE_NONE;
  }
  if (!f->is_open) k->queue.n = 0;
  f->is_open = true;
  fill_queue(k);
  return CANDIDATE_SOUGHT;
}
