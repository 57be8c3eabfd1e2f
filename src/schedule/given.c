/* Kernels that the graph brings along, over the schedule's buffers. */
#include "schedule/given.h"

#include "ir/binder.h"
#include "ir/copy.h"
#include "ir/sink.h"

typedef struct placing {
  ir *g;
  const size_t *from, *to;
} placing;

static const node *param_in(ir *g, const node *like, size_t buffer, const node *const dims[]) {
  int64_t slot = (int64_t)buffer;
  return ir_node(g, OP_PARAM, (dtype)like->dtype, dims, like->rank, &slot, 1);
}

static const node *placed(void *user, const node *n, const node *const src[]) {
  placing *p = user;
  if (n->op == OP_PARAM) return param_in(p->g, n, p->from[n->ints[0]], src);
  if (n->op != OP_OUT) return NULL;
  const node **of = arena_copy(ir_arena(p->g), src, n->n_src * sizeof *of);
  for (uint32_t i = 0; i + 1 < n->n_src; i++)
    of[i] = param_in(p->g, n->src[i], p->to[n->src[i]->ints[0]], of[i]->dims);
  return ir_with_sources(p->g, n, of);
}

const node *given_kernel(ir *g, const kernel_form *f, const size_t from[], const size_t to[]) {
  placing p = {g, from, to};
  const node *made;
  ir_copy(g, ir_arena(g), &f->sink, 1, placed, &p, &made);
  return made;
}

static bool can_leave_out(ir *g, const node *value) {
  node_list order = topo_sort(ir_arena(g), &value, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_INVALID) return true;
  return false;
}

bool given_writes_all(ir *g, const kernel_form *f, size_t slot) {
  const node *stage = f->out->src[f->out->n_src - 1];
  for (uint32_t i = 0; i + 1 < f->out->n_src; i++)
    if (f->out->src[i] == f->params[slot].param)
      return stage_is_whole(stage, i) && !can_leave_out(g, stage_value(stage, i));
  return false;
}

bool given_is_scheduled(const kernel_form *f) {
  size_t bytes;
  return sink_schedule(f->sink, &bytes);
}

static bool is_at(const node *index, const node *const *coords) {
  for (uint32_t i = 1; i < index->n_src; i++)
    if (index->src[i] != coords[i - 1]) return false;
  return true;
}

bool given_is_in_place(ir *g, const node *n, const node *old) {
  arena *a = ir_arena(g);
  kernel_form f = kernel_of_node(g, a, n);
  const node *stage = f.out->src[f.out->n_src - 1];
  if (f.out->n_src != 2 || !stage_is_whole(stage, 0)) return false;
  node_list order = topo_sort(a, &f.sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *x = order.at[i], *of = x->op == OP_INDEX ? x->src[0] : NULL;
    if (!of || of->op != OP_PARAM || of->ints[0] >= n->ints[1]) continue;
    if (n->src[of->ints[0]] != old) continue;
    if (!is_at(x, stage_coords(stage, 0)) || (given_is_scheduled(&f) && of != f.out->src[0]))
      return false;
  }
  return true;
}

const node *given_copy(ir *g, const node *like, size_t from, size_t to) {
  arena *a = ir_arena(g);
  size_t rank = like->rank, n = 0;
  const node **x = arena_alloc(a, (rank + 1) * sizeof *x);
  const node **ranges = arena_alloc(a, (rank + 1) * sizeof *ranges);
  for (size_t i = 0; i < rank; i++) {
    bool one = node_is_bits(like->dims[i], 1);
    x[i] = one ? ix_const(g, 0) : range_make(g, like->dims[i], KIND_LOOP);
    if (!one) ranges[n++] = x[i];
  }
  const node *v =
      index_make(g, (dtype)like->dtype, param_in(g, like, from, like->dims), 0, rank, x);
  const node *stage = stage_make(g, &(stage_spec){.n_values = 1,
                                                  .n_ranges = n,
                                                  .values = &v,
                                                  .ranks = &rank,
                                                  .coords = x,
                                                  .extents = like->dims,
                                                  .ranges = ranges,
                                                  .cut = true});
  const node *src[] = {param_in(g, like, to, like->dims), stage};
  const node *out = ir_node(g, OP_OUT, DT_VOID, src, 2, NULL, 0);
  return ir_node(g, OP_SINK, DT_VOID, &out, 1, NULL, 0);
}
