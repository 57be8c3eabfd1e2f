/* Explains failures to map memory for code: on Linux the number of a process's mappings is limited
   (proc(5)), and each loaded object takes up to three. */
#ifndef TENON_DEVICE_CPU_MAPPING_LIMIT_H
#define TENON_DEVICE_CPU_MAPPING_LIMIT_H

#include <stddef.h>

/** Writes the reason why mmap or mprotect failed with ENOMEM, and the way out: the limit on a
    process's mappings (vm.max_map_count), or memory. Allocates nothing. */
void mapping_limit_explain(char *text, size_t bytes);

#endif
