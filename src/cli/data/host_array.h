/* Allocates, fills, reads, writes and summarises arrays in host memory, for a model's inputs and
   outputs. */
#ifndef TENON_CLI_DATA_HOST_ARRAY_H
#define TENON_CLI_DATA_HOST_ARRAY_H

#include "cli/core/command.h"

#include <jansson.h>

/** An array in the command's arena, at a multiple of 64. */
typedef struct host_array {
  void *data;
  tn_dtype dtype;
  tn_shape shape;
  size_t elements, bytes;
  const char **strings; /* elements of strings, whose numbers in a model are `data`; NULL: none */
} host_array;

typedef enum fill_kind { FILL_RANDOM, FILL_ONES, FILL_ZEROS } fill_kind;

/** Allocates an array. Sizes are at least 0; the message of a failure names it `name`. */
host_array host_array_alloc(command *c, const char *name, tn_dtype dtype, tn_shape shape);

/** Fills an array. Random elements depend on *seed alone, which advances: floats have mean 0 and
    deviation 1, bools and integers are 0 or 1. */
void host_array_fill(host_array *a, fill_kind fill, uint64_t *seed);

/** Reads output `i`, named `name`, after a run. */
host_array host_array_read_output(command *c, tn_binding *b, size_t i, const char *name);

/** Finds the strings of numbers that a model gave, each up to its first NUL. */
void host_array_find_strings(command *c, host_array *a, const tn_model *m);

/** Sets the numbers that the strings of an array have in a model. */
void host_array_number_strings(command *c, const host_array *a, tn_model *m);

/** Reads the array of a file. If bf16 is `expected`, u16 in a .npy file are its bits, and so are u8
    if a storage type is, as host_array_save writes them. Raises with the file's name. */
host_array host_array_load(command *c, const char *path, tn_file_format format, tn_dtype expected);

/** Writes a file as file_write does; `path` NULL: standard output. `name` is the name of an ONNX
    tensor. */
void host_array_save(command *c, const host_array *a, const char *path, tn_file_format format,
                     const char *name);

/** A type as text, "f32 [2, 3]", with `words` in place of sizes unless NULL. In the arena. */
const char *tensor_type_text(command *c, tn_dtype dtype, size_t rank, const int64_t size[],
                             const char *const words[]);

/** Statistics of an array's elements, without its NaNs; of strings there are none. */
typedef struct host_array_summary {
  size_t nans;
  size_t least, greatest; /* indices of the minimum and maximum; SIZE_MAX: none */
  double mean;            /* NAN: no elements */
} host_array_summary;
host_array_summary host_array_summarise(const host_array *a);

/** True if two arrays have one type and shape. */
bool host_array_is_like(const host_array *a, const host_array *b);

/** The value of element `i`; rounds integers beyond 2^53. */
double host_array_value(const host_array *a, size_t i);

/** An array's type, "f32 [2, 3]", and an element as text, in the arena; and an element as JSON.
    Strings are in quotes, with control characters escaped. */
const char *host_array_type_text(command *c, const host_array *a);
/** The name of the type of an array's elements: "f32", "string". */
const char *host_array_type_name(const host_array *a);
const char *host_array_element_text(command *c, const host_array *a, size_t i);
/** The index of element `i` as text: "[1, 0, 3]". In the arena. */
const char *host_array_index_text(command *c, const host_array *a, size_t i);
json_t *host_array_element_json(command *c, const host_array *a, size_t i);

#endif
