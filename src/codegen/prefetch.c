/* Rows that are read again. A kernel that goes through a row several times waits for memory the
   first time, and has it in a near cache afterwards. Where the rows together are more than such a
   cache holds, the loop that computes most with a row fetches the next one meanwhile: its loads are
   marked with how far away that is. */
#include "codegen/codegen.h"
#include "codegen/strides.h"
#include "ir/binder.h"
#include "ir/index.h"
#include "ir/subst.h"
#include "ir/topo.h"
#include "schedule/hardware.h"

enum { LEAST_LINES = 8, ROWS_OF_CACHE = 4 };

/** What a loop reads of a buffer, side by side from some place on. */
typedef struct sweep {
  const node *param, *loop, *place;
  int64_t step, first, end; /* elements: of a step of the loop; from the place on */
  int64_t read;             /* in a step */
  node_list loads;
} sweep;

typedef struct sweeps {
  ir *g;
  arena *a;
  tn_hardware hardware;
  node_list order;
  VEC(sweep) all;
} sweeps;

/** The range with the least stride that is not below a number; NULL: none. */
static const node *range_from(const node *load, int64_t least, int64_t *stride) {
  const node *found = NULL;
  for (uint32_t i = 0; i < load->free->n; i++) {
    const node *r = load->free->at[i];
    int64_t s = range_extent(r)->hi > 1 ? stride_along(access_address(load), r) : 0;
    if (s < least || (found && s >= *stride)) continue;
    found = r;
    *stride = s;
  }
  return found;
}

static sweep *sweep_of(sweeps *s, sweep like) {
  for (size_t i = s->all.n; i-- > 0;) {
    sweep *w = &s->all.at[i];
    if (w->loop == like.loop && w->place == like.place && w->param == like.param) return w;
  }
  vec_push(s->a, &s->all, like);
  return &s->all.at[s->all.n - 1];
}

static void add_load(sweeps *s, const node *load) {
  sweep w = {.param = node_storage_root(load->src[0])};
  size_t bytes = dtype_bytes((dtype)load->dtype) * load->lanes;
  if (w.param->op != OP_PARAM || 2 * bytes < s->hardware.line_bytes) return;
  w.loop = range_from(load, load->lanes, &w.step);
  if (!w.loop || !node_is_const(range_extent(w.loop))) return;
  map begins = {0};
  map_set(s->a, &begins, w.loop, (void *)ix_const(s->g, 0));
  const node *start = subst_ranges(s->g, access_address(load), &begins);
  w.first = ix_offset(start);
  w.place = ix_add_const(s->g, start, -w.first);
  w.end = w.first + (range_extent(w.loop)->lo - 1) * w.step + load->lanes;
  sweep *all = sweep_of(s, w);
  if (all->step != w.step) return;
  if (w.first < all->first) all->first = w.first;
  if (w.end > all->end) all->end = w.end;
  all->read += load->lanes;
  vec_push(s->a, &all->loads, load);
}

/** What is computed for each element, as in `cost` of ops.def. */
static double work_of(const sweeps *s, const sweep *w) {
  double work = 0;
  for (size_t i = 0; i < s->order.n; i++) {
    const node *n = s->order.at[i];
    if (n->dtype != DT_INDEX && op_is_elementwise((op)n->op) && node_is_free_in(w->loop, n))
      work += op_work((op)n->op);
  }
  return work / (double)w->step;
}

/** Whether two loops read the same row, or most of it. */
static bool is_same_row(const sweep *a, const sweep *b) {
  if (a->param != b->param || a->place != b->place) return false;
  int64_t first = a->first > b->first ? a->first : b->first;
  int64_t end = a->end < b->end ? a->end : b->end;
  return 2 * (end - first) >= a->end - a->first && 2 * (end - first) >= b->end - b->first;
}

static bool is_best_of_row(const sweeps *s, const sweep *w) {
  double work = 0;
  size_t others = 0;
  for (size_t i = 0; i < s->all.n; i++) {
    const sweep *v = &s->all.at[i];
    if (v == w || !is_same_row(v, w)) continue;
    if (!others++) work = work_of(s, w);
    double theirs = work_of(s, v);
    if (theirs > work || (theirs == work && v > w)) return false;
  }
  return others;
}

/** How many elements away the next row is; 0: it need not be fetched, or there is none. */
static int64_t next_row(const sweeps *s, const sweep *w) {
  const node *load = w->loads.at[0];
  double bytes = (double)dtype_bytes((dtype)load->dtype);
  double row = (double)(w->end - w->first) * bytes, all = row;
  int64_t ahead = 0;
  if (w->read < w->step || row < LEAST_LINES * (double)s->hardware.line_bytes) return 0;
  if (ROWS_OF_CACHE * row > (double)s->hardware.l2_bytes) return 0;
  if (!range_from(load, w->end - w->first, &ahead)) return 0;
  for (uint32_t i = 0; i < load->free->n; i++)
    if (load->free->at[i] != w->loop) all *= (double)range_extent(load->free->at[i])->hi;
  return all > (double)s->hardware.l2_bytes ? ahead : 0;
}

const node *codegen_prefetch(ir *g, const node *sink, const target *t) {
  sweeps s = {.g = g, .a = ir_arena(g), .hardware = hardware_known(&t->hardware)};
  s.order = topo_sort(s.a, &sink, 1, NULL, NULL);
  map with = {0};
  for (size_t i = 0; i < s.order.n; i++)
    if (s.order.at[i]->op == OP_LOAD) add_load(&s, s.order.at[i]);
  for (size_t i = 0; i < s.all.n; i++) {
    const sweep *w = &s.all.at[i];
    int64_t ahead = next_row(&s, w);
    if (!ahead || !is_best_of_row(&s, w)) continue;
    for (size_t k = 0; k < w->loads.n; k++)
      map_set(s.a, &with, w->loads.at[k], (void *)access_marked(g, w->loads.at[k], ahead));
  }
  return subst(g, sink, &with);
}
