/* Declares tuning: the schedules of a plan's kernels are varied and measured, and those that make
   its runs faster are kept in a file, from which all later compilations take them. */
#ifndef TENON_TUNE_H
#define TENON_TUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tenon/export.h>
#include <tenon/plan.h>
#include <tenon/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The state of a tuning, or its result. */
typedef struct tn_tuning {
  size_t size;                /**< sizeof(tn_tuning) */
  uint64_t kernels;           /**< different kernels that have other schedules, of which a call of a
                                 library is one (tn_open_desc's `vendor`) */
  uint64_t predicted;         /**< schedules whose time was predicted */
  uint64_t measured;          /**< of these, measured; the others are predicted to be much slower,
                                 equal another one, were measured before, or cannot be compiled */
  uint64_t faster;            /**< kernels with a faster schedule than at the beginning */
  uint64_t kept;              /**< of these, at the end: those whose schedule is kept */
  double before_ms, after_ms; /**< time of a run at the beginning, and now: estimated from those of
                                 kernels until the end, then measured; equal if nothing is kept */
  double seconds_left;        /**< of `seconds`; 0 in the end */
  const char *file;           /**< of tuned schedules; lives as long as the context */
  bool ran_out;               /**< the time ended it, before all that is promising was measured */
  const char *library; /**< of which kernels may be calls (tn_open_desc's `vendor`); NULL: none
                          may; lives as long as the context */
  uint64_t
      library_measured; /**< kernels in place of which it was measured, and is one of `measured` */
  uint64_t library_faster; /**< of these: those that it was faster than */
  uint64_t library_kept;   /**< of `kept`, at the end: kernels that are calls of it */
} tn_tuning;

#define TN_TUNING_INIT \
  { sizeof(tn_tuning), 0, 0, 0, 0, 0, 0, 0, 0, NULL, false, NULL, 0, 0, 0 }

/** Options of tn_tune. */
typedef struct tn_tune_desc {
  size_t size;    /**< sizeof(tn_tune_desc) */
  double seconds; /**< time to spend, the last measurement of whole runs included; 0: until nothing
                     is left to measure */
  /** Called before each schedule is predicted or measured, and at the end, where outputs differ
      with the new schedules, before each build of the plan that seeks the one at fault; on the
      calling thread; may not use the binding. Returning false ends the tuning: what was found is
      measured in whole runs, and kept; at the end, schedules that are not checked yet are left to
      the next call. NULL: not called. */
  bool (*progress)(void *user, const tn_tuning *now);
  void *user;
} tn_tune_desc;

#define TN_TUNE_DESC_INIT \
  { sizeof(tn_tune_desc), 0, NULL, NULL }

/** Tunes the variant that a binding's runs take, for its present inputs and the context's threads.
    The plan or model was made with `tunable`, and has no states, no host functions and no tensors
   on other devices than the context's; the binding carries no outputs over (tn_binding_carry): else
   TN_ERR_UNSUPPORTED. Each measurement is appended to the context's file of tuned schedules
   (tn_open_desc.tuned), so that a process that was killed loses none of them, and a later call goes
   on; schedules that are kept are used by the binding's next runs and by all later compilations of
   such kernels ("Tuned schedules" in docs/library.md). They are kept if runs with these inputs and
   threads are faster with them in 8 of 10 rounds; other plans, inputs and numbers of threads use
   them unmeasured. `desc` NULL: INIT; `result` NULL: none. The message of a failure is the
   binding's; schedules that were kept stay. */
TN_API tn_status tn_tune(tn_binding *binding, const tn_tune_desc *desc, tn_tuning *result);

#ifdef __cplusplus
}
#endif
#endif
