/* Binds user kernels (written in the IR by the caller) to the schedule's buffers, and tests the
   properties of their index maps that decide whether inputs that are written must be copied
   first. */
#include "schedule/core/user_kernel.h"

#include "ir/core/binder.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/write_once.h"
#include "ir/text/sink_text.h"
#include "ir/transform/copy_graph.h"
#include "schedule/core/param_like.h"

typedef struct binding {
  ir *g;
  const size_t *from, *to;
} binding;

static const node *bind_node(void *user, const node *n, const node *const src[]) {
  binding *p = user;
  if (n->op == OP_PARAM) return param_like(p->g, n, src, p->from[n->ints[0]]);
  if (n->op != OP_OUT) return NULL;
  const node **of = arena_copy(ir_arena(p->g), src, n->n_src * sizeof *of);
  for (uint32_t i = 0; i + 1 < n->n_src; i++)
    of[i] = param_like(p->g, n->src[i], of[i]->dims, p->to[n->src[i]->ints[0]]);
  return ir_with_sources(p->g, n, of);
}

const node *user_kernel_bind(ir *g, const kernel_signature *f, const size_t from[],
                             const size_t to[]) {
  binding p = {g, from, to};
  const node *made;
  ir_copy(g, ir_arena(g), &f->sink, 1, bind_node, &p, &made);
  return made;
}

static bool may_skip_elements(ir *g, const node *value) {
  node_list order = topo_sort(ir_arena(g), &value, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_INVALID) return true;
  return false;
}

bool user_kernel_writes_all(ir *g, const kernel_signature *f, size_t slot) {
  const node *stage = f->out->src[f->out->n_src - 1];
  for (uint32_t i = 0; i + 1 < f->out->n_src; i++)
    if (f->out->src[i] == f->params[slot].param)
      return stage_is_bijection(stage, i) && !may_skip_elements(g, stage_value(stage, i));
  return false;
}

bool user_kernel_is_scheduled(const kernel_signature *f) {
  size_t bytes;
  return sink_schedule(f->sink, &bytes);
}

static bool has_coords(const node *index, const node *const *coords) {
  for (uint32_t i = 1; i < index->n_src; i++)
    if (index->src[i] != coords[i - 1]) return false;
  return true;
}

bool user_kernel_is_in_place(ir *g, const node *n, const node *old) {
  arena *a = ir_arena(g);
  kernel_signature f = kernel_signature_of_node(g, a, n);
  const node *stage = f.out->src[f.out->n_src - 1];
  if (f.out->n_src != 2 || !stage_is_bijection(stage, 0)) return false;
  node_list order = topo_sort(a, &f.sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *x = order.at[i], *of = x->op == OP_INDEX ? x->src[0] : NULL;
    if (!of || of->op != OP_PARAM || of->ints[0] >= n->ints[1]) continue;
    if (n->src[of->ints[0]] != old) continue;
    if (!has_coords(x, stage_coords(stage, 0)) ||
        (user_kernel_is_scheduled(&f) && of != f.out->src[0]))
      return false;
  }
  return true;
}

const node *user_kernel_copy(ir *g, const node *like, size_t from, size_t to) {
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
      index_make(g, (dtype)like->dtype, param_like(g, like, like->dims, from), 0, rank, x);
  const node *stage = stage_make(g, &(stage_spec){.n_values = 1,
                                                  .n_ranges = n,
                                                  .values = &v,
                                                  .ranks = &rank,
                                                  .coords = x,
                                                  .extents = like->dims,
                                                  .ranges = ranges,
                                                  .cut = true});
  const node *src[] = {param_like(g, like, like->dims, to), stage};
  const node *out = ir_node(g, OP_OUT, DT_VOID, src, 2, NULL, 0);
  return ir_node(g, OP_SINK, DT_VOID, &out, 1, NULL, 0);
}
