/* Reads user kernels (tn_kernel of unstable/ir.h), which are immutable, verified kernel texts with
   atomic reference counts. */
#ifndef TENON_LAWS_KERNEL_HANDLE_H
#define TENON_LAWS_KERNEL_HANDLE_H

#include <tenon/unstable/ir.h>

/** Text of the kernel as print_graph writes it; owned by the kernel. */
const char *kernel_handle_text(const tn_kernel *k, size_t *bytes);

#endif
