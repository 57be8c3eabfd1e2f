#include "schedule/schedule.h"

#include "ir/loop.h"
#include "ir/pass.h"
#include "schedule/groups.h"
#include "schedule/hardware.h"

/** What follows a pass over tensors: the verifier in development builds, and whoever watches. */
static void done(ir *g, const schedule_request *r, pass p, const normalised *n) {
  pass_verify(g, p, STAGE_TENSOR, n->roots, n->n_roots);
  if (r->after) r->after(r->watcher, pass_name(p), n->roots, n->n_roots);
}

/** The same of kernels, each of which is a graph of its own. */
static void done_kernels(ir *g, const schedule_request *r, const schedule *s) {
  node_list kernels = {0};
  for (size_t i = 0; i < s->steps.n; i++)
    if (s->steps.at[i].kernel) vec_push(ir_arena(g), &kernels, s->steps.at[i].kernel);
  for (size_t i = 0; i < kernels.n; i++)
    pass_verify(g, PASS_KERNELS, STAGE_KERNEL, &kernels.at[i], 1);
  if (r->after) r->after(r->watcher, pass_name(PASS_KERNELS), kernels.at, kernels.n);
}

enum { MOST_ARGUMENTS = 24 }; /* buffers of a kernel */

/** Half of what a kernel builds: vectors, and what is left over of them, need more than what is
    scheduled. */
static double scratch_of(const schedule_request *r) {
  return (double)hardware_scratch(&r->hardware, r->scratch) / 2;
}

static machine machine_of(const schedule_request *r) {
  tn_hardware h = hardware_known(&r->hardware);
  return (machine){.cores = h.cores,
                   .operation = 0.03,
                   .tile = 12,
                   .launch = 3000,
                   .scratch = scratch_of(r),
                   .cache = {(double)h.l1_bytes, (double)h.l2_bytes},
                   .shared = (double)h.l3_bytes,
                   .vector = (double)r->vector};
}

/** The machine that laws before the search are priced for: by other policies than prices, one with
    no room for a row, for which they are applied wherever that is legal; or NULL: none is. */
static const machine *machine_for_laws(const schedule_request *r, const machine *m,
                                       machine *small) {
  if (r->policy == GROUPING_STAGED) return NULL;
  if (r->policy == GROUPING_PRICED) return m;
  *small = *m;
  small->cache[0] = small->cache[1] = (double)(16 << r->seed % 4);
  small->scratch = (double)(512 << r->seed % 3);
  return small;
}

static grouping_request grouping_of(const schedule_request *r) {
  size_t arguments = r->arguments && r->arguments < MOST_ARGUMENTS ? r->arguments : MOST_ARGUMENTS;
  return (grouping_request){.machine = machine_of(r),
                            .arguments = arguments,
                            .policy = (grouping_policy)r->policy,
                            .seed = r->seed,
                            .decided = r->decided,
                            .watcher = r->watcher};
}

/** Of a graph in a loop, PARAMs are what its loop says. */
static schedule *make(ir *g, const schedule_request *r, normalised *n, size_t depth) {
  schedule *s = arena_calloc(ir_arena(g), 1, sizeof *s);
  values v;
  schedule_loops(g, r, n, depth);
  schedule_versions(g, r, n);
  done(g, r, PASS_VERSIONS, n);
  machine small;
  grouping_request request = grouping_of(r);
  schedule_values(g, r->math, machine_for_laws(r, &request.machine, &small), n, &v);
  groups groups = schedule_groups(g, &request, &v);
  schedule_kernels(g, n, &v, &groups, r->arguments, s);
  schedule_lanes(g, r, s);
  schedule_layouts(g, r, s);
  lives l = lives_of(g, s);
  schedule_find_reuses(g, s, &l);
  schedule_order(&l, r->policy == GROUPING_RANDOM ? r->seed : 0, s);
  schedule_reuse(g, &l, r->policy != GROUPING_PRICED, s);
  lives_set(s);
  schedule_name_steps(ir_arena(g), r, n, &v, s);
  done_kernels(g, r, s);
  schedule_rename(g, s);
  schedule_bodies(g, r, s, make);
  return s;
}

schedule *schedule_make(ir *g, const schedule_request *r) {
  normalised n;
  schedule_normalise(g, r, &n);
  for (size_t i = 0; i < n.n_roots; i++)
    if (n.roots[i]->free->n) loop_refuse_open(ir_diag(g));
  done(g, r, PASS_NORMALISE, &n);
  machine m = machine_of(r);
  if (r->policy == GROUPING_PRICED) schedule_parts(g, &m, r->math, &n, r->n_labels);
  done(g, r, PASS_PARTS, &n);
  return make(g, r, &n, 0);
}
