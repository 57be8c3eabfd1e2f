/* Realising: values and pending assigns computed as one plan. */
#ifndef TENON_TENSOR_REALIZE_H
#define TENON_TENSOR_REALIZE_H

#include "base/map.h"
#include "base/vec.h"
#include "tensor/state.h"

/** A node to be realised. The slot holds a reference to it; afterwards it holds the BUFFER with its
    value instead. */
typedef struct ask {
  const node **slot;
  bool optional; /* left as it is if it depends on inputs or variables of plans */
} ask;

/** Which assigns go with it, and what becomes of them if it fails. */
typedef enum realize_mode {
  REALIZE_ALL,   /* all; they are forgotten if they fail */
  REALIZE_LAST,  /* all; they are forgotten in any case */
  REALIZE_BEFORE /* those made outside of the innermost scope; kept if they fail */
} realize_mode;

/** Runs. Called in a taken context, not under its catch; the failure is in its diag. */
tn_status realize(tn_context *c, const ask asks[], size_t n, realize_mode mode);

/** A host function's node that is run over other sources. */
typedef struct custom_image {
  const node *original, *image;
} custom_image;

/** Graphs with BUFFERs in place of nodes whose value was computed before. Nodes are known by
    address, so none may be freed as long as it is used; all is in the context's arena. */
typedef struct resolver {
  tn_context *c;
  map image; /* node → what stands for it */
  VEC(custom_image) customs;
} resolver;
const node *resolver_image(resolver *r, const node *root);

#endif
