/* Graphs with BUFFERs in place of nodes whose value was computed before. */
#ifndef TENON_TENSOR_RESOLVER_H
#define TENON_TENSOR_RESOLVER_H

#include "base/map.h"
#include "base/vec.h"
#include "tensor/context.h"

/** A host function's node that is run over other sources. */
typedef struct custom_image {
  const node *original, *image;
} custom_image;

/** Nodes are known by address, so none may be freed as long as it is used; all is in the context's
    arena. What stands for a BUFFER may be set in `image` beforehand. */
typedef struct resolver {
  tn_context *c;
  bool for_runs; /* of a plan: what depends on what states hold is computed then */
  map image;     /* node → what stands for it */
  map vary;      /* for runs: nodes that depend on what states hold */
  VEC(custom_image) customs;
} resolver;

/** What stands for a graph. Raises; also the failure of a state that it reads and that has no
    contents. */
const node *resolver_image(resolver *r, const node *root);

/** Raises TN_ERR_ARGUMENT if a graph depends on an input or a variable, which have values in the
    runs of plans only, or on the steps of a loop that it is outside of. */
void resolver_refuse_open(tn_context *c, const node *root);

#endif
