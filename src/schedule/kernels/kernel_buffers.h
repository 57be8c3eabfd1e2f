/* Lists the buffers that a kernel reads and writes, by the slots of its PARAMs (array
   arguments). */
#ifndef TENON_SCHEDULE_KERNELS_KERNEL_BUFFERS_H
#define TENON_SCHEDULE_KERNELS_KERNEL_BUFFERS_H

#include "ir/core/topo_sort.h"

typedef struct ir ir;

/** The buffers of a kernel whose PARAMs are numbered as buffers, each once, outputs first; `n`
    becomes their number. */
const size_t *kernel_buffers(ir *g, const node *sink, size_t *n);

/** The position of a buffer in a list; `n` if it is not there. */
size_t kernel_buffer_position(const size_t buffers[], size_t n, size_t buffer);

#endif
