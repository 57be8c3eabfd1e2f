/* Explains the compilation of a plan: the steps and kernels that it became, the decisions behind
   them, and the time that each part of the compilation took. Nothing under unstable/ is promised to
   stay. */
#ifndef TENON_UNSTABLE_EXPLAIN_H
#define TENON_UNSTABLE_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tenon/context.h>
#include <tenon/export.h>
#include <tenon/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An explanation of one plan, filled in by its compilation. */
typedef struct tn_explanation tn_explanation;

/** Requests an explanation of the next variant that the calling thread compiles for a plan or a
    model of the context: in tn_plan_compile or tn_model_bind where there is one for all sizes, else
    in tn_binding_prepare or a run. That variant is compiled in full, without the plan cache on
   disk. Kernels that are realised on the way or prepare constants are not part of it. The
   explanation is empty until the compilation, and incomplete if that fails. A new request replaces
   an unused one. `reasons` also records decisions, schedules and sources, which takes extra time.
   The explanation belongs to the context until it is freed and may outlive the plan; it must not be
   read or freed while the plan is being compiled. On failure *explanation is NULL. */
TN_API tn_status tn_explain(tn_context *context, bool reasons, tn_explanation **explanation);

/** Frees an explanation and drops its request if no plan has used it. NULL is allowed. */
TN_API void tn_explanation_free(tn_explanation *explanation);

/* Strings and lists in the structs below live as long as the explanation. */

/** A value computed by a step. */
typedef struct tn_explained_value {
  const char *text; /**< "reduce add f32 [64, n]" */
  const char *why;  /**< the decision about it, with estimated costs; "" without `reasons` */
} tn_explained_value;

/** A step, numbered as by tn_binding_step. */
typedef struct tn_explained_step {
  size_t size; /**< sizeof(tn_explained_step), set by the caller */
  const char *name;
  int64_t kernel;   /**< number of its kernel; -1: none */
  const char *what; /**< kind of a step without a kernel: "a host function", "a copy between
                       devices", "a collective by NCCL" or MPI, or a loop of steps */
  const tn_explained_value *values;
  size_t n_values;
  const size_t *reads; /**< earlier steps whose results it reads, each once */
  size_t n_reads;
  bool is_output;     /**< true: it writes a result of the plan */
  size_t n_places;    /**< arrays that it computes in larger ones, as pieces of a concatenation */
  size_t n_copies;    /**< arrays that it copies into larger ones */
  bool is_guarded;    /**< true: a run skips it if no branch that it takes needs it */
  const char *device; /**< name of the device it runs on; of a copy, of the one it copies to */
} tn_explained_step;

#define TN_EXPLAINED_STEP_INIT \
  { sizeof(tn_explained_step), NULL, -1, NULL, NULL, 0, NULL, 0, false, 0, 0, false, NULL }

/** Cost of a part of the compilation: time in nanoseconds, nodes made, rewrites. */
typedef struct tn_explained_cost {
  int64_t ns;
  uint64_t nodes; /**< nodes made */
  uint64_t rules; /**< rewrite rules fired */
} tn_explained_cost;

/** Predicted time of a run of a kernel on one thread, in nanoseconds. The largest part decides, the
    others add a share. A size that varies counts as its likely value: that of
    tn_model_size, else that of the run which is compiled for, else 64. */
typedef struct tn_explained_time {
  double total;
  double core;    /**< instructions, if all data were in the first cache */
  double l2_data; /**< data from beyond the first cache */
  double l3_data; /**< data from beyond the second cache */
  double memory;  /**< data from beyond the last cache */
} tn_explained_time;

/** A kernel: its loops, the laws of its schedule, its source. */
typedef struct tn_explained_kernel {
  size_t size;              /**< sizeof(tn_explained_kernel), set by the caller */
  const char *const *loops; /**< as scheduled, from outer to inner */
  size_t n_loops;
  const char *const *schedule; /**< laws applied, as lines that tn_kernel_desc takes */
  size_t n_schedule;
  const char *source;          /**< "" without `reasons` */
  tn_explained_cost cost;      /**< cost of its passes, up to its source */
  tn_explained_time predicted; /**< 0 without `reasons`, for a schedule that the caller gave, and on
                                  a device that works in teams */
  bool tuned;                  /**< the schedule was found by measuring (tn_tune) */
  const char *language;        /**< of the source: the name of its renderer, as "c" or "llvm" */
  const char *prelude; /**< what the compiler reads before the source; "" without `reasons` */
  const char *library; /**< the library that computes it (tn_open_desc's `vendor`): then `source` is
                          a line of what is called, and it has no language; NULL: none */
} tn_explained_kernel;

#define TN_EXPLAINED_KERNEL_INIT                                                                  \
  {                                                                                               \
    sizeof(tn_explained_kernel), NULL, 0, NULL, 0, NULL, {0, 0, 0}, {0, 0, 0, 0, 0}, false, NULL, \
        NULL, NULL                                                                                \
  }

/** A pass of the compiler, summed over all kernels. */
typedef struct tn_explained_pass {
  size_t size; /**< sizeof(tn_explained_pass), set by the caller */
  const char *name;
  tn_explained_cost cost;
} tn_explained_pass;

#define TN_EXPLAINED_PASS_INIT                   \
  {                                              \
    sizeof(tn_explained_pass), NULL, { 0, 0, 0 } \
  }

/* Describe the `i`-th step, kernel or pass: steps in order of execution, kernels by number, passes
   in the order in which they first ended. TN_ERR_ARGUMENT past the last; the struct is then
   unchanged, so that a loop can end there. One thread at a time. */
TN_API tn_status tn_explanation_step(const tn_explanation *explanation, size_t i,
                                     tn_explained_step *step);
TN_API tn_status tn_explanation_kernel(const tn_explanation *explanation, size_t i,
                                       tn_explained_kernel *kernel);
TN_API tn_status tn_explanation_pass(const tn_explanation *explanation, size_t i,
                                     tn_explained_pass *pass);

#ifdef __cplusplus
}
#endif
#endif
