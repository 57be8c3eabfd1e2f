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

/** Has the binding's runs from now on note when each of their steps begins and ends, by the clock
    of the device that does it; or no more, and then they take no time for it. */
TN_API tn_status tn_binding_profile(tn_binding *binding, bool on);

/** A step of a binding's runs. */
typedef struct tn_step {
  size_t size;        /**< sizeof(tn_step), set by the caller */
  const char *name;   /**< what it computes: of a model the nodes of the file, else operations; in
                           words that may change. As long as the binding */
  int64_t kernel;     /**< which of the plan's kernels, from 0: several steps may run the same one;
                           -1: a host function, or a loop */
  double operations;  /**< arithmetic and comparisons on elements in a run, a multiply-add being
                           two; as the plan has them, so what is computed again counts again; 0 of a
                           host function, and before the first run */
  double bytes;       /**< of arrays in memory in a run: each byte read and each written, once */
  int64_t begin, end; /**< in the last run, in nanoseconds since its first step began; both 0 where
                           it was not profiled or failed. Of a step in a loop: all trips together,
                           as if each step ran all of its trips before the next one */
  size_t steps;   /**< of a loop: how many of the steps that follow are run in its trips, so that
                       its time is theirs too; else 0 */
  uint64_t times; /**< it runs: in a loop once a trip */
} tn_step;

#define TN_STEP_INIT \
  { sizeof(tn_step), NULL, 0, 0, 0, 0, 0, 0, 0 }

/** Describes the `i`-th step, in the order in which they run, with the sizes of the last run. Past
    the last: TN_ERR_ARGUMENT, which leaves *step and the message alone, so that a loop ends there.
    TN_ERR_BUSY while another call is in the binding or a run goes on. */
TN_API tn_status tn_binding_step(tn_binding *binding, size_t i, tn_step *step);

/** Memory that a binding's runs need, in bytes. */
typedef struct tn_memory {
  size_t size;     /**< sizeof(tn_memory), set by the caller */
  uint64_t inputs; /**< the caller's own where the device can use it as it is, else as much again */
  uint64_t outputs; /**< all of them, once */
  uint64_t values; /**< tensors that were there when the plan was compiled, as weights are; those of
                        a model's file stay in it where they can */
  uint64_t states; /**< what is computed aside, or copied, comes on top */
  uint64_t scratch; /**< what lives between steps; values that do not live at once share it */
} tn_memory;

#define TN_MEMORY_INIT \
  { sizeof(tn_memory), 0, 0, 0, 0, 0 }

/** Tells what memory runs need with inputs of the sizes that were given last, before any of it is
    allocated. TN_ERR_ARGUMENT where an input has no value; what a failed call says is the binding's
    message. */
TN_API tn_status tn_binding_memory(tn_binding *binding, tn_memory *memory);

#ifdef __cplusplus
}
#endif
#endif
