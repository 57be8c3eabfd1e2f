/* Arrays of the interpreter of tensor graphs: elements at strides in memory, so that movements
   share the memory of what they move, and walks that list where the elements lie. */
#ifndef TENON_IR_INTERP_STRIDED_H
#define TENON_IR_INTERP_STRIDED_H

#include "ir/interp/interp.h"

enum { STRIDED_ROW = 1024 }; /* the most elements of a row, which work is done on at once */

/** Elements of the row that begins with element k of `count`. */
static inline size_t strided_row_length(size_t count, size_t k) {
  return count - k < STRIDED_ROW ? count - k : STRIDED_ROW;
}

/** An element lies at the place Σ coordinate · stride, counted in elements from `data`. */
typedef struct strided {
  dtype dtype;
  size_t rank;
  int64_t dims[INTERP_MAX_RANK], strides[INTERP_MAX_RANK];
  char *data; /* the first element, at any alignment */
} strided;

/** An array in row-major order. */
strided strided_dense(dtype t, size_t rank, const int64_t dims[], void *data);

size_t strided_count(const strided *a);
size_t strided_bytes(const strided *a);
bool strided_is_dense(const strided *a);
bool strided_same_dims(const strided *a, const strided *b);

/** True if there is an element at these coordinates; its place. */
bool strided_is_inside(const strided *a, const int64_t at[]);
int64_t strided_place(const strided *a, const int64_t at[]);

uint64_t strided_read(const strided *a, int64_t place);
void strided_write(const strided *a, int64_t place, uint64_t bits);

/** Writes the elements in row-major order to `to`. */
void strided_copy(const strided *a, void *to);

/** Writes the elements of `from` to those of an array of the same sizes. */
void strided_store(const strided *to, const strided *from);

/** Gives each element of an array a value. */
void strided_fill(const strided *a, uint64_t bits);

/** Sets the strides that show the elements of `a`, in their order, as an array of other sizes and
    as many elements. False if there are none: the elements have to be copied. */
bool strided_reshape(const strided *a, size_t rank, const int64_t dims[], int64_t strides[]);

/** A walk over the coordinates of some axes, the last axis fastest, which lists places. Axes that
    are walked like one are merged. */
typedef struct walk {
  size_t rank; /* at least 1 */
  int64_t dims[INTERP_MAX_RANK], strides[INTERP_MAX_RANK], at[INTERP_MAX_RANK];
  int64_t place; /* of the next element */
} walk;

walk walk_over(size_t rank, const int64_t dims[], const int64_t strides[]);

/** True if each place is the one before + 1. */
static inline bool walk_is_dense(const walk *w) { return w->rank == 1 && w->strides[0] == 1; }

/** Writes the next n places. */
void walk_next(walk *w, int64_t places[], size_t n);

/** Copy the elements at n places in `data` to a row, where they lie one after the other, and from
    a row to these places. */
void row_gather(const void *data, size_t element_bytes, const int64_t places[], size_t n,
                void *row);
void row_scatter(void *data, size_t element_bytes, const int64_t places[], size_t n,
                 const void *row);

/** Reads an array by rows, in row-major order. */
typedef struct row_reader {
  const strided *a;
  walk walk;
  int64_t *places; /* STRIDED_ROW of them */
  char *row;       /* an element takes at most 8 bytes */
} row_reader;

/** The tables of a reader live in the arena. */
row_reader row_reader_of(arena *work, const strided *a);

/** The next n elements, at most STRIDED_ROW, as a row: in the array's memory, or copied. */
const char *row_reader_next(row_reader *r, size_t n);

#endif
