/* Implements loaded programs: reference counts without a lock except for the last, and the checks
   of a launch (buffers of the program's device, values in their bounds, scratch memory) before the
   backend executes it. */
#include "device/program/program.h"

#include "device/stream/immediate_stream.h"

/** The owner drops the last reference under its own lock, under which it also adds references: no
    thread finds a program that is being freed. */
void program_release(tn_program *p) {
  if (!p) return;
  size_t uses = atomic_load_explicit(&p->uses, memory_order_relaxed);
  while (uses > 1)
    if (atomic_compare_exchange_weak_explicit(&p->uses, &uses, uses - 1, memory_order_release,
                                              memory_order_relaxed))
      return;
  p->release(p);
}

/* Launches. */

static tn_status check_buffers(const tn_program *p, const tn_launch *l, tn_failure *f) {
  for (size_t i = 0; i < l->n_buffers; i++) {
    const tn_span *b = &l->buffers[i];
    if (!b->device || !b->memory)
      return tn_fail(f, TN_ERR_ARGUMENT, "kernel %s: buffer %zu is NULL", p->name, i);
    if (b->device != p->device)
      return tn_fail(f, TN_ERR_ARGUMENT, "kernel %s runs on %s, but buffer %zu is on %s%s", p->name,
                     p->device->name, i,
                     b->device->registry == p->device->registry ? "" : "another registry's ",
                     b->device->name);
  }
  return TN_OK;
}

static tn_status check_launch(const tn_program *p, const tn_launch *l, tn_failure *f) {
  size_t wanted = p->facts.n_globals + (p->facts.scratch > 0);
  if (l->n_buffers != wanted)
    return tn_fail(f, TN_ERR_ARGUMENT, "kernel %s expects %zu buffers, got %zu", p->name, wanted,
                   l->n_buffers);
  if (l->n_values != p->facts.n_values)
    return tn_fail(f, TN_ERR_ARGUMENT, "kernel %s expects %zu values, got %zu", p->name,
                   p->facts.n_values, l->n_values);
  if ((wanted && !l->buffers) || (l->n_values && !l->values))
    return tn_fail(f, TN_ERR_ARGUMENT, "kernel %s: the list of %s is NULL", p->name,
                   wanted && !l->buffers ? "buffers" : "values");
  return check_buffers(p, l, f);
}

/** The last buffer holds the scratch arrays of every worker. */
static tn_status check_scratch_buffer(const tn_program *p, const tn_launch *l,
                                      const int64_t global[3], tn_failure *f) {
  uint64_t workers = p->facts.core_id < 0 ? 1 : (uint64_t)global[0];
  if (!p->facts.scratch || l->buffers[l->n_buffers - 1].bytes / p->facts.scratch >= workers)
    return TN_OK;
  return tn_fail(f, TN_ERR_ARGUMENT,
                 "kernel %s: the scratch buffer has %llu bytes, but %llu workers need %llu each",
                 p->name, (unsigned long long)l->buffers[l->n_buffers - 1].bytes,
                 (unsigned long long)workers, (unsigned long long)p->facts.scratch);
}

tn_status program_prepare(const tn_program *p, const tn_launch *l, tn_work *w, tn_failure *f) {
  diag d;
  diag_clear(&d);
  tn_status status = check_launch(p, l, f);
  if (status) return status;
  w->kind = TN_WORK_EXEC; /* the members of other kinds stay as they are: this is done often */
  w->program = p->handle;
  w->launch = l;
  if (launch_grid_eval(&p->sizes, l->values, w->global, w->local, &d))
    return tn_fail(f, d.status, "kernel %s: %s", p->name, d.text);
  return check_scratch_buffer(p, l, w->global, f);
}

bool program_stores_nothing(const tn_program *p, const tn_launch *l) {
  for (size_t i = 0; i < p->facts.n_globals; i++)
    if (p->limits.arrays[i].is_stored && l->buffers[i].bytes) return false;
  return true;
}

tn_status program_execute(tn_program *p, const tn_launch *l, tn_failure *f) {
  tn_work w;
  tn_status status = program_prepare(p, l, &w, f);
  return status || program_stores_nothing(p, l) ? status : immediate_run(p->device, &w, f);
}
