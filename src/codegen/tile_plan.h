/* Plans a program's registers for tiles: numbers of the values of tiles and of the registers that
   hold them, by live range. The result of a tile's op takes the register of its sum. */
#ifndef TENON_CODEGEN_TILE_PLAN_H
#define TENON_CODEGEN_TILE_PLAN_H

#include "base/map.h"
#include "ir/core/node.h"

/** Values of more lanes than this are tiles: no vector has as many. */
enum { TILE_PLAN_VECTOR_LANES = 64 };

/** Bytes of a row of a register, all of which a tile fills. */
enum { TILE_PLAN_ROW_BYTES = 64 };

static inline bool node_is_tile(const node *n) { return n->lanes > TILE_PLAN_VECTOR_LANES; }

/** The registers of one program. */
typedef struct tile_plan {
  map numbers; /* instruction or ALLOC that holds a tile → its number + 1 */
  size_t n;    /* registers that it needs; 0: the program has no tiles */
} tile_plan;

/** Plans the registers of a LINEAR list. Raises TN_ERR_INTERNAL where a sum is used again after
    the op that adds to it: no instruction copies a tile. */
tile_plan tile_plan_make(arena *a, const node *linear);

/** The number of the register of an instruction or ALLOC; −1 for a value without one: a constant
    in all words. */
int64_t tile_plan_number(const tile_plan *p, const node *n);

#endif
