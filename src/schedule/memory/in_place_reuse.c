/* Lets kernels store results over operands that die there (in-place reuse). A kernel that reads an
   array only at the elements where it writes its result, and is its last reader, may do so: no
   element is written before its last read, in whatever order the kernel runs, as long as it
   computes none twice (laws see to that). The kernel then reads and writes one buffer, as one that
   changes a state does. */
#include "schedule/memory/in_place_reuse.h"

#include "ir/core/binder.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "ir/index/write_once.h"
#include "ir/text/sink_text.h"
#include "ir/transform/substitute.h"
#include "schedule/core/param_like.h"
#include "schedule/kernels/kernel_buffers.h"

/* Reuses that index maps allow. */

static const node *flat_address(ir *g, size_t rank, const node *const dims[],
                                const node *const coords[]) {
  const node *at = ix_const(g, 0);
  for (size_t i = 0; i < rank; i++) at = ix_add(g, ix_mul(g, at, dims[i]), coords[i]);
  return at;
}

/** True if an element of a PARAM has the same address as the element where the kernel writes a
   value, in an array of the same size. */
static bool is_where_written(ir *g, const node *index, const node *stage, size_t value) {
  const node *param = index->src[0], *const *at = stage_coords(stage, value);
  const node *const *dims = stage_extents(stage, value);
  size_t rank = stage_rank(stage, value);
  bool same = param->rank == rank;
  for (size_t i = 0; same && i < rank; i++)
    same = param->dims[i] == dims[i] && index->src[1 + i] == at[i];
  return same || (ix_prove_in_bounds(g, param->rank, param->dims, index->src + 1) &&
                  flat_address(g, param->rank, param->dims, index->src + 1) ==
                      flat_address(g, rank, dims, at));
}

static bool is_plan_buffer(const schedule *s, size_t buffer) {
  return !s->buffers.at[buffer].origin && !s->buffers.at[buffer].is_output;
}

static bool have_equal_shape(const schedule *s, size_t a, size_t b) {
  const schedule_buffer *x = &s->buffers.at[a], *y = &s->buffers.at[b];
  return x->dtype == y->dtype && x->size == y->size;
}

/** True if a kernel reads a buffer only where it writes the value. */
static bool is_read_only_where_written(ir *g, const node_list *indices, size_t buffer,
                                       const node *stage, size_t value) {
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

static void find_reuses(ir *g, const schedule *s, const node *sink, step_accesses *u) {
  arena_mark here = arena_save(ir_scratch(g));
  const node *out = sink->src[0], *stage = out->src[out->n_src - 1];
  node_list indices = {0};
  for (size_t v = 0; v + 1 < out->n_src; v++) {
    size_t to = (size_t)out->src[v]->ints[0];
    if (!is_plan_buffer(s, to) || !stage_is_bijection(stage, v)) continue;
    if (!indices.n) indices = elements_read(ir_scratch(g), sink);
    for (size_t k = u->n_written; k < u->n; k++) {
      size_t from = u->buffers[k];
      if (is_plan_buffer(s, from) && have_equal_shape(s, to, from) &&
          is_read_only_where_written(g, &indices, from, stage, v))
        vec_push(ir_arena(g), &u->may, (reuse){to, from});
    }
  }
  arena_rewind(ir_scratch(g), here);
}

void in_place_reuse_find(ir *g, const schedule *s, lives *l) {
  for (size_t i = 0; i < s->steps.n; i++) {
    const node *sink = s->steps.at[i].kernel;
    size_t bytes; /* a user's schedule is for the buffers that the kernel has */
    if (sink && sink->n_src == 1 && !sink_schedule(sink, &bytes))
      find_reuses(g, s, sink, &l->steps[i]);
  }
}

/* The choice of reuses. */

/** Chooses the reuses that make the plan smallest: all, none, or those that lower the peak. Where
    they are equal, the fewest: a kernel that changes a buffer in place may compute no element
    twice, which others do where blocks overlap. */
static reuses *choose_reuses(const lives *l, bool always) {
  double *need = arena_alloc(l->a, (l->n_steps + 1) * sizeof *need);
  reuses *all = arena_calloc(l->a, l->n_steps + 1, sizeof *all), *few, *none;
  double peak = liveness_peak_bytes(l, NULL, need, all);
  if (always) return all;
  few = arena_copy(l->a, all, (l->n_steps + 1) * sizeof *all);
  none = arena_calloc(l->a, l->n_steps + 1, sizeof *none);
  for (size_t i = 0; i < l->n_steps; i++)
    if (need[i] <= peak) few[i] = (reuses){0};
  uint64_t most = liveness_plan_bytes(l, NULL, none), less = liveness_plan_bytes(l, NULL, few);
  reuses *best = less < most ? few : none;
  return liveness_plan_bytes(l, NULL, all) < (less < most ? less : most) ? all : best;
}

/* Rewriting kernels. */

/** Maps the elements of an array that a step writes over to elements of its result. */
static void map_elements(ir *g, const node *sink, const reuse *r, size_t home, map *with) {
  const node *out = sink->src[0], *stage = out->src[out->n_src - 1];
  node_list indices = elements_read(ir_scratch(g), sink);
  size_t v = 0;
  while ((size_t)out->src[v]->ints[0] != r->to) v++;
  const node *to = param_like(g, out->src[v], out->src[v]->dims, home);
  for (size_t i = 0; i < indices.n; i++) {
    const node *x = indices.at[i];
    if ((size_t)x->src[0]->ints[0] != r->from) continue;
    x = index_make(g, (dtype)x->dtype, to, 0, stage_rank(stage, v), stage_coords(stage, v));
    map_set(ir_scratch(g), with, indices.at[i], (void *)x);
  }
}

static void rewrite_kernel(ir *g, schedule_step *step, const reuses *taken, const size_t homes[]) {
  map with = {0};
  for (size_t i = 0; i < taken->n; i++)
    map_elements(g, step->kernel, &taken->at[i], homes[taken->at[i].to], &with);
  node_list order = topo_sort(ir_scratch(g), &step->kernel, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *p = order.at[i];
    if (p->op == OP_PARAM && homes[p->ints[0]] != (size_t)p->ints[0])
      map_set(ir_scratch(g), &with, p, (void *)param_like(g, p, p->dims, homes[p->ints[0]]));
  }
  if (!with.n) return;
  step->kernel = subst(g, step->kernel, &with);
  step->buffers = kernel_buffers(g, step->kernel, &step->n_buffers);
}

static void rewrite_custom(arena *a, schedule_step *step, const size_t homes[]) {
  size_t *buffers = arena_copy(a, step->buffers, step->n_buffers * sizeof *buffers);
  for (size_t i = 0; i < step->n_buffers; i++) buffers[i] = homes[buffers[i]];
  step->buffers = buffers;
}

/** Moves slots to the buffers that their arrays share. */
static void move_slots(schedule *s, const lives *l, const reuses *taken, const size_t homes[]) {
  bool *is_taken = arena_calloc(l->a, l->n_buffers + 1, sizeof *is_taken);
  for (size_t k = 0; k < l->n_steps; k++)
    for (size_t n = 0; n < taken[k].n; n++) is_taken[taken[k].at[n].from] = true;
  for (size_t i = 0; i < s->n_slots; i++) {
    schedule_slot *slot = &s->slots[i];
    if (slot->buffer == SIZE_MAX) continue;
    slot->is_overwritten = is_taken[slot->buffer];
    slot->buffer = homes[slot->buffer];
  }
}

void in_place_reuse_apply(ir *g, const lives *l, bool always, schedule *s) {
  const reuses *taken = choose_reuses(l, always);
  const size_t *homes = liveness_storage(l, taken);
#ifdef TENON_VERIFY
  if (!liveness_is_safe(l, NULL, homes))
    diag_raise(ir_diag(g), TN_ERR_INTERNAL, "a buffer is overwritten before its last read");
#endif
  for (size_t i = 0; i < s->buffers.n; i++)
    s->buffers.at[homes[i]].is_written |= s->buffers.at[i].is_written;
  move_slots(s, l, taken, homes);
  for (size_t i = 0; i < s->steps.n; i++) {
    schedule_step *step = &s->steps.at[i];
    arena_mark here = arena_save(ir_scratch(g));
    if (step->kernel)
      rewrite_kernel(g, step, &taken[i], homes);
    else
      rewrite_custom(ir_arena(g), step, homes);
    arena_rewind(ir_scratch(g), here);
  }
}
