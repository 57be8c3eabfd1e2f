/* Runs the passes that turn a tensor graph into a schedule of kernels, in order: normalisation,
   sizes that a run computes, devices, loop extraction, value construction, fusion, layouts, step
   order, buffer reuse, canonicalisation. After each the result (the tensor graph up to fusion, all
   kernels from there on) is verified in development builds and handed to the request's observer.
   The body of a loop goes through the same passes while its steps are spliced in. */
#include "schedule/schedule.h"

#include "ir/core/pass_names.h"
#include "ir/core/tensor_loop.h"
#include "ir/core/tensor_rows.h"
#include "ir/verify/verify_graph.h"
#include "schedule/devices/resolve_devices.h"
#include "schedule/fuse/cost_model.h"
#include "schedule/fuse/fusion_group.h"
#include "schedule/fuse/fusion_search.h"
#include "schedule/grouping/choose_stores.h"
#include "schedule/kernels/build_kernels.h"
#include "schedule/kernels/canonicalise_kernels.h"
#include "schedule/kernels/step_names.h"
#include "schedule/late/late_items.h"
#include "schedule/layout/choose_layouts.h"
#include "schedule/layout/split_blocked_ranges.h"
#include "schedule/loops/outline_loops.h"
#include "schedule/loops/splice_loops.h"
#include "schedule/memory/buffer_views.h"
#include "schedule/memory/in_place_reuse.h"
#include "schedule/memory/liveness.h"
#include "schedule/memory/step_order.h"
#include "schedule/values/build_values.h"
#include "schedule/values/normalise.h"
#include "schedule/values/split_reductions.h"
#include "schedule/values/split_scans.h"
#include "schedule/values/versions.h"
#include "target/hardware.h"
#include "target/machine.h"

/* Results of passes. */

typedef struct pipeline {
  ir *g;
  const schedule_request *request;
  normalised *graph; /* up to fusion, */
  schedule *s;       /* then this */
} pipeline;

static node_list kernels_of(const pipeline *p) {
  node_list kernels = {0};
  for (size_t i = 0; i < p->s->steps.n; i++)
    if (p->s->steps.at[i].kernel) vec_push(ir_scratch(p->g), &kernels, p->s->steps.at[i].kernel);
  return kernels;
}

/** Verifies the result of a pass and hands it to the observer. */
static void after(const pipeline *p, pass done) {
  const schedule_request *r = p->request;
  if (!p->s) {
    verify_after_pass(p->g, done, LEVEL_TENSOR, p->graph->roots, p->graph->n_roots);
    if (r->observer.after)
      r->observer.after(r->observer.user, pass_name(done), p->graph->roots, p->graph->n_roots);
    return;
  }
  arena_mark here = arena_save(ir_scratch(p->g));
  node_list kernels = kernels_of(p);
  for (size_t i = 0; i < kernels.n; i++)
    verify_after_pass(p->g, done, LEVEL_KERNEL, &kernels.at[i], 1);
  if (r->observer.after)
    r->observer.after(r->observer.user, pass_name(done), kernels.at, kernels.n);
  arena_rewind(ir_scratch(p->g), here);
}

/* Limits and costs of the target. */

/** Half of a kernel's scratch memory: padding to vectors and remainders need the rest. */
static double scratch_of(const schedule_target *t) {
  return MACHINE_SCHEDULED_SCRATCH_SHARE * (double)hardware_scratch_bytes(&t->hardware, t->scratch);
}

static bool has_warp_tiles(const schedule_target *t) {
  for (size_t i = 0; i < TENSOR_TILES; i++)
    if (tensor_tiles[i].workers > 1 && t->rows >> (TENSOR_ROWS + i) & 1) return true;
  return false;
}

static machine machine_of(const schedule_target *t) {
  tn_hardware h = hardware_with_defaults(&t->hardware);
  return (machine){.cores = h.cores,
                   .operation = MACHINE_VECTOR_OPERATION_NS,
                   .tile = MACHINE_UNTILED_SLOWDOWN,
                   .launch = MACHINE_KERNEL_LAUNCH_NS,
                   .scratch = scratch_of(t),
                   .cache = {(double)h.l1_bytes, (double)h.l2_bytes},
                   .shared = (double)h.l3_bytes,
                   .vector = (double)t->vector,
                   .page = t->teams ? 0 : (double)h.page_bytes,
                   .tlb = MACHINE_TLB_PAGES,
                   .teams = t->teams,
                   .warp_tiles = has_warp_tiles(t)};
}

/** The machine of device 0, with those of the others. */
static machine machine_of_all(ir *g, const schedule_request *r) {
  machine m = machine_of(&r->target),
          *more = arena_alloc(ir_arena(g), (r->n_more + 1) * sizeof *more);
  for (size_t i = 0; i < r->n_more; i++) more[i] = machine_of(&r->more[i]);
  m.more = more;
  m.n_more = r->n_more;
  return m;
}

/** The machine by whose costs sums are factored and softmax is made online before the search; NULL:
    neither is done. Tests of other policies get one without room for a row, so that both are done
    wherever they are legal. */
static const machine *machine_for_rewrites(const schedule_request *r, const machine *m,
                                           machine *small) {
  if (r->search.policy == FUSION_NONE) return NULL;
  if (r->search.policy == FUSION_BY_COST) return m;
  *small = *m;
  small->n_more = 0;
  small->cache[0] = small->cache[1] = (double)(16 << r->search.seed % 4);
  small->page = 8;
  small->tlb = 1;
  small->scratch = (double)(512 << r->search.seed % 3);
  return small;
}

/** The joins that are made; NULL: none. */
static const joins_policy *joins_policy_of(const schedule_request *r, const machine *m,
                                           joins_policy *p) {
  if (r->search.policy == FUSION_NONE || r->search.is_without_places) return NULL;
  *p = (joins_policy){r->search.policy == FUSION_BY_COST ? m : NULL, r->search.seed};
  return p;
}

/** The most buffers of a kernel of any device; 0: any number. */
static size_t arguments_of(const schedule_request *r) {
  size_t most = r->target.arguments;
  for (size_t i = 0; i < r->n_more; i++) {
    size_t own = r->more[i].arguments;
    if (own && (!most || own < most)) most = own;
  }
  return most;
}

static fusion_request fusion_request_of(ir *g, const schedule_request *r) {
  size_t most = arguments_of(r);
  return (fusion_request){
      .machine = machine_of_all(g, r),
      .arguments = most && most < MACHINE_KERNEL_ARGUMENTS ? most : MACHINE_KERNEL_ARGUMENTS,
      .policy = (fusion_policy)r->search.policy,
      .seed = r->search.seed,
      .decided = r->observer.decided,
      .watcher = r->observer.user};
}

/* Passes. */

/** Passes from values to kernels, as `v` wishes them. */
static schedule *make_kernels(pipeline *p, const fusion_request *fusion, values *v) {
  ir *g = p->g;
  const schedule_request *r = p->request;
  groups groups = fuse_values(g, fusion, v);
  schedule *s = p->s = arena_calloc(ir_arena(g), 1, sizeof *s);
  kernels_build(g, p->graph, v, &groups, arguments_of(r), s);
  after(p, PASS_FUSE);
  layout_split_blocked_ranges(g, r, s);
  after(p, PASS_BLOCKED_RANGES);
  layout_choose(g, r, &fusion->machine, s);
  after(p, PASS_LAYOUTS);

  arena_mark here = arena_save(ir_scratch(g));
  lives l = liveness_of(g, s);
  in_place_reuse_find(g, s, &l);
  step_order_choose(&l, r->search.policy == FUSION_RANDOM ? r->search.seed : 0, s);
  after(p, PASS_ORDER);
  in_place_reuse_apply(g, &l, r->search.policy != FUSION_BY_COST, s);
  arena_rewind(ir_scratch(g), here);
  buffer_views_make(g, s);
  after(p, PASS_KERNELS);
  return s;
}

typedef struct trial {
  pipeline p;
  fusion_request fusion;
  values *v;
  size_t *stores; /* required ones, of each value */
} trial;

static void drop_stores(const trial *t) {
  for (size_t i = 0; i < t->v->at.n; i++) t->v->at.at[i]->memory.stores.n = t->stores[i];
}

static schedule *make_trial(void *user) {
  trial *t = user;
  t->p.s = NULL;
  schedule *s = make_kernels(&t->p, &t->fusion, t->v);
  kernels_canonicalise(t->p.g, s);
  drop_stores(t);
  return s;
}

/** Wishes which values are stored. */
static void choose_stores(const pipeline *p, const fusion_request *fusion, values *v) {
  schedule_request silent = *p->request;
  trial t = {.p = *p, .fusion = *fusion, .v = v};
  if (silent.search.policy != FUSION_BY_COST) return;
  fusion_wish_stores(p->g, fusion, v);
  if (!silent.estimates.estimate) return;
  silent.observer = (schedule_observer){0};
  t.p.request = &silent;
  t.fusion.decided = NULL;
  t.stores = arena_alloc(ir_arena(p->g), (v->at.n + 1) * sizeof *t.stores);
  for (size_t i = 0; i < v->at.n; i++) t.stores[i] = v->at.at[i]->memory.stores.n;
  grouping_choose_stores(p->g, &(grouping_trials){make_trial, &t, &silent.estimates}, v);
}

/** Schedules a normalised graph, or the body of a loop with `depth` loops around it. */
static schedule *schedule_graph(ir *g, const schedule_request *r, normalised *n, size_t depth) {
  pipeline p = {.g = g, .request = r, .graph = n};
  fusion_request fusion = fusion_request_of(g, r);
  machine small;
  joins_policy joins;
  values v;

  loops_extract(g, r, n, depth);
  after(&p, PASS_LOOPS);
  versions_insert_copies(g, r, n);
  after(&p, PASS_VERSIONS);
  values_build(g, r->math, machine_for_rewrites(r, &fusion.machine, &small),
               joins_policy_of(r, &fusion.machine, &joins), n, &v);
  after(&p, PASS_VALUES);

  choose_stores(&p, &fusion, &v);
  schedule *s = make_kernels(&p, &fusion, &v);
  step_names_set(g, r, n, &v, s);
  kernels_canonicalise(g, s);
  after(&p, PASS_CANONICALISE);
  loops_splice(g, r, s, schedule_graph);
  liveness_set_ranges(s);
  after(&p, PASS_SPLICE);
  return s;
}

schedule *schedule_make(ir *g, const schedule_request *r) {
  normalised n;
  pipeline p = {.g = g, .request = r, .graph = &n};
  machine m = machine_of_all(g, r);

  normalise_graph(g, r, &n);
  for (size_t i = 0; i < n.n_roots; i++)
    if (n.roots[i]->free->n) loop_refuse_unbound(ir_diag(g));
  late_items_check(g, r, &n);
  after(&p, PASS_NORMALISE);
  late_items_extract(g, r, &n);
  after(&p, PASS_ITEMS);
  if (r->search.policy == FUSION_BY_COST) {
    split_reductions(g, &m, r->math, &n, r->n_labels);
    split_scans(g, r->math, &n, r->n_labels);
  }
  after(&p, PASS_PARTS);
  resolve_devices(g, r, &n);
  after(&p, PASS_DEVICES);
  return schedule_graph(g, r, &n, 0);
}
