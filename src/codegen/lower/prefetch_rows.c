/* Finds rows to prefetch. A kernel that walks through a row several times waits for memory the
   first time and finds the row in a near cache afterwards. Where all rows together exceed the
   second cache, the loop that computes most with a row prefetches the next one meanwhile, a line
   for each of its loads. */
#include "codegen/lower/memory_access.h"
#include "codegen/lower/prefetch.h"
#include "ir/core/binder.h"
#include "ir/index/address_stride.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"
#include "target/machine.h"

/** The elements of a buffer that a loop reads contiguously: place + first … place + end − 1. */
typedef struct sweep {
  const node *param, *loop, *place;
  int64_t step;       /* stride of the loop, in elements */
  int64_t first, end; /* elements, relative to the place */
  int64_t read;       /* elements that one iteration loads */
  node_list loads;
} sweep;

typedef struct sweeps {
  prefetching *in;
  VEC(sweep) all;
} sweeps;

/** The range of least stride, of those with strides of at least `least`; NULL: none. */
static const node *least_stride_range(const node *load, int64_t least, int64_t *stride) {
  const node *found = NULL;
  for (uint32_t i = 0; i < load->free->n; i++) {
    const node *r = load->free->at[i];
    int64_t s = range_extent(r)->hi > 1 ? address_stride(memory_access_address(load), r) : 0;
    if (s < least || (found && s >= *stride)) continue;
    found = r;
    *stride = s;
  }
  return found;
}

static sweep *find_or_add_sweep(sweeps *s, sweep like) {
  for (size_t i = s->all.n; i-- > 0;) {
    sweep *w = &s->all.at[i];
    if (w->loop == like.loop && w->place == like.place && w->param == like.param) return w;
  }
  vec_push(s->in->a, &s->all, like);
  return &s->all.at[s->all.n - 1];
}

static void add_load(sweeps *s, const node *load) {
  sweep w = {.param = node_storage_root(load->src[0])};
  size_t bytes = dtype_bytes((dtype)load->dtype) * load->lanes;
  if (w.param->op != OP_PARAM ||
      (double)bytes < MACHINE_PREFETCHING_LOAD_LINE_SHARE * s->in->hardware.line_bytes)
    return;
  w.loop = least_stride_range(load, load->lanes, &w.step);
  if (!w.loop || !node_is_const(range_extent(w.loop))) return;
  map begins = {0};
  map_set(s->in->a, &begins, w.loop, (void *)ix_const(s->in->g, 0));
  const node *start = subst_ranges(s->in->g, memory_access_address(load), &begins);
  w.first = ix_offset(start);
  w.place = ix_add_const(s->in->g, start, -w.first);
  w.end = w.first + (range_extent(w.loop)->lo - 1) * w.step + load->lanes;
  sweep *all = find_or_add_sweep(s, w);
  if (all->step != w.step) return;
  if (w.first < all->first) all->first = w.first;
  if (w.end > all->end) all->end = w.end;
  all->read += load->lanes;
  vec_push(s->in->a, &all->loads, load);
}

/** Operations for each element of a sweep (`cost` of ops.def). */
static double operations_per_element(const sweeps *s, const sweep *w) {
  double work = 0;
  for (size_t i = 0; i < s->in->order.n; i++) {
    const node *n = s->in->order.at[i];
    if (n->dtype != DT_INDEX && op_is_elementwise((op)n->op) && node_is_free_in(w->loop, n))
      work += op_instruction_cost((op)n->op);
  }
  return work / (double)w->step;
}

/** True if two loops read the same row, or most of it. */
static bool is_same_row(const sweep *a, const sweep *b) {
  if (a->param != b->param || a->place != b->place) return false;
  int64_t first = a->first > b->first ? a->first : b->first;
  int64_t end = a->end < b->end ? a->end : b->end;
  return 2 * (end - first) >= a->end - a->first && 2 * (end - first) >= b->end - b->first;
}

/** True if a sweep computes most of at least two that read its row. */
static bool is_heaviest_of_row(const sweeps *s, const sweep *w) {
  double work = 0;
  size_t others = 0;
  for (size_t i = 0; i < s->all.n; i++) {
    const sweep *v = &s->all.at[i];
    if (v == w || !is_same_row(v, w)) continue;
    if (!others++) work = operations_per_element(s, w);
    double theirs = operations_per_element(s, v);
    if (theirs > work || (theirs == work && v > w)) return false;
  }
  return others;
}

/** Distance to the next row in elements; 0: none, or prefetching it does not pay. */
static int64_t prefetch_distance(const sweeps *s, const sweep *w) {
  const node *load = w->loads.at[0];
  double bytes = (double)dtype_bytes((dtype)load->dtype);
  double row = (double)(w->end - w->first) * bytes, all = row;
  int64_t ahead = 0;
  if (w->read < w->step || row < MACHINE_PREFETCHED_LINES * (double)s->in->hardware.line_bytes)
    return 0;
  if (row > MACHINE_PREFETCHED_ROW_L2_SHARE * (double)s->in->hardware.l2_bytes) return 0;
  if (!least_stride_range(load, w->end - w->first, &ahead)) return 0;
  for (uint32_t i = 0; i < load->free->n; i++)
    if (load->free->at[i] != w->loop) all *= range_likely_trips(load->free->at[i]);
  return all > (double)s->in->hardware.l2_bytes ? ahead : 0;
}

void prefetch_find_rows(prefetching *p) {
  sweeps s = {.in = p};
  for (size_t i = 0; i < p->order.n; i++)
    if (p->order.at[i]->op == OP_LOAD) add_load(&s, p->order.at[i]);
  for (size_t i = 0; i < s.all.n; i++) {
    const sweep *w = &s.all.at[i];
    int64_t ahead = prefetch_distance(&s, w);
    if (!ahead || !is_heaviest_of_row(&s, w)) continue;
    for (size_t k = 0; k < w->loads.n; k++) {
      const node *load = w->loads.at[k], *at = memory_access_address(load);
      prefetch f = {loop_tree_around(&p->tree, load), w->param, ix_add_const(p->g, at, ahead)};
      vec_push(p->a, &p->found, f);
    }
  }
}
