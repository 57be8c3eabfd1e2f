/* Public functions on explanations of plans (runtime/explanation.h). tn_explain puts an empty one
   into the context's slot; the next plan that the same thread compiles takes it from there and is
   described in it. */
#include "runtime/explanation.h"
#include "tensor/context/context.h"
#include "tensor/context/descriptor.h"

#include <tenon/unstable/explain.h>

struct tn_explanation {
  attachment attachment; /* to its context */
  tn_context *context;
  explanation x;
};

static void destroy(attachment *of) {
  tn_explanation *e = (tn_explanation *)of;
  explanation_free(&e->x);
  mem_free(&e->context->mem, e, sizeof *e);
}

static tn_status open_explanation(tn_context *c, bool reasons, tn_explanation **out) {
  if (!out) return diag_set(&c->diag, TN_ERR_ARGUMENT, "the place for the explanation is NULL");
  tn_explanation *e = mem_calloc(&c->mem, 1, sizeof *e);
  if (!e) return diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  e->attachment.destroy = destroy;
  e->context = c;
  explanation_open(&e->x, &c->mem, reasons);
  context_attach(c, &e->attachment);
  atomic_store(&c->explaining_thread, thread_number());
  atomic_store(&c->explanation, &e->x);
  *out = e;
  return TN_OK;
}

tn_status tn_explain(tn_context *c, bool reasons, tn_explanation **out) {
  if (out) *out = NULL;
  tn_status s = context_acquire_valid(c);
  if (s != TN_OK) return s;
  s = open_explanation(c, reasons, out);
  if (s != TN_OK) context_fail_call(c, "explain");
  context_release(c);
  return s;
}

void tn_explanation_free(tn_explanation *e) {
  tn_context *c = e ? e->context : NULL;
  if (!e || context_begin_concurrent(c, REENTRANCY_NONE) != TN_OK) return;
  explanation *requested = &e->x;
  atomic_compare_exchange_strong(&c->explanation, &requested, NULL);
  context_detach(c, &e->attachment);
  destroy(&e->attachment);
  context_end_concurrent(c);
}

tn_status tn_explanation_step(const tn_explanation *e, size_t i, tn_explained_step *step) {
  if (!e || i >= e->x.steps.n) return TN_ERR_ARGUMENT;
  const explained_step *s = &e->x.steps.at[i];
  const tn_explained_step found = {.size = sizeof found,
                                   .name = s->name,
                                   .kernel = s->kernel == SIZE_MAX ? -1 : (int64_t)s->kernel,
                                   .what = s->what,
                                   .values = s->values.at,
                                   .n_values = s->values.n,
                                   .reads = s->reads.at,
                                   .n_reads = s->reads.n,
                                   .is_output = s->is_output,
                                   .n_places = s->n_places,
                                   .n_copies = s->n_copies,
                                   .is_guarded = s->is_guarded,
                                   .device = s->device};
  diag unreported = {0};
  return descriptor_write(&unreported, step, &found, sizeof found, "tn_explained_step");
}

tn_status tn_explanation_kernel(const tn_explanation *e, size_t i, tn_explained_kernel *kernel) {
  if (!e || i >= e->x.kernels.n) return TN_ERR_ARGUMENT;
  const explained_kernel *k = &e->x.kernels.at[i];
  const tn_explained_kernel found = {.size = sizeof found,
                                     .loops = k->loops.at,
                                     .n_loops = k->loops.n,
                                     .schedule = k->schedule.at,
                                     .n_schedule = k->schedule.n,
                                     .source = k->source,
                                     .cost = k->cost,
                                     .predicted = k->predicted,
                                     .tuned = k->is_tuned,
                                     .language = e->x.language && !k->library ? e->x.language : "",
                                     .prelude = e->x.prelude && !k->library ? e->x.prelude : "",
                                     .library = k->library};
  diag unreported = {0};
  return descriptor_write(&unreported, kernel, &found, sizeof found, "tn_explained_kernel");
}

tn_status tn_explanation_pass(const tn_explanation *e, size_t i, tn_explained_pass *pass) {
  if (!e || i >= e->x.passes.n) return TN_ERR_ARGUMENT;
  const explained_pass *p = &e->x.passes.at[i];
  const tn_explained_pass found = {sizeof found, p->name, p->cost};
  diag unreported = {0};
  return descriptor_write(&unreported, pass, &found, sizeof found, "tn_explained_pass");
}
