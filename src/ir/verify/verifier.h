/* Internal header of the IR verifier: the state of one run over a graph, and the checks by pipeline
   stage that its source files share. Each check raises TN_ERR_INTERNAL with the printed line of the
   first ill-formed node that it meets. */
#ifndef TENON_IR_VERIFY_VERIFIER_H
#define TENON_IR_VERIFY_VERIFIER_H

#include "base/map.h"
#include "ir/core/op.h"
#include "ir/core/topo_sort.h"

typedef struct verifier {
  arena work;
  const node *const *roots;
  size_t n;
  enum stage stage;
  node_list order; /* all nodes that are checked, sources first */
  map scopes;      /* RANGE → where it is open (verify_binders.c) */
} verifier;

/** Raises "ill-formed graph: LINE OF n: why", followed by the line of `about` unless it is NULL. */
_Noreturn void verify_fail(verifier *v, const node *n, const node *about, const char *why);

/** Stage tensor: SETs write views of their tensor; LOOPs, their ranges and CARRYs belong
    together. */
void verify_tensors(verifier *v);

/** Stages kernel and lowered: each range has one binder and is used inside of it alone; sizes,
    starts, terms and coordinates are free of what they must not depend on. */
void verify_binders(verifier *v);

/** Stage kernel, after verify_binders: STATEs belong to a FOLD that has them. */
void verify_states(verifier *v);

/** Stage lowered: an effect belongs to exactly one loop. */
void verify_effects(verifier *v);

/** Stage linear: instructions are listed once, after their sources and inside of their loops, and
    registers are addressed by constants. */
void verify_linear(verifier *v);

#endif
