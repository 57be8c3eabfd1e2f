/* THREAD ranges become loops over a worker's share. Of U units, worker w of n takes those from
   w·U div n to (w + 1)·U div n; the sizes are fixed by shape, so no result depends on n. Where how
   much there is to do depends on sizes that vary, the launch finds n: as many workers as there are,
   or fewer, of whose shares each takes longer than to hand it over. */
#include "codegen/codegen.h"
#include "codegen/target.h"
#include "ir/binder.h"
#include "ir/subst.h"
#include "ir/topo.h"

#include <string.h>

enum {
  MOST_WORKERS = 4096,
  MOST_SIZE = MOST_WORKERS * TARGET_HAND_OVER, /* more makes no difference, and may overflow */
  MOST_PRODUCTS = 8,
  MOST_NODES = 12 /* of a size that is looked at */
};

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

/* How many workers. */

/** Operations for each of as many indices as sizes that vary multiply to. */
typedef struct product {
  const node *sizes;
  double operations;
} product;

typedef struct products {
  product at[MOST_PRODUCTS];
  size_t n;
  bool vary;
} products;

static bool is_arithmetic(const node *n) {
  switch (n->op) {
  case OP_CONST:
  case OP_VAR:
  case OP_AFFINE:
  case OP_ADD:
  case OP_MUL:
  case OP_MIN:
  case OP_MAX: return true;
  case OP_FLOORDIV: return n->src[0]->lo >= 0 && n->src[1]->lo > 0; /* else it needs comparisons */
  default: return false;
  }
}

/** Whether a launch can compute a size, in few steps. */
static bool is_launch_size(ir *g, const node *size) {
  node_list order = topo_sort(ir_arena(g), &size, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (!is_arithmetic(order.at[i])) return false;
  return order.n <= MOST_NODES;
}

static const node *clipped(ir *g, const node *size) {
  return ix_min(g, ix_max(g, size, ix_const(g, 0)), ix_const(g, MOST_SIZE));
}

static void add_work(ir *g, products *p, const node *n) {
  double operations = op_work((op)n->op);
  const node *sizes = ix_const(g, 1);
  for (uint32_t i = 0; i < n->free->n; i++) {
    const node *extent = range_extent(n->free->at[i]);
    bool varies = !node_is_const(extent) && !extent->free->n;
    p->vary |= varies;
    if (varies && is_launch_size(g, extent))
      sizes = clipped(g, ix_mul(g, sizes, clipped(g, extent)));
    else
      operations *= (double)(!varies ? extent->hi : extent->lo > 1 ? extent->lo : 1);
  }
  size_t k = operations > 0 ? 0 : MOST_PRODUCTS;
  while (k < p->n && p->at[k].sizes != sizes) k++;
  if (k == MOST_PRODUCTS) return;
  if (k == p->n) p->at[p->n++] = (product){sizes, 0};
  p->at[k].operations += operations;
}

static bool is_work(const node *n) {
  bool computes = op_is_elementwise((op)n->op) && n->dtype != DT_INDEX;
  return computes || n->op == OP_LOAD || n->op == OP_STORE;
}

/** How many hand-overs a product's work is worth. */
static const node *worth(ir *g, const product *p) {
  double each = p->operations / TARGET_HAND_OVER;
  if (each >= 1) return ix_scale(g, p->sizes, each < MOST_WORKERS ? (int64_t)each : MOST_WORKERS);
  return ix_floordiv(g, p->sizes, ix_const(g, (int64_t)(1 / each)));
}

/** The workers of a launch. */
static const node *count_workers(ir *g, const node_list *order, const target *t) {
  const int64_t bounds[] = {1, MOST_WORKERS};
  const node *all = named(g, OP_VAR, "core_count", NULL, 0, bounds, 2), *n = ix_const(g, 0);
  products p = {0};
  for (size_t i = 0; i < order->n; i++)
    if (is_work(order->at[i])) add_work(g, &p, order->at[i]);
  for (size_t i = 0; i < p.n; i++) n = ix_add(g, n, worth(g, &p.at[i]));
  bool can = !target_lacks(&t->rules, OP_MIN) && !target_lacks(&t->rules, OP_MAX);
  return p.vary && can ? ix_min(g, all, ix_max(g, n, ix_const(g, 1))) : all;
}

/* Shares. */

/** END over the worker's share of a THREAD range in place of END over all of it. */
static const node *shared_out(ir *g, const node *end, const node *count) {
  const node *r = end->src[0], *units = range_extent(r);
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

const node *codegen_threads(ir *g, const node *sink, const target *t) {
  node_list order = topo_sort(ir_arena(g), &sink, 1, NULL, NULL);
  const node *count = NULL;
  map with = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *end = order.at[i];
    if (end->op != OP_END || range_kind_of(end->src[0]) != KIND_THREAD) continue;
    if (!count) count = count_workers(g, &order, t);
    map_set(ir_arena(g), &with, end, (void *)shared_out(g, end, count));
  }
  return subst(g, sink, &with);
}
