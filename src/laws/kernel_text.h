/* Kernels of the caller's (unstable/ir.h): texts that were verified. */
#ifndef TENON_LAWS_KERNEL_TEXT_H
#define TENON_LAWS_KERNEL_TEXT_H

#include <tenon/unstable/ir.h>

/** The kernel as print_graph writes it, in its memory. */
const char *kernel_text(const tn_kernel *k, size_t *bytes);

#endif
