/* Reference counts of a graph that is about to run: which nodes are read after the run, by
   comparing a node's references with those that are known to go. BUFFERs that nothing reads later
   may be overwritten. */
#ifndef TENON_TENSOR_EVAL_REFERENCE_COUNTS_H
#define TENON_TENSOR_EVAL_REFERENCE_COUNTS_H

#include "base/map.h"
#include "ir/core/topo_sort.h"
#include "tensor/context/context.h"

/** Lists are in the context's arena; functions that fill them in raise. */
typedef struct reference_counts {
  tn_context *c;
  node_list order;   /* the graph, sources first */
  map index_of;      /* node → its index in `order` + 1 */
  bool *unbound;     /* by node: depends on inputs or variables of plans, or on the steps of a loop
                        that it is outside of */
  uint32_t *n_known; /* by node: references that the graph holds or the run drops */
  map n_dropped;     /* node outside of the graph → references to it that the run drops */
  bool *needed;      /* by node: something reads it after the run */
  bool may_fail;     /* in the middle of the run: it has host functions, or loops that the context's
                        progress may cancel */
} reference_counts;

/** Lists the graph of `roots`. */
void reference_counts_list(reference_counts *u, const node *const roots[], size_t n);

size_t reference_counts_index(const reference_counts *u, const node *n);

/** Fills in `unbound`; true if any node is. */
bool reference_counts_find_unbound(reference_counts *u);

/** Counts the references that the graph itself holds. */
void reference_counts_init(reference_counts *u);

/** Counts one more known reference. NULL and nodes outside of the graph are ignored. */
void reference_counts_add(reference_counts *u, const node *n);

/** Counts a reference that the run drops, to any node: a node without further references drops
   those that it holds itself. */
void reference_counts_release(reference_counts *u, const node *n);

/** True if a node has more references than are known. */
bool reference_counts_held_outside(const reference_counts *u, const node *n);

/** Fills in `needed`. Sources of a needed node are needed too, even if its value is kept: a plan
   may compute the node anew. */
void reference_counts_find_needed(reference_counts *u);

/** True if a BUFFER holds a state's contents that nothing reads after the run. False in a graph
    whose run may fail in the middle: contents written in place could not be restored. */
bool reference_counts_may_overwrite(const reference_counts *u, const node *buffer);

#endif
