/* The interpreters: what graphs mean, stage by stage. Slow, obvious, and the oracle of everything
   that is compiled. Each op is done by its definition (ops.def, binder.h, scalar.h). */
#ifndef TENON_IR_INTERP_H
#define TENON_IR_INTERP_H

#include "base/arena.h"
#include "ir/ir.h"

enum { INTERP_RANK = IR_MOST_RANK }; /* the most dimensions of an array */

/** An array in row-major order; elements lie in memory as scalar_store writes them. */
typedef struct interp_array {
  dtype dtype;
  size_t rank;
  int64_t dims[INTERP_RANK];
  void *data;
  size_t bytes; /* of `data` */
} interp_array;

/** The value of a VAR, or of a SPECIAL other than core_id. */
typedef struct interp_var {
  const char *name;
  int64_t value;
} interp_var;

/** What a graph is run with. What a graph does not need may be left 0. */
typedef struct interp_env {
  const interp_array *params; /* by slot; kernels write their outputs here */
  size_t n_params;
  const interp_var *vars;
  size_t n_vars;
  /** The contents of a BUFFER, which stay valid and unchanged while it runs; NULL: there is none.
   */
  const interp_array *(*buffer)(void *user, int64_t uid, int64_t version);
  /** Fills the result of a CUSTOM node, whose type, dimensions and (cleared) data are set. It must
      not change its inputs: what a node writes is a result. Failures are set in `d`. */
  tn_status (*custom)(void *user, const node *n, const interp_array inputs[], size_t n_inputs,
                      interp_array *result, diag *d);
  void *user;
} interp_env;

/** Evaluates roots of a tensor graph as the user wrote it. results[i] is that of roots[i], in the
    arena. Sums and products of floats are accumulated more exactly than their type and rounded
    once. Intermediate arrays are freed after their last use. The message of a failure is in the
    arena's diag; failures of the graph itself are TN_ERR_INTERNAL. */
tn_status interp_tensor(const interp_env *e, const node *const roots[], size_t n,
                        interp_array results[], arena *a);

/** Runs a kernel of stage K, a SINK, and writes its outputs into the params of `e` once all is
    read. FOLDs run exactly as written. An element that no iteration of a STAGE wrote reads as all
    ones (NaN, −1), one outside as 0. Not for a graph that another thread walks at this time. */
tn_status interp_kernel(const interp_env *e, const node *sink, const mem *m, diag *d);

/** Runs a LINEAR (or a PROGRAM's) as worker `core_id` of `core_count`, on the params of `e`, of
    which only `data` and `bytes` count. Every address is checked: an access outside its storage, a
    read of what was not written in an ALLOC, a value used where it is not defined, and a CDIV or
    CMOD that C leaves undefined are TN_ERR_INTERNAL, and the message names the node. */
tn_status interp_linear(const interp_env *e, const node *linear, int64_t core_id,
                        int64_t core_count, const mem *m, diag *d);

/** Runs the kernel of a KERNEL node by interp_kernel. `result` is a cleared array of its type and
    sizes. */
tn_status interp_kernel_node(const interp_env *e, const node *n, const interp_array inputs[],
                             interp_array *result, const mem *m, diag *d);

/* Shared by the interpreters; these raise. */

/** The value of a VAR as a scalar of its type; an unknown name or a value beyond the VAR's bounds
    is TN_ERR_ARGUMENT. */
uint64_t interp_var_value(const interp_env *e, const node *var, diag *d);

/** The array of a PARAM; TN_ERR_ARGUMENT if there is none or it has another type. */
const interp_array *interp_param(const interp_env *e, const node *param, diag *d);

/** The number of elements of a shape. TN_ERR_SHAPE for a negative size, a rank above INTERP_RANK,
    or a number of bytes beyond memory. */
size_t interp_count(size_t rank, const int64_t dims[], size_t element_bytes, const node *n,
                    diag *d);

#endif
