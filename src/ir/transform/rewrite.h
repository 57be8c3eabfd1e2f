/* Applies sets of compiled rewrite rules to a graph, bottom-up until none fires. */
#ifndef TENON_IR_TRANSFORM_REWRITE_H
#define TENON_IR_TRANSFORM_REWRITE_H

#include "ir/core/ir.h"
#include "ir/core/math_mode.h"
#include "ir/transform/rule_target.h"

typedef struct rewriter {
  ir *ir;
  int math;                  /* math_mode: freedoms of float rules */
  const rule_target *target; /* NULL: lowering rules do not fire */
  void (*fired)(void *user, const char *rule, const node *before, const node *after); /* or NULL */
  void *user;
  uint64_t fires; /* rules fired so far */
} rewriter;

/** A compiled set of rules. Tries the rules for the op of a node in source order and returns the
    replacement by the first match, of the same type, lanes and shape; NULL if none matches. */
typedef const node *(*rewrite_rule_set)(rewriter *rw, const node *n);

/** Rewrites all nodes that `roots` reach, sources first, until no rule of any set fires on them or
    on nodes that rules made. Replaces the roots in place; in a counted ir they are held until
    ir_release_unheld, as all new nodes are. Raises TN_ERR_INTERNAL when rules undo each other: the
    number of steps is limited in proportion to the graph. */
void rewrite(rewriter *rw, const rewrite_rule_set sets[], size_t n_sets, const node *roots[],
             size_t n);

#endif
