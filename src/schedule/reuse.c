/* Results that are written over what they are computed from. An array that a kernel reads at no
   other place than where it writes one, and nobody needs afterwards, may be the same memory: no
   element is written before its last read, in whatever order a schedule makes them, as long as it
   makes none twice (laws see to that). The kernel then reads and writes one buffer, as one
   that changes a state does. */
#include "ir/binder.h"
#include "ir/index.h"
#include "ir/sink.h"
#include "ir/subst.h"
#include "schedule/passes.h"

/* What index maps allow. */

static const node *flat(ir *g, size_t rank, const node *const dims[], const node *const coords[]) {
  const node *at = ix_const(g, 0);
  for (size_t i = 0; i < rank; i++) at = ix_add(g, ix_mul(g, at, dims[i]), coords[i]);
  return at;
}

/** Whether an element of a PARAM lies where a value of the kernel is written, in an array of the
    same size. */
static bool is_where_written(ir *g, const node *index, const node *stage, size_t value) {
  const node *param = index->src[0], *const *at = stage_coords(stage, value);
  const node *const *dims = stage_extents(stage, value);
  size_t rank = stage_rank(stage, value);
  bool same = param->rank == rank;
  for (size_t i = 0; same && i < rank; i++)
    same = param->dims[i] == dims[i] && index->src[1 + i] == at[i];
  return same || (ix_prove_inside(g, param->rank, param->dims, index->src + 1) &&
                  flat(g, param->rank, param->dims, index->src + 1) == flat(g, rank, dims, at));
}

static bool is_own(const schedule *s, size_t buffer) {
  return !s->buffers.at[buffer].origin && !s->buffers.at[buffer].is_output;
}

static bool are_alike(const schedule *s, size_t a, size_t b) {
  const schedule_buffer *x = &s->buffers.at[a], *y = &s->buffers.at[b];
  return x->dtype == y->dtype && x->size == y->size;
}

/** Whether a kernel reads a buffer only where it writes the value. */
static bool is_read_there(ir *g, const node_list *indices, size_t buffer, const node *stage,
                          size_t value) {
  for (size_t i = 0; i < indices->n; i++)
    if ((size_t)indices->at[i]->src[0]->ints[0] == buffer &&
        !is_where_written(g, indices->at[i], stage, value))
      return false;
  return true;
}

static node_list elements_read(arena *a, const node *sink) {
  node_list order = topo_sort(a, &sink, 1, NULL, NULL), all = {0};
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_INDEX && order.at[i]->src[0]->op == OP_PARAM)
      vec_push(a, &all, order.at[i]);
  return all;
}

static void find_reuses(ir *g, const schedule *s, const node *sink, step_uses *u) {
  const node *out = sink->src[0], *stage = out->src[out->n_src - 1];
  node_list indices = {0};
  for (size_t v = 0; v + 1 < out->n_src; v++) {
    size_t to = (size_t)out->src[v]->ints[0];
    if (!is_own(s, to) || !stage_is_whole(stage, v)) continue;
    if (!indices.n) indices = elements_read(ir_arena(g), sink);
    for (size_t k = u->n_written; k < u->n; k++) {
      size_t from = u->buffers[k];
      if (is_own(s, from) && are_alike(s, to, from) && is_read_there(g, &indices, from, stage, v))
        vec_push(ir_arena(g), &u->may, (reuse){to, from});
    }
  }
}

void schedule_find_reuses(ir *g, const schedule *s, lives *l) {
  for (size_t i = 0; i < s->steps.n; i++) {
    const node *sink = s->steps.at[i].kernel;
    size_t bytes; /* a schedule that is given is for the buffers that the kernel has */
    if (sink && sink->n_src == 1 && !sink_schedule(sink, &bytes))
      find_reuses(g, s, sink, &l->steps[i]);
  }
}

/* What is reused. */

/** No more than what lowers the peak: a kernel that changes a buffer in place may make no element
    twice, which others may where blocks do not fit. */
static void leave_what_is_not_needed(const lives *l, const double need[], double peak,
                                     reuses taken[]) {
  for (size_t i = 0; i < l->n_steps; i++)
    if (need[i] <= peak) taken[i] = (reuses){0};
}

static reuses *choose(const lives *l, bool always) {
  double *need = arena_alloc(l->a, (l->n_steps + 1) * sizeof *need);
  reuses *all = arena_calloc(l->a, l->n_steps + 1, sizeof *all), *few, *none;
  double peak = lives_peak(l, NULL, need, all);
  if (always) return all;
  few = arena_copy(l->a, all, (l->n_steps + 1) * sizeof *all);
  none = arena_calloc(l->a, l->n_steps + 1, sizeof *none);
  leave_what_is_not_needed(l, need, peak, few);
  uint64_t most = lives_bytes(l, NULL, none), less = lives_bytes(l, NULL, few);
  reuses *best = less < most ? few : none;
  return lives_bytes(l, NULL, all) < (less < most ? less : most) ? all : best;
}

/* Kernels and buffers as they are then. */

static const node *param_at(ir *g, const node *like, size_t buffer) {
  int64_t slot = (int64_t)buffer;
  return ir_node(g, OP_PARAM, (dtype)like->dtype, like->dims, like->rank, &slot, 1);
}

/** Elements of an array that a step writes over are elements of what it writes. */
static void add_elements(ir *g, const node *sink, const reuse *r, size_t home, map *with) {
  const node *out = sink->src[0], *stage = out->src[out->n_src - 1];
  node_list indices = elements_read(ir_arena(g), sink);
  size_t v = 0;
  while ((size_t)out->src[v]->ints[0] != r->to) v++;
  const node *to = param_at(g, out->src[v], home);
  for (size_t i = 0; i < indices.n; i++) {
    const node *x = indices.at[i];
    if ((size_t)x->src[0]->ints[0] != r->from) continue;
    x = index_make(g, (dtype)x->dtype, to, 0, stage_rank(stage, v), stage_coords(stage, v));
    map_set(ir_arena(g), with, indices.at[i], (void *)x);
  }
}

static void add_params(ir *g, const node *sink, const size_t homes[], map *with) {
  node_list order = topo_sort(ir_arena(g), &sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *p = order.at[i];
    if (p->op == OP_PARAM && homes[p->ints[0]] != (size_t)p->ints[0])
      map_set(ir_arena(g), with, p, (void *)param_at(g, p, homes[p->ints[0]]));
  }
}

static void change_kernel(ir *g, schedule_step *step, const reuses *taken, const size_t homes[]) {
  map with = {0};
  for (size_t i = 0; i < taken->n; i++)
    add_elements(g, step->kernel, &taken->at[i], homes[taken->at[i].to], &with);
  add_params(g, step->kernel, homes, &with);
  if (!with.n) return;
  step->kernel = subst(g, step->kernel, &with);
  step->buffers = kernel_buffers(g, step->kernel, &step->n_buffers);
}

static void change_custom(arena *a, schedule_step *step, const size_t homes[]) {
  size_t *buffers = arena_copy(a, step->buffers, step->n_buffers * sizeof *buffers);
  for (size_t i = 0; i < step->n_buffers; i++) buffers[i] = homes[buffers[i]];
  step->buffers = buffers;
}

void schedule_reuse(ir *g, const lives *l, bool always, schedule *s) {
  const reuses *taken = choose(l, always);
  const size_t *homes = lives_homes(l, taken);
#ifdef TENON_VERIFY
  if (!lives_hold(l, NULL, homes))
    diag_raise(ir_diag(g), TN_ERR_INTERNAL, "an array is written over before its last reader");
#endif
  for (size_t i = 0; i < s->buffers.n; i++)
    s->buffers.at[homes[i]].is_written |= s->buffers.at[i].is_written;
  for (size_t i = 0; i < s->steps.n; i++) {
    schedule_step *step = &s->steps.at[i];
    if (step->kernel)
      change_kernel(g, step, &taken[i], homes);
    else
      change_custom(ir_arena(g), step, homes);
  }
}
