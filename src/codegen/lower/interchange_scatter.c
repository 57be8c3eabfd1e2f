/* Interchanges the loops of a scatter of rows: the loop over a row's columns moves inside of the
   loops over the places, so that each place is loaded and checked once, not once for each vector of
   a row, and rows are read as they lie. Iterations of the columns' loop must be independent, as
   those of a parallel loop are. */
#include "codegen/lower/interchange_scatter.h"

#include "codegen/lower/memory_access.h"
#include "ir/core/binder.h"
#include "ir/core/topo_sort.h"
#include "ir/index/address_stride.h"

/** True if a store goes to a buffer, at a loaded place and in contiguous elements along a range. */
static bool stores_a_row(ir *g, const node *store, const node *columns) {
  if (store->op != OP_STORE || node_storage_root(store->src[0])->op != OP_PARAM) return false;
  const node *address = memory_access_address(store);
  if (address_stride(address, columns) != store->src[2]->lanes) return false;
  node_list order = topo_sort(ir_arena(g), &address, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_LOAD && !node_is_free_in(columns, order.at[i])) return true;
  return false;
}

/** The innermost of the loops that `end` is the outermost of, none of which has anything beside the
    next one in its body; NULL: a loop's bounds depend on `columns`. */
static const node *innermost_loop(const node *end, const node *columns) {
  while (end->n_src == 2 && end->src[1]->op == OP_END) {
    end = end->src[1];
    if (range_kind_of(end->src[0]) != KIND_LOOP || node_is_free_in(columns, end->src[0]))
      return NULL;
  }
  return end;
}

/** True if all that an innermost loop's body does along `columns` is to store rows. */
static bool scatters_rows(ir *g, const node *innermost, const node *columns) {
  node_list body = topo_sort(ir_arena(g), innermost->src + 1, innermost->n_src - 1, NULL, NULL);
  size_t effects = 0;
  for (size_t i = 0; i < body.n; i++) {
    bool is_effect = body.at[i]->op == OP_STORE || body.at[i]->op == OP_END;
    effects += is_effect && node_is_free_in(columns, body.at[i]);
  }
  for (uint32_t i = 1; i < innermost->n_src; i++)
    if (!stores_a_row(g, innermost->src[i], columns)) return false;
  return effects == innermost->n_src - 1u;
}

/** A nest without its outermost loop, the body of whose innermost one is `body`. */
static const node *nest_around(ir *g, const node *end, const node *innermost, const node *body) {
  if (end != innermost) body = nest_around(g, end->src[1], innermost, body);
  return ir_node(g, OP_END, DT_VOID, (const node *[]){end->src[0], body}, 2, NULL, 0);
}

const node *interchange_scatter(ir *g, const node *end) {
  const node *columns = end->src[0], *innermost = innermost_loop(end, columns);
  if (!innermost || innermost == end || !scatters_rows(g, innermost, columns)) return end;
  const node **src = arena_copy(ir_arena(g), innermost->src, innermost->n_src * sizeof *src);
  src[0] = columns;
  const node *body = ir_node(g, OP_END, DT_VOID, src, innermost->n_src, NULL, 0);
  return nest_around(g, end->src[1], innermost, body);
}
