/* Sizes of the public interface. A tn_dim is a number, or the index of an entry in the context's
   table of symbolic sizes, tagged with check bits, so that a result of C's operators on symbolic
   sizes, or a size of a scope that has ended, is recognised as no size. */
#ifndef TENON_TENSOR_CONTEXT_SYMBOLIC_DIMS_H
#define TENON_TENSOR_CONTEXT_SYMBOLIC_DIMS_H

#include "tensor/context/context.h"

/** A call that makes a size: its op, and the sizes that it combines, or the variable's name and
    bounds. Equal calls fail alike as long as the scope of the first one is open. */
typedef struct size_call {
  op op;
  int64_t of[2];
  const char *name; /* NULL: none */
} size_call;

/** A symbolic size, or the failure of the call that was to make one. The scope in which it was
    first made owns it. */
typedef struct dim_entry {
  const node *node;       /* NULL: a failure */
  failure *failure;       /* NULL: a size */
  size_call call;         /* that failed; its name is the entry's */
  uint64_t hash;          /* in the table */
  uint64_t index;         /* in the table */
  uint64_t serial;        /* number of entries made before */
  struct dim_entry *next; /* in its scope, or among the free entries */
} dim_entry;

/** Sizes that are numbers are below this in magnitude; C's operators on symbolic sizes seldom give
    less. */
#define DIM_NUMBER_LIMIT (INT64_C(1) << 44)

/** Invalid sizes, which are neither a number nor a bound, nor a tag but by a rare chance: of a
    broken context; of a call while another held the context; and for lack of memory, even for the
    cause. */
#define DIM_INVALID (INT64_C(3) << 61)
#define DIM_BUSY    (DIM_INVALID + 1)
#define DIM_MEMORY  (DIM_INVALID + 2)

/** The index node of a size. Raises for a value that is no size (computed by C's operators from a
    symbolic size, of another context, or the result of a failed call). Without a context only
    numbers are sizes. */
const node *dim_to_node(builder *b, tn_dim d);

/** The size that stands for an index node; equal nodes have equal sizes. */
tn_dim dim_from_node(builder *b, const node *n);

/** A size that stands for the failure of a call, which was reported last: dim_to_node raises that.
    Calls that are equal and fail with one status have one. */
tn_dim dim_from_last_failure(tn_context *c, const size_call *call);

/** A variable in the table with the name of `var` and other bounds, or NULL. */
const node *dim_find_same_name(const tn_context *c, const node *var);

/** The index node of a slice's bound. Bounds may also be ±2^k and ±(2^k − 1) beyond the limit of
    sizes, which C's operators do not compute from symbolic sizes; from 2^60 on they are clamped to
    2^60, beyond any axis. */
const node *dim_to_bound(builder *b, tn_dim d);

/** Fills in the sizes of a shape, which must be numbers, and returns the number of elements. Raises
    TN_ERR_SHAPE, also if that many elements of `bytes` bytes exceed memory. */
size_t dims_to_static_nodes(builder *b, tn_shape shape, size_t bytes, const node *sizes[]);

/** Fills in the sizes of a shape, which may be symbolic. */
void dims_to_nodes(builder *b, tn_shape shape, const node *sizes[]);

/** The public shape of a node. */
tn_shape dims_from_node(builder *b, const node *n);

/** The number of elements of a node; false if a size is symbolic. UINT64_MAX: more than that. */
bool dims_static_count(const node *n, uint64_t *count);

/** Raises TN_ERR_SHAPE if a node has more elements than memory can hold, by the lower bounds of its
    sizes. */
void dims_check_count(builder *b, const node *n);

/** The internal element type; raises TN_ERR_DTYPE for one that holds no data. */
dtype dims_check_dtype(builder *b, tn_dtype t);

/** Frees the entries of a scope that ends; and the table. */
void dims_free_scope(tn_context *c, scope *s);
void dims_free(tn_context *c);

#endif
