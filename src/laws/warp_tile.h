/* Finds the sums of products that a warp computes as tiles of tensor_rows.def. The rows and columns
   of the sums are digits of the warp and the worker's own: row 8 i + g, column 2 t + v of a tile,
   with the ranges g (of 8) and t (of 4, the faster one) of kind WARP, i and v of kind tile (of the
   extents that a worker's part has):

     FOLD(0; add STAGE(INDEX FOLD(0; add op(0, x(i, g, p), y(p, t, v)), p), …, i, v), …)

   x(i, g, p) and y(p, t, v) are elements of arrays that the warp shares. A worker loads others of
   them than those of its own sums, at the digits that tensor_tile_place tells. */
#ifndef TENON_LAWS_WARP_TILE_H
#define TENON_LAWS_WARP_TILE_H

#include "ir/index/tile_match.h"
#include "laws/team_arrays.h"

/** A FOLD that a warp computes in tiles. */
typedef struct warp_tile {
  const tensor_tile *tile;
  const node *range[TILE_SIDES]; /* i, v, p */
  const node *g, *t;
  const node *x, *y; /* INDEXs */
} warp_tile;

/** The axes of the digits g and t among those of the warp. */
enum { WARP_COLUMNS, WARP_ROWS };

/** Indices of the range of a tile's side that are one worker's. */
int warp_tile_part(const tensor_tile *tile, tile_side side);

/** True if a FOLD of a kernel is computed in tiles of a warp. */
bool warp_tile_match(ir *g, const team_arrays *t, const node *fold, warp_tile *m);

/** The coordinates at which a worker loads its word of some number of x or y, and the INDEX whose
    coordinates they replace. */
const node **warp_tile_coordinates(ir *g, const warp_tile *m, tensor_operand o, int word,
                                   const node **element);

#endif
