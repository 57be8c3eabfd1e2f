/* Shapes as lists of index nodes, and their text for messages. */
#ifndef TENON_TENSOR_CONTEXT_SHAPE_H
#define TENON_TENSOR_CONTEXT_SHAPE_H

#include "tensor/context/builder.h"

enum { SIZES_MAX_RANK = 31 };

/** A shape: index nodes, none negative unless said otherwise. */
typedef struct sizes {
  size_t rank;
  const node *at[SIZES_MAX_RANK];
} sizes;

/** The shape of a node. */
sizes sizes_of(const node *x);

/** "2x3xn", for messages; "scalar" for rank 0. In the builder's arena. */
const char *sizes_text(builder *b, const sizes *s);

/** A size in words, for messages: "n", "n/2+1". Cut short with "…" if it is deep or long. In the
    builder's arena, which lists the size among those that a refusal names. */
const char *size_text(builder *b, const node *n);

/** As size_text, but the name of a variable in full, as the user gave it. */
const char *size_user_text(builder *b, const node *n);

#endif
