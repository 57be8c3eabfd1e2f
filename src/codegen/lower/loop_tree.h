/* The loops of a lowered kernel as a tree, which the graph implies: an END closes a RANGE, and
   stands in the loop that lists it as an effect, or in the innermost one that it depends on. */
#ifndef TENON_CODEGEN_LOWER_LOOP_TREE_H
#define TENON_CODEGEN_LOWER_LOOP_TREE_H

#include "base/map.h"
#include "ir/core/topo_sort.h"

typedef struct loop {
  const node *range, *end; /* NULL: no loop, but the kernel outside of all */
  struct loop *parent;     /* NULL: the same */
  size_t depth;            /* 1 for the outermost loops */
  bool has_loops;          /* directly inside */
} loop;

typedef struct loop_tree {
  map loops;  /* RANGE → loop */
  map within; /* effect → the loop whose END lists it */
  loop outside;
} loop_tree;

/** Fills `tree` with the loops of the nodes in `order`, in memory of `a`. The tree stays where it
    is, as its loops point into it. */
void loop_tree_make(loop_tree *tree, arena *a, const node_list *order);

/** The innermost loop around a node: the deepest of those whose ranges are free in it, and of the
    one that it is an effect of. */
loop *loop_tree_around(loop_tree *tree, const node *n);

#endif
