/* Builds a reduction in a kernel as a FOLD, the IR's reduction and scan node, which most tests of
   kernels need. */
#ifndef TENON_TESTS_SUPPORT_FOLD_REDUCTION_H
#define TENON_TESTS_SUPPORT_FOLD_REDUCTION_H

#include "ir/core/binder.h"

/** Reduces `v` along `ranges`. Returns the INDEX of a FOLD with one scalar state that starts at the
    identity of the op `o`. */
const node *fold_make_reduction(ir *g, op o, const node *v, size_t n, const node *const ranges[]);

#endif
