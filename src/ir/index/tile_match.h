/* Finds the sums of products that a tile of tensor_rows.def computes: FOLDs whose step adds to an
   array, over the ranges i and j of kind tile, sums of a row's products of words over a range p:

     FOLD(0; add STAGE(INDEX FOLD(0; add op(0, x(i, p), y(p, j)), p), …, i, j), …)

   with the array's elements along i and j side by side, x(i, p) and y(p, j) elements of arrays,
   those of a row of x or y side by side. */
#ifndef TENON_IR_INDEX_TILE_MATCH_H
#define TENON_IR_INDEX_TILE_MATCH_H

#include "ir/core/binder_layout.h"
#include "ir/core/ir.h"
#include "ir/core/tensor_rows.h"

/** True if a FOLD adds such sums to an array: over ranges of kind tile, i, j and p, of a product
    whose sum is 0 before. */
bool tile_match_sum(const node *fold, const node *range[TILE_SIDES], const node **product);

/** A FOLD that is computed in tiles. */
typedef struct tile_match {
  const tensor_tile *tile;
  const node *range[TILE_SIDES]; /* i, j, p */
  const node *x, *y;             /* INDEXs */
} tile_match;

/** True if a FOLD is computed in tiles of one worker. */
bool tile_match_fold(ir *g, const node *fold, tile_match *m);

/** An operand's address in a tile: that of its first element, and the distance of its rows. False:
    the elements of a row are not side by side, or the address may be invalid. */
bool tile_match_address(ir *g, const node *address, const node *row, const node *column,
                        const node **first, int64_t *apart);

#endif
