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
  int workers; /* that compute it together */
} tensor_tile;

/** The tiles, and their number. In sets of instructions their bits follow those of the rows. */
enum {
#define TENSOR_TILE(op, row, m, n, k, workers) TENSOR_TILE_##op,
#include "ir/core/tensor_rows.def"
  TENSOR_TILES
};
extern const tensor_tile tensor_tiles[TENSOR_TILES];

/** Ops of such sets: all, and the first ones, which a worker does alone. */
enum {
  TENSOR_OPS = TENSOR_ROWS + TENSOR_TILES,
  TENSOR_LONE_OPS = TENSOR_ROWS + TENSOR_TILE_MMA_BF16
};

/** The op of a bit of such a set: a row's, or a tile's. */
op tensor_op(size_t bit);

/** The tile of an op; NULL for other ops. */
const tensor_tile *tensor_tile_of(op o);

/** The row of an op; NULL for other ops. */
const tensor_row *tensor_row_of(op o);

/** The matrices of a tile: its sums, x and y. */
typedef enum tensor_operand { TENSOR_SUM, TENSOR_X, TENSOR_Y, TENSOR_OPERANDS } tensor_operand;

/** Rows and columns of a matrix of a tile. */
int tensor_tile_rows(const tensor_tile *tile, tensor_operand o);
int tensor_tile_columns(const tensor_tile *tile, tensor_operand o);

/** Words of a matrix that a worker holds. */
int tensor_tile_words(const tensor_tile *tile, tensor_operand o);

/** A warp of a tile's workers: numbers g of rows and t of columns, t the faster ones. */
enum { TENSOR_WARP_ROWS = 8, TENSOR_WARP_COLUMNS = 4 };

/** Row and column of a word of a matrix: that with the number `word` of worker (g, t). */
void tensor_tile_place(tensor_operand o, int word, int g, int t, int *row, int *column);

/** A tile's op, on matrices of scalars: adds x · y to `sum`, the terms in the order of k. */
void tensor_tile_eval(const tensor_tile *tile, uint64_t sum[], const uint64_t x[],
                      const uint64_t y[]);

/** The row's op for scalars, which are carried as 64 bits (dtype.h). */
uint64_t tensor_row_eval(const tensor_row *row, uint64_t sum, uint64_t x, uint64_t y);

#endif
