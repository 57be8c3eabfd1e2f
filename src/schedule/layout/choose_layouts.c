/* Chooses the layout of arrays between kernels: which axis of each is last, consecutive in memory.
   Each loop nest is vectorised along one of its ranges, and an access that is not consecutive along
   it costs more. Nests choose ranges and arrays choose axes: one PBQP (partitioned Boolean
   quadratic problem) for the whole plan, as its cost is a sum over nests and over pairs of a nest
   and an array that it accesses. */
#include "schedule/layout/choose_layouts.h"

#include "ir/core/binder.h"
#include "ir/index/address_stride.h"
#include "ir/index/row_major_address.h"
#include "ir/index/write_once.h"
#include "ir/text/sink_text.h"
#include "ir/transform/copy_graph.h"
#include "ir/transform/substitute.h"
#include "laws/laws.h"
#include "schedule/core/param_like.h"
#include "schedule/layout/pbqp.h"
#include "target/hardware.h"
#include "target/kernel_estimates.h"

#include <math.h>

enum { MOST_CHOICES = 12 };

/** A buffer of the schedule. */
typedef struct array {
  const node *param;         /* the PARAM that all kernels have for it; NULL: none */
  bool is_fixed;             /* some user of it needs the present layout */
  size_t vertex;             /* of the problem */
  size_t n;                  /* number of axes that may be last; 0: the layout stays */
  size_t axis[MOST_CHOICES]; /* these axes; the first one is last at present */
  size_t last;               /* the axis chosen */
} array;

typedef struct layouts {
  ir *g;
  arena *a;
  const schedule_request *r;
  const machine *m; /* of the present kernel's device */
  schedule *s;
  array *arrays; /* for each buffer */
  pbqp problem;
} layouts;

/* Arrays that may change: those that only kernels use, all as the same PARAM. */

/** Fixes arrays in which a FOLD writes element by element: the loops of a copy to them, which other
    layouts make cheaper, are not there. */
static void fix_fold_outputs(layouts *l, const node *out) {
  const node *stage = out->src[out->n_src - 1];
  for (size_t i = 0; i < stage_n_values(stage); i++)
    if (stage_placed_fold(stage, i)) l->arrays[out->src[i]->ints[0]].is_fixed = true;
}

/** Finds the PARAMs of a step; fixes arrays with two PARAMs, or of a step that has its own laws. */
static void record_step(layouts *l, const schedule_step *step) {
  size_t bytes;
  if (!step->kernel || sink_schedule(step->kernel, &bytes)) {
    for (size_t i = 0; i < step->n_buffers; i++) l->arrays[step->buffers[i]].is_fixed = true;
    return;
  }
  node_list order = topo_sort(l->a, &step->kernel, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *param = order.at[i];
    if (param->op == OP_OUT) fix_fold_outputs(l, param);
    if (param->op != OP_PARAM) continue;
    array *x = &l->arrays[param->ints[0]];
    if (x->param && x->param != param) x->is_fixed = true;
    x->param = param;
  }
}

static void add_array(layouts *l, size_t buffer) {
  const schedule_buffer *b = &l->s->buffers.at[buffer];
  array *x = &l->arrays[buffer];
  double none[MOST_CHOICES] = {0};
  if (!x->param || x->is_fixed || b->origin || b->is_output || b->is_double_buffered) return;
  for (size_t k = x->param->rank; k-- > 0 && x->n < MOST_CHOICES;) {
    bool may_be_short = !node_is_const(x->param->dims[k]) && x->n; /* not to be put last */
    if (!node_is_bits(x->param->dims[k], 1) && !may_be_short) x->axis[x->n++] = k;
  }
  if (x->n < 2) x->n = 0;
  if (!x->n) return;
  x->last = x->axis[0];
  x->vertex = pbqp_add(&l->problem, x->n, none);
}

static array *array_of(const layouts *l, const node *param) {
  array *x = param->op == OP_PARAM ? &l->arrays[param->ints[0]] : NULL;
  return x && x->n ? x : NULL;
}

/** Sizes or coordinates of an array with one axis moved to the end. */
static const node *const *with_last(layouts *l, const array *x, size_t last,
                                    const node *const from[]) {
  size_t rank = x->param->rank, n = 0;
  const node **to = arena_alloc(l->a, (rank + 1) * sizeof *to);
  if (last == x->axis[0]) return arena_copy(l->a, from, rank * sizeof *to);
  for (size_t k = 0; k < rank; k++)
    if (k != last) to[n++] = from[k];
  to[n] = from[last];
  return to;
}

/* Nests. */

/** The vectorisation choices of a STAGE or FOLD: along its own ranges or those around it. */
typedef struct nest_lanes {
  const node *binder;
  size_t vertex, n; /* choice 0: no lanes; i: range[i] */
  const node *range[MOST_CHOICES];
  double lanes[MOST_CHOICES];
} nest_lanes;

typedef VEC(nest_lanes *) nest_list;

static bool is_no_binder(const node *n, void *user) {
  (void)user;
  return !node_is_binder(n);
}

/** The nodes that a binder computes in its loops, without those of other binders. */
static node_list own_nodes(layouts *l, const node *binder) {
  binder_layout p = binder_layout_of((op)binder->op, binder->ints);
  return topo_sort(l->a, binder->src, p.coords, is_no_binder, NULL);
}

/** Speed-up by vectors along a range, whose last vector may overlap the one before. */
static double vector_speedup(const layouts *l, const node *range, size_t bytes) {
  double indices = range_likely_trips(range), lanes = (double)(l->r->target.vector / bytes);
  while (lanes > 1 && lanes > indices) lanes /= 2;
  return lanes > 1 ? indices / ceil(indices / lanes) : 1;
}

static void add_range(const layouts *l, nest_lanes *x, const node *range, size_t bytes) {
  double lanes = vector_speedup(l, range, bytes);
  if (lanes <= 1 || x->n == MOST_CHOICES) return;
  x->lanes[x->n] = lanes;
  x->range[x->n++] = range;
}

/** The range along which a nest reads blocks of a vector from an array whose layout is fixed, as
    prepacked weights are; NULL: none. */
static const node *blocked_range(const layouts *l, const node_list *work) {
  for (size_t i = 0; i < work->n; i++) {
    const node *n = work->at[i], *param = n->op == OP_INDEX ? n->src[0] : NULL;
    if (!param || param->op != OP_PARAM || param->rank < 2 || array_of(l, param)) continue;
    const node *last = n->src[n->n_src - 1], *extent = param->dims[param->rank - 1];
    size_t bytes = dtype_bytes((dtype)n->dtype);
    if (last->op == OP_RANGE && range_extent(last) == extent && node_is_const(extent) &&
        (size_t)node_int(extent) * bytes == l->r->target.vector)
      return last;
  }
  return NULL;
}

/** Leaves a nest no lanes but those along a range, if that is one of its choices. */
static void keep_range(nest_lanes *x, const node *range) {
  for (size_t i = 1; i < x->n; i++) {
    if (x->range[i] != range) continue;
    x->range[1] = range;
    x->lanes[1] = x->lanes[i];
    x->n = 2;
  }
}

static void add_ranges(const layouts *l, nest_lanes *x, const node_list *work) {
  const node *const *own, *b = x->binder;
  size_t n = binder_ranges(b, &own), bytes = estimate_widest_element(work, NULL);
  bool may = b->op == OP_STAGE || law_fold_is_reorderable(b, l->r->math);
  double least =
      b->op == OP_STAGE ? 2 : MACHINE_VECTORISED_FOLD_LEAST * (double)(l->r->target.vector / bytes);
  x->range[0] = NULL;
  x->lanes[0] = x->n = 1;
  for (size_t i = n; may && i-- > 0;)
    if (range_likely_trips(own[i]) >= least) add_range(l, x, own[i], bytes);
  for (size_t i = 0; i < b->free->n; i++) add_range(l, x, b->free->at[i], bytes);
  const node *blocked = b->op == OP_FOLD ? blocked_range(l, work) : NULL;
  if (blocked) keep_range(x, blocked);
}

/** Operations of adding up the lanes of a FOLD that is vectorised along a range of its own: each
    result's lanes, one by one. */
static double horizontal_sums(const node *fold, const node *range, double lanes) {
  const node *const *own;
  size_t n = binder_ranges(fold, &own);
  double results = estimate_node_operations(fold);
  if (fold->op != OP_FOLD || node_is_free_in(range, fold)) return 0;
  for (size_t i = 0; i < n; i++) results /= range_likely_trips(own[i]);
  return results * lanes;
}

/** Operations that the steps of a FOLD wait for addresses, where most read an operand without lanes
    from another page and these are more than the TLB holds; a register tile waits as a whole. */
static double page_waits(const layouts *l, const nest_lanes *x, const node *address,
                         const node *read, size_t lanes) {
  const node *const *own;
  size_t n = binder_ranges(x->binder, &own);
  double bytes = (double)dtype_bytes((dtype)read->dtype), waits = 0;
  bool is_broadcast = lanes && !node_is_free_in(x->range[lanes], address);
  if (x->binder->op != OP_FOLD || address->op == OP_WHERE || !is_broadcast) return 0;
  for (size_t i = 0; i < n; i++) {
    double apart = (double)address_likely_stride(address, own[i]) * bytes;
    if (hardware_pages_read(l->m->page, apart, range_likely_trips(own[i])) > l->m->tlb)
      waits = MACHINE_TLB_MISS_CYCLES * estimate_node_operations(x->binder);
  }
  return waits / (x->lanes[lanes] * MACHINE_TILE_SIDE_MOST);
}

/** Adds the cost of a node for each choice of a nest. */
static void add_node_cost(layouts *l, const nest_lanes *x, const node *n) {
  double work = estimate_node_operations(n), *cost = l->problem.vertices.at[x->vertex].cost;
  if (n->dtype == DT_BOOL && comparison_splits_nest(l->g, n, x->binder)) return;
  const node *param = n->op == OP_INDEX && n->src[0]->op == OP_PARAM ? n->src[0] : NULL;
  const node *address =
      param ? row_major_address(l->g, param->rank, param->dims, n->src + 1) : NULL;
  for (size_t i = 0; i < x->n && work > 0; i++) {
    if (address) cost[i] += page_waits(l, x, address, n, i);
    bool depends = i && (n == x->binder || node_is_free_in(x->range[i], n));
    if (!depends)
      cost[i] += work;
    else if (n == x->binder)
      cost[i] += work / x->lanes[i] + horizontal_sums(n, x->range[i], x->lanes[i]);
    else
      cost[i] += estimate_node_vectorised(l->g, n, x->range[i], x->lanes[i]);
  }
}

/** Adds the cost of accesses to an array for each choice of a nest and each layout; `to` NULL: an
   array that stays as it is. `scattered`: operations of an access by one lane alone. */
static void add_access_cost(layouts *l, const nest_lanes *x, const array *to, double work,
                            double scattered, const node *read, size_t rank,
                            const node *const extents[], const node *const coords[]) {
  for (size_t k = 0; k < (to ? to->n : 1); k++) {
    const node *const *in = to ? with_last(l, to, to->axis[k], extents) : extents;
    const node *const *at = to ? with_last(l, to, to->axis[k], coords) : coords;
    const node *address = row_major_address(l->g, rank, in, at);
    if (address->op == OP_WHERE && comparison_splits_nest(l->g, address->src[0], x->binder))
      address = address->src[1];
    for (size_t i = 0; i < x->n; i++) {
      double *cost = to ? pbqp_cost(&l->problem, x->vertex, i, to->vertex, k)
                        : &l->problem.vertices.at[x->vertex].cost[i];
      bool depends = i && node_is_free_in(x->range[i], address);
      double left = work;
      if (read) left += page_waits(l, x, address, read, i);
      if (depends)
        left *= address_is_unit_stride(l->g, x->range[i], address) ? 1 / x->lanes[i] : scattered;
      *cost += k ? MACHINE_LAYOUT_GAIN * left : left;
    }
  }
}

static void add_store_costs(layouts *l, const nest_lanes *x, const node *out) {
  double work = estimate_stage_stores(x->binder);
  bool is_root = out->src[out->n_src - 1] == x->binder;
  for (size_t i = 0; i < stage_n_values(x->binder); i++)
    add_access_cost(l, x, is_root ? array_of(l, out->src[i]) : NULL, work,
                    MACHINE_SCATTERED_STORE_OPERATIONS, NULL, stage_rank(x->binder, i),
                    stage_extents(x->binder, i), stage_coords(x->binder, i));
}

static size_t choice_of(const nest_lanes *x, const node *range) {
  size_t i = x->n;
  while (i-- > 1)
    if (x->range[i] == range) return i;
  return 0;
}

/** Forbids pairs of choices: a FOLD runs in the lanes of its reader if it depends on them, else in
 * its own. */
static void tie_fold_to_reader(layouts *l, const nest_lanes *fold, const nest_lanes *reader) {
  for (size_t k = 0; k < reader->n; k++) {
    const node *along = k ? reader->range[k] : NULL;
    bool depends = along && node_is_free_in(along, fold->binder);
    size_t must = depends ? choice_of(fold, along) : 0;
    for (size_t i = 0; i < fold->n; i++) {
      bool is_own = !i || !node_is_free_in(fold->range[i], fold->binder);
      if (depends ? i != must : !is_own)
        *pbqp_cost(&l->problem, fold->vertex, i, reader->vertex, k) += PBQP_FORBIDDEN;
    }
  }
}

static nest_lanes *add_nest(layouts *l, const node *binder, const node *out, const map *inner) {
  node_list work = own_nodes(l, binder);
  nest_lanes *x = arena_alloc(l->a, sizeof *x);
  double none[MOST_CHOICES] = {0};
  x->binder = binder;
  add_ranges(l, x, &work);
  x->vertex = pbqp_add(&l->problem, x->n, none);
  for (size_t i = 0; i < work.n; i++) {
    const node *n = work.at[i], *from = n->op == OP_INDEX ? n->src[0] : NULL;
    const array *to = from ? array_of(l, from) : NULL;
    if (to)
      add_access_cost(l, x, to, estimate_node_operations(n), MACHINE_GATHER_OPERATIONS, n,
                      from->rank, from->dims, n->src + 1);
    else if (n->op == OP_FOLD)
      tie_fold_to_reader(l, map_get(inner, n), x);
    else
      add_node_cost(l, x, n);
  }
  if (binder->op == OP_STAGE)
    add_store_costs(l, x, out);
  else
    add_node_cost(l, x, binder);
  return x;
}

static void add_kernel(layouts *l, const node *sink) {
  node_list order = topo_sort(l->a, &sink, 1, NULL, NULL);
  map nests = {0};
  for (size_t i = 0; i < order.n; i++)
    if (node_is_binder(order.at[i]))
      map_set(l->a, &nests, order.at[i], add_nest(l, order.at[i], sink->src[0], &nests));
}

/* The choice. */

static void choose_by_seed(layouts *l) {
  uint64_t seed = l->r->search.seed;
  for (size_t i = 0; i < l->s->buffers.n; i++) {
    array *x = &l->arrays[i];
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    if (x->n) x->last = x->axis[(seed >> 33) % x->n];
  }
}

static void choose_by_cost(layouts *l, const machine *m) {
  for (size_t i = 0; i < l->s->steps.n; i++) {
    const schedule_step *step = &l->s->steps.at[i];
    l->m = machine_of_device(m, step->device + 1);
    if (step->kernel) add_kernel(l, step->kernel);
  }
  const size_t *choice = pbqp_solve(&l->problem);
  for (size_t i = 0; i < l->s->buffers.n; i++) {
    array *x = &l->arrays[i];
    if (x->n) x->last = x->axis[choice[x->vertex]];
  }
}

/* Rewriting kernels. */

typedef struct rewriting {
  layouts *l;
  const node *out; /* of the kernel as it was */
} rewriting;

static const array *array_if_moved(const layouts *l, const node *param) {
  const array *x = array_of(l, param);
  return x && x->last != x->axis[0] ? x : NULL;
}

static const node *rewrite_param(layouts *l, const node *param) {
  const array *x = array_if_moved(l, param);
  if (!x) return NULL;
  const node *const *dims = with_last(l, x, x->last, param->dims);
  return param_like(l->g, param, dims, (size_t)param->ints[0]);
}

static void move_axis(layouts *l, const array *x, const node **at) {
  const node *const *to = with_last(l, x, x->last, at);
  for (size_t k = 0; k < x->param->rank; k++) at[k] = to[k];
}

static const node *rewrite_root(rewriting *w, const node *root, const node *const src[]) {
  binder_layout p = binder_layout_of(OP_STAGE, root->ints);
  const node **to = arena_copy(w->l->a, src, root->n_src * sizeof *to);
  for (size_t i = 0, first = 0; i < p.arrays; first += stage_rank(root, i++)) {
    const array *x = array_if_moved(w->l, w->out->src[i]);
    if (x) move_axis(w->l, x, to + p.coords + first);
    if (x) move_axis(w->l, x, to + p.extents + first);
  }
  return subst_rebuild(w->l->g, root, to);
}

static const node *rewrite_node(void *user, const node *n, const node *const src[]) {
  rewriting *w = user;
  const array *x = n->op == OP_INDEX ? array_if_moved(w->l, n->src[0]) : NULL;
  if (n->op == OP_PARAM) return rewrite_param(w->l, n);
  if (n == w->out->src[w->out->n_src - 1]) return rewrite_root(w, n, src);
  if (!x) return NULL;
  return index_make(w->l->g, (dtype)n->dtype, src[0], 0, x->param->rank,
                    with_last(w->l, x, x->last, src + 1));
}

static bool has_moved(const layouts *l, const schedule_step *step) {
  for (size_t i = 0; i < step->n_buffers; i++) {
    const array *x = &l->arrays[step->buffers[i]];
    if (x->n && x->last != x->axis[0]) return true;
  }
  return false;
}

/** Drops the slots of arrays in which another axis is last now. */
static void drop_slots(const layouts *l) {
  for (size_t i = 0; i < l->s->n_slots; i++) {
    schedule_slot *slot = &l->s->slots[i];
    const array *x = slot->buffer == SIZE_MAX ? NULL : &l->arrays[slot->buffer];
    if (x && x->n && x->last != x->axis[0]) slot->buffer = SIZE_MAX;
  }
}

void layout_choose(ir *g, const schedule_request *r, const machine *m, schedule *s) {
  arena *a = ir_scratch(g);
  layouts l = {.g = g, .a = a, .r = r, .s = s, .problem = {.a = a}};
  if (r->search.policy == FUSION_NONE || !r->target.vector) return;
  arena_mark here = arena_save(a);
  l.arrays = arena_calloc(l.a, s->buffers.n + 1, sizeof *l.arrays);
  for (size_t i = 0; i < s->steps.n; i++) record_step(&l, &s->steps.at[i]);
  for (size_t i = 0; i < s->buffers.n; i++) add_array(&l, i);
  if (r->search.policy == FUSION_RANDOM)
    choose_by_seed(&l);
  else
    choose_by_cost(&l, m);
  drop_slots(&l);
  for (size_t i = 0; i < s->steps.n; i++) {
    schedule_step *step = &s->steps.at[i];
    rewriting w = {&l, step->kernel ? step->kernel->src[0] : NULL};
    if (w.out && has_moved(&l, step))
      ir_copy(g, a, &step->kernel, 1, rewrite_node, &w, &step->kernel);
  }
  arena_rewind(a, here);
}
