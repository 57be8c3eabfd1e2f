/* Interpreter of kernels, the reference evaluator for tests of all passes over kernels: runs the
   binders (STAGEs and FOLDs: loop nests) one iteration after the other, exactly as written. Slow
   and obvious. */
#ifndef TENON_TESTS_SUPPORT_INTERP_KERNEL_H
#define TENON_TESTS_SUPPORT_INTERP_KERNEL_H

#include "ir/interp/interp.h"

/** Runs a kernel of stage K, a SINK, and writes its outputs into the params of `e` after all reads.
    FOLDs run exactly as written. An element that no iteration of a STAGE wrote reads as all ones
    (NaN, −1), an element outside as 0. */
tn_status interp_kernel(const interp_env *e, const node *sink, const mem *m, diag *d);

/** Runs the kernel of a KERNEL node by interp_kernel: the callback `kernel` of interp_env. `result`
    is a cleared array of the node's type and sizes. */
tn_status interp_kernel_node(const interp_env *e, const node *n, const interp_array inputs[],
                             interp_array *result, const mem *m, diag *d);

#endif
