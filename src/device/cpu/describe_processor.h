/* Describes the host's processor for reports to users: name, cores, caches, instruction sets.
   Choices of code generation depend on none of this (isa_level.h and detect_caches.h are for
   that). */
#ifndef TENON_DEVICE_CPU_DESCRIBE_PROCESSOR_H
#define TENON_DEVICE_CPU_DESCRIBE_PROCESSOR_H

#include <tenon/unstable/backend.h>

typedef struct processor {
  const char *name;                            /* static, as the two below; "unknown" */
  const char *level;                           /* of instructions that kernels use */
  char features[256];                          /* instruction sets, separated by spaces */
  uint32_t vector_bytes;                       /* of that level */
  uint32_t cores, logical_cores, usable_cores; /* usable: physical ones of this process */
  tn_hardware hardware;
} processor;

/** The processor, with kernels limited to a level (NULL, or a name that is none: no limit). */
processor processor_describe(const char *limit);

#endif
