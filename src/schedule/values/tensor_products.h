/* Applies rows of tensor_rows.def to contractions of small types: sums of products of converted
   elements become sums over words, each of which packs a group of elements along the reduction. */
#ifndef TENON_SCHEDULE_VALUES_TENSOR_PRODUCTS_H
#define TENON_SCHEDULE_VALUES_TENSOR_PRODUCTS_H

#include "ir/core/ir.h"

typedef struct tensor_products_request {
  const node **roots; /* changed */
  size_t n_roots;
  uint32_t rows; /* a bit for each TENSOR_ROW, then TENSOR_TILE, that the target has */
  int math;      /* math_mode */
  bool (*is_constant)(void *user, const node *operand); /* packed once; NULL: no operand is */
  void *user;
} tensor_products_request;

/** Rewrites the contractions for which the target has a row and that read each word often enough.
    Works in scratch memory. */
void tensor_products_rewrite(ir *g, const tensor_products_request *r);

#endif
