/* Profiles plans and models: describes their steps, what each does and how long it takes, and the
   memory that runs need. */
#ifndef TENON_PROFILE_H
#define TENON_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tenon/export.h>
#include <tenon/plan.h>
#include <tenon/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Switches profiling of the binding's later runs on or off. With it, each run records when its
    steps begin and end, by the clock of the device that executes them, set by the host's. */
TN_API tn_status tn_binding_profile(tn_binding *binding, bool on);

/** A step of a binding's runs: a kernel, a host function, a loop or a copy to another device.
   Arrays count once per byte read and once per byte written. */
typedef struct tn_step {
  size_t size;      /**< sizeof(tn_step), set by the caller */
  const char *name; /**< what it computes: the file's nodes for a model, else operations; the
                       wording may change. Lives as long as the binding */
  int64_t kernel; /**< number of the plan's kernel, from 0; several steps may share one; -1: a host
                     function, a loop or a copy */
  double operations;  /**< arithmetic operations and comparisons on elements per run, a multiply-add
                         counting as two, recomputed values each time; 0 for a host function, and
                         before the first run */
  double bytes;       /**< bytes read from and written to arrays in memory per run */
  int64_t begin, end; /**< in the last run, in nanoseconds since its first step began; both 0 if it
                         was not profiled or failed. In a loop: all trips added up, as if each step
                         ran all of its trips before the next step */
  size_t steps;   /**< for a loop: number of the following steps that make up its body, whose times
                     are part of its own; else 0 */
  uint64_t times; /**< executions per run: in a loop one per trip; 0: left out of the last run
                      (tn_binding_reuse, or of a branch that it did not take) */
  const char *device;  /**< name of the device it runs on; of a copy, of the one it copies to. Lives
                           as long as the context */
  const char *library; /**< the library, made by others, that its kernel is a call of
                          (tn_open_desc's `vendor`); NULL: none */
} tn_step;

#define TN_STEP_INIT \
  { sizeof(tn_step), NULL, 0, 0, 0, 0, 0, 0, 0, NULL, NULL }

/** Describes the `i`-th step, in order of execution, of the variant that the last run took or
    tn_binding_prepare compiled, with the sizes of the last run. TN_ERR_ARGUMENT past the last, and
    before both; *step and the message are then unchanged, so that a loop can end there.
    TN_ERR_BUSY while another call uses the binding or a run goes on. */
TN_API tn_status tn_binding_step(tn_binding *binding, size_t i, tn_step *step);

/** Memory that a binding's runs need, in bytes. */
typedef struct tn_memory {
  size_t size;      /**< sizeof(tn_memory), set by the caller */
  uint64_t inputs;  /**< all inputs: the caller's memory where the device can use it in place, else
                       copies of that size */
  uint64_t outputs; /**< all outputs, each once, but for `uncounted` ones */
  uint64_t values; /**< tensors that existed when the plan was compiled, such as weights; those in a
                      model's file stay there if they can */
  uint64_t states; /**< the states' contents; values computed aside and copies are not included */
  uint64_t scratch;   /**< intermediate results; those with disjoint lifetimes share memory */
  uint64_t uncounted; /**< number of outputs and intermediate results whose sizes a run computes,
                         and which are in no sum */
} tn_memory;

#define TN_MEMORY_INIT \
  { sizeof(tn_memory), 0, 0, 0, 0, 0, 0 }

/** Computes the memory that runs need with the inputs' current sizes, before any of it is
    allocated; compiles as tn_binding_prepare does. Loops that the host runs (docs/onnx.md) need
    further memory. TN_ERR_ARGUMENT where an input has no value. The
   message of a failure is the binding's. */
TN_API tn_status tn_binding_memory(tn_binding *binding, tn_memory *memory);

#ifdef __cplusplus
}
#endif
#endif
