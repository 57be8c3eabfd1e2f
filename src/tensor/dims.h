/* Sizes. A tn_dim is a number, or the place of an index node in the context's table with check bits
   above it, so that C's operators do not make another size of it, nor the end of a scope. */
#ifndef TENON_TENSOR_DIMS_H
#define TENON_TENSOR_DIMS_H

#include "tensor/context.h"

/** An entry: a size, or why there is none. It belongs to the scope in which it was first made. */
typedef struct dim_entry {
  const node *node;
  failure *why;
  uint32_t hash;
  uint64_t place, serial;
  struct dim_entry *next; /* in its scope, or among the free ones */
} dim_entry;

/** Sizes that are numbers are below this in magnitude: what C's operators make of sizes that vary
    seldom is. */
#define DIM_NUMBER (INT64_C(1) << 44)

/** The index node of a bound of a slice. Numbers that are no sizes are bounds too, where no
    operator makes them of sizes that vary: ±2^k and ±(2^k − 1). From 2^60 on they stand for that,
    which is beyond any axis. */
const node *dim_bound(builder *b, tn_dim d);

/** A shape whose sizes must be numbers: the sizes and the number of elements. Raises TN_ERR_SHAPE;
    also where `bytes` of each element are more than memory. */
size_t dims_numbers(builder *b, tn_shape shape, size_t bytes, const node *sizes[]);

/** A shape of sizes that may vary. */
void dims_nodes(builder *b, tn_shape shape, const node *sizes[]);

/** The public shape of a node. */
tn_shape dims_shape(builder *b, const node *n);

/** The number of elements of a node whose sizes are numbers; false if they are not. */
bool dims_count(const node *n, uint64_t *count);

/** TN_ERR_SHAPE where a node has more elements than memory can hold, whatever its sizes are. */
void dims_check_count(builder *b, const node *n);

/** TN_ERR_DTYPE for what is no type of data. */
dtype dims_dtype(builder *b, tn_dtype t);

/** Frees the entries of a scope that ends. */
void dims_free_scope(tn_context *c, scope *s);

void dims_free(tn_context *c);

#endif
