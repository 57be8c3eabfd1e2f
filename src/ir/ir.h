/* A graph's home: where its nodes are made and interned.

   An ir is of one of two kinds. A *counted* ir holds the tensor graph: a node lives while a parent
   or an owner holds it, and goes with the last. A *scratch* ir holds the graphs of one compilation:
   its nodes live until the ir is freed. All functions raise TN_ERR_MEMORY through the ir's diag, so
   they run under its diag_catch. An ir is used by one thread at a time. */
#ifndef TENON_IR_IR_H
#define TENON_IR_IR_H

#include "base/arena.h"
#include "ir/node.h"

typedef struct ir ir;

/** A new ir; NULL without memory. `m` and `d` must outlive it. */
ir *ir_new(const mem *m, diag *d, bool counted);

/** Frees the ir and all its nodes. NULL is allowed. */
void ir_free(ir *g);

/** The arena of a scratch ir: freed with it. A counted ir has none. */
arena *ir_arena(ir *g);
diag *ir_diag(const ir *g);
const mem *ir_mem(const ir *g);

/** What makes a node. */
typedef struct node_spec {
  op op;
  dtype dtype;
  uint16_t lanes; /* 0 is 1 */
  const node *const *src;
  size_t n_src;
  const int64_t *ints;
  size_t n_int;
  const char *text;
  size_t n_text;
} node_spec;

/** The dimensions that a tensor can have: as many as lists of sizes and axes have room for. */
enum { IR_MOST_RANK = 31 };

/** The sources that a movement can have: two nodes and two lists as long as the rank. */
enum { IR_MOST_MOVED = 2 + 2 * IR_MOST_RANK };

/** The node of a specification: the one there is, or a new one. Its shape, bounds and free ranges
    are inferred. The specification must be well-formed: `ir_check` says what that is. No rewriting
    is done. More dimensions than IR_MOST_RANK raise TN_ERR_SHAPE, in every build. */
const node *ir_make(ir *g, const node_spec *spec);

/** Raises TN_ERR_SHAPE for more dimensions than IR_MOST_RANK. */
void ir_check_rank(ir *g, size_t rank);

/** NULL if a specification is well-formed (op known, numbers of sources and integers, types, equal
    shapes, lanes), else what is wrong, in the ir's memory or static. Used by the parser and the
   verifier. */
const char *ir_check(const node_spec *spec);

/** What makes a node like another, with other sources. */
node_spec ir_spec(const node *n, const node *const src[], size_t n_src);

/** A node with other sources; nothing is put in canonical form (subst_rebuild does that). */
const node *ir_with_sources(ir *g, const node *n, const node *const src[]);

/** A number no RANGE or ALLOC of this ir has yet. */
int64_t ir_fresh(ir *g);

/* Counted graphs. */

/** One more owner of a node; returns it. */
const node *ir_retain(const node *n);

/** One owner fewer. Frees the node, and what only it held, without recursion. NULL is allowed. */
void ir_release(ir *g, const node *n);

/** Frees the nodes made since the last call that nobody holds. Called when an operation of the
    user's is done, also after a failure. */
void ir_collect(ir *g);

/** Who is told of nodes. The functions make no nodes and do not raise. */
typedef struct ir_watcher {
  void (*made)(void *user, const node *n);     /* it is new */
  void (*released)(void *user, const node *n); /* it is about to be freed, but not by ir_free; may
                                                  release other nodes */
  void *user;
} ir_watcher;

/** From now on all functions of `w` that are not NULL are called; `w` NULL: nobody is told. */
void ir_watch(ir *g, const ir_watcher *w);

/** How many nodes there are. */
size_t ir_count(const ir *g);

/** How many rules have fired in it; and adds some. */
uint64_t ir_fires(const ir *g);
void ir_add_fires(ir *g, uint64_t n);

/** The union of two sets, and a set without a member; made in a scratch ir. */
const range_set *ir_range_union(ir *g, const range_set *a, const range_set *b);
const range_set *ir_range_without(ir *g, const range_set *a, const node *range);

#endif
