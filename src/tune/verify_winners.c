/* Implements the last step of the tuner. A kernel that is no faster in the network than before
   loses its new schedule first; those that are left are kept if runs are faster with all of them,
   and give the same results. */
#include "tune/verify_winners.h"

#include "tensor/plan/variant_table.h"

#include <string.h>

static size_t count_winners(const tuner *t) {
  size_t n = 0;
  for (size_t i = 0; i < t->n_kernels; i++) n += t->kernels[i].winner != NULL;
  return n;
}

/** Opens the network with all winners. */
static void open_after(tuner *t) {
  tn_binding *b = t->binding;
  string_map trial = {0};
  plan_variant *v;
  network_close(&t->after);
  for (size_t i = 0; i < t->n_kernels; i++)
    if (t->kernels[i].winner)
      string_map_set(&t->arena, &trial, t->kernels[i].key, (void *)t->kernels[i].winner);
  const variant_request r = {
      .form = b->variant->form, .facts = b->variant->likely, .trial = &trial};
  diag_require(t->diag, plan_variant_build(b->plan, &r, t->diag, &v));
  diag_require(t->diag, network_open(&t->after, b, v));
}

static void record(tuner *t, const tuned_kernel *k, tuned_verdict verdict) {
  const tuned_record r = {k->key,
                          verdict,
                          {k->winner, k->present.predicted, k->after_ns},
                          {k->first.text, k->first.predicted, k->before_ns}};
  diag_require(t->diag, tuned_store_append(t->binding->context->tuned, &r, t->diag));
}

static void drop(tuner *t, tuned_kernel *k) {
  record(t, k, TUNED_DROPPED);
  k->winner = NULL;
}

/** Runs of each profile, of which a kernel's shortest counts: more where they take less time. */
static int count_profile_runs(const tuner *t) {
  enum { LEAST = 5, MOST = 40 };
  double runs = 1e8 / t->whole_ns;
  return runs < LEAST ? LEAST : runs > MOST ? MOST : (int)runs;
}

/** The shorter time of a kernel in two profiles. */
static double shorter(const kernel_share *a, const kernel_share *b) {
  return (double)(a->ns < b->ns ? a->ns : b->ns) / (double)(a->calls ? a->calls : 1);
}

/** Measures the kernels in both networks, in turn, and drops the winners that gain nothing there.
    Both have the same steps, hence the same numbers of kernels. */
static void drop_by_kernel(tuner *t) {
  size_t n = t->copies.n;
  kernel_share *p[4];
  network *order[4] = {&t->before, &t->after, &t->after, &t->before};
  if (executable_kernels(t->after.variant->executable) != n)
    diag_raise(t->diag, TN_ERR_INTERNAL, "new schedules changed the kernels of a plan");
  for (int i = 0; i < 4; i++) {
    p[i] = arena_calloc(&t->arena, n + 1, sizeof *p[i]);
    diag_require(t->diag, network_profile(order[i], count_profile_runs(t), p[i], t->diag));
  }
  for (size_t i = 0; i < t->n_kernels; i++) {
    tuned_kernel *k = &t->kernels[i];
    k->before_ns = shorter(&p[0][k->number], &p[3][k->number]);
    k->after_ns = shorter(&p[1][k->number], &p[2][k->number]);
    if (k->winner && k->after_ns >= k->before_ns) drop(t, k);
  }
}

/** Uses the new schedules from now on: in the store, and in the plan's runs. */
static void keep_all(tuner *t) {
  for (size_t i = 0; i < t->n_kernels; i++)
    if (t->kernels[i].winner) record(t, &t->kernels[i], TUNED_KEPT);
  variant_table_replace(t->binding->plan, t->binding->variant,
                        plan_variant_retain(t->after.variant));
}

void verify_winners(tuner *t) {
  network_times times;
  bool agree;
  size_t n = count_winners(t);
  t->info->after_ms = t->info->before_ms;
  if (!n) return;
  open_after(t);
  drop_by_kernel(t);
  size_t left = count_winners(t);
  if (!left) return;
  if (left < n) open_after(t);
  diag_require(t->diag, network_compare(&t->before, &t->after, &times, t->diag));
  diag_require(t->diag, network_agree(&t->before, &t->after, &agree, t->diag));
  t->info->before_ms = t->info->after_ms = times.before_ns * 1e-6;
  if (agree && times.ratio < 1) {
    keep_all(t);
    t->info->kept = left;
    t->info->after_ms = times.after_ns * 1e-6;
    return;
  }
  for (size_t i = 0; i < t->n_kernels; i++)
    if (t->kernels[i].winner) drop(t, &t->kernels[i]);
}
