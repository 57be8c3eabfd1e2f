/* Node, the IR's only object: an immutable, hash-consed expression with an op, a type, sources and
   integers. In one ir, structurally equal nodes are the same node, so equality is identity. Free
   ranges and bounds are computed once, when the node is made. */
#ifndef TENON_IR_CORE_NODE_H
#define TENON_IR_CORE_NODE_H

#include "ir/core/op.h"

#include <inttypes.h>

typedef struct node node;

/** A set of RANGE nodes, interned: equal sets are the same set. Sorted by node id. */
typedef struct range_set {
  uint32_t n;
  const node *at[];
} range_set;

/** One struct without parts for all ops: a walk reads most fields of a node, so these lie side by
    side, in an order that wastes no byte on alignment. */
struct node {
  uint64_t id; /* serial number in its ir; larger than those of its sources */
  uint16_t op;
  uint8_t dtype;
  uint8_t device; /* number of its device + 1; 0: anybody's (node_device.h) */
  uint16_t lanes; /* 1: a scalar (or a tensor of scalars) */
  uint16_t rank;  /* tensors: number of dimensions */
  uint32_t n_src, n_int, n_text;
  uint32_t refs;           /* counted irs: parents and owners */
  const int64_t *ints;     /* the argument's integers; behind them node_likely */
  const char *text;        /* the argument's text or bytes; text[n_text] is NUL */
  const node *const *dims; /* tensors: `rank` index nodes */
  const range_set *free;   /* the free ranges; never NULL */
  int64_t lo, hi;          /* index and integer nodes: bounds, inclusive; see BOUND_LOW */
  const node *src[];
};

/** Operation, type, sources and argument of a node that is to be made (ir_make) or checked. */
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

/** The most dimensions of a tensor; lists of sizes and axes have this capacity. */
enum { IR_MAX_RANK = 31 };

/** The most sources of a movement op: two nodes and two lists as long as the rank. */
enum { IR_MAX_MOVEMENT_SOURCES = 2 + 2 * IR_MAX_RANK };

/* An index beyond these bounds is unbounded on that side. */
#define BOUND_LOW  INT64_MIN
#define BOUND_HIGH INT64_MAX

/** True for a constant; the value of an index or integer constant. */
static inline bool node_is_const(const node *n) { return n->op == OP_CONST; }
static inline int64_t node_int(const node *n) { return n->ints[0]; }

/** True if a node has a likely value: an index that is no constant. */
static inline bool node_has_likely(dtype t, int64_t lo, int64_t hi) {
  return t == DT_INDEX && lo != hi;
}

/** The value of an index that costs are estimated for (ix_likely). */
static inline int64_t node_likely(const node *n) {
  return node_has_likely((dtype)n->dtype, n->lo, n->hi) ? n->ints[n->n_int] : n->lo;
}

/** True for the constant `bits`, of any type. */
static inline bool node_is_bits(const node *n, uint64_t bits) {
  return n->op == OP_CONST && (uint64_t)n->ints[0] == bits;
}

/** True if `r` is a free range of `n`. */
bool node_is_free_in(const node *r, const node *n);

/** A hash of a node's specification; differs between processes. */
uint64_t node_hash(const node *n);

/** Number of sources before the scope sources. */
size_t node_n_operands(const node *n);

/** True if source k is a scope source: a range around an ALLOC, a STORE or the loop that an AFTER
    waits for, or the number that such a range has become. Scope sources keep the node inside the
    loop; its value does not depend on them. */
bool node_is_scope_source(const node *n, size_t k);

/** The ALLOC or PARAM below a chain of AFTERs. */
const node *node_storage_root(const node *s);

/** True if two sets share a member; true if a ⊆ b. */
bool range_set_intersects(const range_set *a, const range_set *b);
bool range_set_is_subset(const range_set *a, const range_set *b);

#endif
