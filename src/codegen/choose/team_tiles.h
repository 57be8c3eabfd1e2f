/* Internal header of the tiles of products for teams: the files team_t*.c and team_copies.c. */
#ifndef TENON_CODEGEN_CHOOSE_TEAM_TILES_H
#define TENON_CODEGEN_CHOOSE_TEAM_TILES_H

#include "codegen/choose/choice.h"
#include "ir/core/tensor_rows.h"

enum {
  ROWS,
  COLUMNS,
  AXES,
  MOST_SIDE = 16,        /* copies of a worker along an axis */
  MOST_BLOCK = 32,       /* indices of reductions in a block */
  TILE_SLOTS_MOST = 4,   /* of a copy: it is made as many blocks but one ahead */
  MOST_ALTERNATIVES = 8, /* tiles that are tried, the best ones first */
  MOST_RANGES = 8,       /* of a reduction */
  MOST_INSIDE = 5        /* ranges of an axis inside of a group */
};

/** An expression that a reduction reads: packed if it depends on one axis, else an element. */
typedef struct operand {
  const node *value;
  bool depends[AXES];
} operand;

/** A nest with a reduction that may be tiled. */
typedef struct product {
  choice *c;
  const node *stage, *fold;
  const node *axis[AXES];
  VEC(operand) operands;
  double indices[AXES], others, terms; /* of the axes, of other ranges, and of a reduction */
} product;

typedef struct team_tile {
  const product *of;
  int64_t workers[AXES], copies[AXES];
  int64_t lanes;             /* of a worker's columns that are side by side */
  const tensor_tile *tensor; /* copies are its tiles, workers warps; NULL: copies are indices */
  int64_t block;             /* indices of reductions */
  int64_t slots;             /* of the copies */
  double cost;               /* cycles of a unit */
  size_t number;
} team_tile;

/** The ranges of a tile; NULL: of one index, which is left out. */
typedef struct cut {
  const node *fold, *axis[AXES]; /* of the nest of whole blocks */
  const node *groups[AXES], *workers[AXES], *copies[AXES], *lanes;
  const node *terms[MOST_RANGES]; /* of a reduction's block */
  size_t n_terms;
  const node *lane[AXES], *part[AXES]; /* of a tile of a warp: its workers', and a worker's own */
} cut;

typedef VEC(team_tile) team_tile_list;

/** The axis of the digits that divide rows or columns: columns are the fastest. */
static inline int64_t team_digit_axis(size_t axis) { return axis == COLUMNS ? 0 : 1; }

/* team_tile_list.c */

/** The only reduction of a nest without arrays; NULL: there is none, or more. */
const node *team_only_fold(choice *c, const node *stage);

/** The best tiles of a nest, in tiles of warps or not, the cheapest first; of equal ones along two
    pairs of axes the earlier. */
team_tile_list team_list_tiles(choice *c, const node *stage, const node *fold, bool tensor);

/** Indices of an axis that a group computes. */
int64_t team_group_indices(const team_tile *t, size_t axis);

/** Workers of a group. */
int64_t team_group_workers(const team_tile *t);

/* team_copies.c */

/** Divides the copies that are none of the arrays `before` among all workers of a group; false: a
    law refuses. */
bool team_fill_copies(choice *c, const team_tile *t, const map *before);

/** Builds the copies ahead, in as many slots as fit up to those of the tile. */
void team_copy_ahead(choice *c, const team_tile *t, const map *before);

/** True if the memory of a group holds the arrays that it shares. */
bool team_fits_group(const choice *c);

/* team_tensor_tiles.c */

/** The tile of a warp that computes the terms of a product; NULL: there is none on the target. */
const tensor_tile *team_tensor_tile(const product *p);

/** True if a product's terms are whole blocks of tiles. */
bool team_tensor_fits(const product *p, int64_t block);

/** Indices of an axis that a tile covers: 1 where it is none of a warp. */
int64_t team_tensor_side(const team_tile *t, size_t axis);

/** Registers of a worker. */
double team_tensor_registers(const team_tile *t);

/** Cycles of a unit for a term of all of a group's sums: of the products, and of their loads. */
double team_tensor_work(const team_tile *t);
double team_tensor_loads(const team_tile *t);

/** Bytes of the copies of a block of the reduction. */
double team_tensor_bytes(const team_tile *t);

/** Divides the indices of a warp's tile along an axis among its workers. */
bool team_tensor_cut(choice *c, const team_tile *t, size_t axis, const node *inside, cut *k);

/** Cuts the terms of tiles out of a block, and moves the worker's copies and parts inside of the
    reduction. */
bool team_tensor_jam(choice *c, const team_tile *t, cut *k);

/** Divides a range of a warp's workers. */
bool team_tensor_fill(choice *c, const node *warp);

/** Widens the stride of the copies' rows, so that a warp loads from different banks; true if the
    kernel is computed in tiles. */
bool team_tensor_finish(choice *c);

#endif
