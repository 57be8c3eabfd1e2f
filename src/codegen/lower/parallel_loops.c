/* Lowers parallel loops: a THREAD range becomes a loop over a worker's share of its indices. Of U
   indices, worker w of n takes those from w·U div n to (w + 1)·U div n. All sizes are fixed by
   shape, so no result depends on n. Where the amount of work depends on sizes that vary, the launch
   computes n: all workers, or fewer, such that each one's share takes longer than fork and join.
   Indices that may store one element are the last two where blocks overlap (law OVERLAP): one
   worker takes both. */
#include "codegen/codegen.h"
#include "codegen/lower/interchange_scatter.h"
#include "ir/core/binder.h"
#include "ir/core/topo_sort.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"
#include "target/machine.h"
#include "target/target.h"

#include <string.h>

enum {
  MOST_SIZE = MACHINE_MOST_WORKERS *
              MACHINE_FORK_JOIN_OPERATIONS, /* more makes no difference, and may overflow */
  MOST_PRODUCTS = 8, /* with MOST_NODES, a bound of the launch's expression */
  MOST_NODES = 12    /* of a size in it */
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

/* The number of workers. */

/** Operations for each index of a product of sizes that vary. */
typedef struct product {
  const node *sizes;
  double operations;
} product;

typedef struct products {
  product at[MOST_PRODUCTS];
  size_t n;
  bool has_open_sizes;
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
  case OP_FLOORDIV:
    return n->src[0]->lo >= 0 &&
           n->src[1]->lo > 0; /* else it needs comparisons, which launches lack */
  default: return false;
  }
}

/** True if a launch expression can compute a size in few steps. */
static bool is_launch_size(ir *g, const node *size) {
  node_list order = topo_sort(ir_arena(g), &size, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (!is_arithmetic(order.at[i])) return false;
  return order.n <= MOST_NODES;
}

static const node *clip_size(ir *g, const node *size) {
  return ix_min(g, ix_max(g, size, ix_const(g, 0)), ix_const(g, MOST_SIZE));
}

static void add_operations(ir *g, products *p, const node *n) {
  double operations = op_instruction_cost((op)n->op);
  const node *sizes = ix_const(g, 1);
  for (uint32_t i = 0; i < n->free->n; i++) {
    const node *extent = range_extent(n->free->at[i]);
    bool varies = !node_is_const(extent) && !extent->free->n;
    p->has_open_sizes |= varies;
    if (varies && is_launch_size(g, extent))
      sizes = clip_size(g, ix_mul(g, sizes, clip_size(g, extent)));
    else
      operations *= varies ? ix_likely(extent) : (double)extent->hi;
  }
  size_t k = operations > 0 ? 0 : MOST_PRODUCTS;
  while (k < p->n && p->at[k].sizes != sizes) k++;
  if (k == MOST_PRODUCTS) return;
  if (k == p->n) p->at[p->n++] = (product){sizes, 0};
  p->at[k].operations += operations;
}

static bool is_operation(const node *n) {
  bool computes = op_is_elementwise((op)n->op) && n->dtype != DT_INDEX;
  return computes || n->op == OP_LOAD || n->op == OP_STORE;
}

/** A product's operations, in units of fork and join. */
static const node *fork_joins(ir *g, const product *p) {
  double each = p->operations / MACHINE_FORK_JOIN_OPERATIONS;
  if (each >= 1)
    return ix_scale(g, p->sizes,
                    each < MACHINE_MOST_WORKERS ? (int64_t)each : MACHINE_MOST_WORKERS);
  return ix_floordiv(g, p->sizes, ix_const(g, (int64_t)(1 / each)));
}

/** The workers of a launch. */
static const node *count_workers(ir *g, const node_list *order, const target *t) {
  const int64_t bounds[] = {1, MACHINE_MOST_WORKERS};
  const node *all = named(g, OP_VAR, "core_count", NULL, 0, bounds, 2), *n = ix_const(g, 0);
  products p = {0};
  for (size_t i = 0; i < order->n; i++)
    if (is_operation(order->at[i])) add_operations(g, &p, order->at[i]);
  for (size_t i = 0; i < p.n; i++) n = ix_add(g, n, fork_joins(g, &p.at[i]));
  bool has_bounds =
      !rule_target_lacks_op(&t->rules, OP_MIN) && !rule_target_lacks_op(&t->rules, OP_MAX);
  return p.has_open_sizes && has_bounds ? ix_min(g, all, ix_max(g, n, ix_const(g, 1))) : all;
}

/* The loops. */

/** True if a store inside an END is at a minimum that depends on the END's range: in blocks of
    OVERLAP, of which the last two units have elements in common. */
static bool has_overlapping_stores(ir *g, const node *end) {
  const node *r = end->src[0];
  node_list order = topo_sort(ir_arena(g), end->src + 1, end->n_src - 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    if (order.at[i]->op != OP_STORE) continue;
    node_list address = topo_sort(ir_arena(g), &order.at[i]->src[1], 1, NULL, NULL);
    for (size_t k = 0; k < address.n; k++)
      if (address.at[k]->op == OP_MIN && node_is_free_in(r, address.at[k])) return true;
  }
  return false;
}

/** The unit at which the share of worker `id` begins: id·U div n. Where the last two units may not
    be apart, U − 1 becomes U: b + (b + 1) div U, at most U. */
static const node *share_start(ir *g, const node *id, const node *units, const node *count,
                               bool joins_last_two) {
  const node *start = ix_floordiv(g, ix_mul(g, id, units), count);
  if (!joins_last_two || node_is_bits(units, 1)) return start;
  const node *divisor = ix_max(g, units, ix_const(g, 2));
  return ix_min(g, ix_add(g, start, ix_floordiv(g, ix_add_const(g, start, 1), divisor)), units);
}

/** The loops of a worker's share of a THREAD range, in place of the END over all of it. Its units
   are independent but for the last two, where blocks overlap. */
static const node *divide_loop(ir *g, const node *end, const node *count) {
  const node *r = end->src[0], *units = range_extent(r);
  const node *id = named(g, OP_SPECIAL, "core_id", &count, 1, NULL, 0);
  bool joined = has_overlapping_stores(g, end);
  const node *first = share_start(g, id, units, count, joined);
  const node *next = share_start(g, ix_add_const(g, id, 1), units, count, joined);
  const node *mine = range_make(g, ix_sub(g, next, first), KIND_LOOP);
  map moved = {0};
  map_set(ir_arena(g), &moved, r, (void *)ix_add(g, first, mine));
  const node **src = arena_alloc(ir_arena(g), end->n_src * sizeof *src);
  src[0] = mine;
  for (uint32_t i = 1; i < end->n_src; i++) src[i] = subst_ranges(g, end->src[i], &moved);
  const node *made = ir_node(g, OP_END, DT_VOID, src, end->n_src, NULL, 0);
  return joined ? made : interchange_scatter(g, made);
}

const node *codegen_parallel_loops(ir *g, const node *sink, const target *t) {
  node_list order = topo_sort(ir_arena(g), &sink, 1, NULL, NULL);
  const node *count = NULL;
  map with = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *end = order.at[i];
    if (end->op != OP_END || range_kind_of(end->src[0]) != KIND_THREAD) continue;
    if (!count) count = count_workers(g, &order, t);
    map_set(ir_arena(g), &with, end, (void *)divide_loop(g, end, count));
  }
  return subst(g, sink, &with);
}
