/* The variant that a binding's runs take. It stays chosen while the facts and the plan's table are
   what they were, which a run sees without a lock. Each variant used has an execution; all share
   one queue and one block of scratch memory, and only the one in use holds inputs and outputs. */
#include "tensor/plan/binding.h"
#include "tensor/plan/variant_table.h"

enum { TRIAL_RUNS = 5 }; /* of a new exact variant, of which the shortest counts */

/* Time. */

/** Reports the time that runs took on the variant at hand. */
static void report_time(tn_binding *b) {
  binding_time *t = &b->time;
  if (t->is_counted && t->spent_ns)
    variant_table_add_time(b->plan, b->chosen, t->spent_ns, t->best_ns);
  t->is_counted = false;
}

static void begin_time(tn_binding *b) {
  int64_t left = variant_table_time_left(b->plan, b->chosen, b->variant);
  b->time = (binding_time){.is_counted = left != INT64_MAX,
                           .left_ns = left,
                           .best_ns = INT64_MAX,
                           .trials = variant_table_is_new(b->plan, b->variant) ? TRIAL_RUNS : 0};
}

int64_t binding_run_begins(const tn_binding *b) {
  return b->time.is_counted || b->time.trials ? b->plan->variants->now() : 0;
}

void binding_run_ended(tn_binding *b, int64_t begin) {
  binding_time *t = &b->time;
  if (!t->is_counted && !t->trials) return;
  int64_t ns = b->plan->variants->now() - begin;
  if (ns < t->best_ns) t->best_ns = ns;
  if (t->trials && !--t->trials) variant_table_compare(b->plan, b->variant, t->best_ns);
  if (!t->is_counted) return;
  t->spent_ns += ns;
  if (t->spent_ns >= t->left_ns) report_time(b);
}

/* Executions. */

static void close_use(tn_binding *b, size_t i) {
  variant_use *u = &b->uses[i];
  if (u->execution == b->execution) b->execution = NULL, b->variant = NULL;
  if (u->execution == b->ran) b->ran = NULL;
  execution_close(u->execution);
  plan_variant_release(u->variant);
  *u = b->uses[--b->n_uses];
}

/** Closes executions of variants that the plan has dropped, except that of the last run, whose
   steps are still reported. */
static void close_dropped(tn_binding *b) {
  for (size_t i = b->n_uses; i-- > 0;)
    if (atomic_load(&b->uses[i].variant->is_dropped) && b->uses[i].execution != b->ran)
      close_use(b, i);
}

void binding_leave_plan(tn_binding *b) {
  report_time(b);
  b->is_chosen = false;
  while (b->n_uses) close_use(b, 0);
}

void binding_close_uses(tn_binding *b) {
  while (b->n_uses) close_use(b, 0);
  mem_free(&b->context->mem, b->uses, b->cap_uses * sizeof *b->uses);
  queue_close(b->queue);
  binding_set_memory(&b->scratch, NULL);
}

static tn_status reserve_use(tn_binding *b) {
  size_t cap = b->cap_uses ? 2 * b->cap_uses : 2;
  if (b->n_uses < b->cap_uses) return TN_OK;
  void *more =
      mem_resize(&b->context->mem, b->uses, b->cap_uses * sizeof *b->uses, cap * sizeof *b->uses);
  if (!more) return diag_set(&b->diag, TN_ERR_MEMORY, "out of memory");
  b->uses = more;
  b->cap_uses = cap;
  return TN_OK;
}

/** Opens an execution of a variant, and takes the reference to it. */
static tn_status open_use(tn_binding *b, plan_variant *v, variant_use **out) {
  execution *e = NULL;
  tn_status s = reserve_use(b);
  if (s == TN_OK && !b->queue)
    s = queue_open(b->context->device, TN_QUEUE_COMPUTE, &b->queue, &b->diag);
  if (s == TN_OK)
    s = execution_open(&e, v->executable, &(execution_source){b->queue, NULL}, &b->diag);
  if (s != TN_OK) {
    plan_variant_release(v);
    return s;
  }
  s = execution_set_tracer(e, &b->context->reports.tracer, &b->context->reports.lock, &b->diag);
  if (s != TN_OK) {
    execution_close(e);
    plan_variant_release(v);
    return s;
  }
  execution_set_progress(e, &b->context->progress, &b->context->reports.lock);
  execution_share_scratch(e, &b->scratch);
  execution_on_late_output(e, binding_place_late_output, b);
  *out = &b->uses[b->n_uses++];
  **out = (variant_use){v, e};
  return s;
}

static variant_use *find_use(tn_binding *b, const plan_variant *v) {
  for (size_t i = 0; i < b->n_uses; i++)
    if (b->uses[i].variant == v) return &b->uses[i];
  return NULL;
}

/** Makes an execution the one in use, with the variant's values; the one before releases its
    memory. */
static tn_status enter_use(tn_binding *b, const variant_use *u) {
  const plan_variant *v = u->variant;
  if (b->execution && b->execution != u->execution) execution_unbind(b->execution);
  b->execution = u->execution;
  b->variant = u->variant;
  tn_status s = execution_set_profiling(u->execution, b->is_profiled, &b->diag);
  if (s == TN_OK) s = execution_set_reuse(u->execution, b->reuses, &b->diag);
  for (size_t i = 0; i < v->n_values && s == TN_OK; i++)
    s = execution_set_buffer(u->execution, v->values[i].buffer, v->values[i].memory, &b->diag);
  if (s != TN_OK) {
    execution_unbind(u->execution);
    b->execution = NULL;
    b->variant = NULL;
  }
  return s;
}

/* Choice. */

/** True if the variant in use is still the one to take. */
static bool is_chosen(const tn_binding *b) {
  if (!b->is_chosen || atomic_load(&b->plan->variants->n_changes) != b->n_changes) return false;
  for (size_t i = 0; i < b->plan->n_facts; i++)
    if (b->facts[i] != b->chosen[i]) return false;
  return true;
}

static tn_status set_vars(tn_binding *b) {
  const plan_variant *v = b->variant;
  tn_status s = TN_OK;
  for (size_t i = 0; i < executable_vars(v->executable) && s == TN_OK; i++)
    if (v->fact_of_var[i] != SIZE_MAX)
      s = execution_set_var(b->execution, i, b->facts[v->fact_of_var[i]], &b->diag);
  return s;
}

tn_status binding_choose_variant(tn_binding *b) {
  if (is_chosen(b)) return TN_OK;
  plan_variant *v;
  report_time(b);
  b->is_chosen = false;
  uint64_t n_changes = atomic_load(&b->plan->variants->n_changes);
  tn_status s = variant_table_find(b->plan, b->facts, &b->diag, &v);
  if (s != TN_OK) return s;
  close_dropped(b);
  variant_use *u = find_use(b, v);
  if (u)
    plan_variant_release(v); /* the use has a reference */
  else
    s = open_use(b, v, &u);
  if (s == TN_OK && u->execution != b->execution) s = enter_use(b, u);
  if (s == TN_OK) s = set_vars(b);
  if (s != TN_OK) return s;
  for (size_t i = 0; i < b->plan->n_facts; i++) b->chosen[i] = b->facts[i];
  b->n_changes = n_changes;
  b->is_chosen = true;
  begin_time(b);
  return s;
}
