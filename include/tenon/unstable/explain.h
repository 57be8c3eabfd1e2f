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

typedef struct tn_explanation tn_explanation;

/** Requests an explanation of the next plan of a context: the next call of tn_plan_compile, or of
    tn_model_bind for a model without a binding, that compiles one. That plan is compiled in full,
   as nothing of it is looked up on disk. Kernels that are realised on the way or prepare constants
   are no part of it. The explanation is empty until then, and incomplete where the compilation
   fails. A request before then replaces the one before. With `reasons` decisions, schedules and
   sources are kept, too, which takes time of its own. The explanation belongs to the context until
   it is freed and may outlive the plan; it is not read or freed while that plan is being compiled.
   On failure *explanation is NULL. */
TN_API tn_status tn_explain(tn_context *context, bool reasons, tn_explanation **explanation);

/** Frees an explanation and drops its request if no plan has taken it. NULL is allowed. */
TN_API void tn_explanation_free(tn_explanation *explanation);

/* Strings and lists in these structs live as long as the explanation. */

/** A value that a step computes. */
typedef struct tn_explained_value {
  const char *text; /**< "reduce add f32 [64, n]" */
  const char *why;  /**< the decision about it, with modelled costs; "" without `reasons` */
} tn_explained_value;

/** A step, with the number that tn_binding_step gives it. */
typedef struct tn_explained_step {
  size_t size; /**< sizeof(tn_explained_step), set by the caller */
  const char *name;
  int64_t kernel;   /**< its kernel's number; -1: it runs none */
  const char *what; /**< kind of a step without a kernel: "a host function", or a loop of steps */
  const tn_explained_value *values;
  size_t n_values;
  const size_t *reads; /**< earlier steps whose results it reads, each once */
  size_t n_reads;
  bool is_output; /**< it writes a result of the plan */
} tn_explained_step;

#define TN_EXPLAINED_STEP_INIT \
  { sizeof(tn_explained_step), NULL, -1, NULL, NULL, 0, NULL, 0, false }

/** Cost of a part of the compilation. */
typedef struct tn_explained_cost {
  int64_t ns;
  uint64_t nodes; /**< nodes made */
  uint64_t rules; /**< rules fired */
} tn_explained_cost;

typedef struct tn_explained_kernel {
  size_t size;              /**< sizeof(tn_explained_kernel), set by the caller */
  const char *const *loops; /**< as scheduled, from outer to inner */
  size_t n_loops;
  const char *const *schedule; /**< laws applied, as lines that tn_kernel_desc takes */
  size_t n_schedule;
  const char *source;     /**< "" without `reasons` */
  tn_explained_cost cost; /**< of its passes, up to its source */
} tn_explained_kernel;

#define TN_EXPLAINED_KERNEL_INIT                                     \
  {                                                                  \
    sizeof(tn_explained_kernel), NULL, 0, NULL, 0, NULL, { 0, 0, 0 } \
  }

/** A pass of the compiler, over all kernels together. */
typedef struct tn_explained_pass {
  size_t size; /**< sizeof(tn_explained_pass), set by the caller */
  const char *name;
  tn_explained_cost cost;
} tn_explained_pass;

#define TN_EXPLAINED_PASS_INIT                   \
  {                                              \
    sizeof(tn_explained_pass), NULL, { 0, 0, 0 } \
  }

/* Each describes the `i`-th step, kernel or pass: steps in the order of a run, kernels by their
   numbers, passes in the order in which they first ended. Past the last: TN_ERR_ARGUMENT, which
   leaves the struct alone, so that a loop ends there. One thread at a time. */
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
