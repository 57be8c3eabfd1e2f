/* Why the system gives a process no more memory for code (Linux: proc(5)). */
#ifndef TENON_DEVICE_CPU_MAPPING_H
#define TENON_DEVICE_CPU_MAPPING_H

#include <stddef.h>

/** Writes what it is that mmap or mprotect lacked when they failed with ENOMEM, and the way out:
    mappings, of which a process may have so many, or memory. Allocates nothing. */
void mapping_explain(char *text, size_t bytes);

#endif
