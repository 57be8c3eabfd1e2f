/* Kernels under names that depend on the kernel alone. */
#include "ir/binder.h"
#include "ir/subst.h"
#include "schedule/passes.h"

typedef struct renaming {
  ir *g;
  arena *a;
  map image;
  VEC(size_t) buffers;
  int64_t ranges;
} renaming;

static int64_t position(renaming *r, size_t buffer) {
  for (size_t i = 0; i < r->buffers.n; i++)
    if (r->buffers.at[i] == buffer) return (int64_t)i;
  vec_push(r->a, &r->buffers, buffer);
  return (int64_t)r->buffers.n - 1;
}

static const node *renamed(renaming *r, const node *n) {
  const node **src = arena_alloc(r->a, n->n_src * sizeof *src);
  for (uint32_t i = 0; i < n->n_src; i++) src[i] = map_get(&r->image, n->src[i]);
  if (n->op == OP_PARAM) {
    int64_t slot = position(r, (size_t)n->ints[0]);
    return ir_node(r->g, OP_PARAM, (dtype)n->dtype, src, n->n_src, &slot, 1);
  }
  if (n->op == OP_RANGE) {
    int64_t ints[] = {r->ranges++, n->ints[1], n->ints[2], n->ints[3]};
    return ir_node(r->g, OP_RANGE, DT_INDEX, src, 1, ints, 4);
  }
  return subst_rebuild(r->g, n, src);
}

const node *kernel_renamed(ir *g, const node *sink, size_t **buffers, size_t *n) {
  renaming r = {.g = g, .a = ir_arena(g)};
  const node *out = sink->src[0];
  for (uint32_t i = 0; i + 1 < out->n_src; i++) position(&r, (size_t)out->src[i]->ints[0]);
  node_list order = topo_sort(r.a, &sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    map_set(r.a, &r.image, order.at[i], (void *)renamed(&r, order.at[i]));
  *buffers = r.buffers.at;
  *n = r.buffers.n;
  return map_get(&r.image, sink);
}
