/* An ir: the context that owns IR nodes, creates them with interning (hash-consing) and frees
   them. The node type is in node.h.

   A *counted* ir holds tensor graphs: nodes are reference-counted and live while a parent or an
   owner holds them. A *scratch* ir holds the graphs of one compilation in an arena: its nodes
   live until the ir is freed, and each stores the set of loop ranges that are free in it. All
   functions raise TN_ERR_MEMORY through the ir's diag, so they run under its diag_catch. One
   thread at a time uses an ir; nodes are read-only and may be read by any number of threads. */
#ifndef TENON_IR_CORE_IR_H
#define TENON_IR_CORE_IR_H

#include "base/arena.h"
#include "ir/core/node.h"

typedef struct ir ir;

/** A new ir; NULL if memory runs out. `m` and `d` must outlive it. */
ir *ir_new(const mem *m, diag *d, bool counted);

/** Frees the ir and all its nodes. NULL is allowed. */
void ir_free(ir *g);

/** The arena of a scratch ir, freed with it; not for counted irs. */
arena *ir_arena(ir *g);

/** An arena for what a function needs while it runs: it saves the arena's mark first and rewinds to
    it at the end (base/arena.h), so what a graph needs for long lies in ir_arena. */
arena *ir_scratch(ir *g);
diag *ir_diag(const ir *g);
const mem *ir_mem(const ir *g);

/** Interns the node of a specification: returns the equal node if there is one, else a new one with
    inferred shape, bounds and free ranges. Rewrites nothing. The specification must be well-formed
    (ir_check_spec). More dimensions than IR_MAX_RANK raise TN_ERR_SHAPE, in every build. */
const node *ir_make(ir *g, const node_spec *spec);

/** Raises TN_ERR_SHAPE for more dimensions than IR_MAX_RANK. */
void ir_check_rank(ir *g, size_t rank);

/** The specification of a node with other sources. */
node_spec node_spec_with_sources(const node *n, const node *const src[], size_t n_src);

/** Remakes a node with other sources as they are; subst_rebuild also restores canonical forms. */
const node *ir_with_sources(ir *g, const node *n, const node *const src[]);

/** A number that no RANGE or ALLOC of this ir has yet. */
int64_t ir_fresh_id(ir *g);

/* Reference counts of counted irs. */

/** Adds an owner to a node and returns the node. */
const node *ir_retain(const node *n);

/** Drops an owner; frees the node, and nodes that only it held, once nobody holds them. Does not
    recurse. NULL is allowed. */
void ir_release(ir *g, const node *n);

/** Frees the nodes made since the last call that nobody holds. To be called after each operation of
    the user, also after a failed one. */
void ir_release_unheld(ir *g);

/** Callbacks on the creation and release of nodes; a callback makes no nodes and does not raise. */
typedef struct ir_observer {
  void (*made)(void *user, const node *n);     /* after a new node was made */
  void (*released)(void *user, const node *n); /* before a node is freed, except by ir_free; may
                                                  release other nodes */
  void *user;
} ir_observer;

/** Sets the observer, whose callbacks may be NULL; NULL removes it. */
void ir_observe(ir *g, const ir_observer *w);

/** Number of live nodes. */
size_t ir_node_count(const ir *g);

/** True if an ITEM was ever made in it. */
bool ir_has_items(const ir *g);

/** True if a node was made by which the graph has a device that is not number 0. */
bool ir_has_devices(const ir *g);

/** Counter of rewrite rules that fired in this ir. */
uint64_t ir_rules_fired(const ir *g);
void ir_add_rules_fired(ir *g, uint64_t n);

/** The union of two sets, and a set without a member, interned in a scratch ir. */
const range_set *range_set_union(ir *g, const range_set *a, const range_set *b);
const range_set *range_set_without(ir *g, const range_set *a, const node *range);

#endif
