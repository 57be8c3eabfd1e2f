/* Launch expressions: sizes of launches, computed from the values of variables. An expression is
   compiled once and evaluated on every run, without allocating. */
#ifndef TENON_DEVICE_LAUNCH_H
#define TENON_DEVICE_LAUNCH_H

#include "ir/ir.h"

typedef struct launch_step launch_step;

/** Expressions, compiled. */
typedef struct launch_code {
  const launch_step *steps;
  size_t n_steps;
  size_t n_results;
  const uint32_t *results; /* which step gives each */
} launch_code;

/** Compiles expressions over CONST, VAR, ADD, SUB, MUL, AFFINE, FLOORDIV, CDIV, MOD, CMOD, MAX,
   MIN, NEG, ABS and CAST of index and integer types. `names` are those of the values that
   launch_eval gets, sorted; a VAR that is none of these, a float constant, and any other op raise
    TN_ERR_ARGUMENT through the arena's diag. NULL in `exprs` is 1. */
launch_code launch_compile(arena *a, const node *const exprs[], size_t n, const char *const names[],
                           size_t n_names);

/** Computes the results. `room` is for n_steps numbers. A value beyond its VAR's bounds, overflow,
   a division by zero and a value that does not fit its type are each a TN_ERR_ARGUMENT that says
   so.
 */
tn_status launch_eval(const launch_code *c, const int64_t values[], int64_t room[],
                      int64_t results[], diag *d);

/** The same for sizes: a result that is not positive is TN_ERR_ARGUMENT. */
tn_status launch_sizes(const launch_code *c, const int64_t values[], int64_t room[],
                       int64_t results[], diag *d);

#endif
