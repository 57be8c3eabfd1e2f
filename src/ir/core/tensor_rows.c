/* Implements the table of the ops that multiply elements of small types in groups, and their
   reference semantics. */
#include "ir/core/tensor_rows.h"

const tensor_row tensor_rows[TENSOR_ROWS] = {
#define TENSOR_ROW(op, sum, x, y, group, exact) {OP_##op, sum, x, y, group, exact},
#include "ir/core/tensor_rows.def"
};

const tensor_tile tensor_tiles[TENSOR_TILES] = {
#define TENSOR_TILE(op, row, m, n, k, workers) {OP_##op, TENSOR_ROW_##row, m, n, k, workers},
#include "ir/core/tensor_rows.def"
};

op tensor_op(size_t bit) {
  return bit < TENSOR_ROWS ? tensor_rows[bit].op : tensor_tiles[bit - TENSOR_ROWS].op;
}

const tensor_tile *tensor_tile_of(op o) {
  for (size_t i = 0; i < TENSOR_TILES; i++)
    if (tensor_tiles[i].op == o) return &tensor_tiles[i];
  return NULL;
}

const tensor_row *tensor_row_of(op o) {
  for (size_t i = 0; i < TENSOR_ROWS; i++)
    if (tensor_rows[i].op == o) return &tensor_rows[i];
  return NULL;
}

int tensor_tile_rows(const tensor_tile *tile, tensor_operand o) {
  return o == TENSOR_Y ? tile->k : tile->m;
}

int tensor_tile_columns(const tensor_tile *tile, tensor_operand o) {
  return o == TENSOR_X ? tile->k : tile->n;
}

int tensor_tile_words(const tensor_tile *tile, tensor_operand o) {
  return tensor_tile_rows(tile, o) * tensor_tile_columns(tile, o) / tile->workers;
}

/** A digit's distance along rows and columns. */
typedef struct steps {
  int row, column;
} steps;

/** The digits of the place of a word: of the worker, and the low and high bit of its number (PTX
    ISA 9.0, "Matrix Fragments for mma.m16n8k16"). */
static const struct {
  steps g, t, low, high;
} layouts[TENSOR_OPERANDS] = {
    [TENSOR_SUM] = {.g = {1, 0}, .t = {0, 2}, .low = {0, 1}, .high = {8, 0}},
    [TENSOR_X] = {.g = {1, 0}, .t = {0, 1}, .low = {8, 0}, .high = {0, 4}},
    [TENSOR_Y] = {.g = {0, 1}, .t = {1, 0}, .low = {4, 0}, .high = {0, 0}},
};

void tensor_tile_place(tensor_operand o, int word, int g, int t, int *row, int *column) {
  const steps all[] = {layouts[o].g, layouts[o].t, layouts[o].low, layouts[o].high};
  const int digit[] = {g, t, word % 2, word / 2};
  *row = *column = 0;
  for (int i = 0; i < 4; i++) {
    *row += all[i].row * digit[i];
    *column += all[i].column * digit[i];
  }
}

/** Element p of a word. */
static uint64_t element_of(uint64_t word, dtype t, int p) {
  int bits = dtype_bits(t);
  uint64_t element = word >> p * bits & ((UINT64_C(1) << bits) - 1);
  return dtype_is_float(t) ? element : scalar_cast(t, DT_I64, element);
}

uint64_t tensor_row_eval(const tensor_row *row, uint64_t sum, uint64_t x, uint64_t y) {
  for (int p = row->group; p-- > 0;) {
    uint64_t a = element_of(x, row->x, p), b = element_of(y, row->y, p);
    if (dtype_is_float(row->sum)) {
      float product = (float)scalar_to_double(row->x, a) * (float)scalar_to_double(row->y, b);
      float added = (float)scalar_to_double(row->sum, sum) + product;
      sum = scalar_from_double(row->sum, (double)added);
    } else {
      sum = scalar_cast(row->sum, DT_I64, sum + a * b);
    }
  }
  return sum;
}

void tensor_tile_eval(const tensor_tile *tile, uint64_t sum[], const uint64_t x[],
                      const uint64_t y[]) {
  const tensor_row *row = &tensor_rows[tile->row];
  for (int i = 0; i < tile->m; i++)
    for (int p = 0; p < tile->k; p++)
      for (int j = 0; j < tile->n; j++) {
        uint64_t *s = &sum[i * tile->n + j];
        *s = tensor_row_eval(row, *s, x[i * tile->k + p], y[p * tile->n + j]);
      }
}
