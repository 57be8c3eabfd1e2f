/* Kernels of plans, and records of their schedules, for tests of what a store of tuned schedules
   changes. */
#ifndef TENON_TESTS_TUNED_KERNELS_H
#define TENON_TESTS_TUNED_KERNELS_H

#include "compile/tuned_store.h"
#include "support/tensor_check.h"
#include "tensor/plan/plan_variant.h"

/** Copies of the kernels of a plan without facts, in an ir of their own that the caller frees.
    Raises. */
static inline kernel_copies plan_kernels(tn_plan *plan, diag *d) {
  kernel_copies kernels = {.ir = ir_new(&mem_system, d, false)};
  const int64_t no_facts = 0;
  const variant_request r = {.form = &no_facts, .kernels = &kernels};
  plan_variant *v;
  if (plan_variant_build(plan, &r, d, &v)) diag_rethrow(d);
  plan_variant_release(v);
  return kernels;
}

/** Appends a record to the store in a file. */
static inline void append_tuned_record(const char *path, const tuned_record *r) {
  tuned_store *s;
  diag d = {0};
  assert_true(tuned_store_open(&s, path, NULL, NULL, NULL, &mem_system));
  if (tuned_store_append(s, r, &d)) fail_msg("%s", d.text);
  tuned_store_close(s);
}

/** Counts the warnings of a logger whose `user` is an int. */
static inline void count_warning(void *user, tn_log_level level, const char *text) {
  (void)text;
  *(int *)user += level == TN_LOG_WARNING;
}

#endif
