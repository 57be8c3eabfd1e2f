/* Launch expressions: sizes of launches, computed from the values of variables. An expression is
   compiled once and evaluated on every run, without allocating. */
#ifndef TENON_DEVICE_LAUNCH_H
#define TENON_DEVICE_LAUNCH_H

#include "base/wire.h"
#include "ir/ir.h"

typedef struct launch_step launch_step;

/** Expressions, compiled. */
typedef struct launch_code {
  const launch_step *steps;
  size_t n_steps;
  size_t n_results;
  const uint32_t *results; /* which step gives each */
} launch_code;

/** What the code of a kernel does with a buffer. */
typedef struct launch_array {
  bool is_stored;
  uint32_t element, rank; /* bytes of an element, and its number of sizes */
} launch_array;

/** What a launch is held to by who puts it together from what a file says. */
typedef struct launch_terms {
  const launch_array *arrays; /* of each buffer */
  const int64_t *bounds;      /* of each value: the least and the most, inclusive */
  launch_code dims;           /* the sizes of all buffers, of the values */
} launch_terms;

/** Compiles expressions over CONST, VAR, ADD, SUB, MUL, AFFINE, FLOORDIV, CDIV, MOD, CMOD, MAX,
   MIN, NEG, ABS and CAST of index and integer types. `names` are those of the values that
   launch_eval gets, sorted; a VAR that is none of these, a float constant, and any other op raise
    TN_ERR_ARGUMENT through the arena's diag. NULL in `exprs` is 1. */
launch_code launch_compile(arena *a, const node *const exprs[], size_t n, const char *const names[],
                           size_t n_names);

/** Sizes of a launch, which local[0] == NULL has no groups: as launch_compile's, global ones first.
    More than LAUNCH_STEPS steps raise TN_ERR_UNSUPPORTED. */
enum { LAUNCH_STEPS = 256 };
launch_code launch_compile_sizes(arena *a, const node *const global[3], const node *const local[3],
                                 const char *const names[], size_t n_names);

/** A copy in a block of launch_bytes bytes, a multiple of 8; `names` are those it was compiled
 * with, and stay. */
size_t launch_bytes(const launch_code *c);
launch_code launch_copy(const launch_code *c, void *block, const char *const names[]);

/** Writes what was compiled, and reads it back into an arena; `names` are those it was compiled
    with. What is read fails the reader unless it is what launch_compile can have made; or, for
    sizes, launch_compile_sizes. */
void launch_write(const launch_code *c, str *to);
launch_code launch_read(wire_reader *r, arena *a, const char *const names[], size_t n_names);
launch_code launch_read_sizes(wire_reader *r, arena *a, const char *const names[], size_t n_names);

/** Computes the results. `room` is for n_steps numbers. A value beyond its VAR's bounds, overflow,
   a division by zero and a value that does not fit its type are each a TN_ERR_ARGUMENT that says
   so.
 */
tn_status launch_eval(const launch_code *c, const int64_t values[], int64_t room[],
                      int64_t results[], diag *d);

/** What launch_compile_sizes compiled, computed on the stack; local sizes are 0 where there are no
    groups. A size that is not positive is TN_ERR_ARGUMENT too. */
tn_status launch_sizes(const launch_code *c, const int64_t values[], int64_t global[3],
                       int64_t local[3], diag *d);

#endif
