/* Choice of variants. The first facts are compiled exactly. Others that no variant covers widen the
   widest variant so far by the facts that differ, as lifted_scalars.h does for scalars; after a few
   steps all facts vary. Facts of one name are one variable until a run contradicts. A fact that is
   0 never varies: it has variants of its own, as laws need sizes of 1 or more. A run takes the
   exact variant of its facts, or else the narrowest that covers them, which is the one that was
   made first; so later variants change nothing for earlier facts.

   Runs on widened variants report the time they take. When facts have spent as long there as an
   exact variant takes to compile, one is compiled in the background, so that compiling there
   takes no longer than running did. Kernels that a cache has count as compiled: how many variants
   there are depends on the runs, not on the cache. */
#include "tensor/plan/variant_table.h"
#include "base/stop.h"

#include "target/machine.h"

#include <string.h>

/** Widened variants of equal zeros after which the next one is open in all facts. */
enum { WIDENING_STEPS = 2 };

/** An exact variant whose runs take a greater share of those of the wider one gains nothing. */
static const double LEAST_GAIN = 0.95;

/* Matching. */

static bool is_open(const plan_variant *v) { return v->n_open > 0; }

static bool is_equal(const tn_plan *p, const int64_t a[], const int64_t b[]) {
  for (size_t i = 0; i < p->n_facts; i++)
    if (a[i] != b[i] && !p->facts[i].is_pinned) return false;
  return true;
}

/** True if a variant serves facts: its numbers are theirs, those that it leaves open are at least
    what it was compiled for, and those that it takes as equal are. */
static bool covers(const tn_plan *p, const plan_variant *v, const int64_t facts[]) {
  for (size_t i = 0; i < p->n_facts; i++)
    if (v->form[i] == FACT_LIKE   ? facts[i] != facts[p->facts[i].like]
        : v->form[i] == FACT_OPEN ? facts[i] < v->least[i] || facts[i] > v->most[i]
                                  : facts[i] != v->form[i])
      return false;
  return true;
}

/** The variant that a run with these facts takes, or NULL. */
static plan_variant *match(const tn_plan *p, const int64_t facts[]) {
  const variant_table *t = p->variants;
  plan_variant *found = NULL;
  for (size_t i = 0; i < t->n; i++) {
    plan_variant *v = t->at[i];
    if (!covers(p, v, facts)) continue;
    if (!is_open(v)) return v;
    if (!found || v->number < found->number) found = v;
  }
  return found;
}

static tracked_facts *find_tracked(const tn_plan *p, const int64_t facts[]) {
  tracked_facts *all = p->variants->tracked;
  for (size_t i = 0; i < MOST_TRACKED_FACTS; i++)
    if (all[i].last_used && is_equal(p, all[i].facts, facts)) return &all[i];
  return NULL;
}

/* Forms. */

static bool has_equal_zeros(const tn_plan *p, const plan_variant *v, const int64_t facts[]) {
  for (size_t i = 0; i < p->n_facts; i++)
    if (!p->facts[i].is_pinned && (v->form[i] == 0) != (facts[i] == 0)) return false;
  return true;
}

/** The widest variant with the same zeros, or the oldest exact one; NULL: none. Counts those that
    are widened. */
static const plan_variant *find_like(const tn_plan *p, const int64_t facts[], size_t *n_widened) {
  const variant_table *t = p->variants;
  const plan_variant *like = NULL;
  *n_widened = 0;
  for (size_t i = 0; i < t->n; i++) {
    const plan_variant *v = t->at[i];
    if (!has_equal_zeros(p, v, facts)) continue;
    *n_widened += is_open(v);
    if (!like || v->n_open > like->n_open ||
        (v->n_open == like->n_open && v->number < like->number))
      like = v;
  }
  return like;
}

/** Chooses the form of a new variant for facts. Equal facts of one name that vary become one
   variable, unless the variant is open in all facts. `widens`: the variant may be widened. */
static void choose_form(const tn_plan *p, const int64_t facts[], bool widens, int64_t form[]) {
  const variant_table *t = p->variants;
  size_t n_widened;
  const plan_variant *nearest = find_like(p, facts, &n_widened);
  bool is_exact = p->policy == TN_VARIANTS_EXACT || t->is_never_widened || !widens || !nearest;
  for (size_t i = 0; i < p->n_facts; i++) {
    const plan_fact *f = &p->facts[i];
    bool is_widened = !is_exact && facts[i] != 0 && plan_fact_varies(f) &&
                      (n_widened >= WIDENING_STEPS || nearest->form[i] != facts[i]);
    form[i] = is_widened || f->is_pinned ? FACT_OPEN : facts[i];
  }
  for (size_t i = 0; i < p->n_facts && n_widened < WIDENING_STEPS; i++) {
    size_t like = p->facts[i].like;
    bool is_alike = like != i && form[i] == FACT_OPEN && form[like] == FACT_OPEN &&
                    !p->facts[i].is_pinned && !p->facts[like].is_pinned;
    if (is_alike && facts[i] == facts[like]) form[i] = FACT_LIKE;
  }
}

/* The list. */

/** The variant of a kind that was used least recently, if there are as many as may be. */
static size_t find_surplus(const variant_table *t, bool open) {
  size_t n = 0, oldest = SIZE_MAX, most = open ? MOST_WIDENED_VARIANTS : MOST_EXACT_VARIANTS;
  for (size_t i = 0; i < t->n; i++) {
    if (is_open(t->at[i]) != open) continue;
    n++;
    if (oldest == SIZE_MAX || t->at[i]->last_used < t->at[oldest]->last_used) oldest = i;
  }
  return n < most ? SIZE_MAX : oldest;
}

/** Takes a variant from the list; its facts have to earn another one. */
static plan_variant *drop(tn_plan *p, size_t i) {
  variant_table *t = p->variants;
  plan_variant *v = t->at[i];
  tracked_facts *k = find_tracked(p, v->form);
  if (k) *k = (tracked_facts){.facts = k->facts}; /* not in use */
  t->at[i] = t->at[--t->n];
  atomic_store(&v->is_dropped, true);
  return v;
}

/** The time that compiling a variant would have taken without caches. */
static int64_t uncached_ns(const plan_variant *v, int64_t ns) {
  size_t found = executable_kernels(v->executable) - executable_compiled_kernels(v->executable);
  return ns + (int64_t)((double)found * MACHINE_COMPILE_KERNEL_NS);
}

/** Adds a variant, with the reference to it, that compiling took `ns` for. */
static void add(tn_plan *p, plan_variant *v, int64_t ns) {
  variant_table *t = p->variants;
  mutex_lock(&t->lock);
  size_t surplus = find_surplus(t, is_open(v));
  plan_variant *dropped = surplus == SIZE_MAX ? NULL : drop(p, surplus);
  v->number = t->n_made++;
  v->last_used = ++t->n_uses;
  t->at[t->n++] = v;
  if (!is_open(v) && uncached_ns(v, ns) > t->exact_ns) t->exact_ns = uncached_ns(v, ns);
  int64_t number = v->number;
  size_t n_open = v->n_open;
  atomic_fetch_add(&t->n_changes, 1);
  mutex_unlock(&t->lock);
  plan_variant_release(dropped);
  context_log(p->context, TN_LOG_DEBUG, "plan %s: variant %lld, %zu of %zu sizes open, in %.1f ms",
              p->name, (long long)number, n_open, p->n_facts, (double)ns * 1e-6);
}

/* Compiling. */

static tn_status compile(tn_plan *p, const int64_t form[], const int64_t facts[], diag *d,
                         plan_variant **out) {
  variant_table *t = p->variants;
  int64_t start = t->now();
  tn_status s = plan_variant_build(p, &(variant_request){.form = form, .facts = facts}, d, out);
  if (s == TN_OK) add(p, plan_variant_retain(*out), t->now() - start);
  return s;
}

static void choose_form_locked(tn_plan *p, const int64_t facts[], bool widens, int64_t form[]) {
  mutex_lock(&p->variants->lock);
  choose_form(p, facts, widens, form);
  mutex_unlock(&p->variants->lock);
}

/** Counts a variant that could be compiled for its facts alone: for good where the graph fits no
    other sizes, and otherwise the second time in a row, as a compiler may fail by chance. */
static void count_unwidened(variant_table *t, tn_status why) {
  bool is_of_graph = why == TN_ERR_SHAPE || why == TN_ERR_UNSUPPORTED;
  mutex_lock(&t->lock);
  t->is_never_widened |= is_of_graph || ++t->n_unwidened >= LEAST_IN_VAIN;
  mutex_unlock(&t->lock);
}

/** Compiles a variant for facts; exactly where that fails with facts open. */
static tn_status compile_for(tn_plan *p, const int64_t facts[], diag *d, plan_variant **out) {
  variant_table *t = p->variants;
  size_t bytes = (p->n_facts + 1) * sizeof *facts;
  int64_t *form = mem_alloc(&p->context->mem, bytes);
  if (!form) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  choose_form_locked(p, facts, true, form);
  tn_status s = compile(p, form, facts, d, out);
  bool is_widened = !is_equal(p, form, facts);
  if (s != TN_OK && !stops_work(s) && is_widened) {
    tn_status why = s;
    context_log(p->context, TN_LOG_WARNING, "plan %s cannot be compiled for sizes that vary: %s",
                p->name, d->text);
    choose_form_locked(p, facts, false, form);
    s = compile(p, form, facts, d, out);
    if (s == TN_OK) count_unwidened(t, why);
  } else if (s == TN_OK && is_widened) {
    mutex_lock(&t->lock);
    t->n_unwidened = 0;
    mutex_unlock(&t->lock);
  }
  mem_free(&p->context->mem, form, bytes);
  return s;
}

static plan_variant *match_retained(tn_plan *p, const int64_t facts[]) {
  variant_table *t = p->variants;
  mutex_lock(&t->lock);
  plan_variant *v = match(p, facts);
  if (v) {
    v->last_used = ++t->n_uses;
    plan_variant_retain(v);
  }
  mutex_unlock(&t->lock);
  return v;
}

tn_status variant_table_find(tn_plan *p, const int64_t facts[], diag *d, plan_variant **out) {
  tn_status s = TN_OK;
  *out = match_retained(p, facts);
  if (*out) return s;
  mutex_lock(&p->variants->compiling);
  *out = match_retained(p, facts); /* another run may have compiled it */
  if (!*out) s = compile_for(p, facts, d, out);
  mutex_unlock(&p->variants->compiling);
  return s;
}

void variant_table_replace(tn_plan *p, const plan_variant *old, plan_variant *v) {
  variant_table *t = p->variants;
  plan_variant *dropped = v; /* unless the old one is there */
  mutex_lock(&t->lock);
  for (size_t i = 0; i < t->n; i++) {
    if (t->at[i] != old) continue;
    dropped = t->at[i];
    v->number = old->number;
    v->last_used = old->last_used;
    t->at[i] = v;
    atomic_store(&dropped->is_dropped, true);
    atomic_fetch_add(&t->n_changes, 1);
  }
  mutex_unlock(&t->lock);
  plan_variant_release(dropped);
}

/* Time. */

/** True if exact variants are not compiled in the background any more. */
static bool gains_nothing(const variant_table *t) { return t->n_gained_nothing >= LEAST_IN_VAIN; }

/** The entry of facts: theirs, a free one, or that of the facts used least recently. */
static tracked_facts *track(tn_plan *p, const int64_t facts[]) {
  variant_table *t = p->variants;
  tracked_facts *k = find_tracked(p, facts), *all = t->tracked;
  if (!k) {
    k = all;
    for (size_t i = 1; i < MOST_TRACKED_FACTS; i++)
      if (all[i].last_used < k->last_used) k = &all[i];
    *k = (tracked_facts){.facts = k->facts, .best_ns = INT64_MAX};
    memcpy(k->facts, facts, p->n_facts * sizeof *facts);
  }
  k->last_used = ++t->n_uses;
  return k;
}

int64_t variant_table_time_left(tn_plan *p, const int64_t facts[], const plan_variant *v) {
  variant_table *t = p->variants;
  if (p->policy != TN_VARIANTS_AUTO || !is_open(v)) return INT64_MAX;
  mutex_lock(&t->lock);
  const tracked_facts *k = find_tracked(p, facts);
  bool never = gains_nothing(t) || (k && k->state != FACTS_COUNTED);
  int64_t left = never ? INT64_MAX : t->exact_ns - (k ? k->time_ns : 0);
  mutex_unlock(&t->lock);
  return left;
}

void variant_table_add_time(tn_plan *p, const int64_t facts[], int64_t time_ns, int64_t best_ns) {
  variant_table *t = p->variants;
  mutex_lock(&t->lock);
  tracked_facts *k = track(p, facts);
  k->time_ns += time_ns;
  if (best_ns < k->best_ns) k->best_ns = best_ns;
  bool is_due = k->state == FACTS_COUNTED && k->time_ns >= t->exact_ns && !gains_nothing(t);
  if (is_due) k->state = FACTS_DUE;
  mutex_unlock(&t->lock);
  if (is_due) background_jobs_add(p->context, &t->job);
}

/* The background. */

/** Takes facts that are due for an exact variant: its form, and their shortest run so far. False if
    there are none. */
static bool take_due(tn_plan *p, int64_t form[], int64_t *best_ns) {
  variant_table *t = p->variants;
  tracked_facts *k = NULL, *all = t->tracked;
  mutex_lock(&t->lock);
  for (size_t i = 0; i < MOST_TRACKED_FACTS && !gains_nothing(t); i++)
    if (all[i].state == FACTS_DUE && (!k || all[i].time_ns > k->time_ns)) k = &all[i];
  if (k) {
    for (size_t i = 0; i < p->n_facts; i++)
      form[i] = p->facts[i].is_pinned ? FACT_OPEN : k->facts[i];
    *best_ns = k->best_ns;
    k->state = FACTS_SETTLED;
  }
  mutex_unlock(&t->lock);
  return k != NULL;
}

/** Compiles an exact variant. A failure is logged, and not repeated. */
static void compile_exact(tn_plan *p, const int64_t form[], int64_t best_ns,
                          const atomic_bool *is_cancelled) {
  variant_table *t = p->variants;
  diag d = {0};
  plan_variant *v;
  int64_t start = t->now();
  const variant_request r = {.form = form, .background = is_cancelled};
  tn_status s = plan_variant_build(p, &r, &d, &v);
  if (s == TN_OK) {
    v->wider_ns = best_ns;
    add(p, v, t->now() - start);
  } else if (!atomic_load(is_cancelled)) {
    context_log(p->context, TN_LOG_WARNING, "plan %s: an exact variant cannot be compiled: %s",
                p->name, d.text);
  }
}

static void compile_due(background_job *job, const atomic_bool *is_cancelled) {
  tn_plan *p = ((variant_table *)job)->plan;
  size_t bytes = (p->n_facts + 1) * sizeof(int64_t);
  int64_t best_ns, *form = mem_alloc(&p->context->mem, bytes);
  while (form && !atomic_load(is_cancelled) && take_due(p, form, &best_ns))
    compile_exact(p, form, best_ns, is_cancelled);
  mem_free(&p->context->mem, form, bytes);
}

bool variant_table_is_new(tn_plan *p, const plan_variant *v) {
  mutex_lock(&p->variants->lock);
  bool is_new = v->wider_ns != 0;
  mutex_unlock(&p->variants->lock);
  return is_new;
}

void variant_table_compare(tn_plan *p, plan_variant *v, int64_t best_ns) {
  variant_table *t = p->variants;
  mutex_lock(&t->lock);
  int64_t wider_ns = v->wider_ns;
  bool gained_nothing = wider_ns && (double)best_ns > LEAST_GAIN * (double)wider_ns;
  v->wider_ns = 0; /* another binding does not compare it again */
  if (wider_ns && !gains_nothing(t))
    t->n_gained_nothing = gained_nothing * (t->n_gained_nothing + 1);
  bool ends = gained_nothing && gains_nothing(t);
  mutex_unlock(&t->lock);
  if (gained_nothing)
    context_log(p->context, TN_LOG_DEBUG, "plan %s: %s: a run takes %.3f ms, not %.3f", p->name,
                ends ? "exact variants gain nothing" : "an exact variant gains nothing",
                (double)best_ns * 1e-6, (double)wider_ns * 1e-6);
}

/* Opening. */

/** True if all runs take one variant: for the policy ONE, or as no fact varies. */
static bool has_one_form(const tn_plan *p) {
  bool varies = false;
  for (size_t i = 0; i < p->n_facts; i++) varies |= plan_fact_varies(&p->facts[i]);
  return !varies || p->policy == TN_VARIANTS_ONE;
}

static tn_status compile_only_one(tn_plan *p, diag *d) {
  size_t bytes = (p->n_facts + 1) * sizeof(int64_t);
  int64_t *form = mem_alloc(&p->context->mem, bytes);
  plan_variant *v = NULL;
  if (!form) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  for (size_t i = 0; i < p->n_facts; i++)
    form[i] = p->facts[i].min < p->facts[i].max ? FACT_OPEN : p->facts[i].min;
  tn_status s = compile(p, form, NULL, d, &v);
  plan_variant_release(v);
  mem_free(&p->context->mem, form, bytes);
  if (s == TN_OK && !p->is_tunable) plan_drop_template(p);
  return s;
}

tn_status variant_table_open(tn_plan *p, diag *d) {
  const mem *m = &p->context->mem;
  variant_table *t = mem_calloc(m, 1, sizeof *t);
  int64_t *facts = mem_calloc(m, MOST_TRACKED_FACTS * p->n_facts, sizeof *facts);
  if (!t || !facts) {
    mem_free(m, t, sizeof *t);
    mem_free(m, facts, MOST_TRACKED_FACTS * p->n_facts * sizeof *facts);
    return diag_set(d, TN_ERR_MEMORY, "out of memory");
  }
  p->variants = t;
  t->plan = p;
  t->job.run = compile_due;
  t->now = clock_now_ns;
  t->n_made = p->first_variant;
  for (size_t i = 0; i < MOST_TRACKED_FACTS; i++) t->tracked[i].facts = facts + i * p->n_facts;
  mutex_init(&t->compiling);
  mutex_init(&t->lock);
  atomic_init(&t->n_changes, 0);
  return has_one_form(p) && !p->is_interpreted ? compile_only_one(p, d) : TN_OK;
}

void variant_table_close(tn_plan *p) {
  const mem *m = &p->context->mem;
  variant_table *t = p->variants;
  if (!t) return;
  background_jobs_cancel(p->context, &t->job);
  for (size_t i = 0; i < t->n; i++) plan_variant_release(t->at[i]);
  mem_free(m, t->tracked[0].facts, MOST_TRACKED_FACTS * p->n_facts * sizeof *t->tracked[0].facts);
  mutex_free(&t->compiling);
  mutex_free(&t->lock);
  mem_free(m, t, sizeof *t);
  p->variants = NULL;
}
