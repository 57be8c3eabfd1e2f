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

/** END over the worker's share of a THREAD range in place of END over all of it. */
static const node *shared_out(ir *g, const node *end) {
  const node *r = end->src[0], *units = range_extent(r);
  int64_t bounds[] = {1, MOST_WORKERS};
  const node *count = named(g, OP_VAR, "core_count", NULL, 0, bounds, 2);
  const node *id = named(g, OP_SPECIAL, "core_id", &count, 1, NULL, 0);
  const node *first = ix_floordiv(g, ix_mul(g, id, units), count);
  const node *next = ix_floordiv(g, ix_mul(g, ix_add_const(g, id, 1), units), count);
  const node *mine = range_make(g, ix_sub(g, next, first), KIND_LOOP);
  map moved = {0};
  map_set(ir_arena(g), &moved, r, (void *)ix_add(g, first, mine));
  const node **src = arena_alloc(ir_arena(g), end->n_src * sizeof *src);
  src[0] = mine;
  for (uint32_t i = 1; i < end->n_src; i++) src[i] = subst_ranges(g, end->src[i], &moved);
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
