/* Shapes as lists of index nodes, whose sizes may be any expression of variables, and their text
   for messages. */
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

/** As sizes_text, for a refusal of ranks, which no sizes would avoid: names none of them. */
const char *sizes_text_of_ranks(builder *b, const sizes *s);

/** A size as text, for messages: "n", "n/2 + 1". Deep or long expressions are cut short with "…".
   In the builder's arena, which lists the size among those that a refusal names. */
const char *size_text(builder *b, const node *n);

/** A shape of sizes as texts, or as numbers where there is none, as sizes_text spells it; cut short
    where `bytes` are too few. */
const char *shape_write_text(char *text, size_t bytes, size_t rank, const char *const names[],
                             const int64_t numbers[]);

/** As size_text, with the whole name of a variable, as the user gave it. */
const char *size_user_text(builder *b, const node *n);

#endif
