/* Substitution of BUFFERs for nodes whose values were computed before. */
#ifndef TENON_TENSOR_EVAL_SUBSTITUTE_VALUES_H
#define TENON_TENSOR_EVAL_SUBSTITUTE_VALUES_H

#include "base/map.h"
#include "base/vec.h"
#include "tensor/context/context.h"

/** A host function's node, rebuilt over substituted sources. */
typedef struct host_call_image {
  const node *original, *image;
} host_call_image;

/** Nodes are keyed by address, so none may be freed during its use. Everything is in the context's
    arena. The caller may set images of BUFFERs beforehand. */
typedef struct value_substitution {
  tn_context *c;
  bool for_plan;   /* nodes that depend on the contents of states are left to the plan's runs */
  map image;       /* node → its substitute */
  map state_reads; /* for plans: nodes that depend on the contents of states */
  VEC(host_call_image) host_calls;
} value_substitution;

/** The substitute of a graph. Raises; also the failure of a state that the graph reads and that has
    no contents. */
const node *substitute_values(value_substitution *r, const node *root);

/** Raises TN_ERR_ARGUMENT if a graph depends on an input or a variable, which have values in the
    runs of plans only, or on the steps of a loop that it is outside of. */
void refuse_unbound_graph(tn_context *c, const node *root);

#endif
