/* Implements the last step of the tuner. New schedules with which outputs of the network differ are
   lost first, then those of kernels that are no faster in the network than before; those that are
   left are kept if runs are faster with all of them. */
#include "tune/verify_winners.h"

#include "tensor/plan/variant_table.h"

static size_t count_winners(const tuner *t) {
  size_t n = 0;
  for (size_t i = 0; i < t->n_kernels; i++) n += t->kernels[i].winner != NULL;
  return n;
}

/** Counts the winners that are calls of a library. */
static size_t count_calls(const tuner *t) {
  size_t n = 0;
  for (size_t i = 0; i < t->n_kernels; i++) {
    const tuned_kernel *k = &t->kernels[i];
    n += k->winner && tuned_library_of(k->winner);
  }
  return n;
}

static void record(tuner *t, const tuned_kernel *k, tuned_verdict verdict) {
  tuner_record(t, k, verdict, &k->present, k->after_ns, &k->first, k->before_ns);
}

/** Records what became of a winner, which the kernel loses. */
static void lose(tuner *t, tuned_kernel *k, tuned_verdict verdict) {
  record(t, k, verdict);
  k->winner = NULL;
}

/** Opens the network with the winners of the first `n` kernels; returns whether its outputs are
    those of before. Both run, as the caller may have changed the inputs. */
static bool open_after(tuner *t, size_t n) {
  tn_binding *b = t->binding;
  string_map trial = {0};
  plan_variant *v;
  network_close(&t->after);
  for (size_t i = 0; i < n; i++)
    if (t->kernels[i].winner)
      string_map_set(&t->arena, &trial, t->kernels[i].key, (void *)t->kernels[i].winner);
  const variant_request r = {
      .form = b->variant->form, .facts = b->variant->likely, .trial = &trial};
  diag_require(t->diag, plan_variant_build(b->plan, &r, t->diag, &v));
  diag_require(t->diag, network_open(&t->after, b, v));
  network_run(&t->before, t->diag);
  network_run(&t->after, t->diag);
  return network_agree(&t->before, &t->after, &t->arena);
}

static void lose_wrong(tuner *t, tuned_kernel *k) {
  context_log(t->binding->context, TN_LOG_WARNING,
              "%s: outputs differ with the schedule %s of kernel %s, which is not used",
              t->binding->plan->name, k->winner,
              t->before.variant->executable->programs[k->number]->name);
  lose(t, k, TUNED_WRONG);
}

/** Forgets the winners from a kernel on, without a record: the next tuning measures them. */
static void postpone(tuner *t, size_t first) {
  for (size_t i = first; i < t->n_kernels; i++) t->kernels[i].winner = NULL;
}

/** Opens the network with all winners that leave its outputs as they were: unless all do, one after
    the other joins those before, for each of which the network is built again. */
static void open_agreeing(tuner *t) {
  bool agrees = open_after(t, t->n_kernels);
  if (agrees) return;
  for (size_t i = 0; i < t->n_kernels; i++) {
    tuned_kernel *k = &t->kernels[i];
    if (!k->winner) continue;
    if (!tuner_may_build(t)) {
      postpone(t, i);
      break;
    }
    agrees = open_after(t, i + 1);
    if (!agrees) lose_wrong(t, k);
  }
  if (agrees || !count_winners(t) || open_after(t, t->n_kernels)) return;
  for (size_t i = 0; i < t->n_kernels; i++)
    if (t->kernels[i].winner) lose_wrong(t, &t->kernels[i]);
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
  for (int i = 0; i < 4; i++) p[i] = network_profile(order[i], count_profile_runs(t), &t->arena);
  for (size_t i = 0; i < t->n_kernels; i++) {
    tuned_kernel *k = &t->kernels[i];
    k->before_ns = shorter(&p[0][k->number], &p[3][k->number]);
    k->after_ns = shorter(&p[1][k->number], &p[2][k->number]);
    if (k->winner && k->after_ns >= k->before_ns) lose(t, k, TUNED_DROPPED);
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
  t->info->after_ms = t->info->before_ms;
  if (!count_winners(t)) return;
  open_agreeing(t);
  size_t n = count_winners(t);
  if (!n) return;
  drop_by_kernel(t);
  if (count_winners(t) < n) open_agreeing(t);
  if (!count_winners(t)) return;
  const network_times times = network_compare(&t->before, &t->after, t->diag);
  t->info->before_ms = t->info->after_ms = times.before_ns * 1e-6;
  if (times.is_faster) {
    keep_all(t);
    t->info->kept = count_winners(t);
    t->info->library_kept = count_calls(t);
    t->info->after_ms = times.after_ns * 1e-6;
    return;
  }
  for (size_t i = 0; i < t->n_kernels; i++)
    if (t->kernels[i].winner) lose(t, &t->kernels[i], TUNED_DROPPED);
}
