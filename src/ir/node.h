/* Nodes of the graph. A node is immutable and interned: in one ir, structurally equal nodes are the
   same node, so equality is identity. */
#ifndef TENON_IR_NODE_H
#define TENON_IR_NODE_H

#include "ir/op.h"

#include <inttypes.h>

typedef struct node node;

/** A set of RANGE nodes, interned: equal sets are the same set. Sorted by node id. */
typedef struct range_set {
  uint32_t n;
  uint32_t hash;
  const node *at[];
} range_set;

struct node {
  uint64_t id; /* serial number in its ir: sources have smaller ones */
  uint16_t op;
  uint8_t dtype;
  uint8_t marked; /* for the walk at hand (topo.c); 0 between walks */
  uint16_t lanes; /* 1: a scalar (or a tensor of scalars) */
  uint16_t rank;  /* tensors: number of dimensions */
  uint32_t n_src, n_int, n_text;
  uint32_t hash;           /* of everything that makes the node; differs between processes */
  uint32_t refs;           /* counted graphs: parents and owners */
  const int64_t *ints;     /* the argument's integers */
  const char *text;        /* the argument's text or bytes; text[n_text] is NUL */
  const node *const *dims; /* tensors: `rank` index nodes */
  const range_set *free;   /* the free ranges; never NULL */
  int64_t lo, hi;          /* index and integer nodes: bounds, inclusive; see BOUND_LOW */
  const node *src[];
};

/* An index beyond these bounds is unbounded on that side. */
#define BOUND_LOW  INT64_MIN
#define BOUND_HIGH INT64_MAX

/** Whether an index node is one known number, and that number (n->lo). */
static inline bool node_is_const(const node *n) { return n->op == OP_CONST; }
static inline int64_t node_int(const node *n) { return n->ints[0]; }

/** Whether a node is the constant `bits`. */
static inline bool node_is_bits(const node *n, uint64_t bits) {
  return n->op == OP_CONST && (uint64_t)n->ints[0] == bits;
}

/** Whether `r` is among the free ranges of `n`. */
bool node_is_free_in(const node *r, const node *n);

/** How many sources of a node come before what tells its place. */
size_t node_values(const node *n);

/** Whether source k of a node tells its place: the ranges around an ALLOC or a STORE, and around
    the loop that an AFTER waits for, or a number that a range has become. They hold the node there;
    its value does not depend on them. */
bool node_is_place(const node *n, size_t k);

/** The ALLOC or PARAM below any number of AFTERs. */
const node *node_storage_root(const node *s);

/** Whether two range sets share a member; whether a ⊆ b. */
bool range_set_meets(const range_set *a, const range_set *b);
bool range_set_within(const range_set *a, const range_set *b);

#endif
