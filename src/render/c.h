/* The writer of the C family: one LINEAR program becomes the text of one function. What differs
   between languages of the family stands in a c_dialect, a table (c_dialect.h). */
#ifndef TENON_RENDER_C_H
#define TENON_RENDER_C_H

#include "base/str.h"
#include "ir/node.h"
#include "ir/rewrite.h"

#include <tenon/unstable/backend.h>

typedef struct c_dialect c_dialect;

/** GNU C for CPUs: gcc from 10, clang from 12. Compile it with -std=gnu11 -ffp-contract=off
    -fno-math-errno. */
extern const c_dialect c_gnu;

/** What a file of kernels needs once, before the first. */
void render_c_prelude(const c_dialect *d, str *out);

/** One kernel, and the vector types and helper functions it needs (each guarded, so that kernels
    that need the same ones can stand in one file). In GNU C the kernel is

      void ENTRY(void *const *restrict bufs, const int64_t *restrict vals)

    with bufs[i] and vals[i] the i-th buffer and value of a launch (tn_launch), ENTRY the spec's.
    `entry` is an identifier. The text depends on the program
   alone. Raises through out->arena->diag: TN_ERR_UNSUPPORTED for what the dialect cannot say (an op
   that should have been decomposed), TN_ERR_INTERNAL for an ill-formed program. */
void render_c(const node *linear, const tn_program_spec *spec, const c_dialect *d, str *out);

/** Adds the ops that the dialect cannot say, for any type, to those that `t` lacks. */
void render_c_lacks(const c_dialect *d, rule_target *t);

#endif
