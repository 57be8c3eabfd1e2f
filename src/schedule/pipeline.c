#include "schedule/schedule.h"

#include "ir/pass.h"
#include "schedule/passes.h"

static void watched(const schedule_request *r, pass p, const normalised *n) {
  if (r->after) r->after(r->watcher, pass_name(p), n->roots, n->n_roots);
}

static void watch_kernels(const schedule_request *r, ir *g, const drafts *d) {
  if (!r->after) return;
  node_list kernels = {0};
  for (size_t i = 0; i < d->at.n; i++)
    if (d->at.at[i].kernel) vec_push(ir_arena(g), &kernels, d->at.at[i].kernel);
  r->after(r->watcher, pass_name(PASS_KERNELS), kernels.at, kernels.n);
}

schedule *schedule_make(ir *g, const schedule_request *r) {
  normalised n;
  schedule_normalise(g, r, &n);
  watched(r, PASS_NORMALISE, &n);
  schedule_versions(g, r, &n);
  watched(r, PASS_VERSIONS, &n);
  for (;;) {
    schedule *s = arena_calloc(ir_arena(g), 1, sizeof *s);
    places p;
    drafts d;
    schedule_places(g, r, &n, &p);
    schedule_kernels(g, &n, &p, s, &d);
    watch_kernels(r, g, &d);
    const node *set = schedule_order(g, &d, s);
    if (!set) return s;
    versions_copy_for_readers(g, &n, set);
  }
}
