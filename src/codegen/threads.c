/* THREAD ranges become loops over a worker's share. Of U units, worker w of n takes those from
   w·U div n to (w + 1)·U div n; the sizes are fixed by shape, so no result depends on n. */
#include "codegen/codegen.h"
#include "ir/binder.h"
#include "ir/subst.h"
#include "ir/topo.h"

#include <string.h>

enum { MOST_WORKERS = 4096 };

static const node *named(ir *g, op o, const char *name, const node *const src[], size_t n,
                         const int64_t ints[], size_t n_int) {
  return ir_make(g, &(node_spec){.op = o,
                                 .dtype = DT_INDEX,
                                 .src = src,
                                 .n_src = n,
                                 .ints = ints,
                                 .n_int = n_int,
                                 .text = name,
                                 .n_text = strlen(name)});
}

/** A body with range r replaced: in places (of ALLOC, AFTER) by `mine`, in values by `index`. */
static const node *shifted(ir *g, const node *body, const node *r, const node *mine,
                           const node *index) {
  arena *a = ir_arena(g);
  map image = {0};
  node_list order = topo_sort(a, &body, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i], *made = n == r ? index : n;
    if (n != r && node_is_free_in(r, n)) {
      const node **src = arena_alloc(a, n->n_src * sizeof *src);
      for (uint32_t k = 0; k < n->n_src; k++)
        src[k] = n->src[k] == r && node_is_place(n, k) ? mine : map_get(&image, n->src[k]);
      made = subst_rebuild(g, n, src);
    }
    map_set(a, &image, n, (void *)made);
  }
  return map_get(&image, body);
}

/** END over the worker's share of a THREAD range in place of END over all of it. */
static const node *shared_out(ir *g, const node *end) {
  const node *r = end->src[0], *units = range_extent(r);
  int64_t bounds[] = {1, MOST_WORKERS};
  const node *count = named(g, OP_VAR, "core_count", NULL, 0, bounds, 2);
  const node *id = named(g, OP_SPECIAL, "core_id", &count, 1, NULL, 0);
  const node *first = ix_floordiv(g, ix_mul(g, id, units), count);
  const node *next = ix_floordiv(g, ix_mul(g, ix_add_const(g, id, 1), units), count);
  const node *mine = range_make(g, ix_sub(g, next, first), KIND_LOOP);
  const node **src = arena_alloc(ir_arena(g), end->n_src * sizeof *src);
  src[0] = mine;
  for (uint32_t i = 1; i < end->n_src; i++)
    src[i] = shifted(g, end->src[i], r, mine, ix_add(g, first, mine));
  return ir_node(g, OP_END, DT_VOID, src, end->n_src, NULL, 0);
}

const node *codegen_threads(ir *g, const node *sink) {
  node_list order = topo_sort(ir_arena(g), &sink, 1, NULL, NULL);
  map with = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *end = order.at[i];
    if (end->op == OP_END && range_kind_of(end->src[0]) == KIND_THREAD)
      map_set(ir_arena(g), &with, end, (void *)shared_out(g, end));
  }
  return subst(g, sink, &with);
}
