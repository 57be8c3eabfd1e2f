/* Arrays of the host: made, filled, read from files and written to them, summed up. */
#ifndef TENON_CLI_ARRAY_H
#define TENON_CLI_ARRAY_H

#include "cli/command.h"
#include "ir/dtype.h"

#include <jansson.h>

/** Elements in the command's arena, at a multiple of 64. */
typedef struct array {
  void *data;
  tn_dtype dtype;
  tn_shape shape;
  size_t elements, bytes;
} array;

typedef enum array_fill { FILL_RANDOM, FILL_ONES, FILL_ZEROS } array_fill;

/** An array of numbers ≥ 0; `name` is for the message where it is too large. */
array array_make(command *c, const char *name, tn_dtype dtype, tn_shape shape);

/** Random elements depend on *seed alone, which is moved on: floats have mean 0 and deviation 1,
    bools and integers are 0 or 1. */
void array_set(array *a, array_fill fill, uint64_t *seed);

/** What an output is after a run. */
array array_of_output(command *c, tn_binding *b, const char *name);

/** Reads a .npy file. A file of u16 for a `wanted` type of bf16 holds its bits, as array_write
    writes them. Raises with the file's name. */
array array_read(command *c, const char *path, tn_dtype wanted);

/** Writes a .npy file as file_write does; NULL: to standard output. */
void array_write(command *c, const array *a, const char *path);

/** "f32 [2, 3]"; sizes are words where `words` is given. In the arena. */
const char *array_type_text(command *c, tn_dtype dtype, size_t rank, const int64_t size[],
                            const char *const words[]);

/** What an array's elements are like. NaN is counted, and left out of all else. */
typedef struct array_summary {
  size_t nans;
  size_t least, greatest; /* places of these elements; SIZE_MAX: there are none */
  double mean;            /* NaN: of nothing */
} array_summary;
array_summary array_sum_up(const array *a);

/** An element: its bits, as scalar_load gives them, and these as a number. */
uint64_t array_element(const array *a, size_t i);
double array_number(dtype t, uint64_t bits);

/** "f32 [2, 3]" of an array, and an element as text, in the arena; and as JSON. */
const char *array_type(command *c, const array *a);
const char *array_text(command *c, const array *a, size_t i);
json_t *array_json(const array *a, size_t i);

#endif
