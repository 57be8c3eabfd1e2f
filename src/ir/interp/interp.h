/* Interpreters of tensor graphs and of linear programs: the reference evaluators (oracles) against
   which compiled code is tested, slow and obvious. Every op is computed by its definition (ops.def,
   scalar_eval.h). */
#ifndef TENON_IR_INTERP_INTERP_H
#define TENON_IR_INTERP_INTERP_H

#include "base/arena.h"
#include "ir/core/ir.h"

enum { INTERP_MAX_RANK = IR_MAX_RANK }; /* the most dimensions of an array */

/** An array in row-major order; elements lie in memory as scalar_store writes them. */
typedef struct interp_array {
  dtype dtype;
  size_t rank;
  int64_t dims[INTERP_MAX_RANK];
  void *data;
  size_t bytes; /* of `data` */
} interp_array;

/** The value of a VAR by name, or of a SPECIAL other than core_id. */
typedef struct interp_var {
  const char *name;
  int64_t value;
} interp_var;

/** Inputs and callbacks of a run; all that a graph does not need may be 0. */
typedef struct interp_env interp_env;
struct interp_env {
  const interp_array *params; /* by slot; kernels and programs write their outputs here */
  size_t n_params;
  const interp_var *vars;
  size_t n_vars;
  /** Returns the contents of a BUFFER, valid and unchanged during the run; NULL: there are none. */
  const interp_array *(*buffer)(void *user, int64_t uid, int64_t version);
  /** Fills the result of a CUSTOM node, whose type, dimensions and (cleared) data are set, without
      changing the inputs: an input that a host function writes is a result too. Sets failures in
      `d`. */
  tn_status (*custom)(void *user, const node *n, const interp_array inputs[], size_t n_inputs,
                      interp_array *result, diag *d);
  /** Runs the kernel of a KERNEL node on `inputs` and writes the array of the node's slot into
      `result`, whose type, dimensions and (cleared) data are set. Sets failures in `d`.
      NULL: a KERNEL node is TN_ERR_ARGUMENT. */
  tn_status (*kernel)(const interp_env *e, const node *n, const interp_array inputs[],
                      interp_array *result, const mem *m, diag *d);
  void *user;
};

/** Evaluates the roots of a tensor graph; results[i], in the arena, is the array of roots[i].
    Reductions of floats accumulate in long double. Intermediate arrays are freed after their last
    use. Failures are in the arena's diag; an ill-formed graph is TN_ERR_INTERNAL. */
tn_status interp_tensor(const interp_env *e, const node *const roots[], size_t n,
                        interp_array results[], arena *a);

/** Runs a LINEAR, or that of a PROGRAM, as worker `core_id` of `core_count` on the params of `e`,
    of which it reads `data` and `bytes`. Checks every access: an address outside its storage, a
    value that is stored, or decides an address or a loop, and depends on an element of an ALLOC
    that was not written, a use of an undefined value, and a CDIV or CMOD that C leaves undefined
    are TN_ERR_INTERNAL with the node in the message. */
tn_status interp_linear(const interp_env *e, const node *linear, int64_t core_id,
                        int64_t core_count, const mem *m, diag *d);

/** A launch of a program in teams. */
typedef struct interp_teams {
  int64_t groups, workers; /* values below which the SPECIALs g0 and l0 are */
  int64_t warp;            /* workers of a warp; 1: there are none */
  uint64_t seed;           /* of the order in which workers run */
} interp_teams;

/** Runs a LINEAR, or that of a PROGRAM, by all groups, one after the other. The workers of a group
    run each by itself up to its next barrier, in random order. Also TN_ERR_INTERNAL: two workers
    access an element of memory that they share, or of a param, one of them writes it, and no
   barrier of both lies between; and a barrier at which a team does not meet, in the same
   iterations. */
tn_status interp_linear_in_teams(const interp_env *e, const node *linear, const interp_teams *teams,
                                 const mem *m, diag *d);

/* Helpers of all interpreters (interp_env.c); they raise. */

/** The value of a VAR as a scalar of its type. Raises TN_ERR_ARGUMENT for an unknown name or a
    value beyond the VAR's bounds. */
uint64_t interp_var_value(const interp_env *e, const node *var, diag *d);

/** The array of a PARAM. Raises TN_ERR_ARGUMENT if there is none or it has another type. */
const interp_array *interp_param(const interp_env *e, const node *param, diag *d);

/** The number of elements of a shape. Raises TN_ERR_SHAPE for a negative size or a rank above
    INTERP_MAX_RANK, and TN_ERR_MEMORY for a number of bytes beyond the address space. */
size_t interp_element_count(size_t rank, const int64_t dims[], size_t element_bytes, const node *n,
                            diag *d);

#endif
