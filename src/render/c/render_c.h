/* Renders one LINEAR program (a list of instructions) as the text of one function in C or a dialect
   of it. Differences between the languages are data (dialect.h). */
#ifndef TENON_RENDER_C_RENDER_C_H
#define TENON_RENDER_C_RENDER_C_H

#include "base/str.h"
#include "ir/core/node.h"
#include "ir/transform/rewrite.h"

#include <tenon/unstable/backend.h>

typedef struct c_dialect c_dialect;

/** Appends the declarations that a file of kernels needs once, before the first kernel. */
void render_c_prelude(const c_dialect *d, str *out);

/** Appends one kernel with its vector types and helper functions, each guarded, so that kernels
   with the same ones can stand in one file. In GNU C the kernel is

      void ENTRY(void *const *restrict bufs, const int64_t *restrict vals)

    with bufs[i] and vals[i] the i-th buffer and value of a launch (tn_launch), and ENTRY the spec's
    `entry`, an identifier. The text depends on the program alone. Raises through out->arena->diag:
    TN_ERR_UNSUPPORTED for an op that the dialect lacks and that should have been decomposed,
    TN_ERR_INTERNAL for an ill-formed program. */
void render_c(const node *linear, const tn_program_spec *spec, const c_dialect *d, str *out);

/** Adds ops that the dialect supports for no type, or for some values only, to those that `t`
 * lacks. */
void render_c_unsupported_ops(const c_dialect *d, rule_target *t);

#endif
