/* Rows of tensor_rows.def: ops that multiply elements of small types in groups and add the products
   to a sum, as one instruction of some processors does. */
#ifndef TENON_IR_CORE_TENSOR_ROWS_H
#define TENON_IR_CORE_TENSOR_ROWS_H

#include "ir/core/op.h"

#include <stddef.h>

typedef struct tensor_row {
  op op;
  dtype sum, x, y; /* types of sums, and of the elements of both operands */
  int group;       /* elements in a word */
  bool is_exact;
} tensor_row;

/** The rows, and their number. */
enum {
#define TENSOR_ROW(op, sum, x, y, group, exact) TENSOR_ROW_##op,
#include "ir/core/tensor_rows.def"
  TENSOR_ROWS
};
extern const tensor_row tensor_rows[TENSOR_ROWS];

/** A tile of products of words by a row. */
typedef struct tensor_tile {
  op op;
  int row;     /* its number */
  int m, n, k; /* words of a side */
} tensor_tile;

/** The tiles, and their number. In sets of instructions their bits follow those of the rows. */
enum {
#define TENSOR_TILE(op, row, m, n, k) TENSOR_TILE_##op,
#include "ir/core/tensor_rows.def"
  TENSOR_TILES
};
extern const tensor_tile tensor_tiles[TENSOR_TILES];

enum { TENSOR_OPS = TENSOR_ROWS + TENSOR_TILES };

/** The op of a bit of such a set: a row's, or a tile's. */
op tensor_op(size_t bit);

/** The tile of an op; NULL for other ops. */
const tensor_tile *tensor_tile_of(op o);

/** The row of an op; NULL for other ops. */
const tensor_row *tensor_row_of(op o);

/** A tile's op, on matrices of scalars: adds x · y to `sum`, the terms in the order of k. */
void tensor_tile_eval(const tensor_tile *tile, uint64_t sum[], const uint64_t x[],
                      const uint64_t y[]);

/** The row's op for scalars, which are carried as 64 bits (dtype.h). */
uint64_t tensor_row_eval(const tensor_row *row, uint64_t sum, uint64_t x, uint64_t y);

#endif
