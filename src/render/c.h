/* The writer of the C family: one LINEAR program becomes the text of one function. What differs
   between languages of the family stands in a c_dialect, a table (c_dialect.h). */
#ifndef TENON_RENDER_C_H
#define TENON_RENDER_C_H

#include "base/str.h"
#include "ir/node.h"
#include "ir/rewrite.h"

typedef struct c_dialect c_dialect;

/** GNU C for CPUs: gcc from 10, clang from 12. Compile it with -std=gnu11 -ffp-contract=off
    -fno-math-errno. */
extern const c_dialect c_gnu;

/** What a kernel is called with, in order: that of a launch. */
typedef struct c_arguments {
  size_t n_slots, n_names;
  const int64_t *slots;     /* of the PARAMs: the buffers */
  const char *const *names; /* of VARs and SPECIALs: the runtime values */
} c_arguments;

/** What a file of kernels needs once, before the first. */
void render_c_prelude(const c_dialect *d, str *out);

/** One kernel, and the vector types and helper functions it needs (each guarded, so that kernels
    that need the same ones can stand in one file). In GNU C the kernel is

      void ENTRY(void *const *restrict bufs, const int64_t *restrict vals)

    with bufs[i] the buffer of the i-th slot and vals[i] the i-th value of `arguments`; buffers of
    different slots do not overlap. `entry` is an identifier. The text depends on the program
   alone. Raises through out->arena->diag: TN_ERR_UNSUPPORTED for what the dialect cannot say (an op
   that should have been decomposed, too much scratch memory), TN_ERR_INTERNAL for an ill-formed
    program. */
void render_c(const node *linear, const c_arguments *arguments, const char *entry,
              const c_dialect *d, str *out);

/** Adds the ops that the dialect cannot say, for any type, to those that `t` lacks. */
void render_c_lacks(const c_dialect *d, rule_target *t);

#endif
